/* SPDX-License-Identifier: Apache-2.0 */
#include "report_chart.h"
#include <math.h>
#include <stdio.h>
#include "plot.h"

double report_chart_x(const struct report_chart *c, double x)
{
	return c->left + (x - c->x0) / (c->x1 - c->x0) * (c->right - c->left);
}

double report_chart_y(const struct report_chart *c, double y)
{
	return c->bottom - (y - c->y0) / (c->y1 - c->y0) * (c->bottom - c->top);
}

const char *report_chart_class(char letter, unsigned i)
{
	static const char *const fills[SVG_COLOURS] = { "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7" };
	static const char *const lines[SVG_COLOURS] = { "line l0", "line l1", "line l2", "line l3",
							"line l4", "line l5", "line l6", "line l7" };

	return letter == 'c' ? fills[i % SVG_COLOURS] : lines[i % SVG_COLOURS];
}

static double step_of(double range, unsigned ticks)
{
	return plot_value_axis(range, ticks).step;
}

void report_chart_fit(struct report_chart *c)
{
	double step = step_of(c->y1 - c->y0, 5), widest = 0;
	char text[32];

	c->y0 = floor(c->y0 / step + 1e-9) * step;
	c->y1 = fmax(ceil(c->y1 / step - 1e-9) * step, c->y0 + step);
	step = step_of(c->y1 - c->y0, 5);
	for (unsigned i = 0; i <= (unsigned)((c->y1 - c->y0) / step + .5); i++) {
		snprintf(text, sizeof(text), "%.6g", c->y0 + i * step);
		widest = fmax(widest, svg_text_width(text, CHART_TEXT));
	}
	c->left = floor(CHART_PAD + widest + 8);
	if (!(c->x1 > c->x0))
		c->x1 = c->x0 + 1;
}

static void y_axis(struct report_chart *c)
{
	double step = step_of(c->y1 - c->y0, 5);
	char text[32];

	for (unsigned i = 0; i <= (unsigned)((c->y1 - c->y0) / step + .5); i++) {
		double v = c->y0 + i * step, y = report_chart_y(c, v);

		v = fabs(v) < step * 1e-6 ? 0 : v;
		snprintf(text, sizeof(text), "%.6g", v);
		svg_line(c->svg, i ? "grid" : "axis", c->left, floor(y) + .5, c->right, floor(y) + .5);
		svg_text(c->svg, "dim num", "end", c->left - 8, y + 4, text);
	}
}

static void x_numbers_of(struct report_chart *c)
{
	double ticks = fmax(2, floor((c->right - c->left) / 90)), step = step_of(c->x1 - c->x0, (unsigned)ticks);
	double first = ceil(c->x0 / step - 1e-9) * step;
	char text[32];

	for (unsigned i = 0; first + i * step <= c->x1 + step * 1e-6; i++) {
		double v = first + i * step, x = report_chart_x(c, v);

		v = fabs(v) < step * 1e-6 ? 0 : v;
		snprintf(text, sizeof(text), "%.6g", v);
		svg_line(c->svg, "axis", floor(x) + .5, c->bottom, floor(x) + .5, c->bottom + 5);
		svg_text(c->svg, "dim num", "middle", x, c->bottom + 19, text);
	}
}

void report_chart_axes(struct report_chart *c, const char *x_label, const char *y_label, bool x_numbers)
{
	y_axis(c);
	if (x_numbers)
		x_numbers_of(c);
	svg_text(c->svg, "dim", "start", CHART_PAD, c->top - 12, y_label);
	svg_text(c->svg, "dim", "middle", (c->left + c->right) / 2, c->bottom + 38, x_label);
}

double report_chart_legend(struct svg *s, double width, double y, const char *const *names, unsigned n, bool draw)
{
	double x = CHART_PAD;

	for (unsigned i = 0; i < n; i++) {
		char fitted[512];
		double room;

		svg_fit(fitted, sizeof(fitted), names[i], width - 2 * CHART_PAD - 18, CHART_TEXT);
		room = svg_text_width(fitted, CHART_TEXT) + 36;
		if (x > CHART_PAD && x + room - 18 > width - CHART_PAD) {
			x = CHART_PAD;
			y += 20;
		}
		if (draw) {
			svg_rect(s, report_chart_class('c', i), x, y - 10, 11, 11);
			svg_text(s, "ink", NULL, x + 17, y, fitted);
		}
		x += room;
	}
	return y + (n ? 20 : 0);
}
