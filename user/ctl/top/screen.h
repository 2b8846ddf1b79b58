/* SPDX-License-Identifier: Apache-2.0 */
/* State of top's screen: screen.c changes it by keys, paint.c draws it. */
#ifndef JD_CTL_TOP_SCREEN_H
#define JD_CTL_TOP_SCREEN_H
#include <limits.h>
#include "top.h"
#include "top_cpus.h"
#include "top_functions.h"
#include "top_procs.h"

enum top_mode { TOP_LIST, TOP_FILTERING, TOP_HELP, TOP_PANE, TOP_PROCESSES };

struct top_screen {
	struct top_view *view;
	const struct top_source *source;
	enum top_mode mode;
	unsigned cursor, first; /* indexes into view->order: the chosen row, and the first row drawn */
	unsigned rows; /* lines for rows in the last drawing */
	unsigned head; /* lines above them; the last one has the headings */
	bool mouse; /* the terminal tells of clicks, and does not select text by them */
	bool pointing; /* the cursor was moved: it stays on its row and is drawn */
	struct top_row *pointed;
	char pane[PATH_MAX + 1]; /* path of the row of the pane, or of that with the processes */
	struct top_procs *procs; /* NULL = could not be read; why is in procs_why */
	unsigned procs_first, pid;
	char procs_why[600];
	struct top_functions *functions; /* of the row of the pane; NULL = they are not asked for */
	struct fsroot *machine; /* NULL = the line of the CPUs is not shown */
	struct top_cpus cpus;
	struct top_play play;
	uint64_t until_n; /* seeking: the first interval to be shown, by its number */
	int64_t until_ns; /* ... and by its time */
	bool back; /* seeking begins at the first interval */
	unsigned deaf; /* times in a row that input was announced and none came */
	bool drawn, quit, failed;
	char message[600]; /* "" = none */
	char note[200]; /* about the last key; "" = none */
};

/* paint.c */
void top_screen_colours(void);
void top_screen_draw(struct top_screen *s);
static inline bool
top_screen_plays(const struct top_screen *s) /* a recording or the history, not what is measured now */
{
	return s->source->replay || s->source->since;
}

#endif
