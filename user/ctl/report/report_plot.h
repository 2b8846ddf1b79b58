/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over two axes, for the pictures of joulectl report. */
#ifndef JD_CTL_REPORT_CHART_H
#define JD_CTL_REPORT_CHART_H
#include "svg.h"

#define CHART_TEXT 12.0
#define CHART_PAD 24.0

struct report_chart {
	struct svg *svg;
	double left, top, right, bottom; /* of the area, pixels */
	double x0, x1, y0, y1; /* values at its sides */
};

double report_chart_x(const struct report_chart *c, double x);
double report_chart_y(const struct report_chart *c, double y);
/* Rounds y1 up and y0 down to steps; then left is known: room for the numbers. */
void report_chart_fit(struct report_chart *c);
void report_chart_axes(struct report_chart *c, const char *x_label, const char *y_label, bool x_numbers);
/* Boxes with names, from y down; where the next thing may be. draw false: only measures. */
double report_chart_legend(struct svg *s, double width, double y, const char *const *names, unsigned n, bool draw);
/* "c0" or "l0" ... */
const char *report_chart_class(char letter, unsigned i);

#endif
