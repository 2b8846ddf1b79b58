// SPDX-License-Identifier: Apache-2.0
/* Symbol tables, debug information and perf maps that somebody else wrote. The first byte chooses, the next two are an address:
 * a name is given only by a range that has the address, and functions that were compiled in come with the one around them. */
#include <stdlib.h>
#include <string.h>
#include "profile/symbol_query.h"

/* libdw forgets some bytes when scopes end in nonsense; the process that reads a file ends soon. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libdw";
}

static struct symbol_query q[3];

static void take(void *arg, const struct symbol_query *of, const struct source *s)
{
	unsigned *depth = arg;

	if (of < q || of >= q + 3 || of->address == UINT64_MAX)
		abort();
	if ((s->function && !memchr(s->function, 0, 1u << 20)) || (s->file && !memchr(s->file, 0, 1u << 20)))
		abort();
	if (++depth[of - q] > SOURCE_INLINES_MAX + 1)
		abort();
}

/* also: the image is the file that it shares debug information with, too */
static void read_elf(char *image, size_t size, bool also)
{
	char build_id[BUILD_ID_TEXT] = "";
	unsigned depth[3] = { 0 };
	Elf *elf = elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_memory(image, size);
	Elf *alt = elf && also ? elf_memory(image, size) : NULL;
	struct elf_alt lacks;

	elf_build_id_of(elf, build_id);
	if (build_id[strspn(build_id, "0123456789abcdef")] || strlen(build_id) % 2)
		abort();
	if (elf_symbols_of(elf, NULL, q, 3) == 0)
		if (!elf_lines_of(elf, alt, &lacks, q, 3, take, depth) &&
		    (depth[0] || depth[1] || depth[2] || !lacks.build_id[0] ||
		     lacks.build_id[strspn(lacks.build_id, "0123456789abcdef")] ||
		     !elf_lines_of(elf, alt, NULL, q, 3, take, depth)))
			abort();
	elf_end(alt);
	elf_end(elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy;

	if (size < 4 || size > 65536)
		return 0;
	copy = malloc(size - 3);
	if (!copy)
		return 0;
	memcpy(copy, data + 3, size - 3);
	memset(q, 0, sizeof(q));
	q[0].offset = data[1];
	q[1].offset = (uint64_t)data[1] << 8 | data[2];
	q[2].offset = UINT64_MAX - data[2];
	if (data[0] & 1)
		perf_map_read(copy, size - 3, q, 3);
	else
		read_elf(copy, size - 3, data[0] & 2);
	for (unsigned i = 0; i < 3; i++) {
		if ((q[i].name && (!q[i].size || strlen(q[i].name) > SYMBOL_RAW_MAX)) ||
		    (i && q[i].address < q[i - 1].address && q[i].name))
			abort();
		free(q[i].name);
	}
	free(copy);
	return 0;
}
