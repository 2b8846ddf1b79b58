/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of plot_draw.c and plot_legend.c. */
#ifndef JD_CTL_PLOT_DRAW_H
#define JD_CTL_PLOT_DRAW_H
#include "plot.h"
#include "svg.h"

#define PLOT_TEXT 12.0 /* size of the smallest text */

struct plot_drawing {
	const struct plot *p;
	struct svg svg;
	double width, pad;
	double left, top, right, bottom; /* of the area */
	double watts; /* at its top */
	double divisor;
	const char *unit;
	double base[PLOT_COLUMNS_MAX], upper[PLOT_COLUMNS_MAX]; /* of the series that is being drawn */
	bool estimated, gaps; /* something is hatched, missing */
};

double plot_x(const struct plot_drawing *d, double unix_ns);
double plot_y(const struct plot_drawing *d, double watts);
/* "c0" ... by its place; faded: colours begin anew. */
const char *plot_class(const struct plot *p, unsigned series, bool *ret_faded);
/* Rows of the legend below y; only its height when draw is false. */
double plot_legend(struct plot_drawing *d, double y, bool draw);
double plot_heading(struct plot_drawing *d, bool draw);

#endif
