/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plot.h"
#include "report.h"

/* The rule of joulectl plot: what does not overlap. */
unsigned report_domains(const struct tree_table *t, bool *ret, char *names, size_t size)
{
	static const char suffix[] = "-energy";
	const char *domain[TREE_COLUMNS_MAX];
	unsigned column[TREE_COLUMNS_MAX], n = 0, chosen = 0;
	bool take[TREE_COLUMNS_MAX];
	struct plot *p = calloc(1, sizeof(*p));

	memset(ret, 0, t->n_columns * sizeof(*ret));
	*names = '\0';
	for (unsigned i = 0; i < t->n_columns; i++) {
		size_t len = strlen(t->column[i]);

		if (len >= sizeof(suffix) && strcmp(t->column[i] + len + 1 - sizeof(suffix), suffix) == 0)
			continue;
		if (strncmp(t->column[i], "external", 8) == 0)
			continue; /* the wall has the packages in it */
		column[n] = i;
		domain[n++] = t->column[i];
	}
	if (p && n && plot_choose_domains(p, domain, n, take, NULL) == 0) {
		for (unsigned i = 0; i < n; i++) {
			ret[column[i]] = take[i];
			chosen += take[i];
		}
		snprintf(names, size, "%s", p->unit_of);
	}
	free(p);
	return chosen;
}
