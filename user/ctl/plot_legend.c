/* SPDX-License-Identifier: Apache-2.0 */
/* What stands above and below the areas. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "plot_draw.h"

#define ROW_HEIGHT 22.0
#define COLUMN_WIDTH 340.0 /* of the legend, at least */
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

static double heading_line(struct plot_drawing *d, double y, bool draw, const char *class, double size,
			   const char *text)
{
	char fit[1024];

	if (draw)
		svg_text(&d->svg, class, NULL, d->pad, y, svg_fit(fit, sizeof(fit), text, d->width - 2 * d->pad, size));
	return y + 18;
}

/* What is shown, when, and how much of it: one line, or three where that is too wide. */
double plot_heading(struct plot_drawing *d, bool draw)
{
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
	y = heading_line(d, y, draw, "ink title", 18, "Power by cgroup") + 4;
	if (svg_text_width(all, PLOT_TEXT) <= d->width - 2 * d->pad)
		return heading_line(d, y, draw, "dim", PLOT_TEXT, all);
	y = heading_line(d, y, draw, "dim", PLOT_TEXT, what);
	y = heading_line(d, y, draw, "dim num", PLOT_TEXT, when);
	return heading_line(d, y, draw, "dim num", PLOT_TEXT, much);
}

static void swatch(struct plot_drawing *d, const char *class, bool faded, double opacity, bool hatched, double x,
		   double y)
{
	svg_open(&d->svg, "rect");
	svg_attr(&d->svg, "class", class);
	if (faded || opacity < 1)
		svg_attr_num(&d->svg, "fill-opacity", faded ? .55 : opacity);
	svg_attr_num(&d->svg, "x", x);
	svg_attr_num(&d->svg, "y", y - 11);
	svg_attr_num(&d->svg, "width", 14);
	svg_attr_num(&d->svg, "height", 14);
	svg_attr(&d->svg, "rx", "2");
	svg_close(&d->svg);
	if (!hatched)
		return;
	svg_open(&d->svg, "rect");
	svg_attr(&d->svg, "fill", "url(#estimated)");
	svg_attr_num(&d->svg, "x", x);
	svg_attr_num(&d->svg, "y", y - 11);
	svg_attr(&d->svg, "width", "14");
	svg_attr(&d->svg, "height", "14");
	svg_close(&d->svg);
}

/* Words only where they tell one row from another: what all share is said once. */
static void row_name(const struct plot_drawing *d, const struct plot_series *s, char *dst, size_t size, double width)
{
	unsigned quality = s->quality & ~(unsigned)(QUALITY_WRAPPED | (s->all_estimated ? QUALITY_ESTIMATED : 0));
	char note[48] = "", fit[512];

	if (s->kind == PLOT_REST && d->p->n_rest)
		snprintf(note, sizeof(note), " (%u more)", d->p->n_rest);
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
	const char *class = plot_class(d->p, k, &faded);

	swatch(d, class, faded, 1, s->quality & QUALITY_ESTIMATED, x, y);
	row_name(d, s, name, sizeof(name), width - 22 - 116);
	svg_open(&d->svg, "g");
	svg_tooltip(&d->svg, s->name);
	svg_text(&d->svg, "ink", NULL, x + 22, y, name);
	svg_close(&d->svg);
	plot_number(number, sizeof(number), mean / d->divisor); /* the axis's unit: they are compared */
	snprintf(text, sizeof(text), "%s %s", number, d->unit);
	svg_text(&d->svg, "ink num", "end", x + width - 44, y, text);
	snprintf(text, sizeof(text), share < .95 ? "%.1f %%" : "%.0f %%", share);
	svg_text(&d->svg, "dim num", "end", x + width, y, text);
}

static double note(struct plot_drawing *d, const char *class, double opacity, bool hatched, double y, bool draw,
		   const char *text)
{
	if (draw) {
		swatch(d, class, false, opacity, hatched, d->pad, y);
		svg_text(&d->svg, "dim", NULL, d->pad + 22, y, text);
	}
	return y + ROW_HEIGHT;
}

double plot_legend(struct plot_drawing *d, double y, bool draw)
{
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
		y = note(d, "rest", 1, true, y, draw, "hatched: estimated, not measured");
	if (d->gaps)
		y = note(d, "ink", .12, false, y, draw, "nothing was measured here");
	return y - ROW_HEIGHT + 6;
}
