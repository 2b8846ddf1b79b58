/* SPDX-License-Identifier: Apache-2.0 */
/* A row's weight is the sum of the counts of its cells on the domain's CPUs. The idle row has no
 * weight. irq+steal has weight only where time is the weight, because it has no counters of its own:
 * cycles spent in an interrupt are counted in the row that was interrupted.
 *
 * Incomplete counts: with w_i and t_i the weight and time of a cell, and
 * rate = sum(w) / sum(t) over the whole cells of the domain (over the partial ones where none is
 * whole), the missing counts weigh
 *     sum over lost and partial cells of max(0, t_i * rate - w_i)
 *   + rate * (busy time of the CPUs flagged partial - time of the rows there, when positive)
 * and that share of the energy is residual. Without a loss it is exactly 0. Where nothing at all was
 * counted (other programs hold the whole PMU) the interval is one without a PMU: time is the weight. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "model/event_find.h"
#include "split.h"
#include "terms.h"

#define RATIO_ONE 65536u
#define RATIO_MAX (16 * RATIO_ONE)

enum { BY_TIME = WEIGHTS_TIME, BY_BLEND = WEIGHTS_OTHER };

typedef unsigned __int128 u128;

/* Sums over cells. */
struct sums {
	u128 weight, time;
};

struct count {
	int event; /* counter taken, BY_TIME or BY_BLEND */
	const struct terms_prices *prices; /* for BY_BLEND */
	double per_joule;
	bool scaled; /* by APERF / MPERF */
	struct sums whole, partial;
	bool lossy; /* cells or CPUs of the domain are not whole */
};

int weights_reserve(struct weights *w, const struct snapshot *s)
{
	unsigned cap = s->n_rows + s->n_rows / 2 + 16, n_cpus = s->schema->n_cpus;

	w->valid = false;
	if (w->cap < s->n_rows + 1) {
		free(w->weight);
		free(w->time_ns);
		w->cap = 0;
		w->weight = calloc(cap, sizeof(*w->weight));
		w->time_ns = calloc(cap, sizeof(*w->time_ns));
		if (!w->weight || !w->time_ns)
			return -ENOMEM;
		w->cap = cap;
	}
	if (w->cap_cpus < n_cpus) {
		free(w->cpus);
		free(w->ratio);
		w->cap_cpus = 0;
		w->cpus = calloc(n_cpus, sizeof(*w->cpus));
		w->ratio = calloc(n_cpus, sizeof(*w->ratio));
		if (!w->cpus || !w->ratio)
			return -ENOMEM;
		w->cap_cpus = n_cpus;
	}
	return 0;
}

void weights_free(struct weights *w)
{
	free(w->weight);
	free(w->time_ns);
	free(w->cpus);
	free(w->ratio);
}

/* psys and an external meter see the whole machine. A host's energy for its guest is of all the guest's CPUs,
 * because they have no fixed place in the host's packages. */
static bool sees_all(const struct domain_desc *d)
{
	return d->kind == DOMAIN_PSYS || d->kind == DOMAIN_EXTERNAL || d->interface == ENERGY_HOST;
}

/* True unless the domain is a GPU, whose work CPUs do not count. */
static bool has_cpu(const struct domain_desc *d, const struct cpu_desc *cpu)
{
	if (sees_all(d))
		return true;
	if (d->kind == DOMAIN_GPU || cpu->package != d->package)
		return false;
	return !d->has_die || cpu->die == d->die;
}

static void choose_cpus(struct weights *w, const struct snapshot *s, const struct domain_desc *d)
{
	w->busy_ns = w->elapsed_ns = w->n_cpus = 0;
	w->whole = true;
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		w->cpus[i] = s->schema->cpus[i].present && has_cpu(d, &s->schema->cpus[i]);
		if (!w->cpus[i])
			continue;
		w->n_cpus++;
		w->busy_ns += s->cpus[i].busy_ns;
		w->elapsed_ns += s->cpus[i].elapsed_ns;
		if (s->cpus[i].quality & (QUALITY_PARTIAL | QUALITY_LOST))
			w->whole = false;
	}
}

bool weights_have(const struct weights *w, const struct snapshot *s, unsigned event)
{
	const struct event_desc *ev = &s->schema->core.ev[event];

	if (!ev->cpus_only_known)
		return true;
	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		if (w->cpus[i] && s->cpus[i].online && (i / 8 >= sizeof(ev->cpus) || !(ev->cpus[i / 8] >> (i % 8) & 1)))
			return false;
	return true;
}

static int find_msr(const struct event_set *set, const char *alias, const char *term)
{
	for (unsigned i = 0; i < set->n && i < SCHEMA_MAX_MSR; i++)
		if (!strcasecmp(set->ev[i].name, alias) || !strcasecmp(set->ev[i].name, term))
			return (int)i;
	return -1;
}

static uint32_t ratio_of(u128 aperf, u128 mperf, uint32_t otherwise)
{
	u128 ratio;

	if (!aperf || !mperf)
		return otherwise;
	ratio = aperf * RATIO_ONE / mperf;
	return ratio > RATIO_MAX ? RATIO_MAX : ratio ? (uint32_t)ratio : 1;
}

/* Frequency of each CPU against its base clock; a CPU that was not read gets the mean of the
 * domain. False when no CPU has it. */
static bool fill_ratios(struct weights *w, const struct snapshot *s)
{
	int a = find_msr(&s->schema->msr, "APERF", "msr/aperf/"), m = find_msr(&s->schema->msr, "MPERF", "msr/mperf/");
	u128 aperf = 0, mperf = 0;
	uint32_t mean;

	if (a < 0 || m < 0)
		return false;
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		if (w->cpus[i] && s->cpus[i].msr[m]) {
			aperf += s->cpus[i].msr[a];
			mperf += s->cpus[i].msr[m];
		}
	}
	mean = ratio_of(aperf, mperf, 0);
	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		w->ratio[i] = ratio_of(s->cpus[i].msr[a], s->cpus[i].msr[m], mean ? mean : RATIO_ONE);
	return mean != 0;
}

static uint64_t limit(u128 v)
{
	return v > SPLIT_WEIGHT_MAX ? SPLIT_WEIGHT_MAX : (uint64_t)v;
}

/* Where the trigger cannot tell the root cgroup from idle, the root's time counts as idle. Its counters are its own,
 * because they stand still while a CPU is halted. */
static bool time_is_idle(const struct snapshot *s, const struct snap_row *row)
{
	return row->kind == ROW_IDLE || (s->schema->idle_merged && row->kind == ROW_CGROUP && row->level == 0);
}

static inline uint64_t cell_weight(const struct weights *w, const struct count *k, const struct snap_cell *c, bool idle)
{
	if (k->event == BY_TIME)
		return c->time_ns;
	if (k->event == BY_BLEND) {
		double joules = terms_joules(k->prices, c, idle) * k->per_joule;

		return joules < (double)SPLIT_WEIGHT_MAX ? (uint64_t)joules : SPLIT_WEIGHT_MAX;
	}
	if (c->quality & QUALITY_LOST)
		return 0;
	if (!k->scaled)
		return c->counters[k->event];
	return limit((u128)c->counters[k->event] * w->ratio[c->cpu] / RATIO_ONE);
}

static bool is_lossy(const struct count *k, const struct snap_cell *c)
{
	return k->event != BY_TIME && c->quality & (QUALITY_LOST | QUALITY_PARTIAL);
}

static bool weighs(const struct snapshot *s, const struct count *k, const struct snap_row *row)
{
	if (k->event == BY_TIME)
		return !time_is_idle(s, row);
	if (k->event == BY_BLEND)
		return row->kind != ROW_IDLE;
	return row->kind != ROW_IDLE && row->kind != ROW_IRQ_STEAL;
}

static inline void add_cell(const struct weights *w, struct count *k, const struct snap_cell *c, bool idle,
			    u128 *weight)
{
	uint64_t cell = cell_weight(w, k, c, idle);

	*weight += cell;
	if (!is_lossy(k, c)) {
		k->whole.weight += cell;
		k->whole.time += c->time_ns;
		return;
	}
	k->lossy = true;
	if (!(c->quality & QUALITY_LOST)) {
		k->partial.weight += cell;
		k->partial.time += c->time_ns;
	}
}

/* Weights and times of all rows, and the sums behind the rate. */
static void count_rows(struct weights *w, const struct snapshot *s, struct count *k)
{
	k->lossy = !w->whole;
	memset(&k->whole, 0, sizeof(k->whole));
	memset(&k->partial, 0, sizeof(k->partial));
	for (unsigned i = 0; i < s->n_rows; i++) {
		const struct snap_row *row = &s->rows[i];
		const struct snap_cell *c = s->cells + row->first_cell, *end = c + row->n_cells;
		u128 weight = 0, time = 0;
		bool counts = weighs(s, k, row), idle = time_is_idle(s, row);

		for (; c < end && row->kind != ROW_IDLE; c++) {
			if (!w->cpus[c->cpu])
				continue;
			time += idle ? 0 : c->time_ns;
			if (counts)
				add_cell(w, k, c, idle, &weight);
		}
		w->weight[i] = limit(weight);
		w->time_ns[i] = limit(time);
	}
	w->time_ns[s->n_rows] = w->weight[s->n_rows] = 0;
}

/* Busy time of the partial CPUs that no row has and, with the rate, the time that lossy cells lack. */
static u128 missing_time(const struct weights *w, const struct snapshot *s)
{
	u128 busy = 0, rows = 0;

	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		if (w->cpus[i] && s->cpus[i].quality & (QUALITY_PARTIAL | QUALITY_LOST))
			busy += s->cpus[i].busy_ns;
	for (unsigned i = 0; i < s->n_cells; i++) {
		const struct snap_cell *c = &s->cells[i];
		const struct snap_row *row = &s->rows[c->row];

		if (w->cpus[c->cpu] && s->cpus[c->cpu].quality & (QUALITY_PARTIAL | QUALITY_LOST) &&
		    row->kind != ROW_IRQ_STEAL && !time_is_idle(s, row))
			rows += c->time_ns;
	}
	return busy > rows ? busy - rows : 0;
}

/* time * rate. A double suffices, because the share of a loss is an estimate. */
static double at_rate(const struct sums *rate, double time)
{
	return rate->time ? time * ((double)rate->weight / (double)rate->time) : 0;
}

static uint64_t missing_weight(const struct weights *w, const struct snapshot *s, const struct count *k)
{
	static const struct sums by_time = { 1, 1 };
	const struct sums *rate = k->event == BY_TIME ? &by_time : k->whole.time ? &k->whole : &k->partial;
	double missing = at_rate(rate, (double)missing_time(w, s));

	for (unsigned i = 0; i < s->n_cells; i++) {
		const struct snap_cell *c = &s->cells[i];
		const struct snap_row *row = &s->rows[c->row];
		double lack;

		if (!w->cpus[c->cpu] || !is_lossy(k, c) || !weighs(s, k, row))
			continue;
		lack = at_rate(rate, (double)c->time_ns) - (double)cell_weight(w, k, c, time_is_idle(s, row));
		missing += lack > 0 ? lack : 0;
	}
	return missing < (double)SPLIT_WEIGHT_MAX ? (uint64_t)missing : SPLIT_WEIGHT_MAX;
}

/* Takes `event` as the weight; false when it counted nothing at all. */
static bool try_event(struct weights *w, const struct snapshot *s, int event, bool scaled)
{
	struct count k = { .event = event, .scaled = scaled };

	if (event != BY_TIME && !weights_have(w, s, (unsigned)event))
		return false;
	count_rows(w, s, &k);
	if (event != BY_TIME && !k.whole.weight && !k.partial.weight)
		return false;
	w->weight[s->n_rows] = k.lossy ? missing_weight(w, s, &k) : 0;
	w->column = event;
	return true;
}

static void compute(struct weights *w, const struct snapshot *s, enum share_weight mode)
{
	int cycles = mode == WEIGHT_TIME ? BY_TIME : event_find_cycles(&s->schema->core);
	int misses = w->misses ? event_find_misses(&s->schema->core) : -1;
	bool scaled = mode == WEIGHT_CYCLES_BY_FREQUENCY && cycles >= 0 && fill_ratios(w, s);

	w->quality = w->misses ? QUALITY_ESTIMATED : 0;
	if (misses >= 0 && try_event(w, s, misses, false))
		return;
	if (mode == WEIGHT_CYCLES_BY_FREQUENCY && !scaled)
		w->quality |= QUALITY_ESTIMATED;
	if (cycles >= 0 && try_event(w, s, cycles, scaled))
		return;
	/* No cycles here, or a counter that stands still while time passes. */
	if (mode != WEIGHT_TIME)
		w->quality |= QUALITY_ESTIMATED;
	try_event(w, s, BY_TIME, false);
}

static void weights_use(struct weights *w, const struct snapshot *s, unsigned domain);

void weights_of(struct weights *w, const struct snapshot *s, unsigned domain, enum share_weight mode)
{
	const struct domain_desc *d = &s->schema->domains[domain];
	bool machine = sees_all(d), was_machine = sees_all(&w->of);

	if (w->valid && d->kind != DOMAIN_GPU && machine == was_machine && (d->kind == DOMAIN_DRAM) == w->misses &&
	    w->of.kind != DOMAIN_GPU &&
	    (machine || (d->package == w->of.package && d->has_die == w->of.has_die && d->die == w->of.die)))
		return;
	if (d->kind == DOMAIN_GPU) {
		weights_use(w, s, domain);
		return;
	}
	w->of = *d;
	w->misses = d->kind == DOMAIN_DRAM;
	choose_cpus(w, s, d);
	compute(w, s, mode);
	w->valid = true;
}

void weights_blend(struct weights *w, const struct snapshot *s, unsigned domain, const struct terms_prices *prices,
		   double per_joule)
{
	struct count k = { .event = BY_BLEND, .prices = prices, .per_joule = per_joule };

	choose_cpus(w, s, &s->schema->domains[domain]);
	w->quality = s->schema->domains[domain].kind == DOMAIN_DRAM ? QUALITY_ESTIMATED : 0;
	w->valid = false;
	w->column = WEIGHTS_OTHER;
	count_rows(w, s, &k);
	if (k.lossy)
		w->weight[s->n_rows] = missing_weight(w, s, &k);
}

struct snap_price weights_price(const struct weights *w, const struct snapshot *s, uint64_t rows_uj)
{
	struct snap_price p = { 0 };
	double sum = 0;

	for (unsigned i = 0; i < s->n_rows; i++)
		sum += (double)w->weight[i];
	if (sum > 0 && w->column == WEIGHTS_TIME)
		p.per_second = (double)rows_uj / 1e6 / (sum / 1e9);
	else if (sum > 0 && w->column >= 0)
		p.per_count[w->column] = (double)rows_uj / 1e6 / sum;
	return p;
}

/* Weights of a GPU: each row's time at full use, as the driver tells it. The sum is the GPU's busy time, by which
 * idle power is learned. The weights are always estimated: use tells how long a row ran there, not the power it
 * drew, and work that waits for memory counts in full. */

/* Fills w for a GPU. */
static void weights_use(struct weights *w, const struct snapshot *s, unsigned domain)
{
	const struct snap_domain *d = &s->domains[domain];
	uint64_t duration = d->end_ns > d->start_ns ? d->end_ns - d->start_ns : 0, sum = 0;

	memset(w->weight, 0, (s->n_rows + 1) * sizeof(*w->weight));
	memset(w->cpus, 0, s->schema->n_cpus);
	for (unsigned i = 0; i < s->n_uses; i++) {
		const struct snap_use *u = &s->uses[i];
		uint64_t ns = u->ns < duration ? u->ns : duration;

		if (u->domain != domain)
			continue;
		w->weight[u->row == USE_NOBODY ? s->n_rows : u->row] += ns;
		sum += ns;
	}
	memcpy(w->time_ns, w->weight, s->n_rows * sizeof(*w->time_ns));
	w->time_ns[s->n_rows] = 0;
	w->busy_ns = sum < duration ? sum : duration;
	w->elapsed_ns = duration;
	w->n_cpus = 1;
	w->whole = true;
	w->quality = QUALITY_ESTIMATED;
	w->column = WEIGHTS_OTHER;
	w->misses = w->valid = false;
	w->of = s->schema->domains[domain];
}
