/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of runs as series: a value per command, figure and round. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "result.h"

/* Figures come in this order. Those of domains and counters follow. */
enum { ENERGY, POWER, DELAY_PRODUCT, WALL, CPU, USER, SYSTEM, MEMORY, FIXED };

struct column {
	unsigned kind; /* one of the above; FIXED = a column of the agent's values */
	unsigned index; /* in run_result.value, of FIXED */
};

unsigned run_comparison_place(const struct run_comparison *c, unsigned side, unsigned i)
{
	for (unsigned k = 0; k < c->n_sides; k++)
		if (c->order[i * c->n_sides + k] == side)
			return i * c->n_sides + k + 1;
	return 0;
}

static double joules(const struct run_facts *f, const struct run_result *r)
{
	return r->measured && f->split && f->n_domains ? (double)run_total_uj(f, r) / 1e6 : NAN;
}

static double figure(const struct run_facts *f, const struct run_result *r, struct column c)
{
	static const enum run_figure figures[FIXED] = {
		[WALL] = RUN_WALL_NS, [CPU] = RUN_CPU_NS, [USER] = RUN_USER_NS, [SYSTEM] = RUN_SYSTEM_NS, [MEMORY] = RUN_MEMORY_PEAK
	};
	double s = (double)r->wall_ns / 1e9;

	if (!r->started)
		return NAN;
	switch (c.kind) {
	case ENERGY:
		return joules(f, r) * 1e6;
	case POWER:
		return s > 0 ? joules(f, r) / s : NAN;
	case DELAY_PRODUCT:
		return joules(f, r) * s;
	case FIXED:
		if (c.index < f->n_domains && !f->split)
			return NAN;
		return run_value_known(f, r, c.index) ? (double)r->value[c.index] : NAN;
	default:
		return (double)run_figure(f, r, figures[c.kind]);
	}
}

static unsigned quality_of(const struct run_facts *f, const struct run_result *r, struct column c)
{
	if (!r->measured)
		return QUALITY_MEASURED;
	if (c.kind <= DELAY_PRODUCT)
		return run_total_quality(f, r);
	if (c.kind < FIXED)
		return QUALITY_MEASURED;
	return c.index < f->n_domains ? r->energy_quality[c.index] : r->quality;
}

static struct series_metric *add(struct series *s, struct column *columns, struct column c)
{
	columns[s->n_metrics] = c;
	return &s->metric[s->n_metrics++];
}

static void choose_metrics(const struct run_facts *f, struct series *s, struct column *columns)
{
	static const struct series_metric fixed[FIXED] = {
		[ENERGY] = { "energy_total_uj", "energy", SERIES_MICROJOULES, true, 0 },
		[POWER] = { "power_total_w", "power", SERIES_WATTS, true, 0 },
		[DELAY_PRODUCT] = { "energy_delay_js", "energy x time", SERIES_JOULE_SECONDS, true, 0 },
		[WALL] = { "wall_ns", "time", SERIES_NANOSECONDS, true, 0 },
		[CPU] = { "cpu_ns", "CPU time", SERIES_NANOSECONDS, true, 0 },
		[USER] = { "user_ns", "user time", SERIES_NANOSECONDS, false, 0 },
		[SYSTEM] = { "system_ns", "system time", SERIES_NANOSECONDS, false, 0 },
		[MEMORY] = { "memory_peak_bytes", "peak memory", SERIES_BYTES, false, 0 },
	};
	struct series_metric *m;

	for (unsigned k = f->split && f->n_domains ? ENERGY : WALL; k < FIXED; k++)
		*add(s, columns, (struct column){ k, 0 }) = fixed[k];
	for (unsigned d = 0; d < f->n_domains && f->split; d++) {
		m = add(s, columns, (struct column){ FIXED, d });
		*m = (struct series_metric){ .title = f->domain[d].name, .unit = SERIES_MICROJOULES };
		snprintf(m->name, sizeof(m->name), "energy_uj:%s", f->domain[d].name);
	}
	for (unsigned i = 0; i < f->n_counters; i++) {
		m = add(s, columns, (struct column){ FIXED, f->n_domains + RUN_FIXED + i });
		*m = (struct series_metric){ .title = f->counter[i], .unit = SERIES_COUNT, .shown = true };
		snprintf(m->name, sizeof(m->name), "%s", f->counter[i]);
	}
}

int run_series_fill(const struct run_comparison *c, unsigned n_rounds, uint64_t seed, struct series *ret)
{
	struct column columns[SERIES_METRICS_MAX];
	const struct run_facts *f = c->side[0].facts;

	_Static_assert(FIXED + SCHEMA_MAX_DOMAINS + SCHEMA_MAX_EVENTS <= SERIES_METRICS_MAX, "room for all figures");
	*ret = (struct series){ .n_sides = c->n_sides, .seed = seed };
	choose_metrics(f, ret, columns);
	if (series_make_room(ret, n_rounds))
		return -ENOMEM;
	for (unsigned k = 0; k < c->n_sides; k++) {
		ret->side[k].command = c->side[k].text;
		for (unsigned i = 0; i < n_rounds && i < c->side[k].n; i++) {
			const struct run_result *r = &c->side[k].runs[i];

			ret->side[k].runs++;
			series_exit_status(ret, k)[i] = r->exit_status;
			ret->side[k].failed += r->exit_status != 0;
			for (unsigned m = 0; m < ret->n_metrics; m++) {
				series_values(ret, k, m)[i] = figure(f, r, columns[m]);
				ret->metric[m].quality |= quality_of(f, r, columns[m]);
			}
		}
	}
	return 0;
}
