// SPDX-License-Identifier: Apache-2.0
/* Symbol tables and perf maps that somebody else wrote. The first byte chooses, the next two are an address: a name is
 * given only by a range that has the address. */
#include <stdlib.h>
#include <string.h>
#include "profile/symbol_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbol_query q[3] = { { .at = 0 }, { .at = 1 }, { .at = 2 } };
	char *copy, build_id[BUILD_ID_TEXT] = "";

	if (size < 4 || size > 65536)
		return 0;
	copy = malloc(size - 3);
	if (!copy)
		return 0;
	memcpy(copy, data + 3, size - 3);
	q[0].offset = data[1];
	q[1].offset = (uint64_t)data[1] << 8 | data[2];
	q[2].offset = UINT64_MAX - data[2];
	if (data[0] & 1) {
		perf_map_read(copy, size - 3, q, 3);
	} else {
		elf_build_id_in(copy, size - 3, build_id);
		elf_symbols_in(copy, size - 3, q, 3);
	}
	if (build_id[strspn(build_id, "0123456789abcdef")] || strlen(build_id) % 2)
		abort();
	for (unsigned i = 0; i < 3; i++) {
		if ((q[i].name && (!q[i].size || strlen(q[i].name) > SYMBOL_RAW_MAX)) ||
		    (i && q[i].address < q[i - 1].address && q[i].name))
			abort();
		free(q[i].name);
	}
	free(copy);
	return 0;
}
