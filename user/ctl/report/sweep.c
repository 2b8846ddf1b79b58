/* SPDX-License-Identifier: Apache-2.0 */
/* Energy and time over the setting of a run (150W; 877MHz,1065MHz): a line per benchmark, with the standard deviation
 * over repetitions as bars. Runs whose names are no settings are drawn side by side. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report.h"
#include "report_plot.h"

enum setting { SETTING_WATTS, SETTING_CLOCK, SETTING_NAME };

struct spot {
	double x;
	const struct report_run *run;
};

struct sweep {
	const struct report *r;
	enum report_source s;
	enum setting setting;
	struct svg svg;
	double width;
	struct spot *spots; /* of all lines, one line after the other */
	unsigned first[SVG_COLOURS + 1];
	char *name[SVG_COLOURS];
	unsigned n_lines, left_out;
};

static const struct tree_place *place(const struct report *r, const struct report_run *run)
{
	return r->list[run->first].place;
}

/* Parses the name of a run: "150W" or "877MHz,1065MHz". *ret is the power limit in W or the GPU clock in MHz,
 * *ret_memory the memory clock in MHz. */
static enum setting setting_of(const char *name, double *ret, double *ret_memory)
{
	double a, b;
	int end = 0;

	*ret_memory = 0;
	if (strspn(name, "0123456789.") && sscanf(name, "%8lfW%n", &a, &end) == 1 && end && !name[end]) {
		*ret = a;
		return SETTING_WATTS;
	}
	end = 0;
	if (strspn(name, "0123456789.") && sscanf(name, "%8lfMHz,%8lfMHz%n", &a, &b, &end) == 2 && end && !name[end]) {
		*ret = b;
		*ret_memory = a;
		return SETTING_CLOCK;
	}
	return SETTING_NAME;
}

static bool has_energy(const struct sweep *w, const struct report_run *run, struct statistics *ret)
{
	return report_stats(w->r, run, w->s, REPORT_ENERGY, ret) > 0;
}

static enum setting common_setting(const struct sweep *w)
{
	enum setting all = SETTING_NAME;
	double x, memory;

	for (unsigned i = 0, n = 0; i < w->r->n_runs; i++) {
		enum setting one = setting_of(place(w->r, &w->r->runs[i])->name[TREE_RUN], &x, &memory);

		if (n++ && one != all)
			return SETTING_NAME;
		all = one;
	}
	return all;
}

static bool same_line(const struct sweep *w, const struct report_run *a, const struct report_run *b)
{
	const struct tree_place *p = place(w->r, a), *q = place(w->r, b);
	double x, m = 0, n = 0;

	if (strcmp(p->name[TREE_EXPERIMENT], q->name[TREE_EXPERIMENT]) ||
	    strcmp(p->name[TREE_BENCHMARK], q->name[TREE_BENCHMARK]))
		return false;
	if (w->setting == SETTING_CLOCK) {
		setting_of(p->name[TREE_RUN], &x, &m);
		setting_of(q->name[TREE_RUN], &x, &n);
	}
	return m == n;
}

static int by_x(const void *a, const void *b)
{
	double x = ((const struct spot *)a)->x, y = ((const struct spot *)b)->x;

	return x < y ? -1 : x > y;
}

static int begin_line(struct sweep *w, const struct report_run *run)
{
	const struct tree_place *p = place(w->r, run);
	double x, memory = 0;
	char extra[48] = "";

	if (w->setting == SETTING_CLOCK) {
		setting_of(p->name[TREE_RUN], &x, &memory);
		snprintf(extra, sizeof(extra), ", memory at %g MHz", memory);
	}
	if (asprintf(&w->name[w->n_lines], "%s / %s%s", p->name[TREE_EXPERIMENT], p->name[TREE_BENCHMARK], extra) < 0) {
		w->name[w->n_lines] = NULL;
		return -ENOMEM;
	}
	w->first[w->n_lines + 1] = w->first[w->n_lines];
	w->n_lines++;
	return 0;
}

/* Collects the runs into lines. All runs are searched for each line: those of a benchmark follow each other, but those
 * of a memory clock may not. */
static int collect(struct sweep *w)
{
	const struct report *r = w->r;
	struct statistics stats;
	bool *done = calloc(r->n_runs + 1, sizeof(*done));
	int rc = done ? 0 : -ENOMEM;

	for (unsigned i = 0; i < r->n_runs && !rc; i++) {
		if (done[i] || !has_energy(w, &r->runs[i], &stats))
			continue;
		if (w->n_lines == SVG_COLOURS) {
			w->left_out++;
			continue;
		}
		rc = begin_line(w, &r->runs[i]);
		for (unsigned k = i; k < r->n_runs && !rc; k++) {
			struct spot *spot = &w->spots[w->first[w->n_lines]];
			double memory;

			if (done[k] || !has_energy(w, &r->runs[k], &stats) || !same_line(w, &r->runs[i], &r->runs[k]))
				continue;
			done[k] = true;
			*spot = (struct spot){ k - i, &r->runs[k] };
			if (w->setting != SETTING_NAME)
				setting_of(place(r, &r->runs[k])->name[TREE_RUN], &spot->x, &memory);
			w->first[w->n_lines]++;
		}
		if (!rc)
			qsort(w->spots + w->first[w->n_lines - 1], w->first[w->n_lines] - w->first[w->n_lines - 1],
			      sizeof(*w->spots), by_x);
	}
	free(done);
	return rc;
}

static void range(const struct sweep *w, enum report_value v, struct report_chart *c)
{
	unsigned n = w->first[w->n_lines];

	*c = (struct report_chart){ .svg = c->svg, .right = c->right, .top = c->top, .bottom = c->bottom };
	for (unsigned i = 0; i < n; i++) {
		struct statistics stats = { 0 };

		report_stats(w->r, w->spots[i].run, w->s, v, &stats);
		c->y0 = fmin(c->y0, stats.mean - stats.stddev);
		c->y1 = fmax(c->y1, stats.mean + stats.stddev);
		c->x0 = i ? fmin(c->x0, w->spots[i].x) : w->spots[i].x;
		c->x1 = i ? fmax(c->x1, w->spots[i].x) : w->spots[i].x;
	}
	/* Room at the sides keeps marks off the edge. */
	c->x0 -= fmax((c->x1 - c->x0) * .05, .5);
	c->x1 += fmax((c->x1 - c->x0) * .05, .5);
}

static void draw_spot(struct sweep *w, const struct report_chart *c, const struct spot *spot, unsigned line,
		      enum report_value v)
{
	struct statistics s = { 0 };
	unsigned n = report_stats(w->r, spot->run, w->s, v, &s);
	double x = report_chart_x(c, spot->x), high = report_chart_y(c, s.mean + s.stddev),
	       low = report_chart_y(c, s.mean - s.stddev);
	char tip[400];

	if (n > 1) {
		svg_line(&w->svg, report_chart_class('l', line), svg_at(x, high), svg_at(x, low));
		svg_line(&w->svg, report_chart_class('l', line), svg_at(x - 4, high), svg_at(x + 4, high));
		svg_line(&w->svg, report_chart_class('l', line), svg_at(x - 4, low), svg_at(x + 4, low));
	}
	svg_open(&w->svg, "circle");
	svg_attr(&w->svg, "class", report_chart_class('c', line));
	svg_attr_num(&w->svg, "cx", x);
	svg_attr_num(&w->svg, "cy", report_chart_y(c, s.mean));
	svg_attr_num(&w->svg, "r", 3.5);
	snprintf(tip, sizeof(tip), "%.200s: %.6g +- %.3g of %u", place(w->r, spot->run)->name[TREE_RUN], s.mean,
		 s.stddev, n);
	svg_tooltip(&w->svg, tip);
	svg_close(&w->svg);
}

/* Writes the names of runs below the axis, as far as there is room. */
static void name_spots(struct sweep *w, const struct report_chart *c)
{
	double taken = 0;

	for (unsigned i = 0; i < w->first[1]; i++) {
		const char *name = place(w->r, w->spots[i].run)->name[TREE_RUN];
		double x = report_chart_x(c, w->spots[i].x), half;
		char fitted[64];

		svg_fit(fitted, sizeof(fitted), name, 120, CHART_TEXT);
		half = svg_text_width(fitted, CHART_TEXT) / 2;
		if (x - half < taken || x + half > w->width)
			continue;
		svg_text(&w->svg, "dim", "middle", svg_at(x, c->bottom + 19), fitted);
		taken = x + half + 8;
	}
}

/* Connects the spots of a line. It is not called for settings that are no numbers: there is no value between them. */
static void draw_line(struct sweep *w, const struct report_chart *c, unsigned line, enum report_value v)
{
	svg_open(&w->svg, "path");
	svg_attr(&w->svg, "class", report_chart_class('l', line));
	svg_path_begin(&w->svg);
	for (unsigned i = line ? w->first[line] : 0; i < w->first[line + 1]; i++) {
		struct statistics s = { 0 };

		report_stats(w->r, w->spots[i].run, w->s, v, &s);
		svg_line_to(&w->svg, report_chart_x(c, w->spots[i].x), report_chart_y(c, s.mean));
	}
	svg_path_end(&w->svg);
	svg_close(&w->svg);
}

static void draw_panel(struct sweep *w, struct report_chart *c, enum report_value v, const char *label)
{
	static const char *const axes[] = { "power limit in W", "GPU clock in MHz", "run" };

	report_chart_axes(c, axes[w->setting], label, w->setting != SETTING_NAME);
	if (w->setting == SETTING_NAME && w->n_lines == 1)
		name_spots(w, c);
	for (unsigned k = 0; k < w->n_lines; k++) {
		if (w->setting != SETTING_NAME)
			draw_line(w, c, k, v);
		for (unsigned i = k ? w->first[k] : 0; i < w->first[k + 1]; i++)
			draw_spot(w, c, &w->spots[i], k, v);
	}
}

static void draw(struct sweep *w, struct buf *out)
{
	double tall = w->width < 560 ? 180 : 220;
	struct report_chart energy = { .svg = &w->svg, .right = w->width - CHART_PAD, .top = 92, .bottom = 92 + tall };
	struct report_chart time = { .svg = &w->svg,
				     .right = energy.right,
				     .top = energy.top + tall + 84,
				     .bottom = energy.bottom + tall + 84 };
	const struct report_legend legend = { w->width, 92 + 2 * tall + 158, (const char *const *)w->name, w->n_lines };
	double below = report_chart_legend(NULL, &legend);
	char what[REPORT_WHAT_MAX + 64], of[REPORT_WHAT_MAX], fit[REPORT_WHAT_MAX + 64];
	const struct report_repetition *first = NULL;
	unsigned quality = 0;

	for (unsigned i = 0; i < w->first[w->n_lines]; i++)
		quality |= report_quality(w->r, w->spots[i].run, w->s);
	for (unsigned i = 0; i < w->r->n && !first; i++)
		first = w->r->list[i].usable && w->r->list[i].source[w->s].known ? &w->r->list[i] : NULL;
	report_what(first ? first : &w->r->list[0], w->s, quality, of);
	range(w, REPORT_ENERGY, &energy);
	range(w, REPORT_TIME, &time);
	report_chart_fit(&energy);
	report_chart_fit(&time);
	energy.left = time.left = fmax(energy.left, time.left);
	svg_begin(&w->svg, out, svg_size(w->width, below + (w->left_out ? 20 : 0)), "Energy and time by setting",
		  "Mean over repetitions; bars are the standard deviation");
	svg_text(&w->svg, "ink title", NULL, svg_at(CHART_PAD, 34), "Energy and time by setting");
	snprintf(what, sizeof(what), "source %s: %s; means and standard deviations over repetitions",
		 report_source_name[w->s], of);
	svg_text(&w->svg, "dim", NULL, svg_at(CHART_PAD, 54),
		 svg_fit(fit, sizeof(fit), what, w->width - 2 * CHART_PAD, CHART_TEXT));
	draw_panel(w, &energy, REPORT_ENERGY, "energy, J");
	draw_panel(w, &time, REPORT_TIME, "time, s");
	report_chart_legend(&w->svg, &legend);
	snprintf(what, sizeof(what), "%u more runs are not drawn; name a directory below", w->left_out);
	if (w->left_out)
		svg_text(&w->svg, "dim", NULL, svg_at(CHART_PAD, below), what);
	svg_end(&w->svg);
}

int report_plot_sweep(const struct report *r, enum report_source s, unsigned width, struct buf *out, struct err *err)
{
	struct sweep *w = calloc(1, sizeof(*w));
	int rc = -ENOMEM;

	if (w) {
		w->r = r;
		w->s = s;
		w->width = width;
		w->setting = common_setting(w);
		w->spots = calloc(r->n_runs + 1, sizeof(*w->spots));
		rc = w->spots ? collect(w) : -ENOMEM;
	}
	if (rc)
		rc = err_set(err, rc, "report: out of memory; name a directory below it");
	else if (!w->n_lines)
		rc = err_set(err, -ENODATA, "report: --plot: no energy of source %s", report_source_name[s]);
	else
		draw(w, out);
	for (unsigned k = 0; w && k < w->n_lines; k++)
		free(w->name[k]);
	if (w)
		free(w->spots);
	free(w);
	return rc;
}
