/* SPDX-License-Identifier: Apache-2.0 */
/* Traps of the original reader in a repetition whose files can be read. Each rule is a behaviour that was observed
 * (docs/formats/experiment.md, "Traps"). */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/text.h"
#include "tree.h"

#define ORIGINAL_IDLE_W 632.625
#define ORIGINAL_UNIT_MW 10
#define TENFOLD 12.0 /* as in report.c: an external power beyond so many times that of the GPU has the wrong unit */

struct check {
	const struct tree_repetition *r;
	struct tree_findings *f;
	const char *shown;
	char file[1024];
};

static const char *file(struct check *c, const char *name)
{
	snprintf(c->file, sizeof(c->file), "%s/%s", c->shown, name);
	return c->file;
}

static void check_presence(struct check *c)
{
	static const unsigned needed[] = { TREE_GPU, TREE_SAMPLES };

	for (unsigned i = 0; i < 2; i++)
		if (c->r->table[needed[i]].absent)
			tree_find(c->f, TREE_SKIPPED, "missing-file", tree_at(file(c, tree_table_file[needed[i]]), 0),
				  "not there: the repetition is left out");
	if (!c->r->has_info && !c->r->info_broken)
		tree_find(c->f, TREE_SKIPPED, "missing-file", tree_at(file(c, "system_info.json"), 0),
			  "not there: the repetition is left out");
	if (!c->r->has_events)
		tree_find(c->f, TREE_NOTE, "no-events", tree_at(file(c, "timestamps.csv"), 0),
			  "no events: the time that all files have in common counts");
}

static void check_columns(struct check *c, unsigned which, const char *name)
{
	const struct tree_table *t = &c->r->table[which];

	if (t->present && tree_column(t, name) < 0)
		tree_find(c->f, TREE_ABORTS, "no-column", tree_at(file(c, tree_table_file[which]), 1), "no column %s",
			  name);
	if (t->present && !t->n)
		tree_find(c->f, TREE_ABORTS, "no-rows", tree_at(file(c, tree_table_file[which]), 0), "no rows");
}

static bool is_epoch(const struct tree_event *e)
{
	return strcmp(e->name, "epoch_begin") == 0 || strcmp(e->name, "epoch_end") == 0;
}

static int by_epoch(const void *a, const void *b)
{
	const struct tree_event *x = *(const struct tree_event *const *)a, *y = *(const struct tree_event *const *)b;
	int names = strcmp(x->name, y->name);

	if (names || x->data != y->data)
		return names ? names : x->data < y->data ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static bool tree_found(const struct tree_findings *f, const char *trap, const char *file);

/* Are the epochs known to be bad? Then errors that follow from them are not reported again. */
static bool bad_epochs(struct check *c)
{
	const char *name = file(c, "timestamps.csv");

	return tree_found(c->f, "epoch-data", name) || tree_found(c->f, "epoch-restart", name);
}

/* Checks that the numbers of epoch_begin, and those of epoch_end, are unique and count from 0. */
static void check_numbers(struct check *c, const struct tree_event *const *e, size_t n)
{
	const char *name = file(c, "timestamps.csv");

	for (size_t i = 0; i < n; i++) {
		bool first = !i || strcmp(e[i]->name, e[i - 1]->name) != 0;

		if (!first && e[i]->data == e[i - 1]->data)
			tree_find(c->f, TREE_ABORTS, "epoch-restart", tree_at(name, e[i]->line),
				  "%s %lld for the second time: numbers of epochs must not begin anew", e[i]->name,
				  (long long)e[i]->data);
		else if (first && e[i]->data != 0)
			tree_find(
				c->f, TREE_WRONG, "epoch-base", tree_at(name, e[i]->line),
				"the first %s is %lld, not 0: the reader takes another part of the files, and does not say so",
				e[i]->name, (long long)e[i]->data);
		else if (!first && e[i]->data != e[i - 1]->data + 1 && !bad_epochs(c))
			tree_find(c->f, TREE_WRONG, "epoch-gap", tree_at(name, e[i]->line), "%s %lld follows %lld",
				  e[i]->name, (long long)e[i]->data, (long long)e[i - 1]->data);
	}
}

static void check_events(struct check *c)
{
	const struct tree_repetition *r = c->r;
	const struct tree_event **epochs = malloc((r->n_events + 1) * sizeof(*epochs));
	bool begun = false, ended = false;
	size_t n = 0;

	for (size_t i = 0; epochs && i < r->n_events; i++) {
		const struct tree_event *e = &r->events[i];

		begun |= strcmp(e->name, "experiment_begin") == 0;
		ended |= strcmp(e->name, "experiment_end") == 0;
		if (!is_epoch(e))
			continue;
		if (e->has_data)
			epochs[n++] = e;
		else
			tree_find(c->f, TREE_ABORTS, "epoch-data", tree_at(file(c, "timestamps.csv"), e->line),
				  "%s without a number", e->name);
	}
	if (n)
		qsort(epochs, n, sizeof(*epochs), by_epoch);
	if (epochs)
		check_numbers(c, epochs, n);
	if (r->has_events && !(begun && ended))
		tree_find(c->f, TREE_NOTE, "experiment-events", tree_at(file(c, "timestamps.csv"), 0),
			  "no experiment_%s, which the format asks for", begun ? "end" : "begin");
	free(epochs);
}

/* Checks a series in the window: it has rows, a value in every row, and rows up to the end. */
static void check_series(struct check *c, unsigned which, const char *column, const struct tree_window *w)
{
	const struct tree_table *t = &c->r->table[which];
	const char *name = file(c, tree_table_file[which]);
	int k = tree_column(t, column);
	int64_t first = INT64_MAX, last = INT64_MIN;
	double pace_s;
	size_t rows = 0;

	if (!t->n || k < 0)
		return;
	for (size_t i = 0; i < t->n; i++) {
		if (t->t_ns[i] < w->start_ns || t->t_ns[i] >= w->end_ns)
			continue;
		first = t->t_ns[i] < first ? t->t_ns[i] : first;
		last = t->t_ns[i] > last ? t->t_ns[i] : last;
		rows++;
		if (isnan(tree_cell(t, i, (unsigned)k)) && !tree_found(c->f, "not-a-number", name))
			tree_find(c->f, TREE_WRONG, "empty-cell", tree_at(name, t->line[i]),
				  "no %s: energy becomes NaN for the whole repetition; drop the row", column);
	}
	if (!rows) {
		tree_find(c->f, TREE_ABORTS, "outside-window", tree_at(name, 0),
			  "no row in the part that counts; are all times UTC?");
		return;
	}
	pace_s = rows > 1 ? (double)(last - first) / 1e9 / (double)(rows - 1) : 0;
	if (w->by_epochs && (double)(w->end_ns - last) / 1e9 > fmax(2, 5 * pace_s))
		tree_find(c->f, TREE_WRONG, "stops-early", tree_at(name, t->line[t->n - 1]),
			  "ends %.1f s before the part that counts does: silently too little energy",
			  (double)(w->end_ns - last) / 1e9);
}

static bool find_end(const struct tree_repetition *r, int64_t *ret_ns)
{
	for (size_t i = r->n_events; i-- > 0;)
		if (strcmp(r->events[i].name, "experiment_end") == 0) {
			*ret_ns = r->events[i].t_ns;
			return true;
		}
	return false;
}

/* Checks that a series reaches the end. Without epochs the series that ends first ends the window, so the rows before
 * a GPU was lost are taken for the whole repetition. */
static void check_reaches_end(struct check *c, unsigned which)
{
	const struct tree_table *t = &c->r->table[which];
	int64_t first = INT64_MAX, last = INT64_MIN, end_ns;
	double pace_s, short_s;

	if (!t->n || !find_end(c->r, &end_ns))
		return;
	for (size_t i = 0; i < t->n; i++) {
		first = t->t_ns[i] < first ? t->t_ns[i] : first;
		last = t->t_ns[i] > last ? t->t_ns[i] : last;
	}
	pace_s = t->n > 1 ? (double)(last - first) / 1e9 / (double)(t->n - 1) : 0;
	short_s = ((double)end_ns - (double)last) / 1e9;
	if (short_s > fmax(2, 5 * pace_s))
		tree_find(
			c->f, TREE_WRONG, "stops-early", tree_at(file(c, tree_table_file[which]), t->line[t->n - 1]),
			"ends %.1f s before experiment_end; without epochs that is the end for all files: silently too little energy",
			short_s);
}

/* Does the reader see a column of this name? It takes only d, one digit, c, one digit. */
static bool seen(const char *s)
{
	return s[0] == 'd' && isdigit((unsigned char)s[1]) && s[2] == 'c' && isdigit((unsigned char)s[3]) && !s[4];
}

static double mean_counts(const struct tree_table *t, const bool *take, const struct tree_window *w)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (t->t_ns[i] < w->start_ns || t->t_ns[i] >= w->end_ns)
			continue;
		for (unsigned k = 0; k < t->n_columns; k++)
			if (take[k] && !isnan(tree_cell(t, i, k)))
				sum += tree_cell(t, i, k);
		n++;
	}
	return n ? sum / (double)n : NAN;
}

/* Checks the unit of counts, which the reader takes for 10 mW. */
static void check_unit(struct check *c, const bool *take, const struct tree_window *w)
{
	const char *name = file(c, tree_table_file[TREE_EXTERNAL]);
	const struct tree_table *gpu = &c->r->table[TREE_GPU];
	double counts = mean_counts(&c->r->table[TREE_EXTERNAL], take, w), gpu_mw = NAN;
	int power = tree_column(gpu, "power");
	bool only[TREE_COLUMNS_MAX] = { false };

	if (power >= 0) {
		only[power] = true;
		gpu_mw = mean_counts(gpu, only, w);
	}
	if (c->r->external_mw == 1)
		tree_find(
			c->f, TREE_NOTE, "external-unit", tree_at(name, 0),
			"in mW, as the format says; the reader takes counts for 10 mW and shows ten times the power (record with the unit 10mW for it)");
	else if (!c->r->external_mw && counts * ORIGINAL_UNIT_MW > TENFOLD * gpu_mw)
		tree_find(
			c->f, TREE_WRONG, "external-unit", tree_at(name, 0),
			"mean %.5g counts, GPU %.5g mW: these look like mW; the reader takes counts for 10 mW: about ten times too much",
			counts, gpu_mw);
	if (counts * ORIGINAL_UNIT_MW / 1000 < ORIGINAL_IDLE_W)
		tree_find(c->f, TREE_NOTE, "external-idle", tree_at(name, 0),
			  "the reader takes %.3f W off for another machine's idle power: external energy is negative",
			  ORIGINAL_IDLE_W);
}

static void check_external(struct check *c, const struct tree_window *w)
{
	const struct tree_table *t = &c->r->table[TREE_EXTERNAL];
	bool take[TREE_COLUMNS_MAX] = { false };
	unsigned n = 0;

	if (!t->present)
		return;
	for (unsigned k = 0; k < t->n_columns; k++) {
		take[k] = seen(t->column[k]);
		n += take[k];
		if (!take[k])
			tree_find(c->f, TREE_WRONG, "external-column",
				  tree_at(file(c, tree_table_file[TREE_EXTERNAL]), 1),
				  "column %.40s is silently not counted: d, one digit, c, one digit is expected",
				  t->column[k]);
	}
	if (n && w)
		check_unit(c, take, w);
}

void tree_check(const struct tree_place *p, const struct tree_repetition *r, struct tree_findings *f)
{
	struct check c = { .r = r, .f = f, .shown = p->shown };
	struct tree_window w;
	struct err err = { 0 };
	bool window;

	check_presence(&c);
	check_columns(&c, TREE_GPU, "power");
	check_columns(&c, TREE_SAMPLES, "value");
	check_events(&c);
	window = tree_window_of(r, &w, &err) == 0;
	if (window) {
		check_series(&c, TREE_GPU, "power", &w);
		check_series(&c, TREE_SAMPLES, "value", &w);
		for (unsigned i = TREE_GPU; i <= TREE_EXTERNAL && !w.by_epochs; i++)
			check_reaches_end(&c, i);
	} else if (r->table[TREE_GPU].n && r->table[TREE_SAMPLES].n && !bad_epochs(&c)) {
		tree_find(f, TREE_ABORTS, "no-window", tree_at(file(&c, "timestamps.csv"), 0), "%s", err.text);
	}
	check_external(&c, window ? &w : NULL);
}

const char *tree_effect_name(enum tree_effect e)
{
	static const char *const names[] = { "note", "wrong", "skipped", "aborts" };

	return names[e];
}

/* Finds a finding of the same trap and file. The findings of a file follow each other, so only the last 64 are looked
 * at. */
static struct tree_finding *known(const struct tree_findings *f, const char *trap, const char *file)
{
	for (unsigned i = f->n, looked = 0; i-- > 0 && looked < 64; looked++)
		if (strcmp(f->list[i].trap, trap) == 0 && strcmp(f->list[i].file, file) == 0)
			return &f->list[i];
	return NULL;
}

static bool tree_found(const struct tree_findings *f, const char *trap, const char *file)
{
	return known(f, trap, file) != NULL;
}

static struct tree_finding *room(struct tree_findings *f)
{
	if (f->n == TREE_FINDINGS_MAX)
		return NULL;
	if (ARRAY_ROOM(f->list, f->cap, f->n + 1) != 0)
		return NULL;
	return &f->list[f->n];
}

void tree_find(struct tree_findings *f, enum tree_effect effect, const char *trap, struct tree_where where,
	       const char *fmt, ...)
{
	struct tree_finding *one = known(f, trap, where.file);
	char text[512], clean[1024];
	va_list args;

	if (one) {
		one->more++;
		return;
	}
	one = room(f);
	if (!one) {
		f->left_out++;
		return;
	}
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	*one = (struct tree_finding){ .effect = effect, .trap = trap, .line = where.line };
	one->text = strdup(text_clean(clean, sizeof(clean), text));
	one->file = strdup(where.file);
	if (one->text && one->file) {
		f->n++;
		return;
	}
	free(one->text);
	free(one->file);
	f->left_out++;
}

void tree_findings_free(struct tree_findings *f)
{
	for (unsigned i = 0; i < f->n; i++) {
		free(f->list[i].file);
		free(f->list[i].text);
	}
	free(f->list);
	*f = (struct tree_findings){ 0 };
}
