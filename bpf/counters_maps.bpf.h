/* SPDX-License-Identifier: GPL-2.0-only */
/* Maps and settings of the counters program. User space sets sizes (max_entries) and settings between
 * open and load. */
#ifndef JOULED_COUNTERS_MAPS_BPF_H
#define JOULED_COUNTERS_MAPS_BPF_H

const volatile __u32 n_cpus = 1; /* possible CPUs */
const volatile __u32 max_slots = 8;
const volatile __u32 bank_rows = 8; /* rows of one bank of a CPU */
const volatile __u32 wake_row = 0; /* user space is woken when this row of a bank is given out; 0 = never */
const volatile __u32 core_mask = 0; /* bit i: core event i is a perf event */
const volatile __u32 msr_mask = 0;
/* Columns that the switch program counts itself: where they stand among the counters of a row. */
const volatile __u32 sibling_column = JD_NO_COLUMN; /* time beside a busy sibling */
const volatile __u32 wakeup_column = JD_NO_COLUMN; /* exits from idle */
const volatile __u32 others_column =
	JD_NO_COLUMN; /* time x other busy CPUs; of the idle row: time in which none was busy */
const volatile __u32 quota = 0; /* rows one subtree may take; 0 = no limit */
const volatile bool multiplexed = false;
const volatile bool hierarchy_v1 = false;
const volatile bool clock_ktime = false;
const volatile bool charge_current = false; /* trigger perf_event: the next task is not known at a switch */

/* Perf event of (event, CPU) at index event * n_cpus + cpu; msr events follow the core ones at
 * JD_MAX_EVENTS * n_cpus. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct jd_cpu_state);
	__uint(max_entries, 1);
} states SEC(".maps");

/* Of the whole machine; only where there is a column for it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct jd_machine);
	__uint(max_entries, 1);
} machine SEC(".maps");

/* Row i of (cpu, bank) at index (cpu * JD_BANKS + bank) * bank_rows + i. Cpu-major, because neighbouring rows of
 * different CPUs cost two to four times as much when both CPUs are busy. User space sets the size of an element: a
 * struct jd_row up to its last configured counter. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct jd_row));
	__uint(max_entries, 1);
} rows SEC(".maps");

/* Slot of each row, from row JD_FIRST_SLOT on; same index as rows. Eight bytes each, because the kernel rounds an array
 * map's elements up to that. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, u64);
	__uint(max_entries, 1);
} row_slots SEC(".maps");

/* Same index as rows; a single entry when events are not multiplexed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct jd_mux_row);
	__uint(max_entries, 1);
} mux_rows SEC(".maps");

/* Numbers of CPUs whose active bank will soon have no room. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} full SEC(".maps");

/* Row of (cpu, slot) at index cpu * max_slots + slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct jd_place);
	__uint(max_entries, 1);
} places SEC(".maps");

/* Cgroup id -> slot. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, u64);
	__type(value, u32);
	__uint(max_entries, 1);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__type(value, u32);
	__uint(max_entries, 1);
} free_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct jd_slot_info);
	__uint(max_entries, 1);
} slot_info SEC(".maps");

/* Cgroup id -> rows taken below it, for the quota. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, u64);
	__type(value, u32);
	__uint(max_entries, 1);
} subtrees SEC(".maps");

#endif
