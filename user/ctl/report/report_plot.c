/* SPDX-License-Identifier: Apache-2.0 */
/* Power over time: a line per repetition on one clock that begins with the window, the events of the first
 * one, and what the window leaves out in grey. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report.h"
#include "report_chart.h"

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
	struct tree_event *events; /* of the first */
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

/* Lowest and highest of what falls into one pixel: the shape stays, whatever the number of rows. */
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

/* Labels in two rows above the area; what has no room is a line with a tooltip, batches and ends are ticks. */
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
				svg_text(&p->svg, "dim", "middle", x, c->top - 8 - 16 * row, label);
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
	static const char *const what[REPORT_SOURCES] = { "GPU power (driver's samples)", "GPU power (queries)",
							  "external power", "power of the machine (RAPL)",
							  "power of the run's cgroup" };
	struct report_chart *c = &p->chart;
	const char *names[LINES_MAX];
	char note[96];
	double below;

	for (unsigned k = 0; k < p->n; k++)
		names[k] = p->trace[k].name;
	find_range(p);
	c->svg = &p->svg;
	c->right = p->width - CHART_PAD;
	c->top = 118;
	c->bottom = c->top + (p->width < 560 ? 220 : fmin(400, 160 + p->width / 5));
	report_chart_fit(c);
	below = report_chart_legend(&p->svg, p->width, c->bottom + 66, names, p->n, false);
	svg_begin(&p->svg, out, p->width, below + (p->left_out ? 20 : 0), "Power over time",
		  "Power of repetitions since their window began");
	svg_text(&p->svg, "ink title", NULL, CHART_PAD, 34, "Power over time");
	svg_text(&p->svg, "dim", NULL, CHART_PAD, 54, what[s]);
	draw_outside(p, c->x0, 0);
	draw_outside(p, seconds(&p->trace[0], p->trace[0].of->window.end_ns), c->x1);
	report_chart_axes(c, "seconds since the window began; grey does not count", "W", true);
	draw_marks(p);
	for (unsigned k = p->n; k-- > 0;)
		draw_trace(p, k);
	report_chart_legend(&p->svg, p->width, c->bottom + 66, names, p->n, true);
	snprintf(note, sizeof(note), "%u more repetitions are not drawn", p->left_out);
	if (p->left_out)
		svg_text(&p->svg, "dim", NULL, CHART_PAD, below, note);
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
