/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a snapshot with its own paths and frequencies. */
#ifndef JD_SERVE_COPY_H
#define JD_SERVE_COPY_H
#include "base/buf.h"
#include "model/snapshot.h"

struct snapshot_copy {
	struct snapshot s;
	struct buf paths;
	uint32_t *khz;
};

int snapshot_copy(struct snapshot_copy *dst, const struct snapshot *src); /* 0 or -ENOMEM */
void snapshot_copy_free(struct snapshot_copy *c); /* does not free the struct itself; NULL accepted */

#endif
