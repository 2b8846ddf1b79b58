/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the picture. Each interval is a step as high as its mean power, so that areas are energy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "picture.h"
#include "plot.h"

static double plot_x(const struct plot_drawing *d, double unix_ns)
{
	const struct plot *p = d->p;
	double start = (double)p->columns[0].start_ns, end = (double)p->columns[p->n_columns - 1].end_ns;

	return d->left + (unix_ns - start) / (end - start) * (d->right - d->left);
}

static double plot_y(const struct plot_drawing *d, double watts)
{
	return d->bottom - watts / d->watts * (d->bottom - d->top);
}

/* Returns the class of a series, "c0" to "c7" by its place among the rows. *ret_faded is set where the series needs a
 * paler fill, because its colour is used already. */
static const char *plot_class(const struct plot *p, unsigned series, bool *ret_faded)
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

/* Returns the end of the run that begins with column i. */
static unsigned run_end(const struct plot_drawing *d, const struct plot_series *s, unsigned i, unsigned only)
{
	do
		i++;
	while (i < s->n && part_of_run(d, s, i, only) && !plot_gap_before(d->p, i));
	return i;
}

/* Returns the right edge of column i. Within a run that is the left edge of the next column, so that small holes
 * between two readings do not show. */
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

/* Draws all of a series, or only its cells of the qualities in `only`. false = there is nothing to draw. */
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
	char joules[32], low[32], high[32], range[128] = "", *text;

	plot_joules(joules, sizeof(joules), s->uj);
	if (s->low_w <= s->high_w) {
		plot_number(low, sizeof(low), s->low_w / d->divisor);
		plot_number(high, sizeof(high), s->high_w / d->divisor);
		snprintf(range, sizeof(range), ", %s to %s %s", low, high, d->unit);
	}
	if (asprintf(&text, "%s: %s%s%s%s", s->name, joules, range, s->quality ? ", " : "",
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
	snprintf(both, sizeof(both), "%s area", class);
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

/* From the lowest to the highest reading of each column, over the areas, which are means. */
static void draw_range(struct plot_drawing *d)
{
	const struct plot *p = d->p;

	svg_open(&d->svg, "path");
	svg_attr(&d->svg, "class", "range");
	svg_attr(&d->svg, "pointer-events", "none");
	svg_path_begin(&d->svg);
	for (unsigned i = 0; i < p->n_columns; i++) {
		d->base[i] = p->columns[i].low_w;
		d->upper[i] = p->columns[i].high_w;
	}
	for (unsigned i = 0, end; i < p->n_columns; i = end) {
		end = i + 1;
		if (!p->columns[i].known)
			continue;
		while (end < p->n_columns && p->columns[end].known && !plot_gap_before(p, end))
			end++;
		draw_run(d, i, end);
	}
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
		svg_line(&d->svg, i ? "grid" : "axis", svg_at(d->left, floor(y) + .5), svg_at(d->right, floor(y) + .5));
		svg_text(&d->svg, "dim num", "end", svg_at(d->left - 8, y + 4), text);
	}
	svg_text(&d->svg, "dim", "end", svg_at(d->left - 8, d->top - 14), d->unit);
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
		svg_line(&d->svg, "axis", svg_at(floor(x) + .5, d->bottom), svg_at(floor(x) + .5, d->bottom + 5));
		if (x - half >= d->pad / 2 && x + half <= d->width - d->pad / 2)
			svg_text(&d->svg, "dim num", "middle", svg_at(x, d->bottom + 20), text);
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
	svg_line(s, "mark", svg_at(.5, 0), svg_at(.5, 7));
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
		most = fmax(most, fmax(sum, p->columns[i].high_w));
	}
	return most;
}

/* The layout needs the height of the legend, so hatching and gaps are looked for before anything is drawn. */
static void look_ahead(struct plot_drawing *d)
{
	for (unsigned k = 0; k < d->p->n_series; k++)
		d->estimated |= !!(d->p->series[k].quality & QUALITY_ESTIMATED);
	for (unsigned i = 0; i < d->p->n_columns; i++) {
		d->gaps |= !d->p->columns[i].known || (i && plot_gap_before(d->p, i));
		d->merged |= d->p->columns[i].readings > 1;
	}
}

static double plot_heading(struct plot_drawing *d, bool draw);

/* Returns "mW", "W" or "kW" for values up to watts; *ret_divisor is the unit in watts. */
static const char *plot_unit(double watts, double *ret_divisor);

static void lay_out(struct plot_drawing *d, struct plot_axis *values)
{
	double most = highest(d->p), labels = 0, height = d->width < 560 ? 220 : fmin(400, 160 + d->width / 5);
	char text[32];

	d->unit = plot_unit(most, &d->divisor);
	*values = plot_value_axis(most, d->width < 560 ? 4 : 5);
	/* The axis ends a little above the maximum, not at the next round number, which may be far. */
	d->watts = most > 0 ? most * 1.03 : values->step * (values->n - 1);
	while (values->n > 2 && values->step * (values->n - 1) > d->watts)
		values->n--;
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

static double plot_legend(struct plot_drawing *d, double y, bool draw);

static void draw_all(struct plot_drawing *d, const struct plot_axis *values)
{
	define_hatch(&d->svg);
	plot_heading(d, true);
	draw_gaps(d);
	for (unsigned k = 0; k < d->p->n_series; k++)
		draw_series(d, k);
	if (d->merged)
		draw_range(d);
	draw_value_axis(d, values);
	draw_time_axis(d);
	plot_legend(d, d->bottom + 44, true);
	svg_end(&d->svg);
}

static void plot_dates(const struct plot *p, char *from, char *to, size_t size);

void plot_draw(struct plot *p, unsigned width, struct buf *out)
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
	lay_out(d, &values);
	plot_reduce(d->p, (unsigned)(d->right - d->left));
	look_ahead(d);
	plot_dates(p, from, to, sizeof(to));
	if (asprintf(&text, "Stacked areas of the power of each cgroup (%s) on %s from %s to %s; an area is energy.",
		     p->unit_of, p->sensor, from, to) < 0)
		text = NULL;
	svg_begin(&d->svg, out, svg_size(width, plot_legend(d, d->bottom + 44, false) + d->pad), "Power by cgroup",
		  text ? text : "");
	draw_all(d, &values);
	free(text);
	free(d);
}

/* Round steps for axes, and numbers for people. */

struct plot_axis plot_value_axis(double top, unsigned ticks)
{
	static const double round[] = { 1, 2, 2.5, 5, 10 };
	double power, step;
	unsigned i = 0;

	if (!(top > 0))
		top = 1;
	power = pow(10, floor(log10(top / ticks)));
	while (i < 4 && round[i] * power * ticks < top * (1 - 1e-9))
		i++;
	step = round[i] * power;
	return (struct plot_axis){ 0, step, (unsigned)ceil(top / step - 1e-9) + 1 };
}

struct plot_axis plot_time_axis(int64_t start_ns, int64_t end_ns, unsigned ticks)
{
	static const double steps[] = { .001,   .002,   .005,    .01,     .02,     .05,     .1,    .2,    .5,
					1,      2,      5,       10,      15,      30,      60,    120,   300,
					600,    900,    1800,    3600,    7200,    10800,   21600, 43200, 86400,
					172800, 604800, 1209600, 2592000, 7776000, 31536000 };
	double start = (double)start_ns / NS_PER_S, end = (double)end_ns / NS_PER_S, zone, first;
	time_t seconds = (time_t)start;
	struct tm tm;
	unsigned i = 0;

	while (i + 1 < sizeof(steps) / sizeof(steps[0]) && (end - start) / steps[i] > ticks)
		i++;
	zone = localtime_r(&seconds, &tm) ? (double)tm.tm_gmtoff : 0;
	first = ceil((start + zone) / steps[i] - 1e-6) * steps[i] - zone;
	return (struct plot_axis){ first, steps[i],
				   first > end ? 0 : (unsigned)floor((end - first) / steps[i] + 1e-6) + 1 };
}

void plot_time_label(char *dst, size_t size, double unix_s, double step_s)
{
	double rounded = floor(unix_s * 1000 + .5) / 1000;
	time_t seconds = (time_t)floor(rounded + (step_s < 1 ? 1e-6 : 0.5));
	struct tm tm = { 0 };
	char text[32];

	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), step_s < 60 ? "%H:%M:%S" : step_s < 86400 ? "%H:%M" : "%b %d", &tm);
	if (step_s < 1)
		snprintf(dst, size, "%s.%03d", text, (int)floor((rounded - (double)seconds) * 1000 + .5) % 1000);
	else
		snprintf(dst, size, "%s", text);
}

static const char *plot_unit(double watts, double *ret_divisor)
{
	*ret_divisor = watts < 1 ? 1e-3 : watts < 2000 ? 1 : 1e3;
	return watts < 1 ? "mW" : watts < 2000 ? "W" : "kW";
}

void plot_number(char *dst, size_t size, double v)
{
	double a = fabs(v);

	snprintf(dst, size, "%.*f", a >= 99.95 || a < 5e-5 ? 0 : a >= 9.995 ? 1 : a >= .9995 ? 2 : 3, v);
}

void plot_joules(char *dst, size_t size, double uj)
{
	static const struct {
		double from, by;
		const char *unit;
	} units[] = {
		{ 1e12, 1e12, "MJ" }, { 1e9, 1e9, "kJ" }, { 1e6, 1e6, "J" }, { 1e3, 1e3, "mJ" }, { 0, 1, "\xc2\xb5J" },
	};
	unsigned i = 0;
	char number[32];

	while (uj < units[i].from)
		i++;
	plot_number(number, sizeof(number), uj / units[i].by);
	snprintf(dst, size, "%s %s", number, units[i].unit);
}

/* "2026-11-22 10:00:00" and "10:20:00 UTC", in local time. The end has a date only when it is on another day. */
static void plot_dates(const struct plot *p, char *from, char *to, size_t size)
{
	time_t start = (time_t)(p->columns[0].start_ns / (int64_t)NS_PER_S);
	time_t end = (time_t)(p->columns[p->n_columns - 1].end_ns / (int64_t)NS_PER_S);
	struct tm a = { 0 }, b = { 0 };
	bool same;

	localtime_r(&start, &a);
	localtime_r(&end, &b);
	same = a.tm_year == b.tm_year && a.tm_yday == b.tm_yday;
	strftime(from, size, "%Y-%m-%d %H:%M:%S", &a);
	strftime(to, size, same ? "%H:%M:%S %Z" : "%Y-%m-%d %H:%M:%S %Z", &b);
}

/* The heading above the areas and the legend below them. */

#define ROW_HEIGHT 22.0
#define COLUMN_WIDTH 340.0 /* of the legend, in pixels, at least */
#define COLUMN_GAP 32.0

static double total_uj(const struct plot *p)
{
	double sum = 0;

	for (unsigned k = 0; k < p->n_series; k++)
		sum += p->series[k].uj;
	return sum;
}

static double known_seconds(const struct plot *p)
{
	double sum = 0;

	for (unsigned i = 0; i < p->n_columns; i++)
		sum += p->columns[i].known ? (double)p->columns[i].covered_ns / 1e9 : 0;
	return sum;
}

struct text_style {
	const char *class;
	double size;
};

/* Returns the y of the next line. */
static double heading_line(struct plot_drawing *d, double y, bool draw, const struct text_style *style,
			   const char *text)
{
	char fit[1024];

	if (draw)
		svg_text(&d->svg, style->class, NULL, svg_at(d->pad, y),
			 svg_fit(fit, sizeof(fit), text, d->width - 2 * d->pad, style->size));
	return y + 18;
}

/* Domains, time and energy stand in one line, or in three where one is too wide. Returns the y below them. */
static double plot_heading(struct plot_drawing *d, bool draw)
{
	static const struct text_style title = { "ink title", 18 }, words = { "dim", PLOT_TEXT },
				       numbers = { "dim num", PLOT_TEXT };
	const struct plot *p = d->p;
	char from[48], to[48], watts[32], joules[32], when[128], much[128], what[1024], all[1400];
	double uj = total_uj(p), divisor, y = d->pad + 16, mean = uj / 1e6 / fmax(known_seconds(p), 1e-9);
	const char *unit = plot_unit(mean, &divisor);

	plot_dates(p, from, to, sizeof(to));
	plot_number(watts, sizeof(watts), mean / divisor);
	plot_joules(joules, sizeof(joules), uj);
	snprintf(when, sizeof(when), "%s \xe2\x80\x93 %s", from, to);
	snprintf(much, sizeof(much), "%s, mean %s %s", joules, watts, unit);
	snprintf(what, sizeof(what), "%s%s%s%s%.200s", p->unit_of, *p->sensor ? " on " : "", p->sensor,
		 p->cgroup ? ", cgroups " : "", p->cgroup ? p->cgroup : "");
	snprintf(all, sizeof(all), "%s  \xc2\xb7  %s  \xc2\xb7  %s", what, when, much);
	y = heading_line(d, y, draw, &title, "Power by cgroup") + 4;
	if (svg_text_width(all, PLOT_TEXT) <= d->width - 2 * d->pad)
		return heading_line(d, y, draw, &words, all);
	y = heading_line(d, y, draw, &words, what);
	y = heading_line(d, y, draw, &numbers, when);
	return heading_line(d, y, draw, &numbers, much);
}

struct swatch {
	const char *class;
	double opacity;
	bool hatched, bare; /* bare: a frame with the hatch alone, which is no row's colour */
};

/* The small square beside a line of text, whose baseline begins at `at`. */
static void draw_swatch(struct plot_drawing *d, const struct swatch *w, struct svg_point at)
{
	svg_open(&d->svg, "rect");
	svg_attr(&d->svg, "class", w->class);
	if (w->opacity < 1)
		svg_attr_num(&d->svg, "fill-opacity", w->opacity);
	svg_attr_num(&d->svg, "x", at.x);
	svg_attr_num(&d->svg, "y", at.y - 11);
	svg_attr_num(&d->svg, "width", 14);
	svg_attr_num(&d->svg, "height", 14);
	svg_attr(&d->svg, "rx", "2");
	svg_close(&d->svg);
	for (unsigned i = 0; w->bare && w->hatched && i < 3; i++) {
		double away = 7.0 * i + 7, over = fmax(away - 14, 0);

		svg_line(&d->svg, "key", svg_at(at.x + over, at.y - 11 + away - over),
			 svg_at(at.x + away - over, at.y - 11 + over));
	}
	if (!w->hatched || w->bare)
		return;
	svg_open(&d->svg, "rect");
	svg_attr(&d->svg, "fill", "url(#estimated)");
	svg_attr_num(&d->svg, "x", at.x);
	svg_attr_num(&d->svg, "y", at.y - 11);
	svg_attr(&d->svg, "width", "14");
	svg_attr(&d->svg, "height", "14");
	svg_close(&d->svg);
}

/* The row names its quality, unless its hatched square already shows that all of it is estimated. */
static void row_name(const struct plot_drawing *d, const struct plot_series *s, char *dst, size_t size, double width)
{
	unsigned quality = s->quality & ~(unsigned)(QUALITY_WRAPPED | (s->all_estimated ? QUALITY_ESTIMATED : 0));
	char note[48] = "", fit[512];

	if (s->kind == PLOT_REST && d->p->n_rest)
		snprintf(note, sizeof(note), " (%s%u more)", d->p->more_rest ? "at least " : "", d->p->n_rest);
	else if (quality)
		snprintf(note, sizeof(note), " (%s%s)", quality == QUALITY_ESTIMATED ? "partly " : "",
			 quality_name(quality));
	svg_fit(fit, sizeof(fit), s->name, width - svg_text_width(note, PLOT_TEXT), PLOT_TEXT);
	snprintf(dst, size, "%s%s", fit, note);
}

static void legend_row(struct plot_drawing *d, unsigned k, double x, double y, double width)
{
	const struct plot_series *s = &d->p->series[k];
	double mean = s->uj / 1e6 / fmax(known_seconds(d->p), 1e-9), share = 100 * s->uj / fmax(total_uj(d->p), 1e-9);
	char name[640], number[32], text[48];
	bool faded;
	struct swatch swatch = { .class = plot_class(d->p, k, &faded), .hatched = s->quality & QUALITY_ESTIMATED };

	swatch.opacity = faded ? .55 : 1;
	draw_swatch(d, &swatch, svg_at(x, y));
	row_name(d, s, name, sizeof(name), width - 22 - 116);
	svg_open(&d->svg, "g");
	svg_tooltip(&d->svg, s->name);
	svg_text(&d->svg, "ink", NULL, svg_at(x + 22, y), name);
	svg_close(&d->svg);
	/* in the unit of the axis, so that values can be compared */
	plot_number(number, sizeof(number), mean / d->divisor);
	snprintf(text, sizeof(text), "%s %s", number, d->unit);
	svg_text(&d->svg, "ink num", "end", svg_at(x + width - 44, y), text);
	snprintf(text, sizeof(text), share < .95 ? "%.1f %%" : "%.0f %%", share);
	svg_text(&d->svg, "dim num", "end", svg_at(x + width, y), text);
}

/* Returns the y of the next row. */
static double note(struct plot_drawing *d, const struct swatch *w, double y, bool draw, const char *text)
{
	if (draw) {
		draw_swatch(d, w, svg_at(d->pad, y));
		svg_text(&d->svg, "dim", NULL, svg_at(d->pad + 22, y), text);
	}
	return y + ROW_HEIGHT;
}

/* Draws the legend below y, or only measures it when draw is false. Returns the y of its lower end. */
static double plot_legend(struct plot_drawing *d, double y, bool draw)
{
	static const struct swatch hatched = { "key", 1, true, true }, empty = { "key", 1, false, true },
				   range = { "range", 1, false, false };
	unsigned n = d->p->n_series,
		 columns = (unsigned)((d->width - 2 * d->pad + COLUMN_GAP) / (COLUMN_WIDTH + COLUMN_GAP)), rows;
	double width;

	columns = columns < 1 ? 1 : columns > 4 ? 4 : columns;
	rows = (n + columns - 1) / columns;
	width = (d->width - 2 * d->pad - COLUMN_GAP * (columns - 1)) / columns;
	for (unsigned i = 0; draw && i < n; i++)
		legend_row(d, i, d->pad + (i / rows) * (width + COLUMN_GAP), y + 12 + (i % rows) * ROW_HEIGHT, width);
	y += rows * ROW_HEIGHT + 18;
	if (d->estimated)
		y = note(d, &hatched, y, draw, "hatched: estimated, not measured");
	if (d->merged)
		y = note(d, &range, y, draw, "lowest to highest reading; areas are means");
	if (d->gaps)
		y = note(d, &empty, y, draw, "nothing was measured here");
	return y - ROW_HEIGHT + 6;
}
