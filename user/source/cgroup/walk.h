/* SPDX-License-Identifier: Apache-2.0 */
/* State of the lifecycle source. lifecycle.c loads the programs and takes their records; walk.c reads the mounted
 * tree and asks for the path of one id. */
#ifndef JD_WALK_H
#define JD_WALK_H
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/fsroot.h"
#include "model/cgroup.h"
#include "lifecycle.h"
#include <lifecycle.h> /* include/, not the one beside this file */

struct ring_buffer;
struct lifecycle_bpf;

#define LIFECYCLE_PENDING 256

struct lifecycle {
	struct cgroup_table *table;
	struct lifecycle_hooks hooks;
	struct lifecycle_bpf *skel; /* NULL without BPF */
	struct ring_buffer *ring;
	uint64_t lost_cgroups, lost_moves; /* already dealt with */
	unsigned taken; /* records of the current poll */
	unsigned renames, births; /* among them */
	int wake_fd; /* epoll over the ring: readable at its wake-ups alone */
	bool watching; /* births wake */
	uint64_t due_ns; /* end of the rest after such a wake-up; UINT64_MAX = it does not rest */
	uint64_t rest_ns; /* its length */
	bool rest_began; /* since the last lifecycle_rest */
	bool resolving, moves_owed; /* no hooks now; told at the next poll */
	bool sees_part; /* of the tree */
	bool walk_wanted; /* a record could not be kept, or the path of an id not be asked for */

	struct fsroot *root;
	int mount_fd; /* the mount's root directory */
	int self_fd; /* /proc/self/fd, for readlink; -1 = no such thing */
	uint64_t mount_id; /* cgroup there */
	char mount[CGROUP_PATH_MAX]; /* as readlink shows it, "" for "/" */

	uint64_t pending[LIFECYCLE_PENDING]; /* ids whose path did not fit their record */
	unsigned n_pending;

	uint32_t walk; /* number of the last walk */
	struct buf todo; /* directories still to read: NUL-terminated paths */
	char *dents; /* getdents64 buffer */
};


/* lifecycle.c: one record of n bytes, for ring_buffer__new; hostile lengths are refused. */
int lifecycle_record(void *ctx, void *data, size_t n);
/* Asks again for paths that could not be had with their record. */
void lifecycle_settle_pending(struct lifecycle *l);

/* Components of a path: 0 for "/". */
static inline uint16_t lifecycle_depth(const char *path)
{
	uint16_t n = 0;

	for (; *path; path++)
		n = (uint16_t)(n + (*path == '/' && path[1]));
	return n;
}

/* walk.c: reads the whole mounted tree into the table and ends what is gone. New entries
 * get born_ns. 0 or -errno. */
int lifecycle_walk(struct lifecycle *l, uint64_t born_ns);

/* walk.c: path of a living cgroup as it is reported. 0, -ESTALE when the kernel does not
 * know the id, -EXDEV when it lives outside the mount, -ENAMETOOLONG, -EPERM without
 * CAP_DAC_READ_SEARCH. */
int lifecycle_path_of(const struct lifecycle *l, uint64_t id, char ret_path[CGROUP_PATH_MAX]);
/* Learns how readlink shows the mount itself. */
int lifecycle_handle_init(struct lifecycle *l);

#endif
