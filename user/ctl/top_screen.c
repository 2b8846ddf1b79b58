/* SPDX-License-Identifier: Apache-2.0 */
/* top on a terminal (ncursesw). What it shows stays when the agent goes, until another one comes. */
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "top_screen.h"
#include "verb.h"
#include <term.h> /* last: its macros are words such as columns */

static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	ended = 1;
}

static bool idle(void *arg)
{
	struct top_screen *s = arg;

	if (!stdscr)
		return false;
	if (ended)
		s->quit = true;
	if (top_keys(s) && !s->quit) {
		if (top_view_arrange(s->view) != 0)
			snprintf(s->message, sizeof(s->message), "out of memory; free some");
		top_screen_draw(s);
	}
	return s->quit;
}

static void end_of_feed(struct top_screen *s, struct top_feed *f, int code, const struct err *err)
{
	if (code == -ENODATA)
		snprintf(s->message, sizeof(s->message), "end of the recording; q leaves");
	else
		snprintf(s->message, sizeof(s->message), "%.500s",
			 code == -ENOMEM ? "out of memory; free some" : err->text);
	top_screen_draw(s);
	while (!top_feed_wait(f, NS_PER_S))
		;
}

static int watch(struct top_screen *s, struct top_feed *f)
{
	top_screen_draw(s);
	while (!s->quit) {
		struct err err = { 0 };
		struct snapshot *snap;
		int code = top_feed_next(f, &snap, &err);
		bool lost = code < 0 && !s->source->replay;

		if (s->quit)
			break;
		*s->message = 0;
		if (lost)
			snprintf(s->message, sizeof(s->message), "LOST %.500s   trying again", err.text);
		else if (code == 1)
			code = top_view_take(s->view, snap);
		else
			code = code ? code : -ENODATA;
		if (code && !lost) {
			end_of_feed(s, f, code, &err);
			return code == -ENODATA ? CTL_OK : CTL_FAILED;
		}
		top_screen_draw(s);
	}
	return CTL_OK;
}

/* A known terminal whose cursor can be moved; asked before anything is read from a pipe. */
static bool able(void)
{
	char cup[] = "cup";
	int why = 0;
	bool good = setupterm(NULL, STDOUT_FILENO, &why) == OK && tigetstr(cup) > (char *)0;

	if (cur_term)
		del_curterm(cur_term);
	return good;
}

static SCREEN *open_screen(int key_fd)
{
	struct sigaction on = { .sa_handler = on_end };
	FILE *in = key_fd == STDIN_FILENO ? stdin : fdopen(key_fd, "r");
	SCREEN *screen = in ? newterm(NULL, stdout, in) : NULL;

	if (!screen)
		return NULL;
	set_term(screen);
	set_escdelay(25);
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	top_screen_colours();
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	sigaction(SIGHUP, &on, NULL);
	return screen;
}

int top_screen_run(struct top_view *v, const struct top_source *src)
{
	struct top_source with_keys = *src;
	struct top_screen s = { .view = v, .source = &with_keys };
	struct top_feed *f = NULL;
	struct err err = { 0 };
	SCREEN *screen;
	int status;

	with_keys.key_fd = isatty(STDIN_FILENO) ? STDIN_FILENO : open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (with_keys.key_fd < 0 || !able())
		return -ENOTTY;
	with_keys.idle = idle;
	with_keys.arg = &s;
	with_keys.pace = true;
	if (top_feed_open(&with_keys, &f, &err) != 0) {
		log_error("top: %s", err.text);
		return CTL_FAILED;
	}
	screen = open_screen(with_keys.key_fd);
	if (!screen) {
		top_feed_close(f);
		return -ENOTTY;
	}
	status = watch(&s, f);
	endwin();
	delscreen(screen);
	top_feed_close(f);
	if (status != CTL_OK && *s.message)
		log_error("top: %s", s.message);
	return status;
}
