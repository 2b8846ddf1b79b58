/* SPDX-License-Identifier: Apache-2.0 */
/* Any records in any order: the input is cut into [length, 2 bytes][record] pieces. Names in them
 * come from whoever may make a cgroup. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "source/cgroup/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lifecycle l = { .mount_fd = -1, .self_fd = -1, .table = cgroup_table_new() };
	struct cgroup *cg;
	unsigned pos = 0;

	while (size >= 2) {
		size_t n = data[0] | (size_t)data[1] << 8;
		void *record;

		data += 2;
		size -= 2;
		n = n < size ? n : size;
		record = malloc(n ? n : 1); /* of its own, so that reading past it is seen */
		memcpy(record, data, n);
		lifecycle_record(&l, record, n);
		free(record);
		data += n;
		size -= n;
	}
	lifecycle_settle_pending(&l);
	while ((cg = cgroup_next(l.table, &pos)))
		if (strlen(cg->path) >= CGROUP_PATH_MAX || cgroup_find(l.table, cg->id) != cg)
			abort();
	cgroup_table_sweep(l.table, UINT64_MAX);
	cgroup_table_free(l.table);
	return 0;
}
