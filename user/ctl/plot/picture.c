/* SPDX-License-Identifier: Apache-2.0 */
/* The picture: each interval is a step as high as its mean power, so that areas are energy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plot_draw.h"

double plot_x(const struct plot_drawing *d, double unix_ns)
{
	const struct plot *p = d->p;
	double start = (double)p->columns[0].start_ns, end = (double)p->columns[p->n_columns - 1].end_ns;

	return d->left + (unix_ns - start) / (end - start) * (d->right - d->left);
}

double plot_y(const struct plot_drawing *d, double watts)
{
	return d->bottom - watts / d->watts * (d->bottom - d->top);
}

const char *plot_class(const struct plot *p, unsigned series, bool *ret_faded)
{
	static const char *const classes[SVG_COLOURS] = { "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7" };
	unsigned first = 0;

	*ret_faded = false;
	if (p->series[series].kind != PLOT_ROW) {
		*ret_faded = p->series[series].kind == PLOT_RESIDUAL;
		return p->series[series].kind == PLOT_IDLE ? "idle" : "rest";
	}
	while (p->series[first].kind != PLOT_ROW)
		first++;
	*ret_faded = (series - first) / SVG_COLOURS % 2;
	return classes[(series - first) % SVG_COLOURS];
}

static bool part_of_run(const struct plot_drawing *d, const struct plot_series *s, unsigned i, unsigned only)
{
	const struct plot *p = d->p;

	return i < s->n && p->columns[i].known && s->cells[i].uj > 0 && (!only || (s->cells[i].quality & only));
}

/* The end of the run that begins with column i. */
static unsigned run_end(const struct plot_drawing *d, const struct plot_series *s, unsigned i, unsigned only)
{
	do
		i++;
	while (i < s->n && part_of_run(d, s, i, only) && !plot_gap_before(d->p, i));
	return i;
}

/* Small holes between two readings are not shown. */
static double right_of(const struct plot_drawing *d, unsigned i, unsigned end)
{
	return plot_x(d, (double)(i + 1 < end ? d->p->columns[i + 1].start_ns : d->p->columns[i].end_ns));
}

static void draw_run(struct plot_drawing *d, unsigned first, unsigned end)
{
	svg_move_to(&d->svg, plot_x(d, (double)d->p->columns[first].start_ns), plot_y(d, d->upper[first]));
	for (unsigned i = first; i < end; i++) {
		double x = right_of(d, i, end);

		svg_line_to(&d->svg, x, plot_y(d, d->upper[i]));
		svg_line_to(&d->svg, x, plot_y(d, i + 1 < end ? d->upper[i + 1] : d->base[i]));
	}
	for (unsigned i = end; i-- > first;) {
		double x = plot_x(d, (double)d->p->columns[i].start_ns);

		svg_line_to(&d->svg, x, plot_y(d, d->base[i]));
		if (i > first)
			svg_line_to(&d->svg, x, plot_y(d, d->base[i - 1]));
	}
	svg_path_close(&d->svg);
}

/* All of a series, or only its cells of a quality. false: there is none. */
static bool draw_runs(struct plot_drawing *d, const struct plot_series *s, unsigned only)
{
	bool any = false;

	for (unsigned i = 0; i < s->n; i++) {
		unsigned end;

		if (!part_of_run(d, s, i, only))
			continue;
		end = run_end(d, s, i, only);
		draw_run(d, i, end);
		any = true;
		i = end - 1;
	}
	return any;
}

static void tooltip(struct plot_drawing *d, const struct plot_series *s)
{
	char joules[32], *text;

	plot_joules(joules, sizeof(joules), s->uj);
	if (asprintf(&text, "%s: %s%s%s", s->name, joules, s->quality ? ", " : "",
		     s->quality ? quality_name(s->quality) : "") < 0)
		return;
	svg_tooltip(&d->svg, text);
	free(text);
}

static void draw_series(struct plot_drawing *d, unsigned k)
{
	const struct plot_series *s = &d->p->series[k];
	bool faded;
	const char *class = plot_class(d->p, k, &faded);
	char both[16];

	for (unsigned i = 0; i < d->p->n_columns; i++) {
		d->base[i] = d->upper[i];
		d->upper[i] += plot_watts(d->p, s, i);
	}
	snprintf(both, sizeof(both), "%s edge", class);
	svg_open(&d->svg, "path");
	svg_attr(&d->svg, "class", both);
	if (faded)
		svg_attr(&d->svg, "fill-opacity", "0.55");
	svg_path_begin(&d->svg);
	draw_runs(d, s, 0);
	svg_path_end(&d->svg);
	tooltip(d, s);
	svg_close(&d->svg);
	if (!(s->quality & QUALITY_ESTIMATED))
		return;
	svg_open(&d->svg, "path");
	svg_attr(&d->svg, "fill", "url(#estimated)");
	svg_attr(&d->svg, "pointer-events", "none");
	svg_path_begin(&d->svg);
	d->estimated |= draw_runs(d, s, QUALITY_ESTIMATED);
	svg_path_end(&d->svg);
	svg_close(&d->svg);
}

static void draw_gap(struct plot_drawing *d, int64_t from_ns, int64_t to_ns)
{
	double x = plot_x(d, (double)from_ns), width = plot_x(d, (double)to_ns) - x;

	d->gaps = true;
	svg_open(&d->svg, "rect");
	svg_attr(&d->svg, "class", "ink");
	svg_attr(&d->svg, "fill-opacity", "0.06");
	svg_attr_num(&d->svg, "x", x);
	svg_attr_num(&d->svg, "y", d->top);
	svg_attr_num(&d->svg, "width", fmax(width, .5));
	svg_attr_num(&d->svg, "height", d->bottom - d->top);
	svg_tooltip(&d->svg, "no data");
	svg_close(&d->svg);
}

static void draw_gaps(struct plot_drawing *d)
{
	const struct plot *p = d->p;

	for (unsigned i = 0; i < p->n_columns; i++) {
		if (i && plot_gap_before(p, i))
			draw_gap(d, p->columns[i - 1].end_ns, p->columns[i].start_ns);
		if (!p->columns[i].known)
			draw_gap(d, p->columns[i].start_ns, p->columns[i].end_ns);
	}
}

static void draw_value_axis(struct plot_drawing *d, const struct plot_axis *a)
{
	char text[32];

	for (unsigned i = 0; i < a->n; i++) {
		double y = plot_y(d, a->step * i);

		snprintf(text, sizeof(text), "%.6g", a->step * i / d->divisor);
		svg_line(&d->svg, i ? "grid" : "axis", d->left, floor(y) + .5, d->right, floor(y) + .5);
		svg_text(&d->svg, "dim num", "end", d->left - 8, y + 4, text);
	}
	svg_text(&d->svg, "dim", "end", d->left - 8, d->top - 14, d->unit);
}

static void draw_time_axis(struct plot_drawing *d)
{
	const struct plot *p = d->p;
	int64_t start = p->columns[0].start_ns, end = p->columns[p->n_columns - 1].end_ns;
	unsigned ticks = (unsigned)((d->right - d->left) / 96);
	struct plot_axis a = plot_time_axis(start, end, ticks ? ticks : 1);
	char text[32];

	for (unsigned i = 0; i < a.n; i++) {
		double x = plot_x(d, (a.first + a.step * i) * 1e9), half;

		plot_time_label(text, sizeof(text), a.first + a.step * i, a.step);
		half = svg_text_width(text, PLOT_TEXT) / 2;
		svg_line(&d->svg, "axis", floor(x) + .5, d->bottom, floor(x) + .5, d->bottom + 5);
		if (x - half >= d->pad / 2 && x + half <= d->width - d->pad / 2)
			svg_text(&d->svg, "dim num", "middle", x, d->bottom + 20, text);
	}
}

static void define_hatch(struct svg *s)
{
	svg_open(s, "defs");
	svg_open(s, "pattern");
	svg_attr(s, "id", "estimated");
	svg_attr(s, "width", "7");
	svg_attr(s, "height", "7");
	svg_attr(s, "patternUnits", "userSpaceOnUse");
	svg_attr(s, "patternTransform", "rotate(45)");
	svg_line(s, "mark", .5, 0, .5, 7);
	svg_close(s);
	svg_close(s);
}

static double highest(const struct plot *p)
{
	double most = 0;

	for (unsigned i = 0; i < p->n_columns; i++) {
		double sum = 0;

		for (unsigned k = 0; k < p->n_series; k++)
			sum += plot_watts(p, &p->series[k], i);
		most = fmax(most, sum);
	}
	return most;
}

/* What the legend says of hatching and gaps is known before anything is drawn. */
static void look_ahead(struct plot_drawing *d)
{
	for (unsigned k = 0; k < d->p->n_series; k++)
		d->estimated |= !!(d->p->series[k].quality & QUALITY_ESTIMATED);
	for (unsigned i = 0; i < d->p->n_columns; i++)
		d->gaps |= !d->p->columns[i].known || (i && plot_gap_before(d->p, i));
}

static void lay_out(struct plot_drawing *d, struct plot_axis *values)
{
	double most = highest(d->p), labels = 0, height = d->width < 560 ? 220 : fmin(400, 160 + d->width / 5);
	char text[32];

	d->unit = plot_unit(most, &d->divisor);
	*values = plot_value_axis(most, d->width < 560 ? 4 : 5);
	d->watts = values->step * (values->n - 1);
	for (unsigned i = 0; i < values->n; i++) {
		snprintf(text, sizeof(text), "%.6g", values->step * i / d->divisor);
		labels = fmax(labels, svg_text_width(text, PLOT_TEXT));
	}
	d->pad = d->width < 560 ? 16 : 24;
	d->left = floor(d->pad + labels + 8);
	d->right = d->width - d->pad;
	d->top = plot_heading(d, false) + 34;
	d->bottom = d->top + floor(height);
}

static void draw_all(struct plot_drawing *d, const struct plot_axis *values)
{
	define_hatch(&d->svg);
	plot_heading(d, true);
	draw_gaps(d);
	for (unsigned k = 0; k < d->p->n_series; k++)
		draw_series(d, k);
	draw_value_axis(d, values);
	draw_time_axis(d);
	plot_legend(d, d->bottom + 44, true);
	svg_end(&d->svg);
}

void plot_draw(const struct plot *p, unsigned width, struct buf *out)
{
	struct plot_drawing *d = calloc(1, sizeof(*d));
	struct plot_axis values;
	char from[48], to[48], *text = NULL;

	if (!d) {
		out->failed = true;
		return;
	}
	d->p = p;
	d->width = width;
	look_ahead(d);
	lay_out(d, &values);
	plot_dates(p, from, to, sizeof(to));
	if (asprintf(&text, "Stacked areas of the power of each cgroup (%s) on %s from %s to %s; an area is energy.",
		     p->unit_of, p->sensor, from, to) < 0)
		text = NULL;
	svg_begin(&d->svg, out, width, plot_legend(d, d->bottom + 44, false) + d->pad, "Power by cgroup",
		  text ? text : "");
	draw_all(d, &values);
	free(text);
	free(d);
}
