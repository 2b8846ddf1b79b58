// SPDX-License-Identifier: GPL-2.0-only
/* Bytes and requests of block devices per cgroup, counted when a request completes.
 *
 * The cgroup is the one that the request's first bio belongs to (bio->bi_blkg), which for writeback is the cgroup that
 * dirtied the pages, whoever writes them. That is the nearest cgroup for which the io controller is on. Where the task
 * that asks for the request is further down, or where the io controller is on a hierarchy of cgroup v1, its own cgroup
 * is kept beside the first bio until the request completes; kernel threads work for others and are not asked.
 *
 * Bytes are those of the requests, so they are those of io.stat and of /sys/block/NAME/stat. Requests are the device's:
 * io.stat counts bios, of which a request holds several. Devices without requests (device mapper, md, zram) are not
 * seen; the devices below them are. */
#include "common.bpf.h"
#include "block.h"

#define OP_MASK 0xff /* include/linux/blk_types.h: REQ_OP_MASK, then enum req_op */
#define OP_DISCARD 3
#define OP_FIRST_PRIVATE 32 /* from here on commands of drivers, which no statistics count */

const volatile __s32 hierarchy_id = 0; /* of the accounted hierarchy; 0 = v2 */
const volatile __u64 root_id = 1; /* its root: work that belongs to no cgroup of it */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1); /* set by user space */
	__type(key, u64); /* cgroup id, or JD_BLOCK_OTHER */
	__type(value, struct jd_block);
} work SEC(".maps");

/* By a request's first bio, the cgroup to charge in place of the bio's; 0 = none. An address is used again and again, so
 * entries are cleared and not deleted. LRU, because one that was merged away or went with its device is not cleared. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, JD_BLOCK_OWNERS);
	__type(key, u64);
	__type(value, u64);
} owners SEC(".maps");

/* tp_btf may follow the typed pointers of a tracepoint; direct is a constant in every caller, so one branch remains. */
#define READ(direct, p, field) ((direct) ? (p)->field : BPF_CORE_READ(p, field))

/* The cgroup that a bio belongs to, in the hierarchy of the io controller; NULL = none. */
static __always_inline struct cgroup *cgroup_of(struct bio *bio, bool direct)
{
	struct blkcg_gq *group;
	struct blkcg *blkcg;

	if (!bio || !bpf_core_field_exists(bio->bi_blkg))
		return NULL;
	group = READ(direct, bio, bi_blkg);
	if (!group)
		return NULL;
	blkcg = READ(direct, group, blkcg);
	return blkcg ? READ(direct, blkcg, css.cgroup) : NULL;
}

static __always_inline bool is_accounted(struct cgroup *cgrp, bool direct)
{
	return (direct ? cgrp->root->hierarchy_id : BPF_CORE_READ(cgrp, root, hierarchy_id)) == hierarchy_id;
}

static __always_inline u64 id_of(struct cgroup *cgrp, bool direct)
{
	return direct ? cgrp->kn->id : BPF_CORE_READ(cgrp, kn, id);
}

/* Before Linux 6.1 a cgroup holds the ids of its ancestors by level. Tracing programs have no helper for them before 5.14. */
struct cgroup___ids {
	u64 ancestor_ids[1];
} __attribute__((preserve_access_index));

/* Id of the running task's cgroup, or of the one above it, at that level of v2. */
static __always_inline u64 ancestor_id(struct task_struct *task, int level)
{
	struct cgroup___ids *mine;
	u64 id = 0;

	if (!bpf_core_field_exists(struct cgroup___ids, ancestor_ids))
		return bpf_get_current_ancestor_cgroup_id(level);
	mine = (void *)BPF_CORE_READ(task, cgroups, dfl_cgrp);
	if (level < 0 || level > BPF_CORE_READ((struct cgroup *)mine, level))
		return 0;
	bpf_probe_read_kernel(&id, sizeof(id),
			      (void *)mine + bpf_core_field_offset(struct cgroup___ids, ancestor_ids) + (u64)level * 8);
	return id;
}

/* The cgroup of the running task where it says more than the bio; else 0. */
static __always_inline u64 better_owner(struct bio *bio, bool direct)
{
	struct cgroup *cgrp = cgroup_of(bio, direct);
	struct task_struct *task = (void *)bpf_get_current_task();
	bool accounted = cgrp && is_accounted(cgrp, direct);
	u64 mine, of_bio;

	if (accounted && hierarchy_id)
		return 0; /* controllers of one v1 hierarchy share its cgroups */
	if (accounted) {
		mine = bpf_get_current_cgroup_id();
		of_bio = id_of(cgrp, direct);
		if (mine == of_bio || ancestor_id(task, READ(direct, cgrp, level)) != of_bio)
			return 0;
		return BPF_CORE_READ(task, flags) & PF_KTHREAD ? 0 : mine;
	}
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return 0;
	return hierarchy_id ? BPF_CORE_READ(task_cgroup_v1(task), kn, id) : bpf_get_current_cgroup_id();
}

/* A bio gets a request: the task that submitted it runs, whatever thread will issue the request. */
static __always_inline int on_begin(struct bio *bio, bool direct)
{
	u64 key = (u64)bio, owner = better_owner(bio, direct), *kept = bpf_map_lookup_elem(&owners, &key);

	if (kept)
		*kept = owner;
	else if (owner)
		bpf_map_update_elem(&owners, &key, &owner, BPF_ANY);
	return 0;
}

/* Where the kept cgroup was pushed out, the bio's is charged. */
static __always_inline u64 cgroup_to_charge(struct bio *bio, bool last, bool direct)
{
	u64 key = (u64)bio, owner, *kept = bpf_map_lookup_elem(&owners, &key);
	struct cgroup *cgrp;

	if (kept && *kept) {
		owner = *kept;
		if (last)
			*kept = 0;
		return owner;
	}
	cgrp = cgroup_of(bio, direct);
	return cgrp && is_accounted(cgrp, direct) ? id_of(cgrp, direct) : root_id;
}

/* When the table is full, work without an entry goes to the entry for all others. */
static __always_inline struct jd_block *entry(u64 id)
{
	struct jd_block zero = {}, *b = bpf_map_lookup_elem(&work, &id);
	u64 other = JD_BLOCK_OTHER;

	if (b)
		return b;
	bpf_map_update_elem(&work, &id, &zero, BPF_NOEXIST);
	b = bpf_map_lookup_elem(&work, &id);
	return b ? b : bpf_map_lookup_elem(&work, &other);
}

/* A request completes in parts, and is counted with its last. One without data (flush) is none of io.stat's bytes. The
 * kinds are those of the device's statistics: op_stat_group() in include/linux/blk_types.h. Atomic although per CPU: a
 * completion in an interrupt can come into one of a thread. */
static __always_inline int on_complete(struct request *rq, unsigned int bytes, bool direct)
{
	u32 op = READ(direct, rq, cmd_flags) & OP_MASK;
	bool last = bytes >= READ(direct, rq, __data_len);
	struct jd_block *b;

	if (!bytes || op >= OP_FIRST_PRIVATE)
		return 0;
	b = entry(cgroup_to_charge(READ(direct, rq, bio), last, direct));
	if (!b)
		return 0;
	op = op == OP_DISCARD ? JD_BLOCK_DISCARD : op & 1;
	__sync_fetch_and_add(&b->kind[op].bytes, bytes);
	if (last)
		__sync_fetch_and_add(&b->kind[op].requests, 1);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(complete_btf, struct request *rq, int error, unsigned int bytes)
{
	return on_complete(rq, bytes, true);
}

SEC("raw_tp/block_rq_complete")
int BPF_PROG(complete_raw, struct request *rq, int error, unsigned int bytes)
{
	return on_complete(rq, bytes, false);
}

SEC("tp_btf/block_getrq")
int BPF_PROG(begin_btf, struct bio *bio)
{
	return on_begin(bio, true);
}

SEC("raw_tp/block_getrq")
int BPF_PROG(begin_raw, struct bio *bio)
{
	return on_begin(bio, false);
}

/* Before Linux 5.11 the queue stood before the bio. User space loads one of the two pairs. */
SEC("tp_btf/block_getrq")
int BPF_PROG(begin_old_btf, void *queue, struct bio *bio)
{
	return on_begin(bio, true);
}

SEC("raw_tp/block_getrq")
int BPF_PROG(begin_old_raw, void *queue, struct bio *bio)
{
	return on_begin(bio, false);
}
