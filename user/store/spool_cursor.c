/* SPDX-License-Identifier: Apache-2.0 */
/* How far the records were taken. Losing it costs nothing but sending some again. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>
#include <zlib.h>
#include "spool_internal.h"

struct slot {
	uint64_t turn, segment, at;
	uint32_t crc, zero;
};

static uint32_t slot_crc(const struct slot *s)
{
	return (uint32_t)crc32(crc32(0, NULL, 0), (const Bytef *)s, offsetof(struct slot, crc));
}

int spool_cursor_open(struct spool *s, uint64_t *ret_segment, uint64_t *ret_at)
{
	struct slot slot;

	s->cursor_fd = openat(s->dir, "cursor", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->cursor_fd < 0)
		return -errno;
	*ret_segment = *ret_at = 0;
	for (unsigned i = 0; i < 2; i++) {
		if (spool_read_all(s->cursor_fd, &slot, sizeof(slot), i * sizeof(slot)) != 0 ||
		    slot.crc != slot_crc(&slot) || slot.turn < s->cursor_turn)
			continue;
		s->cursor_turn = slot.turn;
		*ret_segment = slot.segment;
		*ret_at = slot.at;
	}
	return 0;
}

void spool_cursor_save(struct spool *s)
{
	struct slot slot = { .turn = ++s->cursor_turn, .at = s->read_at };

	slot.segment = s->n_segments ? s->segments[0].number : s->next_number;
	slot.crc = slot_crc(&slot);
	/* a full disk must not matter: both slots are there from the first two times on */
	(void)spool_write_all(s->cursor_fd, &slot, sizeof(slot), slot.turn % 2 * sizeof(slot));
}
