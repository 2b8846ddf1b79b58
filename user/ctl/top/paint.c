/* SPDX-License-Identifier: Apache-2.0 */
/* Styled text, cut to a width, line by line, for a screen or a stream; and the drawing of the screen. */
#include <curses.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "screen.h"
#include "top.h"

void top_put_text(struct top_paint *p, enum top_style style, const char *text)
{
	unsigned columns = top_columns(text);
	char *cut = NULL;

	if (p->width && p->column + columns > p->width) {
		columns = p->width - p->column;
		cut = strndup(text, top_head(text, columns));
		if (!cut)
			return;
		columns = top_columns(cut);
	}
	if (columns)
		p->put(p->arg, p->row != TOP_PLAIN ? p->row : style, cut ? cut : text);
	p->column += columns;
	free(cut);
}

void top_put(struct top_paint *p, enum top_style style, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	top_put_text(p, style, text);
}

void top_pad(struct top_paint *p, unsigned column)
{
	if (column > p->column)
		top_put(p, TOP_PLAIN, "%*s", (int)(column - p->column), "");
}

void top_end(struct top_paint *p)
{
	if (p->row != TOP_PLAIN && p->width)
		top_pad(p, p->width);
	p->end_line(p->arg);
	p->column = 0;
	p->row = TOP_PLAIN;
}

#define BOTTOM 2 /* lines below the rows */

static const char *const help[] = {
	"/  F4       filter by name as you type; Enter keeps it, Esc clears it",
	"t  F5       tree: every line with all that is below it",
	"+ - Space   unfold and fold a branch of the tree",
	"s F6 < >    next column to sort by; W J C I N B A: watts, joules, CPU,",
	"            IPC or time, network, block, name; once more: the other way",
	"r           the other way round; the arrow points down from the largest",
	"o  i        histories share a scale, or have one each; idle cgroups too",
	"d           next energy domain; all = package + dram + gpu",
	"f           freeze the screen; totals go on below it",
	"P . , [ ]   --replay, --since: pause, step on and back, slower, faster;",
	"            { } go 60 intervals back and on",
	"e E  z      lines as CSV, JSON into a file; joules, times from zero again",
	"c           a line of the CPUs: frequency, temperature, C-states",
	"Enter       all about the row: domains, hottest functions, counters, history",
	"p           its processes: watts, CPU, threads, command",
	"arrows      j k g G PgUp PgDn Home End; Home lets go of the row",
	"mouse  m    click: choose, open, sort; wheel: move; m: mouse off and on",
	"q F10       leave",
	"",
	"JOULES since this screen began; 100 CPU% is one CPU.",
	NULL,
};

static int line; /* the line being drawn; after a full line curses may have its cursor on this line or on the next */
static short attribute_pair[TOP_STYLES];

void top_screen_colours(void)
{
	static const struct {
		enum top_style style;
		short colour;
	} colours[] = {
		{ TOP_HOT, COLOR_RED },   { TOP_WARM, COLOR_YELLOW },   { TOP_COOL, COLOR_GREEN },
		{ TOP_GOOD, COLOR_CYAN }, { TOP_ALERT, COLOR_MAGENTA },
	};
	const char *no = getenv("NO_COLOR");

	if ((no && *no) || !has_colors() || start_color() == ERR)
		return;
	use_default_colors();
	for (short i = 0; i < (short)(sizeof(colours) / sizeof(colours[0])); i++)
		if (init_pair((short)(i + 1), colours[i].colour, -1) == OK)
			attribute_pair[colours[i].style] = (short)(i + 1);
}

static void put(void *arg, enum top_style style, const char *text)
{
	static const attr_t attributes[TOP_STYLES] = {
		[TOP_BOLD] = A_BOLD, [TOP_DIM] = A_DIM,    [TOP_HEAD] = A_REVERSE, [TOP_CURSOR] = A_REVERSE | A_BOLD,
		[TOP_HOT] = A_BOLD,  [TOP_ALERT] = A_BOLD,
	};

	if (line >= LINES)
		return;
	attr_set(attributes[style], attribute_pair[style], NULL);
	addstr(text);
}

static void end_line(void *arg)
{
	attr_set(A_NORMAL, 0, NULL);
	if (getcury(stdscr) == line && getcurx(stdscr) < COLS)
		clrtoeol();
	move(++line, 0);
}

/* The cursor follows its row while that row is shown. The list scrolls so that the cursor is visible. */
static void place_cursor(struct top_screen *s)
{
	const struct top_view *v = s->view;

	for (unsigned i = 0; s->pointing && i < v->n_order; i++)
		if (v->order[i] == s->pointed)
			s->cursor = i;
	if (s->cursor >= v->n_order)
		s->cursor = v->n_order ? v->n_order - 1 : 0;
	s->pointed = v->n_order ? v->order[s->cursor] : NULL;
	if (s->cursor < s->first)
		s->first = s->cursor;
	if (s->cursor >= s->first + s->rows)
		s->first = s->cursor - s->rows + 1;
	if (s->first + s->rows > v->n_order)
		s->first = v->n_order > s->rows ? v->n_order - s->rows : 0;
}

static void draw_status(struct top_screen *s, struct top_paint *p)
{
	const struct top_view *v = s->view;

	if (v->frozen)
		top_put(p, TOP_ALERT, "FROZEN   ");
	if (top_screen_plays(s)) {
		top_put(p, TOP_BOLD, "%s ", s->play.paused ? "PAUSED" : "playing");
		top_put(p, TOP_PLAIN, s->play.speed < 0 ? "1/%ux   " : "%ux   ",
			1u << (s->play.speed < 0 ? -s->play.speed : s->play.speed));
	}
	if (*v->filter && s->mode != TOP_FILTERING)
		top_put(p, TOP_BOLD, "filter: %s   ", v->filter);
	top_put(p, TOP_DIM, "%u line%s%s   ", v->n_order, v->n_order == 1 ? "" : "s", v->all ? ", idle too" : "");
	if (s->pointing && s->pointed) {
		char name[512];

		top_fit_path(name, sizeof(name), s->pointed->name,
			     p->width > p->column + 14 ? p->width - p->column - 14 : 10);
		top_put(p, TOP_PLAIN, "%s   ", name);
	}
	top_draw_legend(v, p);
	top_end(p);
}

static void draw_keys(struct top_screen *s, struct top_paint *p)
{
	static const struct {
		const char *key, *what;
	} keys[] = {
		{ "?", "help" },   { "/", "filter" },  { "t", "tree" },      { "s", "sort" },
		{ "f", "freeze" }, { "Enter", "row" }, { "p", "processes" }, { "q", "quit" },
	};

	if (s->mode == TOP_PROCESSES && !*s->message) {
		top_put(p, TOP_BOLD, "Esc");
		top_put(p, TOP_DIM, " back   ");
		top_put(p, TOP_BOLD, "j k");
		top_put(p, TOP_DIM, " scroll   ");
		top_draw_legend(s->view, p);
	} else if (s->mode == TOP_PANE && !*s->note && !*s->message) {
		top_put(p, TOP_BOLD, "Esc");
		top_put(p, TOP_DIM, " back   ");
		top_put(p, TOP_BOLD, "j k");
		top_put(p, TOP_DIM, " next row   ");
		top_draw_legend(s->view, p);
	} else if (s->mode == TOP_FILTERING) {
		top_put(p, TOP_BOLD, "filter: ");
		top_put_text(p, TOP_PLAIN, s->view->filter);
		top_put(p, TOP_CURSOR, " ");
		top_put(p, TOP_DIM, "   Enter keeps, Esc clears");
	} else if (*s->note) {
		top_put_text(p, TOP_BOLD, s->note);
	} else if (*s->message) {
		top_put_text(p, TOP_ALERT, s->message);
	} else {
		for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
			top_put(p, TOP_BOLD, "%s", keys[i].key);
			top_put(p, TOP_DIM, " %s  ", keys[i].what);
		}
	}
	end_line(NULL);
}

static void draw_rows(struct top_screen *s, struct top_paint *p)
{
	struct top_view *v = s->view;

	place_cursor(s);
	for (unsigned i = s->first; i < v->n_order && i < s->first + s->rows; i++)
		top_draw_row(v, v->order[i], p, s->pointing && i == s->cursor);
	if (!v->n_order && v->samples) {
		top_put(p, TOP_DIM, *v->filter ? "  nothing has that in its name" : "  nothing ran");
		top_end(p);
	}
}

static void draw_list(struct top_screen *s, struct top_paint *p)
{
	struct top_view *v = s->view;
	unsigned height = (unsigned)LINES, head;

	if (!v->samples) {
		top_put(p, TOP_BOLD, "jouled");
		top_put(p, TOP_PLAIN, "   waiting for the first interval");
		top_end(p);
		return;
	}
	head = top_draw_head(v, p, height / 5) + 1;
	if (s->machine) {
		top_cpus_draw(&s->cpus, p);
		head++;
	}
	s->head = head;
	s->rows = height > head + BOTTOM ? height - head - BOTTOM : 1;
	top_draw_columns(v, p);
	draw_rows(s, p);
}

static void draw_pane(struct top_screen *s, struct top_paint *p)
{
	const struct top_row *r = top_row_find(s->view, s->pane);

	place_cursor(s);
	if (r) {
		top_draw_pane(s->view, r, s->functions, p, LINES > 1 ? (unsigned)LINES - 1 : 1);
	} else {
		top_put(p, TOP_ALERT, "this row is gone; Esc goes back");
		top_end(p);
	}
	attr_set(A_NORMAL, 0, NULL);
	clrtobot();
}

static void draw_processes(struct top_screen *s, struct top_paint *p)
{
	struct top_row *r = top_row_find(s->view, s->pane);
	struct top_procs_page page = { .first = s->procs_first,
				       .lines = LINES > 6 ? (unsigned)LINES - 6 : 1,
				       .pid = s->pid };
	char *name = top_clean(s->pane), text[2048];

	place_cursor(s);
	top_fit_path(text, sizeof(text), name ? name : "", p->width > 14 ? p->width - 14 : 1);
	free(name);
	top_put(p, TOP_BOLD, "processes of %s", text);
	top_end(p);
	if (r) {
		top_draw_columns(s->view, p);
		s->view->marks = 0;
		top_draw_row(s->view, r, p, false);
	}
	if (s->procs)
		top_procs_draw(s->procs, s->view, &page, p);
	if (*s->procs_why) {
		top_put_text(p, TOP_ALERT, s->procs_why);
		top_end(p);
	}
	attr_set(A_NORMAL, 0, NULL);
	clrtobot();
}

static void go_to(int y)
{
	line = y;
	move(y, 0);
}

/* The marks of the help are those that the list behind it shows. */
static void draw_help(const struct top_screen *s, struct top_paint *p)
{
	top_put(p, TOP_BOLD, "joulectl top: keys");
	top_end(p);
	for (unsigned i = 0; help[i] && (int)i + 4 < LINES; i++) {
		top_put(p, TOP_PLAIN, "  %s", help[i]);
		top_end(p);
	}
	top_put(p, TOP_PLAIN, "  Bars:  ");
	top_draw_bar_key(p);
	top_end(p);
	top_put(p, TOP_PLAIN, "  Marks: ");
	if (s->view->marks & ~(unsigned)QUALITY_WRAPPED)
		top_draw_legend(s->view, p);
	else
		top_put(p, TOP_DIM, "none on this screen: all is measured");
	top_end(p);
	clrtobot();
}

void top_screen_draw(struct top_screen *s)
{
	struct top_paint p = { .width = (unsigned)COLS, .put = put, .end_line = end_line, .live = true };

	go_to(0);
	if (s->mode == TOP_HELP) {
		draw_help(s, &p);
	} else if (s->mode == TOP_PANE) {
		draw_pane(s, &p);
	} else if (s->mode == TOP_PROCESSES) {
		draw_processes(s, &p);
	} else {
		draw_list(s, &p);
		attr_set(A_NORMAL, 0, NULL);
		clrtobot();
		if (LINES > BOTTOM + 3) {
			go_to(LINES - 2);
			draw_status(s, &p);
		}
	}
	go_to(LINES - 1);
	p.column = 0;
	if (s->mode == TOP_HELP) {
		top_put(&p, TOP_DIM, "any key goes back");
		end_line(NULL);
	} else {
		draw_keys(s, &p);
	}
	refresh();
	s->drawn = true;
}
