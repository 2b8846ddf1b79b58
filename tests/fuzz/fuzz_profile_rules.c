// SPDX-License-Identifier: Apache-2.0
/* The .eh_frame of a file that somebody else wrote: whatever it says, rows have a known rule and place, a function ends
 * where it says, and no walk by them leaves the copy of the stack or goes down. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "profile/unwind.h"

#define ROWS 4096

struct seen {
	struct unwind_row last;
	unsigned n;
};

static int take(void *arg, const struct unwind_row *row)
{
	static const uint64_t words[16] = { 0x1000, 0x1008, 0x1010, 0x1018, 0x1020, 0x1028, 0x1030, 0x1038 };
	const struct unwind_memory m = { (const uint8_t *)words, 0x1000, sizeof(words) };
	struct unwind_state s = { .ip = 0x400, .sp = 0x1000, .bp = 0x1010 };
	struct seen *seen = arg;

	if (row->cfa_rule > UNWIND_CFA_NONE || row->ra_place > UNWIND_LOST || row->bp_place > UNWIND_LOST)
		abort();
	if (unwind_step(row, &m, &s) == UNWIND_ON && s.sp <= 0x1000)
		abort();
	seen->last = *row;
	return ++seen->n == ROWS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int fd = memfd_create("rules", MFD_CLOEXEC);
	struct seen seen = { 0 };
	int rc;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	rc = unwind_rows_read(fd, take, &seen);
	if (seen.n > ROWS || (rc > 0) != (seen.n == ROWS))
		abort();
	close(fd);
	return 0;
}
