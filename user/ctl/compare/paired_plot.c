/* SPDX-License-Identifier: Apache-2.0 */
/* The points of a comparison as a picture. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "ctl/plot/svg.h"
#include "model/schema.h"
#include "paired.h"

#define WIDTH 720
#define LEFT 64
#define RIGHT 24
#define TOP 44
#define PLOT_HEIGHT 260
#define LINE 18 /* height of a line of text */

struct frame {
	const struct series *s;
	struct svg *svg;
	unsigned metric;
	double low, high; /* of the axis, in the shown unit */
	struct series_scale scale;
};

static double x_of(const struct frame *f, unsigned round)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * (round + 0.5) / f->s->n_rounds;
}

static double y_of(const struct frame *f, double v)
{
	return TOP + PLOT_HEIGHT * (f->high - v * f->scale.factor) / (f->high - f->low);
}

/* Finds the ends of the axis: round numbers around all values, in at most eight steps. Returns the step. */
static double find_axis(struct frame *f)
{
	double low = INFINITY, high = -INFINITY, step;

	for (unsigned k = 0; k < f->s->n_sides; k++)
		for (unsigned i = 0; i < f->s->n_rounds; i++) {
			double v = series_values(f->s, k, f->metric)[i];

			low = isnan(v) ? low : fmin(low, v);
			high = isnan(v) ? high : fmax(high, v);
		}
	if (!isfinite(low))
		low = high = 0;
	f->scale = series_scale_of(high, f->s->metric[f->metric].unit);
	low *= f->scale.factor;
	high *= f->scale.factor;
	if (high <= low)
		high = low + fmax(fabs(low) / 10, 1e-3);
	step = pow(10, floor(log10((high - low) / 4)));
	while ((high - low) / step > 6)
		step *= (high - low) / step > 12 ? 5 : 2;
	f->low = floor(low / step) * step;
	f->high = ceil(high / step) * step;
	return step;
}

static void add_axis(const struct frame *f, double step)
{
	int digits = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
	unsigned every = (f->s->n_rounds + 19) / 20;
	char text[32];

	for (double v = f->low; v <= f->high + step / 2; v += step) {
		double y = y_of(f, v / f->scale.factor);

		snprintf(text, sizeof(text), "%.*f", digits, v);
		svg_line(f->svg, "grid", svg_at(LEFT, y), svg_at(WIDTH - RIGHT, y));
		svg_text(f->svg, "num", "end", svg_at(LEFT - 6, y + 4), text);
	}
	for (unsigned i = 0; i < f->s->n_rounds; i += every) {
		snprintf(text, sizeof(text), "%u", i + 1);
		svg_text(f->svg, "num", "middle", svg_at(x_of(f, i), TOP + PLOT_HEIGHT + LINE), text);
	}
}

/* Each command has its own shape, so that colours alone need not be told apart: polygons of 3 to 10 corners. */
static void add_point(const struct frame *f, unsigned side, double x, double y)
{
	const char class[3] = { 'c', (char)('0' + side), '\0' };
	unsigned corners = side ? side + 2 : 10;

	svg_open(f->svg, "path");
	svg_attr(f->svg, "class", class);
	svg_path_begin(f->svg);
	for (unsigned i = 0; i < corners; i++) {
		double angle = 2 * M_PI * i / corners - M_PI / 2;

		(i ? svg_line_to : svg_move_to)(f->svg, x + 4.5 * cos(angle), y + 4.5 * sin(angle));
	}
	svg_path_close(f->svg);
	svg_path_end(f->svg);
	svg_close(f->svg);
}

static void add_side(const struct frame *f, unsigned side)
{
	const double *v = series_values(f->s, side, f->metric);
	struct summary of = series_summary(f->s, side, f->metric);
	const char class[8] = { 'l', 'i', 'n', 'e', ' ', 'l', (char)('0' + side), '\0' };
	double y = TOP + PLOT_HEIGHT + (side + 3) * LINE, mean = of.n ? y_of(f, of.mean) : 0;
	char shown[1024], fit[1024], line[1200];

	if (of.n)
		svg_line(f->svg, class, svg_at(LEFT, mean), svg_at(WIDTH - RIGHT, mean));
	for (unsigned i = 0; i < f->s->n_rounds; i++)
		if (!isnan(v[i]))
			add_point(f, side, x_of(f, i), y_of(f, v[i]));
	add_point(f, side, LEFT, y - 4);
	text_escape(shown, sizeof(shown), f->s->side[side].command);
	svg_fit(fit, sizeof(fit), shown, WIDTH - LEFT - RIGHT - 160, 12);
	if (of.n)
		snprintf(line, sizeof(line), "%c: %s, mean %.4g %s", series_letter(side), fit,
			 of.mean * f->scale.factor, f->scale.unit);
	else
		snprintf(line, sizeof(line), "%c: %s, not known", series_letter(side), fit);
	svg_text(f->svg, "ink", "start", svg_at(LEFT + 12, y), line);
}

void series_write_plot(const struct series *s, struct buf *b)
{
	struct svg svg;
	struct frame f = { .s = s, .svg = &svg, .metric = series_judged(s) };
	const struct series_metric *m = &s->metric[f.metric];
	double step = find_axis(&f);
	char title[200];

	snprintf(title, sizeof(title), "%s%s%s of each run, by round%s%s%s", m->title, *f.scale.unit ? ", " : "",
		 f.scale.unit, m->quality ? " (" : "", m->quality ? quality_name(m->quality) : "",
		 m->quality ? ")" : "");
	svg_begin(&svg, b, svg_size(WIDTH, TOP + PLOT_HEIGHT + (s->n_sides + 3) * LINE), title,
		  "A point per run; a line at the mean of each command");
	add_axis(&f, step);
	svg_text(&svg, "title", "start", svg_at(LEFT, TOP - 16), title);
	for (unsigned k = 0; k < s->n_sides; k++)
		add_side(&f, k);
	svg_end(&svg);
}
