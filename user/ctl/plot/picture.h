/* SPDX-License-Identifier: Apache-2.0 */
/* State of a drawing in picture.c. */
#ifndef JD_CTL_PLOT_DRAW_H
#define JD_CTL_PLOT_DRAW_H
#include "plot.h"
#include "svg.h"

#define PLOT_TEXT 12.0 /* size of the smallest text */

struct plot_drawing {
	struct plot *p;
	struct svg svg;
	double width, pad;
	double left, top, right, bottom; /* edges of the area, in pixels */
	double watts; /* at the top of the area */
	double divisor;
	const char *unit;
	double base[PLOT_COLUMNS_MAX], upper[PLOT_COLUMNS_MAX]; /* of the series that is being drawn */
	bool estimated, gaps, merged; /* something is hatched; a gap is shown; a step has several readings */
};

#endif
