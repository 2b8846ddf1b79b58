/* SPDX-License-Identifier: Apache-2.0 */
/* Totals beside totals, and the bound on what a page of them has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "totals.h"

int totals_view(struct totals *t, const struct totals_options *o)
{
	totals_free(t->view);
	free(t->view);
	t->view = totals_new(t->schema, o);
	return t->view ? 0 : -ENOMEM;
}

bool totals_first_domain(const struct schema *s, unsigned d, bool any_package)
{
	for (unsigned i = 0; i < d; i++)
		if (s->domains[i].kind == s->domains[d].kind &&
		    (any_package ||
		     (s->domains[i].package == s->domains[d].package && s->domains[i].die == s->domains[d].die)))
			return false;
	return true;
}

/* The series of docs/formats/metrics.md. The unit test counts them on a page. */
static void count_series(const struct schema *s, unsigned *ret_machine, unsigned *ret_row)
{
	/* build_info, modes of CPUs, losses, intervals */
	unsigned machine = 1 + 4 + 4 + 1 + s->msr.n, row = TOTAL_FIXED + s->core.n;

	for (unsigned d = 0; d < s->n_domains; d++) {
		/* energy, idle, residual, intervals by quality; summed, retired */
		machine += totals_first_domain(s, d, false) ? 3 + TOTALS_QUALITIES : 0;
		machine += totals_first_domain(s, d, true) ? 2 : 0;
		row += totals_first_domain(s, d, true);
	}
	*ret_machine = machine;
	*ret_row = row;
}

int totals_fit(struct totals_options *o, const struct schema *s, uint64_t max_series, unsigned more, struct err *err)
{
	const unsigned range = s->n_domains > 0; /* of a cgroup, and of no other row */
	unsigned machine, row, least;
	uint64_t rows;

	if (!max_series)
		return 0;
	count_series(s, &machine, &row);
	/* `idle` is no row of a page, and causes are none without a wall */
	least = machine + more + ((schema_has_wall(s) ? TOTAL_FIRST_CGROUP : TOTAL_UNSELECTED + 1u) - 1) * row;
	if (max_series < least + row + range)
		return err_set(
			err, -EINVAL,
			"max-series: %llu series do not hold the machine and one row; this machine needs at least %u",
			(unsigned long long)max_series, least + row + range);
	rows = (max_series - least) / (row + range);
	if (!o->top || rows < o->top)
		o->top = (unsigned)rows;
	return 0;
}
