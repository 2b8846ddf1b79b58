/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report.h"

static const unsigned table_of[REPORT_SOURCES] = {
	[REPORT_HD] = TREE_SAMPLES, [REPORT_SD] = TREE_GPU,        [REPORT_EXTERNAL] = TREE_EXTERNAL,
	[REPORT_RAPL] = TREE_RAPL,  [REPORT_CGROUP] = TREE_CGROUP,
};

/* Is the column a channel, such as d0c1? The original reader (compat) takes only one digit each. */
static bool is_channel(const char *name, bool compat)
{
	size_t device = *name == 'd' ? strspn(name + 1, "0123456789") : 0, channel;

	if (!device || name[1 + device] != 'c')
		return false;
	channel = strspn(name + 2 + device, "0123456789");
	return channel && !name[2 + device + channel] && (!compat || (device == 1 && channel == 1));
}

static unsigned choose_columns(const struct report_options *o, const struct tree_table *t, enum report_source s,
			       bool *ret)
{
	char names[512];
	unsigned n = 0;

	if (s == REPORT_RAPL || s == REPORT_CGROUP)
		return report_domains(t, ret, names, sizeof(names));
	for (unsigned i = 0; i < t->n_columns; i++) {
		ret[i] = s == REPORT_HD ? strcmp(t->column[i], "value") == 0 :
			 s == REPORT_SD ? strcmp(t->column[i], "power") == 0 :
					  is_channel(t->column[i], o->compat);
		n += ret[i];
	}
	return n;
}

/* Adds up the chosen cells of a row. skip_missing: empty cells count as 0, as the original does with channels. */
static double row_sum(const struct tree_table *t, size_t row, const bool *take, bool skip_missing)
{
	double sum = 0;

	for (unsigned i = 0; i < t->n_columns; i++)
		if (take[i] && !(skip_missing && isnan(tree_cell(t, row, i))))
			sum += tree_cell(t, row, i);
	return sum;
}

static int by_time(const void *a, const void *b)
{
	const struct report_point *x = a, *y = b;

	if (x->t_ns != y->t_ns)
		return x->t_ns < y->t_ns ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static unsigned count_mw(const struct report_options *o, const struct tree_repetition *t)
{
	return o->compat ? REPORT_COMPAT_UNIT : o->external_mw ? o->external_mw : t->external_mw ? t->external_mw : 1;
}

static double watts_of(const struct report_options *o, const struct tree_repetition *t, enum report_source s,
		       double sum)
{
	return s == REPORT_EXTERNAL ? sum * count_mw(o, t) / 1000 - o->external_idle_w : sum / 1000;
}

int report_points_of(const struct report_options *o, const struct tree_repetition *t, enum report_source s,
		     struct report_points *ret)
{
	const struct tree_table *table = &t->table[table_of[s]];
	struct report_points p = { 0 };
	bool take[TREE_COLUMNS_MAX];

	*ret = p;
	if (!table->n || !choose_columns(o, table, s, take))
		return 0;
	p.list = malloc(table->n * sizeof(*p.list));
	if (!p.list)
		return -ENOMEM;
	for (size_t i = 0; i < table->n; i++) {
		double sum = row_sum(table, i, take, o->compat && s == REPORT_EXTERNAL);

		p.missing += isnan(sum);
		if (isnan(sum) && !(o->compat && (s == REPORT_HD || s == REPORT_SD)))
			continue;
		p.list[p.n++] = (struct report_point){ table->t_ns[i], watts_of(o, t, s, sum), i };
	}
	qsort(p.list, p.n, sizeof(*p.list), by_time);
	*ret = p;
	return 0;
}

/* Returns the value at an instant, interpolated between two rows. */
static double at(const struct report_point *p, size_t n, int64_t t_ns)
{
	size_t low = 0, high = n - 1;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (p[middle].t_ns <= t_ns)
			low = middle;
		else
			high = middle;
	}
	if (p[high].t_ns == p[low].t_ns)
		return p[high].watts;
	return p[low].watts +
	       (p[high].watts - p[low].watts) * (double)(t_ns - p[low].t_ns) / (double)(p[high].t_ns - p[low].t_ns);
}

bool report_counter(const struct tree_table *t, unsigned column, int64_t *from, int64_t *to, double *ret)
{
	struct report_point *p = malloc((t->n + 1) * sizeof(*p));
	bool good = p != NULL;
	size_t n = 0;

	for (size_t i = 0; p && i < t->n; i++)
		if (!isnan(tree_cell(t, i, column)))
			p[n++] = (struct report_point){ t->t_ns[i], tree_cell(t, i, column), i };
	if (n > 1)
		qsort(p, n, sizeof(*p), by_time);
	for (size_t i = 1; i < n; i++)
		good &= p[i].watts >= p[i - 1].watts;
	if (good && n > 1) {
		*from = *from > p[0].t_ns ? *from : p[0].t_ns;
		*to = *to < p[n - 1].t_ns ? *to : p[n - 1].t_ns;
		if (*from < *to)
			*ret = at(p, n, *to) - at(p, n, *from);
	}
	good = good && n > 1 && *from < *to;
	free(p);
	return good;
}

static void fill(struct report_result *r, double energy_j, double time_s, double power_w)
{
	r->known = !isnan(energy_j);
	r->value[REPORT_ENERGY] = energy_j;
	r->value[REPORT_TIME] = time_s;
	r->value[REPORT_POWER] = power_w;
	r->value[REPORT_EDP] = energy_j * time_s;
	r->value[REPORT_ED2P] = energy_j * time_s * time_s;
}

/* Takes energy from the cumulative energy columns, which are exact at any pace of rows. */
static bool by_counters(const struct tree_table *t, struct report_repetition *ret, enum report_source s)
{
	struct report_result *r = &ret->source[s];
	int64_t from = ret->window.start_ns, to = ret->window.end_ns;
	bool take[TREE_COLUMNS_MAX];
	double sum = 0, one = 0;

	if (!report_domains(t, take, ret->domains[s == REPORT_CGROUP], sizeof(ret->domains[0])))
		return false;
	for (unsigned i = 0; i < t->n_columns; i++) {
		char name[512];
		int column;

		if (!take[i])
			continue;
		snprintf(name, sizeof(name), "%s-energy", t->column[i]);
		column = tree_column(t, name);
		if (column < 0 || !report_counter(t, (unsigned)column, &from, &to, &one))
			return false;
		sum += one / 1e6;
	}
	r->first_ns = from;
	r->last_ns = to;
	fill(r, sum, (double)(to - ret->window.start_ns) / 1e9, sum / ((double)(to - from) / 1e9));
	return true;
}

/* Adds up trapezoids between the rows with start <= t < end, without interpolation at the ends. */
static void by_trapezoids(const struct report_points *p, const struct tree_window *w, struct report_result *r)
{
	double energy = 0, sum = 0;
	size_t counted = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct report_point *now = &p->list[i];

		if (now->t_ns < w->start_ns || now->t_ns >= w->end_ns)
			continue;
		if (r->rows)
			energy += (now->watts + now[-1].watts) / 2 * ((double)(now->t_ns - r->last_ns) / 1e9);
		else
			r->first_ns = now->t_ns;
		r->last_ns = now->t_ns;
		r->rows++;
		if (!isnan(now->watts)) {
			sum += now->watts;
			counted++;
		}
	}
	if (r->rows > 1)
		fill(r, energy, (double)(r->last_ns - w->start_ns) / 1e9, counted ? sum / (double)counted : NAN);
}

/* Returns the quality of the domains that are added up, and of the rows of the file. */
static unsigned domains_quality(const struct tree_repetition *t, const struct tree_table *table, bool machine)
{
	unsigned quality = table->quality;
	bool take[TREE_COLUMNS_MAX];
	char names[512];

	if (!report_domains(table, take, names, sizeof(names)))
		return quality;
	for (unsigned i = 0; i < table->n_columns; i++)
		quality |= take[i] ? tree_quality_of(t, table->column[i], machine) : 0;
	return quality;
}

static unsigned source_quality(const struct tree_repetition *t, enum report_source s)
{
	bool made_of_rapl = strcmp(t->samples_from, "rapl") == 0,
	     made_of_cgroup = strcmp(t->samples_from, "cgroup") == 0;

	if (s == REPORT_RAPL || (s == REPORT_HD && made_of_rapl))
		return domains_quality(t, &t->table[TREE_RAPL], true);
	if (s == REPORT_CGROUP || (s == REPORT_HD && made_of_cgroup))
		return domains_quality(t, &t->table[TREE_CGROUP], false);
	return t->table[table_of[s]].quality;
}

static int measure_source(const struct report_options *o, const struct tree_repetition *t,
			  struct report_repetition *ret, enum report_source s, struct tree_findings *warnings)
{
	const struct tree_table *table = &t->table[table_of[s]];
	struct report_result *r = &ret->source[s];
	struct report_points p;
	char file[1024];
	int rc;

	snprintf(file, sizeof(file), "%s/%s", ret->place->shown, tree_table_file[table_of[s]]);
	if (table->doubtful)
		tree_find(warnings, TREE_NOTE, "quality", tree_at(file, 0), "%zu of %zu rows are not measured (%s)",
			  table->doubtful, table->n, quality_name(table->quality));
	r->quality = source_quality(t, s);
	if (!table->present || ((s == REPORT_RAPL || s == REPORT_CGROUP) && by_counters(table, ret, s)))
		return 0;
	rc = report_points_of(o, t, s, &p);
	if (rc)
		return rc;
	by_trapezoids(&p, &ret->window, r);
	if (p.missing)
		tree_find(warnings, TREE_NOTE, "rows-without-power", tree_at(file, 0), "%zu rows without power; %s",
			  p.missing, o->compat ? "the original reader has no energy then" : "they are left out");
	if (!r->known && !p.missing)
		tree_find(warnings, TREE_NOTE, "no-rows", tree_at(file, 0), "%zu rows in the window: no energy",
			  r->rows);
	free(p.list);
	return 0;
}

/* Warns of a gap at an end of the window. The rules of the original take the last row for the end, so missing rows
 * would not be noticed. */
static void check_end(const struct report_repetition *r, enum report_source s, struct tree_findings *warnings)
{
	const struct report_result *v = &r->source[s];
	double gap_s, pace_s;

	if (!v->known || v->rows < 2 || !r->window.by_epochs)
		return;
	gap_s = fmax((double)(r->window.end_ns - v->last_ns), (double)(v->first_ns - r->window.start_ns)) / 1e9;
	pace_s = (double)(v->last_ns - v->first_ns) / 1e9 / (double)(v->rows - 1);
	if (gap_s > fmax(2, 5 * pace_s))
		tree_find(warnings, TREE_WRONG, report_source_name[s], tree_at(r->place->shown, 0),
			  "%s: nothing for %.1f s at an end of the window: too little energy", report_source_name[s],
			  gap_s);
}

static void add_costs(const struct cost *c, struct report_result *r)
{
	double uj = r->value[REPORT_ENERGY] * 1e6;

	r->value[REPORT_COST] = cost_money(c, uj);
	r->value[REPORT_CO2] = cost_grams(c, uj, r->first_ns, r->last_ns);
}

int report_measure(const struct report_options *o, const struct tree_repetition *t, struct report_repetition *ret,
		   struct tree_findings *warnings)
{
	snprintf(ret->samples_from, sizeof(ret->samples_from), "%s", t->samples_from);
	ret->external_mw = count_mw(o, t);
	for (unsigned s = 0; s < REPORT_SOURCES; s++) {
		int rc = 0;

		for (unsigned v = 0; v < REPORT_VALUES; v++)
			ret->source[s].value[v] = NAN;
		if (o->sources & 1u << s)
			rc = measure_source(o, t, ret, s, warnings);
		if (rc)
			return rc;
		if (o->cost)
			add_costs(o->cost, &ret->source[s]);
		check_end(ret, s, warnings);
		if (ret->source[s].known && ret->source[s].quality)
			tree_find(warnings, TREE_NOTE, report_source_name[s], tree_at(ret->place->shown, 0),
				  "%s is %s, not measured", report_source_name[s],
				  quality_name(ret->source[s].quality));
	}
	return 0;
}
