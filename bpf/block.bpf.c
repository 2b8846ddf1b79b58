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
const volatile bool books = false; /* the io controller is on that hierarchy: a bio's cgroup is one of it */
const volatile bool typed_task = false; /* the kernel has bpf_get_current_task_btf() */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1); /* set by user space */
	__type(key, u64); /* cgroup id, or JD_BLOCK_OTHER */
	__type(value, struct jd_block);
} work SEC(".maps");

/* Rows of one CPU, a line of the cache each, for cgroups that work: looking into a hash of the kernel costs more than all
 * the rest. User space gives rows out and takes them back; every other cgroup is in the table above. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by user space: possible CPUs */
	__type(key, u32);
	__type(value, struct jd_block_rows);
} hot SEC(".maps");

/* The cgroup to charge in place of the bio's, by a request's first bio: a table of sets, because a hash of the kernel
 * costs more than all the rest. A word is a cgroup's id and a part of the bio's hash; 0 = free. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* begins with a page, so that a set is within one line of the cache */
	__uint(max_entries, JD_BLOCK_SETS);
	__type(key, u32);
	__type(value, struct jd_block_set);
} owners SEC(".maps");

__u32 work_changed = 0; /* the table above has new work; user space sets it back */
__u64 pushed_out = 0; /* words that gave way to others; some were of requests under way */

/* tp_btf may follow the typed pointers of a tracepoint; direct is a constant in every caller, so one branch remains. */
#define READ(direct, p, field) ((direct) ? (p)->field : BPF_CORE_READ(p, field))

/* The cgroup that a bio belongs to by the io controller's books; NULL = they tell nothing here. */
static __always_inline struct cgroup *cgroup_of(struct bio *bio, bool direct)
{
	struct blkcg_gq *group;
	struct blkcg *blkcg;

	if (!books || !bio || !bpf_core_field_exists(bio->bi_blkg))
		return NULL;
	group = READ(direct, bio, bi_blkg);
	if (!group)
		return NULL;
	blkcg = READ(direct, group, blkcg);
	return blkcg ? READ(direct, blkcg, css.cgroup) : NULL;
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

/* The cgroup of the running task where it says more than the bio; else 0. `direct`: the task may be followed. */
static __always_inline u64 better_owner(struct bio *bio, struct task_struct *task, bool direct_bio, bool direct)
{
	struct cgroup *cgrp = cgroup_of(bio, direct_bio), *mine;

	if (cgrp && hierarchy_id)
		return 0; /* controllers of one v1 hierarchy share its cgroups */
	mine = hierarchy_id ? task_cgroup_v1(task) :
	       direct       ? task->cgroups->dfl_cgrp :
			      BPF_CORE_READ(task, cgroups, dfl_cgrp);
	if (mine == cgrp || READ(direct, task, flags) & PF_KTHREAD)
		return 0;
	if (cgrp && ancestor_id(task, READ(direct_bio, cgrp, level)) != id_of(cgrp, direct_bio))
		return 0;
	return id_of(mine, direct && !hierarchy_id);
}

#define TAG ((1ull << JD_BLOCK_TAG_BITS) - 1)

/* The verifier calculates with no typed pointer, but the distance of two pointers is a number to it. */
static __always_inline u64 distance_of(struct bio *bio)
{
	u64 at = (u64)bio;

	asm volatile("%0 -= %1" : "+r"(at) : "r"(&pushed_out));
	return at;
}

static __always_inline u64 mix(u64 v)
{
	return v * 0x9e3779b97f4a7c15ull; /* 2^64 / the golden ratio: the upper bits are mixed */
}

/* Bios lie beside each other, on a stack or in a slab, and few are under way at a time: sets side by side for addresses
 * side by side are within few lines of the cache. Sets chosen by all bits of the address cost a miss per request. */
static __always_inline struct jd_block_set *set_of(u64 distance)
{
	u32 at = (distance >> JD_BLOCK_STEP) + (mix(distance >> JD_BLOCK_NEAR) >> 32);

	at &= JD_BLOCK_SETS - 1;
	return bpf_map_lookup_elem(&owners, &at);
}

/* It tells apart the addresses of a set; never 0. */
static __always_inline u64 tag_of(u64 distance)
{
	return (mix(distance) >> (64 - JD_BLOCK_TAG_BITS)) | 1;
}

/* Enters the owner; 0 = none. An address is used again and again, and what a request that was merged away left behind is
 * not of the one that comes now. */
static __always_inline void keep(struct bio *bio, u64 owner)
{
	u64 at = distance_of(bio), tag = tag_of(at), word = owner ? owner << JD_BLOCK_TAG_BITS | tag : 0;
	struct jd_block_set *set = set_of(at);
	u32 to = JD_BLOCK_WAYS;

	if (!set || owner >> (64 - JD_BLOCK_TAG_BITS))
		return;
#pragma unroll
	for (u32 i = 0; i < JD_BLOCK_WAYS; i++) {
		u64 w = set->way[i];

		if ((w & TAG) == tag) {
			set->way[i] = word;
			return;
		}
		if (!w)
			to = i;
	}
	if (!owner)
		return;
	if (to == JD_BLOCK_WAYS) {
		to = tag >> 1;
		__sync_fetch_and_add(&pushed_out, 1);
	}
	set->way[to % JD_BLOCK_WAYS] = word;
}

static __always_inline u64 kept_owner(struct bio *bio, bool last)
{
	u64 at = distance_of(bio), tag = tag_of(at);
	struct jd_block_set *set = set_of(at);

	if (!set)
		return 0;
#pragma unroll
	for (u32 i = 0; i < JD_BLOCK_WAYS; i++) {
		u64 w = set->way[i];

		if ((w & TAG) != tag)
			continue;
		if (last)
			set->way[i] = 0;
		return w >> JD_BLOCK_TAG_BITS;
	}
	return 0;
}

/* A bio gets a request: the task that submitted it runs, whatever thread will issue the request. */
static __always_inline int on_begin(struct bio *bio, bool direct)
{
	if (direct && typed_task)
		keep(bio, better_owner(bio, bpf_get_current_task_btf(), true, true));
	else
		keep(bio, better_owner(bio, (void *)bpf_get_current_task(), direct, false));
	return 0;
}

/* Where the kept cgroup was pushed out, the bio's is charged. */
static __always_inline u64 cgroup_to_charge(struct bio *bio, bool last, bool direct)
{
	u64 owner = kept_owner(bio, last);
	struct cgroup *cgrp;

	if (owner)
		return owner;
	cgrp = cgroup_of(bio, direct);
	return cgrp ? id_of(cgrp, direct) : root_id;
}

/* When the table is full, work without an entry goes to the entry for all others. */
static __noinline struct jd_block *new_entry(u64 id)
{
	struct jd_block zero = {}, *b;
	u64 other = JD_BLOCK_OTHER;

	bpf_map_update_elem(&work, &id, &zero, BPF_NOEXIST);
	b = bpf_map_lookup_elem(&work, &id);
	return b ? b : bpf_map_lookup_elem(&work, &other);
}

static __always_inline struct jd_block *entry(u64 id)
{
	struct jd_block *b = bpf_map_lookup_elem(&work, &id);

	return b ? b : new_entry(id);
}

/* The cgroup's row on this CPU; NULL = it has none. */
static __always_inline struct jd_block *hot_row(u64 id)
{
	u32 cpu = bpf_get_smp_processor_id(), at = id & (JD_BLOCK_HOT - 1);
	struct jd_block_rows *rows = bpf_map_lookup_elem(&hot, &cpu);

	if (!rows)
		return NULL;
	if (rows->row[at].id == id)
		return &rows->row[at].work;
	at ^= 1;
	return rows->row[at].id == id ? &rows->row[at].work : NULL;
}

/* Atomic although per CPU: a completion in an interrupt can come into one of a thread. */
static __always_inline void add(struct jd_block *b, u32 op, u32 bytes, bool last)
{
	u32 kind = op == OP_DISCARD ? JD_BLOCK_DISCARD : op & 1;

	__sync_fetch_and_add(&b->kind[kind].bytes, bytes);
	if (last)
		__sync_fetch_and_add(&b->kind[kind].requests, 1);
}

/* A request completes in parts, and is counted with its last. One without data (flush) is none of io.stat's bytes. The
 * kinds are those of the device's statistics: op_stat_group() in include/linux/blk_types.h. */
static __always_inline int on_complete(struct request *rq, unsigned int bytes, bool direct)
{
	u32 op = READ(direct, rq, cmd_flags) & OP_MASK;
	bool last = bytes >= READ(direct, rq, __data_len);
	struct jd_block *b;
	u64 id;

	if (!bytes || op >= OP_FIRST_PRIVATE)
		return 0;
	id = cgroup_to_charge(READ(direct, rq, bio), last, direct);
	b = hot_row(id);
	if (b) {
		add(b, op, bytes, last);
		return 0;
	}
	b = entry(id);
	if (!b)
		return 0;
	add(b, op, bytes, last);
	tell_changed(&work_changed);
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
