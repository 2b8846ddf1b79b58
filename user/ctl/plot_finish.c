/* SPDX-License-Identifier: Apache-2.0 */
/* From all that was read to what is shown: the top series, the rest, the domains. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plot.h"

static void sum_up(struct plot *p, struct plot_series *s)
{
	s->uj = 0;
	s->quality = 0;
	s->all_estimated = true;
	for (unsigned i = 0; i < s->n; i++) {
		if (!p->columns[i].known)
			continue;
		s->uj += s->cells[i].uj;
		s->quality |= s->cells[i].quality;
		if (s->cells[i].uj > 0 && !(s->cells[i].quality & QUALITY_ESTIMATED))
			s->all_estimated = false;
	}
}

/* As they are stacked: kinds from the bottom up, the largest of a kind first. */
static int compare(const void *a, const void *b)
{
	const struct plot_series *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->uj < y->uj || x->uj > y->uj)
		return x->uj > y->uj ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void add_cells(struct plot_series *to, const struct plot_series *from)
{
	for (unsigned i = 0; i < from->n; i++) {
		to->cells[i].uj += from->cells[i].uj;
		to->cells[i].quality |= from->cells[i].quality;
	}
}

/* Rows behind the top ones become one; those that used nothing are left out. */
static int fold_rest(struct plot *p)
{
	struct plot_series rest = { .name = strdup("other"), .kind = PLOT_REST, .n = p->n_columns, .cap = p->n_columns };
	unsigned kept = 0, rows = 0;

	rest.cells = calloc(p->n_columns, sizeof(*rest.cells));
	if (!rest.name || !rest.cells) {
		free(rest.name);
		free(rest.cells);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < p->n_series; i++) {
		struct plot_series *s = &p->series[i];
		bool row = s->kind == PLOT_ROW && s->uj > 0;

		rows += row;
		if (s->uj > 0 && s->kind != PLOT_REST && (!row || rows <= p->top)) {
			p->series[kept++] = *s;
			continue;
		}
		p->n_rest += row;
		if (s->uj > 0)
			add_cells(&rest, s);
		free(s->name);
		free(s->cells);
	}
	sum_up(p, &rest);
	p->n_series = kept;
	if (rest.uj > 0) {
		p->series[p->n_series++] = rest; /* in the place of one that was folded */
	} else {
		free(rest.name);
		free(rest.cells);
	}
	free(p->table);
	p->table = NULL;
	p->cap_table = 0;
	return 0;
}

int plot_finish(struct plot *p, struct err *err)
{
	if (p->failed)
		return err_set(err, -ENOMEM, "plot: out of memory; ask for less with --since, --until or --cgroup");
	if (!p->n_columns)
		return err_set(err, -ENODATA, "plot: nothing was measured in that time; see --since and --until");
	for (unsigned i = 0; i < p->n_series; i++)
		sum_up(p, &p->series[i]);
	if (p->n_series)
		qsort(p->series, p->n_series, sizeof(*p->series), compare);
	if (p->n_series && fold_rest(p) != 0)
		return err_set(err, -ENOMEM, "plot: out of memory; ask for less with --since, --until or --cgroup");
	if (!p->n_series && p->cgroup)
		return err_set(err, -ENODATA,
			       "plot: no cgroup that matches %s used energy in that time; see joulectl list",
			       p->cgroup);
	if (!p->n_series)
		return err_set(err, -ENODATA,
			       "plot: no energy in that time; joulectl doctor says what this machine can measure");
	return 0;
}

/* "package" of "package-0" and "package-0-die-1". */
static size_t kind_len(const char *name)
{
	const char *dash = strchr(name, '-');

	return dash && dash[1] >= '0' && dash[1] <= '9' ? (size_t)(dash - name) : strlen(name);
}

static bool listed(const char *list, const char *name)
{
	size_t n = kind_len(name);

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t len = strcspn(at, ",");

		if ((len == strlen(name) || len == n) && strncmp(at, name, len) == 0)
			return true;
	}
	return false;
}

/* A word of the list that is no domain's name. */
static bool strange(const char *word, size_t len, const char *const *names, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if ((len == strlen(names[i]) || len == kind_len(names[i])) && strncmp(word, names[i], len) == 0)
			return false;
	return true;
}

static void join(char *dst, size_t size, const char *const *names, unsigned n, const bool *which, const char *between)
{
	size_t at = 0;

	dst[0] = '\0';
	for (unsigned i = 0; i < n && at < size; i++)
		if (!which || which[i])
			at += (size_t)snprintf(dst + at, size - at, "%s%.60s", at ? between : "", names[i]);
}

int plot_choose_domains(struct plot *p, const char *const *names, unsigned n, bool *ret, struct err *err)
{
	const char *list = p->domains ? p->domains : "package,dram,gpu,external";
	char all[256];
	unsigned chosen = 0;

	join(all, sizeof(all), names, n, NULL, ", ");
	if (!n)
		return err_set(err, -ENODATA, "plot: there is no energy domain; joulectl doctor says why");
	for (const char *at = p->domains; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strange(at, strcspn(at, ","), names, n))
			return err_set(err, -EINVAL, "plot: --domain %.40s: no such domain; there is %s", at, all);
	for (unsigned i = 0; i < n; i++) {
		ret[i] = listed(list, names[i]);
		chosen += ret[i];
	}
	if (!chosen)
		ret[0] = true; /* psys alone, or what only its maker knows */
	join(p->unit_of, sizeof(p->unit_of), names, n, ret, " + ");
	return 0;
}
