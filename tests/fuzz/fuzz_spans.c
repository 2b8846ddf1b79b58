/* SPDX-License-Identifier: Apache-2.0 */
/* First byte even: a stranger's ELF file is asked for a function. Odd: records of the ring in any order, cut into
 * [length, 2 bytes][record] pieces, into a small table; every span that comes out is sound. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "source/spans/probes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(void *ctx, const struct span *s)
{
	if (!s->id || s->end_ns < s->start_ns || !s->calls || strlen(s->comm) >= SPAN_COMM_MAX ||
	    strlen(s->exe) >= SPAN_PATH_MAX || strlen(s->cmdline) >= SPAN_CMDLINE_MAX)
		abort();
}

static void fuzz_symbol(const uint8_t *data, size_t size)
{
	char *image = malloc(size ? size : 1);
	uint64_t at = 0;

	memcpy(image, data, size);
	if (symbol_offset_in(image, size, "main", &at) == 0 && at >= size)
		abort();
	free(image);
}

static void fuzz_records(const uint8_t *data, size_t size)
{
	struct fsroot *root = NULL;
	struct spans s = { .finished = check, .page_bytes = 4096 };

	if (fsroot_open("/var/empty-of-processes", &root) && fsroot_open("/usr/share/doc", &root))
		return;
	s.root = root;
	if (process_table_init(&s.table, 8))
		abort();
	while (size >= 2) {
		size_t n = data[0] | (size_t)data[1] << 8;
		void *record;

		data += 2;
		size -= 2;
		n = n < size ? n : size;
		record = malloc(n ? n : 1); /* of its own, so that reading past it is seen */
		memcpy(record, data, n);
		spans_record(&s, record, n);
		free(record);
		data += n;
		size -= n;
	}
	spans_settle(&s, UINT64_MAX);
	process_table_free(&s.table);
	fsroot_close(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] & 1)
		fuzz_records(data + 1, size - 1);
	else
		fuzz_symbol(data + 1, size - 1);
	return 0;
}
