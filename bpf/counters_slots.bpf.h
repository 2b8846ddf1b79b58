/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the row that a task is charged to: gives slots to cgroups, and to slots the rows of a CPU. */
#ifndef JOULED_COUNTERS_SLOTS_BPF_H
#define JOULED_COUNTERS_SLOTS_BPF_H
#include "counters_maps.bpf.h"

/* tp_btf programs may follow their typed pointers directly. Pointers of raw_tp are not trusted and
 * need probe reads. `direct` is a constant in every caller, so one branch remains. */
#define FIELD(direct, p, ...) ((direct) ? DIRECT(p, __VA_ARGS__) : BPF_CORE_READ(p, __VA_ARGS__))
#define DIRECT1(p, a) ((p)->a)
#define DIRECT2(p, a, b) ((p)->a->b)
#define DIRECT3(p, a, b, c) ((p)->a->b->c)
#define DIRECT_PICK(_1, _2, _3, name, ...) name
#define DIRECT(p, ...) DIRECT_PICK(__VA_ARGS__, DIRECT3, DIRECT2, DIRECT1)(p, __VA_ARGS__)

static __always_inline struct cgroup *task_cgroup(struct task_struct *task, bool direct)
{
	if (!hierarchy_v1)
		return FIELD(direct, task, cgroups, dfl_cgrp);
	return task_cgroup_v1(task);
}

static __always_inline u64 cgroup_id(struct cgroup *cgrp, bool direct)
{
	return direct && !hierarchy_v1 ? cgrp->kn->id : BPF_CORE_READ(cgrp, kn, id);
}

/* Idle tasks and kernel threads are in the root cgroup; they get rows of their own. A kernel
 * thread that was moved into another cgroup belongs to that cgroup. */
static __always_inline u64 row_key(struct task_struct *task, bool direct)
{
	if (FIELD(direct, task, pid) == 0)
		return JD_KEY_IDLE;
	struct cgroup *cgrp = task_cgroup(task, direct);

	if ((FIELD(direct, task, flags) & PF_KTHREAD) && BPF_CORE_READ(cgrp, level) == 0)
		return JD_KEY_KERNEL;
	return cgroup_id(cgrp, direct);
}

/* Ids of the ancestors whose subtrees have a quota, 0 where there is none. False when the cgroup lies so deep that the
 * loop does not reach them. Two loops, because the verifier walks each turn of them: the long one only climbs. */
static __always_inline bool quota_ancestors(struct cgroup *cgrp, struct jd_slot_info *ret_info)
{
	struct cgroup *up = BPF_CORE_READ(cgrp, self.parent, cgroup);
	const int below = JD_QUOTA_LEVEL + JD_QUOTA_LEVELS; /* the first level without one again */

	for (int i = 0; i < JD_MAX_DEPTH - JD_QUOTA_LEVELS && BPF_CORE_READ(up, level) >= below; i++)
		up = BPF_CORE_READ(up, self.parent, cgroup);
	if (BPF_CORE_READ(up, level) >= below)
		return false;
#pragma unroll
	for (int at = JD_QUOTA_LEVELS - 1; at >= 0; at--) {
		if (BPF_CORE_READ(up, level) != JD_QUOTA_LEVEL + at)
			continue;
		ret_info->ancestors[at] = BPF_CORE_READ(up, kn, id);
		up = BPF_CORE_READ(up, self.parent, cgroup);
	}
	return true;
}

/* The outermost subtree whose share is used up, 0 = none. Each level's share is half of the one above, so a subtree
 * that has used up its share leaves room for its neighbours. */
static __always_inline u64 full_subtree(const struct jd_slot_info *info)
{
	if (!quota)
		return 0;
#pragma unroll /* here and below: the verifier of 6.1 may refuse the back-edge of a loop */
	for (int i = 0; i < JD_QUOTA_LEVELS; i++) {
		u64 id = info->ancestors[i];
		u32 *count = id ? bpf_map_lookup_elem(&subtrees, &id) : NULL;

		if (count && *count >= ((quota >> i) ?: 1))
			return id;
	}
	return 0;
}

static __always_inline void quota_take(const struct jd_slot_info *info)
{
#pragma unroll
	for (int i = 0; i < JD_QUOTA_LEVELS; i++) {
		u64 id = info->ancestors[i];
		u32 zero = 0, *count;

		if (!id)
			continue;
		bpf_map_update_elem(&subtrees, &id, &zero, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&subtrees, &id);
		if (count)
			__sync_fetch_and_add(count, 1);
	}
}

/* Two CPUs may meet the same new cgroup at once. The first insertion wins; the other CPU gives its
 * slot back and uses the winner's. JD_SLOT_OTHER when there is no room. */
static __always_inline u32 take_slot(const struct jd_slot_info *info)
{
	u32 slot;

	if (bpf_map_pop_elem(&free_slots, &slot))
		return JD_SLOT_OTHER;
	struct jd_slot_info *at = bpf_map_lookup_elem(&slot_info, &slot);

	if (!at)
		return JD_SLOT_OTHER;
	*at = *info; /* before the id is in the map, so that a row always has a known owner */
	if (bpf_map_update_elem(&slots, &info->key, &slot, BPF_NOEXIST)) {
		u32 *other = bpf_map_lookup_elem(&slots, &info->key);

		at->key = 0;
		bpf_map_push_elem(&free_slots, &slot, 0);
		return other ? *other : JD_SLOT_OTHER;
	}
	quota_take(info);
	return slot;
}

/* A row for a cgroup that may have no tasks of its own, as is usual for cgroups with children. */
static __noinline u32 subtree_slot(struct cgroup *cgrp, u64 key)
{
	struct jd_slot_info info = { .key = key };

	quota_ancestors(cgrp, &info);
	return take_slot(&info);
}

/* No room: the nearest ancestor that has a row, never the root, which belongs to no tenant. When a subtree has used up
 * its share, this is an ancestor within the subtree, so that cgroups above it are not charged. */
static __always_inline u32 fold(struct jd_cpu_state *st, struct cgroup *cgrp, u64 full)
{
	struct cgroup *up = BPF_CORE_READ(cgrp, self.parent, cgroup), *top = NULL;

	st->folded++;
	for (int i = 0; i < JD_MAX_DEPTH && !top && BPF_CORE_READ(up, level) > 0; i++) {
		u64 id = BPF_CORE_READ(up, kn, id);
		u32 *slot = bpf_map_lookup_elem(&slots, &id);

		if (slot)
			return *slot;
		if (id == full)
			top = up;
		up = BPF_CORE_READ(up, self.parent, cgroup);
	}
	return top ? subtree_slot(top, full) : JD_SLOT_OTHER;
}

static __noinline u32 new_slot(struct jd_cpu_state *st, struct cgroup *cgrp, u64 key)
{
	struct jd_slot_info info = { .key = key };
	u32 slot = JD_SLOT_OTHER;
	bool reached = quota_ancestors(cgrp, &info);
	u64 full = full_subtree(&info);

	if (!full && (reached || !quota))
		slot = take_slot(&info);
	return slot == JD_SLOT_OTHER ? fold(st, cgrp, full) : slot;
}

static __always_inline u32 row_index(const struct jd_cpu_state *st, u32 row)
{
	return (bpf_get_smp_processor_id() * JD_BANKS + (st->bank & 1)) * bank_rows + row;
}

static __always_inline void clear_row(const struct jd_cpu_state *st, u32 number)
{
	u32 at = row_index(st, number);
	struct jd_row *row = bpf_map_lookup_elem(&rows, &at);
	struct jd_mux_row *mux = multiplexed ? bpf_map_lookup_elem(&mux_rows, &at) : NULL;

	if (!row)
		return;
	row->time_ns = 0;
	row->switches = 0;
	row->lost = 0;
#pragma unroll
	for (u32 i = 0; i < JD_MAX_EVENTS; i++)
		if (core_mask & (1u << i) || i == sibling_column || i == wakeup_column || i == others_column)
			row->counters[i] = 0;
	if (mux)
		__builtin_memset(mux, 0, sizeof(*mux));
}

/* The bank's next row. A bank without room has the row of other. */
static __always_inline u32 new_row(struct jd_cpu_state *st, struct jd_place *place, u32 slot)
{
	u32 bank = st->bank & 1, row = st->n_rows[bank], at = row_index(st, row);
	u64 *owner = row < bank_rows ? bpf_map_lookup_elem(&row_slots, &at) : NULL;

	if (!owner) {
		st->folded++;
		return JD_SLOT_OTHER;
	}
	clear_row(st, row);
	*owner = slot;
	place->row = row;
	place->epoch = st->epoch;
	st->n_rows[bank] = row + 1;
	if (wake_row && row == wake_row) {
		u32 cpu = bpf_get_smp_processor_id();

		bpf_ringbuf_output(&full, &cpu, sizeof(cpu), BPF_RB_FORCE_WAKEUP);
	}
	return row;
}

/* The row of a slot in the active bank. A flush does not interrupt it: it is busy, as in a charge. */
static __noinline u32 row_of_slot(struct jd_cpu_state *st, u32 slot)
{
	u32 at = bpf_get_smp_processor_id() * max_slots + slot, row;
	struct jd_place *place = bpf_map_lookup_elem(&places, &at);

	if (slot < JD_FIRST_SLOT)
		return slot;
	if (!place)
		return JD_SLOT_OTHER;
	*(volatile u64 *)&st->seq += 1;
	row = place->epoch == st->epoch ? place->row : new_row(st, place, slot);
	*(volatile u64 *)&st->seq += 1;
	return row;
}

static __always_inline u32 row_of(struct jd_cpu_state *st, struct task_struct *task, u64 key, bool direct)
{
	if (key == JD_KEY_IDLE)
		return JD_SLOT_IDLE;
	if (key == JD_KEY_KERNEL)
		return JD_SLOT_KERNEL;
	struct jd_cache_entry *e = &st->cache[(key ^ (key >> 10)) & (JD_CACHE_ENTRIES - 1)];
	u32 epoch = *(volatile u32 *)&st->epoch;

	if (e->key == key && e->epoch == epoch)
		return e->row;
	u32 *found = bpf_map_lookup_elem(&slots, &key);
	u32 slot = found ? *found : new_slot(st, task_cgroup(task, direct), key);
	u32 row = row_of_slot(st, slot);

	e->key = key;
	e->row = row;
	e->epoch = epoch;
	return row;
}

/* User space calls this when two readings after the end of the slot's cgroup had no count of the slot. */
static __noinline void retire_slot(u32 slot)
{
	struct jd_slot_info *info = bpf_map_lookup_elem(&slot_info, &slot);

	if (!info || !info->key)
		return;
	u64 key = info->key;

	bpf_map_delete_elem(&slots, &key);
	for (int i = 0; i < JD_QUOTA_LEVELS; i++) {
		u64 id = info->ancestors[i];
		u32 *count = id ? bpf_map_lookup_elem(&subtrees, &id) : NULL;

		if (count)
			__sync_fetch_and_add(count, -1);
		if (count && *count == 0)
			bpf_map_delete_elem(&subtrees, &id);
		info->ancestors[i] = 0;
	}
	info->key = 0;
	bpf_map_push_elem(&free_slots, &slot, 0);
}

#endif
