/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Layout of the mmaped maps that bpf/counters.bpf.c writes and user/source/counters/counters.c reads:
 * the per-CPU states, the rows (one array, cpu-major) and the slots that the rows belong to.
 *
 * A cgroup has a slot, and at its first charge on a CPU after a flush its slot gets the next row of that CPU: the rows
 * follow what ran there, not how many cgroups there are. Every possible CPU has two banks of rows; only that CPU's
 * programs write them, always in the active bank. A flush closes the open interval and flips the bank, so user space
 * reads rows that have no writer. Nobody clears them: a row is cleared when it is given out. */
#ifndef JOULED_COUNTERS_H
#define JOULED_COUNTERS_H

#define JD_MAX_EVENTS 8
#define JD_MAX_MSR_EVENTS 8
#define JD_BANKS 2
#define JD_CACHE_ENTRIES 1024 /* per-CPU id -> slot cache, a power of two */
#define JD_MAX_DEPTH 32 /* ancestors examined when a row is taken or refused */
#define JD_QUOTA_LEVEL 2 /* first level whose subtrees have a quota: below the slices */
#define JD_QUOTA_LEVELS 4
#define JD_NO_ROW 0xffffffffu
#define JD_MAX_SIBLINGS 3 /* other hardware threads of a core: four of them are the most that Linux runs on */
#define JD_NO_CPU 0xffffffffu
#define JD_NO_COLUMN JD_MAX_EVENTS /* a column that the rows do not have */
#define JD_ROWS_ALIGN 16 /* a bank has a multiple of so many rows: CPUs share no pair of cache lines */

/* Keys of the special rows; every other key is a cgroup id (never 0, never this large). */
#define JD_KEY_IDLE 0ull
#define JD_KEY_KERNEL (~0ull)
#define JD_KEY_OTHER (~1ull)
#define JD_KEY_NONE (~2ull) /* no row is being charged: before the first switch, CPU offline */

/* Slots of the special rows; cgroups get slots from JD_FIRST_SLOT on. The special slots have the first rows of every
 * bank, each the row of its own number. */
enum jd_slot { JD_SLOT_IDLE = 0, JD_SLOT_KERNEL = 1, JD_SLOT_OTHER = 2, JD_FIRST_SLOT = 3 };

/* One row. An element of the map ends after the last counter that is configured: 64 bytes with six of them. */
struct jd_row {
	__u64 time_ns; /* task clock; may step back a little after a flush */
	__u32 switches; /* intervals charged to this row */
	__u32 lost; /* of them, those with a failed counter read */
	__u64 counters[JD_MAX_EVENTS]; /* raw when multiplexed */
};

/* Row of a (CPU, slot) in the CPU's active bank. */
struct jd_place {
	__u32 row;
	__u32 epoch; /* valid while equal to the CPU's */
};

/* Accompanies a row only while events are multiplexed: how long each event was on the PMU. */
struct jd_mux_row {
	__u64 enabled_ns[JD_MAX_EVENTS];
	__u64 running_ns[JD_MAX_EVENTS];
};

struct jd_cache_entry {
	__u64 key;
	__u32 row;
	__u32 epoch; /* valid while equal to the CPU's: a flip empties the cache */
};

/* Per-CPU state. Only that CPU's programs write it, except while the CPU is offline. The
 * "task clock" is the scheduler's rq_clock_task: it stands still in irq and stolen time where the
 * kernel accounts those. */
struct jd_cpu_state {
	__u64 seq; /* +1 when a charge begins and +1 when it has ended, the same for a new row: odd = in progress */
	__u64 key; /* row being charged now, JD_KEY_NONE = none */
	__u64 since_ns; /* begin of its open interval, task clock */
	__u64 task; /* running task_struct as of the last switch; 0 = not known */
	__u64 last[JD_MAX_EVENTS]; /* counter values at since_ns; an error stays an error */
	__u64 last_enabled[JD_MAX_EVENTS]; /* multiplexed only */
	__u64 last_running[JD_MAX_EVENTS];
	__u64 msr[JD_MAX_MSR_EVENTS]; /* absolute values at the last flush, or an error */
	/* Time for which this CPU was not idle, on rq->clock: twice the sum while idle; while busy, one more than twice
	 * the sum less the clock when it became busy. One word, because siblings read it at any moment. */
	__u64 busy_clock;
	__u64 irq_steal_ns; /* rq->clock - rq->clock_task at the last flush */
	__u64 clock_offset_ns; /* CLOCK_MONOTONIC - rq->clock, at the first switches after a flush; 0 = not known */
	__u64 calibrated_ns; /* CLOCK_MONOTONIC when clock_offset_ns was last measured */
	__u64 flush_mono_ns; /* CLOCK_MONOTONIC of the last flush */
	__u64 msr_mono_ns; /* the same right before it read msr[]: a virtual CPU may have to wait in between */
	__u64 began_mono_ns; /* CLOCK_MONOTONIC of the first charge after key was JD_KEY_NONE */
	__u64 lost_reads; /* counter reads that failed */
	__u64 missed; /* switches that the kernel did not report */
	__u64 folded; /* lookups that ended at an ancestor or at other: no free row */
	__u64 self_ns; /* time that self_samples charged switches took in the program */
	__u64 self_samples;
	__u32 row; /* of key, in the active bank; JD_NO_ROW = charge nothing */
	__u32 bank; /* active bank */
	__u32 epoch; /* of the active bank; +1 per flip, never 0 */
	__u32 n_rows[JD_BANKS]; /* rows of each bank that were given out */
	__u32 woke; /* the CPU was idle before the row that is charged now, which is not counted yet */
	__u32 siblings[JD_MAX_SIBLINGS]; /* other threads of its core, JD_NO_CPU = none; user space writes them */
	__u32 siblings_changed; /* user space sets it: siblings_busy_ns begins anew */
	__u64 siblings_busy_ns; /* sum of their busy clocks at since_ns */
	__u64 others_busy_ns; /* the same of all other CPUs, in the low JD_LOAD_BITS bits */
	__u32 calibrate; /* switches that still measure clock_offset_ns */
	struct jd_cache_entry cache[JD_CACHE_ENTRIES];
} __attribute__((aligned(128)));

/* Busy clocks of all CPUs in one word that they add to when they become busy or idle: in the low JD_COUNT_BITS bits the
 * CPUs that are busy, above them the sum of their clocks less the time since each of those became busy. */
#define JD_COUNT_BITS 12
#define JD_LOAD_BITS (64 - JD_COUNT_BITS)
struct jd_machine {
	__u64 load_clock;
	__u64 asleep_since_ns; /* rq->clock when a CPU last became idle, or up to which time of no busy CPU was charged */
} __attribute__((aligned(128)));

/* Owner of a slot; the program writes it when it takes the slot, user space reads it. */
struct jd_slot_info {
	__u64 key; /* cgroup id; 0 = free */
	__u64 ancestors[JD_QUOTA_LEVELS]; /* ids whose subtree counts this row, 0 = none */
};

#define JD_SELF_EVERY 128 /* one charged switch in so many measures its own time, a power of two ... */
#define JD_SELF_MAX_NS 65536 /* ... a longer time means that the CPU was taken away meanwhile */

#define JD_CALIBRATIONS 4 /* measurements after a flush; the smallest offset is right, see calibrate() */

#define JD_RETIRE_MAX 12 /* slots that one run of retire gives back: the arguments that a raw tracepoint has room for */

/* First argument of the flush program (raw_tp test run context), and what it returns. */
enum jd_flush_arg { JD_FLUSH_CLOSE = 0, JD_FLUSH_FLIP = 1 };
enum jd_flush_result { JD_FLUSHED = 0, JD_FLUSH_BUSY = 1 /* interrupted a charge: try again */ };

_Static_assert(__builtin_offsetof(struct jd_row, counters) == 16 && sizeof(struct jd_row) == 80, "row layout");
_Static_assert(sizeof(struct jd_mux_row) == 128, "mux row layout");
_Static_assert(sizeof(struct jd_cpu_state) % 128 == 0, "state alignment");
_Static_assert(sizeof(struct jd_slot_info) == 40, "slot info layout");

#endif
