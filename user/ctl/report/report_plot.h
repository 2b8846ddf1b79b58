/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over two axes, for the pictures of joulectl report. */
#ifndef JD_CTL_REPORT_CHART_H
#define JD_CTL_REPORT_CHART_H
#include "ctl/plot/svg.h"

#define CHART_TEXT 12.0
#define CHART_PAD 24.0

struct report_chart {
	struct svg *svg;
	double left, top, right, bottom; /* sides of the area, pixels */
	double x0, x1, y0, y1; /* values at the sides */
};

double report_chart_x(const struct report_chart *c, double x);
double report_chart_y(const struct report_chart *c, double y);
/* Rounds y1 up and y0 down to steps of the axis, and sets `left` so that the numbers have room. */
void report_chart_fit(struct report_chart *c);
void report_chart_axes(struct report_chart *c, const char *x_label, const char *y_label, bool x_numbers);

/* A coloured box and a name for each line of a chart. */
struct report_legend {
	double width; /* of the picture, pixels */
	double y; /* of the first row, pixels */
	const char *const *names;
	unsigned n;
};

/* Draws it into s; NULL: measures only. Returns the y where the next thing may be. */
double report_chart_legend(struct svg *s, const struct report_legend *l);
/* "c0" or "l0" ... */
const char *report_chart_class(char letter, unsigned i);

#endif
