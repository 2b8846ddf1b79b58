/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of top's screen: what the keyboard changes and the drawing shows. */
#ifndef JD_CTL_TOP_SCREEN_H
#define JD_CTL_TOP_SCREEN_H
#include "top.h"

enum top_mode { TOP_LIST, TOP_FILTERING, TOP_HELP };

struct top_screen {
	struct top_view *view;
	const struct top_source *source;
	enum top_mode mode;
	unsigned cursor, first; /* of view->order: chosen, and first one drawn */
	unsigned rows; /* lines there were for them */
	bool pointing; /* the cursor was moved: it stays on its row and is drawn */
	struct top_row *pointed;
	unsigned deaf; /* times in a row that input was announced and none came */
	bool drawn, quit;
	char message[600]; /* "" = none */
};

/* top_keys.c: all that was typed. true = something changed. */
bool top_keys(struct top_screen *s);
/* top_paint_screen.c */
void top_screen_colours(void);
void top_screen_draw(struct top_screen *s);

#endif
