/* SPDX-License-Identifier: Apache-2.0 */
/* A machine whose every joule is known: programs of different mixes in cgroups, co-running under a
 * changing load, and domains whose energy is linear in what is counted, plus terms that no counter
 * sees where a test switches them on. Seeded; nothing here comes from the formula's own code. */
#ifndef JD_TEST_MODEL_WORLD_H
#define JD_TEST_MODEL_WORLD_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "formula/formula.h"

#define MW_CPUS 8
#define MW_CGROUPS 20
#define MW_ROWS (READING_SPECIAL_ROWS + MW_CGROUPS)
#define MW_EVENTS 6
#define MW_S 1000000000ull

enum { MW_CYCLES, MW_INSTRUCTIONS, MW_MISSES, MW_SIBLING, MW_EXITS, MW_OTHERS };
enum { MW_PACKAGE, MW_DRAM, MW_DOMAINS };

/* The properties of a machine. Zeroed terms are off. */
struct mw_config {
	const char *name;
	uint64_t seed;
	unsigned cgroups;
	double load; /* mean busy share of the machine the programs ask for */
	double seconds; /* of an interval; 0 = 1 */
	double frequency_square; /* part of a cycle's energy that goes with the square of the clock */
	double saturation; /* misses per second, in 1e6, at which one costs half; 0 = never */
	double hidden; /* watts per busy CPU of an event nobody counts: 0 to this, per cgroup */
	double noise; /* of the sensor, standard deviation relative to the power */
	double held_up; /* seconds by which the energy of every other interval is read late: up to this */
	bool changing_clock; /* the CPUs' common clock moves between 1.6 and 3.2 GHz */
	bool rests; /* every tenth interval nothing runs */
	bool steady; /* every program runs evenly: nothing to learn from */
	bool always_busy, always_idle;
	bool collinear; /* all programs have one mix */
	bool no_cycles;
	/* The terms below need slices: each interval is run in slices of 40 ms, in which programs share CPUs and run
	 * beside each other at known times. */
	unsigned slice_cpus; /* CPUs of such a machine, 0 = the whole interval at once */
	double swing; /* clock of each CPU: a triangle of this part to either side */
	double beside; /* everything costs so much more while all other CPUs are busy (less: the part of them) */
	double smt; /* two busy threads of a core (CPUs 2k and 2k + 1) cost this much of one; 0 = no threads */
	double small_cores; /* the upper half of the CPUs has 0.6 of the clock, and a price of this part; 0 = alike */
	double steps; /* cycles cost V^2 of a table of steps: this is how far V goes over the clock's range */
	double wake_mj; /* a CPU's exit from idle, paid by the row that it wakes for */
	double awake; /* W of the package while a CPU is busy; this is idle power, which nobody but idle pays */
	double asleep_more_s; /* s by which one interval in 20 tells more sleep than there was */
	double queue,
		queue_linear; /* a miss costs so much more when the memory is at its limit: by the square of its use, and by it */
	double waits; /* the memory gives so much of its limit, and programs that want more wait; 0 = it gives what is wanted */
	double leak; /* W of idle power per W of power that it had, as its heat follows with ... */
	double leak_s; /* ... so many seconds; 0 = 30 */
	bool cold; /* it is as cold as it gets when formulas begin to learn */
};

enum mw_pattern { MW_SQUARE, MW_WALK, MW_BURSTS, MW_CHANGING, MW_EVEN = MW_CHANGING };

struct mw_program {
	double duty; /* mean, in CPUs */
	double ipc, mpki, hidden;
	enum mw_pattern pattern;
	unsigned period;
	double level; /* of a walk, 0 to 2 */
};

struct mw {
	struct mw_config c;
	uint64_t rng;
	struct schema schema;
	struct cpu_desc cpus[MW_CPUS];
	struct snapshot s;
	struct mw_program program[MW_CGROUPS];
	char path[MW_CGROUPS][16];
	unsigned step;
	double ghz;
	double idle_watts[MW_DOMAINS];
	double busy_watts, cycle_nj, instruction_nj, miss_nj, dram_miss_nj;
	double joules[MW_DOMAINS]; /* cumulative, as the sensor tells them */
	uint64_t told_uj[MW_DOMAINS];
	double truth[MW_ROWS][MW_DOMAINS]; /* dynamic joules of this interval */
	double truth_idle[MW_DOMAINS];
	double late; /* seconds: how late the last energy was read */
	double heat; /* W */
	double asleep_s; /* of the interval: no CPU was busy */
	uint64_t dead_events; /* bit: the event counts nothing from now on */
};

static inline double mw_random(struct mw *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return (double)(w->rng >> 11) / 9007199254740992.0;
}

static inline double mw_between(struct mw *w, double lo, double hi)
{
	return lo + (hi - lo) * mw_random(w);
}

/* Sum of 12: near enough to normal, and bounded. */
static inline double mw_normal(struct mw *w)
{
	double sum = -6;

	for (unsigned i = 0; i < 12; i++)
		sum += mw_random(w);
	return sum;
}

static inline void mw_programs(struct mw *w)
{
	double total = 0;

	for (unsigned i = 0; i < w->c.cgroups; i++) {
		struct mw_program *p = &w->program[i];

		*p = (struct mw_program){ .duty = mw_between(w, 0.3, 1.7),
					  .ipc = mw_between(w, 0.4, 3.2),
					  .mpki = pow(mw_random(w), 2) * 20,
					  .hidden = w->c.hidden * mw_random(w),
					  .pattern = w->c.steady ? MW_EVEN :
								   (enum mw_pattern)(mw_random(w) * MW_CHANGING),
					  .period = 2 + (unsigned)(mw_random(w) * 12),
					  .level = 1 };
		if (w->c.collinear)
			p->ipc = 1.5, p->mpki = 4;
		total += p->duty;
	}
	for (unsigned i = 0; i < w->c.cgroups; i++)
		w->program[i].duty *= w->c.load * (w->c.slice_cpus ? w->c.slice_cpus : MW_CPUS) / total;
}

static inline void mw_schema(struct mw *w)
{
	static const char *const events[MW_EVENTS] = { "CYCLES",       "INSTRUCTIONS", "LLC_MISSES",
						       "SIBLING_BUSY", "IDLE_EXITS",   "OTHERS_BUSY" };
	static const char *const names[MW_DOMAINS] = { "package-0", "dram-0" };
	struct schema *s = &w->schema;

	s->n_cpus = w->c.slice_cpus ? w->c.slice_cpus : MW_CPUS;
	s->cpus = w->cpus;
	s->n_packages = 1;
	s->n_core_types = w->c.small_cores > 0 ? 2 : 1;
	for (unsigned i = 0; i < s->n_cpus; i++)
		w->cpus[i] = (struct cpu_desc){ .cpu = (uint16_t)i,
						.core = (uint16_t)(w->c.smt > 0 ? i / 2 : i),
						.core_type = w->c.small_cores > 0 && i >= s->n_cpus / 2,
						.present = true };
	s->core.n = w->c.slice_cpus ? MW_EVENTS : MW_SIBLING;
	s->core.ev[MW_SIBLING].kind = EVENT_SIBLING_BUSY;
	s->core.ev[MW_EXITS].kind = EVENT_IDLE_EXITS;
	s->core.ev[MW_OTHERS].kind = EVENT_OTHERS_BUSY;
	for (unsigned i = 0; i < s->core.n; i++)
		snprintf(s->core.ev[i].name, SCHEMA_NAME_MAX, "%s",
			 i == MW_CYCLES && w->c.no_cycles ? "BRANCHES" : events[i]);
	s->n_domains = MW_DOMAINS;
	for (unsigned d = 0; d < MW_DOMAINS; d++) {
		s->domains[d] = (struct domain_desc){ .kind = d == MW_DRAM ? DOMAIN_DRAM : DOMAIN_PACKAGE,
						      .interface = ENERGY_POWERCAP };
		snprintf(s->domains[d].name, sizeof(s->domains[d].name), "%s", names[d]);
	}
}

/* 0 or -1: no memory. */
static inline int mw_init(struct mw *w, const struct mw_config *c)
{
	memset(w, 0, sizeof(*w));
	w->c = *c;
	w->c.seconds = c->seconds > 0 ? c->seconds : 1;
	w->rng = c->seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
	for (unsigned i = 0; i < 8; i++)
		mw_random(w);
	w->ghz = 2.4;
	w->idle_watts[MW_PACKAGE] = mw_between(w, 5, 25);
	w->idle_watts[MW_DRAM] = mw_between(w, 1, 4);
	w->busy_watts = mw_between(w, 1, 4);
	w->cycle_nj = mw_between(w, 0.4, 1.6);
	w->instruction_nj = mw_between(w, 0.2, 1.6);
	w->miss_nj = mw_between(w, 5, 40);
	w->dram_miss_nj = mw_between(w, 10, 60);
	mw_programs(w);
	mw_schema(w);
	w->s.schema = &w->schema;
	w->s.end_ns = 100 * MW_S;
	if (snapshot_reserve(&w->s, MW_ROWS, MW_ROWS * MW_CPUS))
		return -1;
	for (unsigned i = 0; i < c->cgroups; i++)
		snprintf(w->path[i], sizeof(w->path[i]), "/p%u", i);
	return 0;
}

static inline void mw_free(struct mw *w)
{
	snapshot_free(&w->s);
}

/* CPUs a program asks for in this interval. */
static inline double mw_demand(struct mw *w, struct mw_program *p)
{
	double jitter = 1 + 0.05 * mw_normal(w);
	bool on = (w->step / p->period) % 2;

	if (w->c.always_idle || (w->c.rests && w->step % 10 == 9))
		return 0;
	switch (p->pattern) {
	case MW_SQUARE:
		return p->duty * (on ? 1.8 : 0.2) * jitter;
	case MW_BURSTS:
		return p->duty * (mw_random(w) < 0.3 ? 2.6 : 0.3) * jitter;
	case MW_WALK:
		p->level = fmin(fmax(p->level + 0.25 * mw_normal(w), 0.05), 2);
		return p->duty * p->level * jitter;
	default:
		return p->duty * (1 + 0.002 * mw_normal(w));
	}
}

static inline struct snap_cell *mw_cell(struct mw *w, unsigned row, unsigned cpu, double share)
{
	struct snap_cell *c = &w->s.cells[w->s.n_cells++];
	struct snap_row *r = &w->s.rows[row];

	if (!r->n_cells++)
		r->first_cell = w->s.n_cells - 1;
	*c = (struct snap_cell){ .row = row, .cpu = (uint16_t)cpu, .time_ns = (uint64_t)(share * w->c.seconds * 1e9) };
	c->enabled_ns = c->running_ns = c->time_ns;
	r->time_ns += c->time_ns;
	return c;
}

/* Counts of a program on a CPU, and the energy they truly cost. `price` is what a miss costs of its full price. */
static inline void mw_run(struct mw *w, unsigned row, struct snap_cell *c, const struct mw_program *p, double price)
{
	double seconds = (double)c->time_ns / 1e9, clock = w->ghz / 2.4;
	double wander = w->c.collinear ? 0 : 0.01, hot; /* programs are not quite the same all the time */
	double cycles = seconds * w->ghz * 1e9, instructions = cycles * p->ipc * (1 + wander * mw_normal(w));
	double misses = instructions / 1000 * p->mpki * (1 + 2 * wander * mw_normal(w));
	const double counts[] = { cycles, instructions, misses };

	for (unsigned e = 0; e < MW_SIBLING; e++) {
		c->counters[e] = w->dead_events >> e & 1 ? 0 : (uint64_t)counts[e];
		w->s.rows[row].counters[e] += c->counters[e];
	}
	hot = w->cycle_nj * (1 + w->c.frequency_square * (clock * clock - 1));
	w->truth[row][MW_PACKAGE] += seconds * (w->busy_watts + p->hidden) +
				     1e-9 * (cycles * hot + instructions * w->instruction_nj +
					     misses * w->miss_nj * price);
	w->truth[row][MW_DRAM] += 1e-9 * misses * w->dram_miss_nj * price;
}

static inline void mw_begin(struct mw *w)
{
	struct snapshot *s = &w->s;

	s->number++;
	s->start_ns = s->end_ns;
	s->end_ns += (uint64_t)(w->c.seconds * 1e9);
	s->n_rows = READING_SPECIAL_ROWS + w->c.cgroups;
	s->n_cells = 0;
	memset(w->truth, 0, sizeof(w->truth));
	memset(w->truth_idle, 0, sizeof(w->truth_idle));
	for (unsigned i = 0; i < s->n_rows; i++)
		s->rows[i] = (struct snap_row){ .kind = i < ROW_CGROUP ? (enum row_kind)i : ROW_CGROUP,
						.key = i,
						.id = i,
						.selected = true,
						.path = i < ROW_CGROUP ? row_kind_name((enum row_kind)i) :
									 w->path[i - ROW_CGROUP] };
	if (w->c.changing_clock && w->step % 3 == 0)
		w->ghz = mw_between(w, 1.6, 3.2);
}

static inline void mw_end(struct mw *w, const double *busy)
{
	struct snapshot *s = &w->s;
	double before;

	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		uint64_t all_ns = s->end_ns - s->start_ns, busy_ns = (uint64_t)(busy[i] * (double)all_ns);

		s->cpus[i] = (struct snap_cpu){
			.online = true, .elapsed_ns = all_ns, .busy_ns = busy_ns, .idle_ns = all_ns - busy_ns
		};
	}
	before = w->late;
	w->late = w->step % 2 && w->c.held_up > 0 ? w->c.held_up * mw_random(w) : 0;
	for (unsigned d = 0; d < MW_DOMAINS; d++) {
		double joules = w->truth_idle[d] += w->idle_watts[d] * w->c.seconds,
		       other = w->c.held_up > 0 ? mw_between(w, 0, 2) : 1;
		uint64_t uj;

		for (unsigned i = 0; i < s->n_rows; i++)
			joules += w->truth[i][d];
		/* what ran while the reading waited is not what ran in the interval */
		joules += (w->late - before) * (w->idle_watts[d] + other * (joules / w->c.seconds - w->idle_watts[d]));
		w->joules[d] += fmax(joules * (1 + w->c.noise * mw_normal(w)), 0);
		/* in units of 2^-14 J, as RAPL has them */
		uj = (uint64_t)(floor(w->joules[d] * 16384) / 16384 * 1e6);
		s->domains[d] = (struct snap_domain){ .start_ns = s->start_ns + (uint64_t)(before * 1e9),
						      .end_ns = s->end_ns + (uint64_t)(w->late * 1e9),
						      .energy_uj = uj - w->told_uj[d],
						      .scale = 1,
						      .uncertainty = NAN };
		w->told_uj[d] = uj;
	}
}

/* A program fills what others left of one CPU after the other, beginning at any. */
static inline void mw_place(struct mw *w, unsigned i, double want, double *busy, double price)
{
	unsigned first = (unsigned)(mw_random(w) * MW_CPUS), row = READING_SPECIAL_ROWS + i;
	double part[MW_CPUS] = { 0 };

	for (unsigned k = 0; want > 1e-9 && k < 2 * MW_CPUS; k++) {
		unsigned cpu = (first + k) % MW_CPUS;
		double take = fmin(want, fmin(0.9995 - busy[cpu], k < MW_CPUS ? mw_between(w, 0.3, 1) : 1));

		if (take <= 0)
			continue;
		part[cpu] += take;
		busy[cpu] += take;
		want -= take;
	}
	for (unsigned cpu = 0; cpu < MW_CPUS; cpu++)
		if (part[cpu] > 0)
			mw_run(w, row, mw_cell(w, row, cpu, part[cpu]), &w->program[i], price);
}

#include "unit/model_slices.h"

/* One interval. What it held is in truth; the snapshot has no energy columns yet. */
static inline struct snapshot *mw_step(struct mw *w)
{
	double want[MW_CGROUPS], total = 0, misses = 0, busy[MW_CPUS] = { 0 }, room = MW_CPUS * 0.999, price;

	mw_begin(w);
	if (w->c.slice_cpus) {
		mw_slices(w, busy);
		mw_end(w, busy);
		w->step++;
		return &w->s;
	}
	for (unsigned i = 0; i < w->c.cgroups; i++)
		total += want[i] = fmax(mw_demand(w, &w->program[i]), 0);
	for (unsigned i = 0; i < w->c.cgroups; i++) {
		want[i] *= total > room || (w->c.always_busy && total > 0) ? room / total : 1;
		misses += want[i] * w->ghz * 1e3 * w->program[i].ipc / 1000 * w->program[i].mpki; /* in 1e6 */
	}
	price = w->c.saturation > 0 ? 1 / (1 + misses / w->c.saturation) : 1;
	for (unsigned i = 0; i < w->c.cgroups; i++)
		mw_place(w, i, want[i], busy, price);
	mw_end(w, busy);
	w->step++;
	return &w->s;
}

#endif
