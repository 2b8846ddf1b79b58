/* SPDX-License-Identifier: Apache-2.0 */
#include "run_outliers.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "base/statistics.h"

/* NaN where the run has no such figure. */
static double figure(const struct run_facts *f, const struct run_result *r, enum run_outlier_of of)
{
	if (!r->started || (of == OUTLIER_ENERGY && !r->measured))
		return NAN;
	return of == OUTLIER_ENERGY ? (double)run_total_uj(f, r) :
				      (double)run_figure(f, r, of == OUTLIER_CPU ? RUN_CPU_NS : RUN_WALL_NS);
}

/* room: as much as two figures of each run. */
static struct statistics_bounds bounds(const struct run_report *r, enum run_outlier_of of, double *room)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->n; i++) {
		double v = figure(r->facts, &r->runs[i], of);

		if (!isnan(v))
			room[n++] = v;
	}
	return n ? statistics_bounds_of(room, n, room + r->n) : (struct statistics_bounds){ NAN, NAN, NAN };
}

int run_outliers_find(const struct run_report *r, struct run_outlier **ret)
{
	const enum run_outlier_of of[] = {
		r->facts->split && r->facts->n_domains ? OUTLIER_ENERGY : OUTLIER_CPU,
		OUTLIER_WALL,
	};
	struct statistics_bounds b[2];
	double *room = calloc(r->n, 2 * sizeof(*room));
	int n = 0;

	*ret = calloc(r->n + 1, sizeof(**ret));
	if (!room || !*ret) {
		free(room);
		free(*ret);
		*ret = NULL;
		return -ENOMEM;
	}
	for (unsigned k = 0; k < 2; k++)
		b[k] = bounds(r, of[k], room);
	for (unsigned i = 0; i < r->n; i++)
		for (unsigned k = 0; k < 2; k++) {
			double v = figure(r->facts, &r->runs[i], of[k]);

			if (v < b[k].low || v > b[k].high) { /* not where one is NaN */
				(*ret)[n++] = (struct run_outlier){ i, of[k], v, b[k].median };
				break;
			}
		}
	free(room);
	return n;
}
