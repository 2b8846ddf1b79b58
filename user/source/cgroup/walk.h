/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the lifecycle source: lifecycle.c owns it, lifecycle_bpf.c loads the programs,
 * lifecycle_record.c takes their records, lifecycle_walk.c reads the mounted tree,
 * lifecycle_handle.c asks for one id. */
#ifndef JD_LIFECYCLE_INTERNAL_H
#define JD_LIFECYCLE_INTERNAL_H
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/buf.h"
#include "../base/fsroot.h"
#include "../model/cgroup.h"
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
	unsigned renames; /* among them */
	bool resolving, moves_owed; /* no hooks now; told at the next poll */
	bool walk_wanted; /* a record could not be kept, or an id not be asked for */

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

/* lifecycle_bpf.c: loads and attaches, tp_btf first, raw_tp where that is refused. */
int lifecycle_bpf_open(struct lifecycle *l, int hierarchy_id, const char *btf, struct err *err);
void lifecycle_bpf_close(struct lifecycle *l);
uint64_t lifecycle_bpf_lost_cgroups(const struct lifecycle *l);
uint64_t lifecycle_bpf_lost_moves(const struct lifecycle *l);

/* lifecycle_record.c: one record of n bytes, for ring_buffer__new; hostile lengths are refused. */
int lifecycle_record(void *ctx, void *data, size_t n);
void lifecycle_tell_moved(struct lifecycle *l, uint32_t cpu); /* cpu may be JD_EVERY_CPU */
/* Asks again for paths that could not be had with their record. */
void lifecycle_settle_pending(struct lifecycle *l);
/* Stands for a path that cannot be told: what is known of it, less the component that was cut. */
void lifecycle_placeholder(uint64_t id, const char *cut, char ret_path[CGROUP_PATH_MAX]);

/* Components of a path: 0 for "/". */
static inline uint16_t lifecycle_depth(const char *path)
{
	uint16_t n = 0;

	for (; *path; path++)
		n = (uint16_t)(n + (*path == '/' && path[1]));
	return n;
}

/* lifecycle_walk.c: reads the whole mounted tree into the table and ends what is gone. New entries
 * get born_ns. 0 or -errno. */
int lifecycle_walk(struct lifecycle *l, uint64_t born_ns);

/* lifecycle_handle.c: path of a living cgroup as it is reported. 0, -ESTALE when the kernel does not
 * know the id, -EXDEV when it lives outside the mount, -ENAMETOOLONG, -EPERM without
 * CAP_DAC_READ_SEARCH. */
int lifecycle_path_of(const struct lifecycle *l, uint64_t id, char ret_path[CGROUP_PATH_MAX]);
/* Learns how readlink shows the mount itself. */
int lifecycle_handle_init(struct lifecycle *l);

#endif
