/* SPDX-License-Identifier: Apache-2.0 */
/* Power over time: a line per repetition, whose time begins with the window. The events are those of the first
 * repetition. The time outside the window is grey. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl/plot/plot.h"
#include "report.h"
#include "report_plot.h"

#define LINES_MAX SVG_COLOURS

struct trace {
	const struct report_repetition *of;
	struct report_points p;
	char *name;
};

struct picture {
	struct report_chart chart;
	struct svg svg;
	double width;
	struct trace trace[LINES_MAX];
	unsigned n, left_out;
	struct tree_event *events; /* of the first repetition */
	size_t n_events;
};

static double seconds(const struct trace *t, int64_t ns)
{
	return (double)(ns - t->of->window.start_ns) / 1e9;
}

static int add_trace(struct picture *p, const struct report *r, const struct report_repetition *of,
		     enum report_source s, struct err *err)
{
	struct trace *t = &p->trace[p->n];
	struct tree_findings ignored = { 0 };
	struct tree_repetition data;
	int rc = tree_repetition_read(of->place, &data, &ignored, err);

	tree_findings_free(&ignored);
	if (rc)
		return rc;
	t->of = of;
	rc = report_points_of(&r->o, &data, s, &t->p);
	if (!rc && asprintf(&t->name, "%s / %s / %s", of->place->name[TREE_BENCHMARK], of->place->name[TREE_RUN],
			    of->place->name[TREE_REPETITION]) < 0) {
		t->name = NULL;
		rc = -ENOMEM;
	}
	if (!rc && t->p.n && !p->n) {
		p->events = data.events;
		p->n_events = data.n_events;
		data.events = NULL;
	}
	tree_repetition_free(&data);
	if (!rc && t->p.n) {
		p->n++;
		return 0;
	}
	free(t->p.list);
	free(t->name);
	*t = (struct trace){ 0 };
	return rc ? err_set(err, rc, "report: out of memory; plot one repetition") : 0;
}

static void find_range(struct picture *p)
{
	struct report_chart *c = &p->chart;

	c->y0 = 0;
	c->y1 = 0;
	for (unsigned k = 0; k < p->n; k++) {
		const struct report_points *t = &p->trace[k].p;
		double first = seconds(&p->trace[k], t->list[0].t_ns),
		       last = seconds(&p->trace[k], t->list[t->n - 1].t_ns);

		c->x0 = k ? fmin(c->x0, first) : first;
		c->x1 = k ? fmax(c->x1, last) : last;
		for (size_t i = 0; i < t->n; i++)
			if (!isnan(t->list[i].watts)) {
				c->y0 = fmin(c->y0, t->list[i].watts);
				c->y1 = fmax(c->y1, t->list[i].watts);
			}
	}
}

/* Draws the lowest and the highest power of each half pixel, so that the shape stays with any number of rows. */
static void draw_trace(struct picture *p, unsigned k)
{
	const struct report_points *t = &p->trace[k].p;
	const struct report_chart *c = &p->chart;

	svg_open(&p->svg, "path");
	svg_attr(&p->svg, "class", report_chart_class('l', k));
	svg_path_begin(&p->svg);
	for (size_t i = 0; i < t->n;) {
		double x = report_chart_x(c, seconds(&p->trace[k], t->list[i].t_ns)), low = INFINITY, high = -INFINITY;
		size_t begin = i;

		for (; i < t->n && report_chart_x(c, seconds(&p->trace[k], t->list[i].t_ns)) < x + .5; i++) {
			low = fmin(low, t->list[i].watts);
			high = fmax(high, t->list[i].watts);
		}
		if (i == begin)
			i++;
		if (!isfinite(low))
			continue;
		svg_line_to(&p->svg, x, report_chart_y(c, low));
		svg_line_to(&p->svg, x, report_chart_y(c, high));
	}
	svg_path_end(&p->svg);
	svg_tooltip(&p->svg, p->trace[k].name);
	svg_close(&p->svg);
}

static void event_label(char *dst, size_t size, const struct tree_event *e)
{
	if (strcmp(e->name, "epoch_begin") == 0)
		snprintf(dst, size, "epoch %lld", (long long)e->data);
	else if (strncmp(e->name, "batch_", 6) == 0 || strcmp(e->name, "epoch_end") == 0)
		*dst = '\0';
	else
		snprintf(dst, size, "%s", e->name);
}

static void draw_mark(struct picture *p, const struct tree_event *e, double x, bool tall)
{
	const struct report_chart *c = &p->chart;
	char tip[96];

	snprintf(tip, sizeof(tip), "%s %lld at %.3f s", e->name, (long long)e->data, seconds(&p->trace[0], e->t_ns));
	svg_open(&p->svg, "line");
	svg_attr(&p->svg, "class", "axis");
	svg_attr(&p->svg, "stroke-dasharray", tall ? "3 3" : NULL);
	svg_attr_num(&p->svg, "x1", x);
	svg_attr_num(&p->svg, "x2", x);
	svg_attr_num(&p->svg, "y1", tall ? c->top : c->bottom - 7);
	svg_attr_num(&p->svg, "y2", c->bottom);
	svg_tooltip(&p->svg, tip);
	svg_close(&p->svg);
}

/* Draws the events. Labels stand in two rows above the area. An event whose label has no room is a line with a
 * tooltip; batches and ends of epochs are ticks. */
static void draw_marks(struct picture *p)
{
	const struct report_chart *c = &p->chart;
	double taken[2] = { c->left, c->left }, last[2] = { 0, 0 };

	for (size_t i = 0; i < p->n_events; i++) {
		const struct tree_event *e = &p->events[i];
		double x = floor(report_chart_x(c, seconds(&p->trace[0], e->t_ns))) + .5, width;
		char label[48];

		event_label(label, sizeof(label), e);
		if (!(x >= c->left && x <= c->right) || fabs(x - last[!*label]) < 3)
			continue;
		last[!*label] = x;
		draw_mark(p, e, x, *label != '\0');
		width = svg_text_width(label, CHART_TEXT);
		for (unsigned row = 0; row < 2 && *label; row++)
			if (x - width / 2 >= taken[row] && x + width / 2 <= c->right) {
				svg_text(&p->svg, "dim", "middle", svg_at(x, c->top - 8 - 16 * row), label);
				taken[row] = x + width / 2 + 8;
				break;
			}
	}
}

static void draw_outside(struct picture *p, double from, double to)
{
	const struct report_chart *c = &p->chart;
	double x = fmax(report_chart_x(c, from), c->left), end = fmin(report_chart_x(c, to), c->right);

	if (end <= x)
		return;
	svg_open(&p->svg, "rect");
	svg_attr(&p->svg, "class", "ink");
	svg_attr(&p->svg, "fill-opacity", "0.07");
	svg_attr_num(&p->svg, "x", x);
	svg_attr_num(&p->svg, "y", c->top);
	svg_attr_num(&p->svg, "width", end - x);
	svg_attr_num(&p->svg, "height", c->bottom - c->top);
	svg_tooltip(&p->svg, "does not count");
	svg_close(&p->svg);
}

static void draw(struct picture *p, enum report_source s, struct buf *out)
{
	struct report_chart *c = &p->chart;
	const char *names[LINES_MAX];
	char note[96], what[REPORT_WHAT_MAX], fit[REPORT_WHAT_MAX];
	struct report_legend legend;
	unsigned quality = 0;
	double below;

	for (unsigned k = 0; k < p->n; k++) {
		names[k] = p->trace[k].name;
		quality |= p->trace[k].of->source[s].quality;
	}
	report_what(p->trace[0].of, s, quality, what);
	find_range(p);
	c->svg = &p->svg;
	c->right = p->width - CHART_PAD;
	c->top = 118;
	c->bottom = c->top + (p->width < 560 ? 220 : fmin(400, 160 + p->width / 5));
	report_chart_fit(c);
	legend = (struct report_legend){ p->width, c->bottom + 66, names, p->n };
	below = report_chart_legend(NULL, &legend);
	svg_begin(&p->svg, out, svg_size(p->width, below + (p->left_out ? 20 : 0)), "Power over time",
		  "Power of repetitions since their window began");
	svg_text(&p->svg, "ink title", NULL, svg_at(CHART_PAD, 34), "Power over time");
	svg_text(&p->svg, "dim", NULL, svg_at(CHART_PAD, 54),
		 svg_fit(fit, sizeof(fit), what, p->width - 2 * CHART_PAD, CHART_TEXT));
	draw_outside(p, c->x0, 0);
	draw_outside(p, seconds(&p->trace[0], p->trace[0].of->window.end_ns), c->x1);
	report_chart_axes(c, "seconds since the window began; grey does not count", "W", true);
	draw_marks(p);
	for (unsigned k = p->n; k-- > 0;)
		draw_trace(p, k);
	report_chart_legend(&p->svg, &legend);
	snprintf(note, sizeof(note), "%u more repetitions are not drawn", p->left_out);
	if (p->left_out)
		svg_text(&p->svg, "dim", NULL, svg_at(CHART_PAD, below), note);
	svg_end(&p->svg);
}

int report_plot_power(const struct report *r, enum report_source s, unsigned width, struct buf *out, struct err *err)
{
	struct picture *p = calloc(1, sizeof(*p));
	int rc = p ? 0 : err_set(err, -ENOMEM, "report: out of memory; plot one repetition");

	for (unsigned i = 0; i < r->n && !rc; i++) {
		if (!r->list[i].usable)
			continue;
		if (p->n == LINES_MAX)
			p->left_out++;
		else
			rc = add_trace(p, r, &r->list[i], s, err);
	}
	if (!rc && !p->n)
		rc = err_set(err, -ENODATA, "report: --plot: no power of source %s", report_source_name[s]);
	if (!rc) {
		p->width = width;
		draw(p, s, out);
	}
	for (unsigned k = 0; p && k < p->n; k++) {
		free(p->trace[k].p.list);
		free(p->trace[k].name);
	}
	if (p)
		free(p->events);
	free(p);
	return rc;
}

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
		svg_line(c->svg, i ? "grid" : "axis", svg_at(c->left, floor(y) + .5), svg_at(c->right, floor(y) + .5));
		svg_text(c->svg, "dim num", "end", svg_at(c->left - 8, y + 4), text);
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
		svg_line(c->svg, "axis", svg_at(floor(x) + .5, c->bottom), svg_at(floor(x) + .5, c->bottom + 5));
		svg_text(c->svg, "dim num", "middle", svg_at(x, c->bottom + 19), text);
	}
}

void report_chart_axes(struct report_chart *c, const char *x_label, const char *y_label, bool x_numbers)
{
	y_axis(c);
	if (x_numbers)
		x_numbers_of(c);
	svg_text(c->svg, "dim", "start", svg_at(CHART_PAD, c->top - 12), y_label);
	svg_text(c->svg, "dim", "middle", svg_at((c->left + c->right) / 2, c->bottom + 38), x_label);
}

double report_chart_legend(struct svg *s, const struct report_legend *l)
{
	double x = CHART_PAD, y = l->y;

	for (unsigned i = 0; i < l->n; i++) {
		char fitted[512];
		double room;

		svg_fit(fitted, sizeof(fitted), l->names[i], l->width - 2 * CHART_PAD - 18, CHART_TEXT);
		room = svg_text_width(fitted, CHART_TEXT) + 36;
		if (x > CHART_PAD && x + room - 18 > l->width - CHART_PAD) {
			x = CHART_PAD;
			y += 20;
		}
		if (s) {
			svg_rect(s, report_chart_class('c', i), svg_at(x, y - 10), svg_size(11, 11));
			svg_text(s, "ink", NULL, svg_at(x + 17, y), fitted);
		}
		x += room;
	}
	return y + (l->n ? 20 : 0);
}
