/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a model_world in which it matters what runs beside what: an interval in slices of 40 ms. In a slice each
 * program runs once on a CPU, the programs of a CPU one after the other; how long two CPUs, or two threads of a core,
 * are busy at once follows from that, and no formula is told. */
#ifndef JD_TEST_MODEL_SLICES_H
#define JD_TEST_MODEL_SLICES_H

#define MW_SLICE_S 0.04
#define MW_RUNS 64 /* in a slice */
#define MW_LONGEST 0.95 /* of a slice, for a thread of a program */
#define MW_HEAT_S 30.0
#define MW_VOLTAGES 6 /* steps of the table over the clock's range of 0.5 to 1.5 */
#define MW_MOMENTS 16 /* of a run, at which the memory's use is taken */
#define MW_MISSES_LIMIT 60e6 /* per CPU and second, at which the memory is at its limit */

struct mw_run_of { /* a program on a CPU in a slice; times are parts of the slice */
	unsigned program, cpu;
	double from, to;
};

struct mw_slice {
	struct mw_run_of run[MW_RUNS];
	unsigned n, number;
	double from[MW_CPUS], to[MW_CPUS]; /* when the CPU is busy */
	double clock[MW_CPUS]; /* of 2.4 GHz */
};

static inline double mw_overlap(double a, double b, double c, double d)
{
	return fmax(fmin(b, d) - fmax(a, c), 0);
}

/* Threads of at most MW_LONGEST go to the CPU that has the least to do; what does not fit is not run. */
static inline void mw_assign(struct mw *w, struct mw_slice *l, const double *want)
{
	unsigned n = w->schema.n_cpus;
	double used[MW_CPUS] = { 0 };

	for (unsigned i = 0; i < w->c.cgroups; i++) {
		/* some programs run in each slice, others rarely and then longer */
		unsigned grain = 1 + i % 3 * 2, turn = l->number + i;
		double left = turn % grain ? 0 : want[i] * grain * (1 + 0.1 * mw_normal(w));

		while (left > 1e-3 && l->n < MW_RUNS) {
			unsigned first = (unsigned)(mw_random(w) * n), cpu = first;
			double length;

			for (unsigned k = 0; k < n; k++)
				if (used[(first + k) % n] < used[cpu])
					cpu = (first + k) % n;
			length = fmin(fmin(left, MW_LONGEST), 0.999 - used[cpu]);
			if (length < 1e-3)
				break;
			l->run[l->n++] = (struct mw_run_of){ i, cpu, used[cpu], used[cpu] + length };
			used[cpu] += length;
			left -= length;
		}
	}
	for (unsigned c = 0; c < n; c++) {
		double at = mw_random(w) * (1 - used[c]);

		l->from[c] = at;
		l->to[c] = at + used[c];
		for (unsigned k = 0; k < l->n; k++) {
			l->run[k].from += l->run[k].cpu == c ? at : 0;
			l->run[k].to += l->run[k].cpu == c ? at : 0;
		}
	}
}

/* A triangle with a period of three seconds, each CPU a third of it behind the one before. */
static inline double mw_clock(const struct mw *w, unsigned cpu, double at_s)
{
	double part = fmod(at_s / 3 + 1 - cpu / 3.0 + 8, 1), clock;

	clock = 1 + w->c.swing * (fabs(part - 0.5) * 4 - 1);
	return w->c.small_cores > 0 && cpu >= w->schema.n_cpus / 2 ? 0.6 * clock : clock;
}

/* What a cycle costs, of its price at 2.4 GHz. */
static inline double mw_heat_of(const struct mw *w, double clock)
{
	double volt = 1;

	if (w->c.steps > 0)
		volt = 1 + w->c.steps * (ceil((clock - 0.5) * MW_VOLTAGES) / MW_VOLTAGES - 0.5);
	return volt * volt + w->c.frequency_square * (clock * clock - 1);
}

/* Part of the run in which the CPU was busy. */
static inline double mw_beside(const struct mw_slice *l, const struct mw_run_of *r, unsigned cpu)
{
	return mw_overlap(r->from, r->to, l->from[cpu], l->to[cpu]) / (r->to - r->from);
}

/* CPUs busy beside the run, on average. */
static inline double mw_others(const struct mw *w, const struct mw_slice *l, const struct mw_run_of *r)
{
	double others = 0;

	for (unsigned c = 0; c < w->schema.n_cpus; c++)
		others += c == r->cpu ? 0 : mw_beside(l, r, c);
	return others;
}

static inline double mw_price(const struct mw *w, double others, double sibling)
{
	double price = 1 + w->c.beside * others / (w->schema.n_cpus - 1);

	if (w->c.smt > 0)
		price *= 1 - sibling * (1 - w->c.smt / 2);
	return price;
}

/* What a miss of the run costs more, by the use of the memory at some of its moments. Where programs wait for each other, each gets B / (B + D)
 * of what it wants, with a bandwidth B and a demand D of all; *ret_got is the mean of that. */
static inline double mw_queue(const struct mw *w, const struct mw_slice *l, const struct mw_run_of *r, double *ret_got)
{
	double sum = 0, got = 0;

	for (unsigned m = 0; m < MW_MOMENTS; m++) {
		double at = r->from + (r->to - r->from) * (m + 0.5) / MW_MOMENTS, misses = 0, use, gets;

		for (unsigned k = 0; k < l->n; k++) {
			const struct mw_program *p = &w->program[l->run[k].program];

			if (at >= l->run[k].from && at < l->run[k].to)
				misses += l->clock[l->run[k].cpu] * 2.4e9 * p->ipc * p->mpki / 1000;
		}
		misses /= MW_MISSES_LIMIT * w->schema.n_cpus;
		use = w->c.waits > 0 ? misses / (misses + w->c.waits) : fmin(misses, 1);
		gets = w->c.waits > 0 ? 1 - use : 1;
		sum += gets * (w->c.queue * use * use + w->c.queue_linear * use);
		got += gets;
	}
	*ret_got = got / MW_MOMENTS;
	return sum / got;
}

static inline void mw_run_slice(struct mw *w, const struct mw_slice *l, const struct mw_run_of *r, struct snap_cell *c)
{
	const struct mw_program *p = &w->program[r->program];
	unsigned row = READING_SPECIAL_ROWS + r->program;
	double s = (r->to - r->from) * MW_SLICE_S, clock = l->clock[r->cpu], hot = mw_heat_of(w, clock);
	double got, more = mw_queue(w, l, r, &got);
	double cycles = s * 2.4e9 * clock, instructions = cycles * p->ipc * got * (1 + 0.01 * mw_normal(w));
	double misses = instructions / 1000 * p->mpki * (1 + 0.02 * mw_normal(w));
	double sibling = w->c.smt > 0 ? mw_beside(l, r, r->cpu ^ 1) : 0, others = mw_others(w, l, r),
	       price = mw_price(w, others, sibling);
	double core = w->c.small_cores > 0 && r->cpu >= w->schema.n_cpus / 2 ? w->c.small_cores : 1;
	double miss = price * (1 + more);
	bool woke = r->from == l->from[r->cpu];
	const double counts[MW_EVENTS] = { cycles, instructions, misses, s * sibling * 1e9, woke, s * others * 1e9 };

	for (unsigned e = 0; e < MW_EVENTS; e++)
		c->counters[e] += (uint64_t)counts[e];
	c->time_ns += (uint64_t)(s * 1e9);
	w->truth[row][MW_PACKAGE] += price * core *
					     (s * (w->busy_watts + p->hidden) * hot +
					      1e-9 * hot * (cycles * w->cycle_nj + instructions * w->instruction_nj)) +
				     1e-9 * misses * w->miss_nj * miss + (woke ? w->c.wake_mj / 1e3 : 0);
	w->truth[row][MW_DRAM] += 1e-9 * misses * w->dram_miss_nj * miss;
}

/* Part of the slice in which some CPU was busy. */
static inline double mw_awake(const struct mw *w, const struct mw_slice *l)
{
	double awake = 0, at = 0;

	while (at < 1) { /* from `at` on, to the end of what is busy there, or to the next begin */
		double end = at, next = 1;

		for (unsigned c = 0; c < w->schema.n_cpus; c++) {
			if (l->from[c] <= at && l->to[c] > at)
				end = fmax(end, l->to[c]);
			else if (l->from[c] > at && l->to[c] > l->from[c])
				next = fmin(next, l->from[c]);
		}
		awake += end - at;
		at = end > at ? end : next;
	}
	return awake;
}

static inline void mw_slice(struct mw *w, const double *want, unsigned number, double at_s,
			    struct snap_cell (*cells)[MW_CPUS], double *busy)
{
	struct mw_slice l = { .number = number };
	double before = 0, drawn = 0, awake;

	for (unsigned i = 0; i < w->c.cgroups; i++)
		before += w->truth[READING_SPECIAL_ROWS + i][MW_PACKAGE];
	mw_assign(w, &l, want);
	for (unsigned c = 0; c < w->schema.n_cpus; c++) {
		l.clock[c] = mw_clock(w, c, at_s);
		busy[c] += (l.to[c] - l.from[c]) * MW_SLICE_S / w->c.seconds;
	}
	for (unsigned k = 0; k < l.n; k++)
		mw_run_slice(w, &l, &l.run[k], &cells[l.run[k].program][l.run[k].cpu]);
	for (unsigned i = 0; i < w->c.cgroups; i++)
		drawn += w->truth[READING_SPECIAL_ROWS + i][MW_PACKAGE];
	awake = mw_awake(w, &l);
	w->asleep_s += MW_SLICE_S * (1 - awake);
	w->truth_idle[MW_PACKAGE] += MW_SLICE_S * (w->c.leak * w->heat + w->c.awake * awake);
	w->heat += ((drawn - before) / MW_SLICE_S - w->heat) * MW_SLICE_S / (w->c.leak_s > 0 ? w->c.leak_s : MW_HEAT_S);
}

static inline void mw_slices(struct mw *w, double *busy)
{
	static struct snap_cell cells[MW_CGROUPS][MW_CPUS];
	unsigned n = (unsigned)(w->c.seconds / MW_SLICE_S + 0.5);
	double want[MW_CGROUPS];

	memset(cells, 0, sizeof(cells));
	for (unsigned i = 0; i < w->c.cgroups; i++)
		want[i] = fmax(mw_demand(w, &w->program[i]), 0);
	w->asleep_s = 0;
	for (unsigned k = 0; k < n; k++)
		mw_slice(w, want, w->step * n + k, (w->step + (double)k / n) * w->c.seconds, cells, busy);
	w->asleep_s += w->step % 20 == 7 ? w->c.asleep_more_s : 0;
	mw_cell(w, ROW_IDLE, 0, 0)->counters[MW_OTHERS] = (uint64_t)(w->asleep_s * 1e9);
	for (unsigned i = 0; i < w->c.cgroups; i++) {
		for (unsigned cpu = 0; cpu < w->schema.n_cpus; cpu++) {
			struct snap_cell *c;

			if (!cells[i][cpu].time_ns)
				continue;
			c = mw_cell(w, READING_SPECIAL_ROWS + i, cpu, 0);
			c->time_ns = c->enabled_ns = c->running_ns = cells[i][cpu].time_ns;
			memcpy(c->counters, cells[i][cpu].counters, sizeof(c->counters));
			w->s.rows[c->row].time_ns += c->time_ns;
			for (unsigned e = 0; e < MW_EVENTS; e++)
				w->s.rows[c->row].counters[e] += c->counters[e];
		}
	}
}

#endif
