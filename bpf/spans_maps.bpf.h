/* SPDX-License-Identifier: GPL-2.0-only */
/* What bpf/spans.bpf.c and each copy of bpf/spans_func.bpf.c share: made by the first, reused by the others.
 * Sizes of what only functions need are set by user space. */
#ifndef JOULED_SPANS_MAPS_BPF_H
#define JOULED_SPANS_MAPS_BPF_H

#define SPANS_RING (2 * 1024 * 1024)
#define BPF_RB_NO_WAKEUP 1 /* include/uapi/linux/bpf.h */
#define BPF_RB_FORCE_WAKEUP 2
#define BPF_RB_AVAIL_DATA 0

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, SPANS_RING);
} events SEC(".maps");

/* Open calls by thread. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, JD_CALL_THREADS);
	__type(key, u32);
	__type(value, struct jd_call_stack);
} stacks SEC(".maps");

/* Two banks: user space empties the one that is not written. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, JD_CALL_SUMS);
	__type(key, struct jd_call_key);
	__type(value, struct jd_call_sum);
} sums_even SEC(".maps"), sums_odd SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, JD_MAX_FUNCS);
	__type(key, u32);
	__type(value, struct jd_func_state);
} funcs SEC(".maps");

/* [0] = bank that is written. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} bank SEC(".maps");

/* The reader comes between readings; it is woken when the ring fills up before that. */
static __always_inline u64 wake_when_filling(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > SPANS_RING / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

#endif
