/* SPDX-License-Identifier: GPL-2.0-only */
/* Maps that bpf/spans.bpf.c and each copy of bpf/spans_func.bpf.c share: the first makes them, the others reuse them.
 * User space sets the sizes of maps that only functions need. */
#ifndef JOULED_SPANS_MAPS_BPF_H
#define JOULED_SPANS_MAPS_BPF_H

#define SPANS_RING (2 * 1024 * 1024)

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

/* Two banks: user space empties the one that the programs do not write. */
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

/* [0] = bank that the programs write. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} bank SEC(".maps");

static __always_inline u64 spans_wake(void)
{
	return wake_when_filling(&events, SPANS_RING);
}

#endif
