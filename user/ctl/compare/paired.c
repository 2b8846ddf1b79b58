/* SPDX-License-Identifier: Apache-2.0 */
#include "paired.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/statistics.h"

int series_make_room(struct series *s, unsigned n_rounds)
{
	size_t n = (size_t)s->n_sides * s->n_metrics * n_rounds;

	free(s->v);
	free(s->exit_status);
	s->n_rounds = n_rounds;
	s->v = malloc((n + 1) * sizeof(*s->v));
	s->exit_status = calloc((size_t)s->n_sides * n_rounds + 1, sizeof(*s->exit_status));
	for (size_t i = 0; s->v && i < n; i++)
		s->v[i] = NAN;
	return s->v && s->exit_status ? 0 : -ENOMEM;
}

void series_free(struct series *s)
{
	free(s->v);
	free(s->exit_status);
	*s = (struct series){ 0 };
}

double *series_values(const struct series *s, unsigned side, unsigned metric)
{
	return s->v + ((size_t)side * s->n_metrics + metric) * s->n_rounds;
}

int *series_exit_status(const struct series *s, unsigned side)
{
	return s->exit_status + (size_t)side * s->n_rounds;
}

struct summary series_summary(const struct series *s, unsigned side, unsigned metric)
{
	return summary_of(series_values(s, side, metric), s->n_rounds, s->seed);
}

struct series_ratio series_ratio(const struct series *s, unsigned side, unsigned metric)
{
	const double *first = series_values(s, 0, metric), *other = series_values(s, side, metric);
	double *a = calloc(2 * (size_t)s->n_rounds + 1, sizeof(*a)), *b, sum_a = 0, sum_b = 0;
	struct series_ratio ret = { 0 };

	if (!a)
		return ret;
	b = a + s->n_rounds;
	for (unsigned i = 0; i < s->n_rounds; i++) {
		if (isnan(first[i]) || isnan(other[i]))
			continue;
		sum_a += a[ret.n] = first[i];
		sum_b += b[ret.n++] = other[i];
	}
	if (sum_a > 0) {
		ret.ratio = sum_b / sum_a;
		ret.interval = bootstrap_ratio(a, b, ret.n, s->seed);
	} else {
		ret.n = 0;
	}
	free(a);
	return ret;
}

unsigned series_judged(const struct series *s)
{
	const char *const names[] = { s->judge ? s->judge : "energy_total_uj", "energy_total_uj", "cpu_ns" };

	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < s->n_metrics; i++)
			if (strcmp(s->metric[i].name, names[k]) == 0)
				return i;
	return 0;
}

double series_width(const struct series *s)
{
	unsigned metric = series_judged(s);
	double widest = 0;

	for (unsigned k = 0; k < s->n_sides; k++) {
		struct statistics of = statistics_of(series_values(s, k, metric), s->n_rounds);
		double width = s->n_rounds > 1 && of.mean > 0 ? of.ci95 / of.mean : INFINITY;

		if (width > widest || isnan(width))
			widest = isnan(width) ? INFINITY : width;
	}
	return widest;
}

struct series_scale series_scale_of(double v, enum series_unit unit)
{
	static const struct {
		double base, step; /* of the smallest unit in a unit of the value; ratio of neighbours */
		const char *name[6]; /* from small to large; NULL ends */
	} units[] = {
		[SERIES_MICROJOULES] = { 1, 1000, { "uJ", "mJ", "J", "kJ", "MJ", NULL } },
		[SERIES_NANOSECONDS] = { 1, 1000, { "ns", "us", "ms", "s", NULL } },
		[SERIES_WATTS] = { 1e6, 1000, { "uW", "mW", "W", "kW", NULL } },
		[SERIES_JOULE_SECONDS] = { 1e6, 1000, { "uJ s", "mJ s", "J s", "kJ s", NULL } },
		[SERIES_BYTES] = { 1, 1024, { "bytes", "KiB", "MiB", "GiB", "TiB", NULL } },
		[SERIES_COUNT] = { 1, 1000, { "", "k", "M", "G", "T", NULL } },
	};
	struct series_scale ret = { units[unit].base, units[unit].name[0] };

	for (unsigned i = 1; units[unit].name[i] && fabs(v) * ret.factor >= units[unit].step; i++)
		ret = (struct series_scale){ ret.factor / units[unit].step, units[unit].name[i] };
	return ret;
}
