/* SPDX-License-Identifier: Apache-2.0 */
#include <curses.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>
#include "top_screen.h"

#define ESCAPE 27
#define DEAF_MAX 20 /* then the terminal is gone */

static void move_to(struct top_screen *s, long at)
{
	long last = (long)s->view->n_order - 1;

	s->cursor = at < 0 || last < 0 ? 0 : at > last ? (unsigned)last : (unsigned)at;
	s->pointing = true;
	s->pointed = s->view->n_order ? s->view->order[s->cursor] : NULL;
}

static void fold(struct top_screen *s, bool folded)
{
	if (!s->view->tree || s->cursor >= s->view->n_order)
		return;
	s->view->order[s->cursor]->folded = folded;
	move_to(s, s->cursor);
}

/* The next domain that the machine has, after the last one all of them. */
static void next_domain(struct top_view *v)
{
	do
		v->domain++;
	while (v->domain < DOMAIN_KINDS && !v->machine.has[v->domain]);
	if (v->domain == DOMAIN_KINDS)
		v->domain = -1;
}

static bool move_key(struct top_screen *s, wint_t key)
{
	long page = s->rows ? s->rows : 1;

	switch (key) {
	case KEY_UP:
	case 'k':
		move_to(s, (long)s->cursor - 1);
		return true;
	case KEY_DOWN:
	case 'j':
		move_to(s, (long)s->cursor + s->pointing); /* the first time it only appears */
		return true;
	case KEY_PPAGE:
		move_to(s, (long)s->cursor - page);
		return true;
	case KEY_NPAGE:
		move_to(s, (long)s->cursor + page);
		return true;
	case KEY_END:
	case 'G':
		move_to(s, s->view->n_order);
		return true;
	case KEY_HOME:
	case 'g': /* and let go of the row: the top stays the top */
		s->cursor = s->first = 0;
		s->pointing = false;
		return true;
	default:
		return false;
	}
}

static bool sort_key(struct top_view *v, wint_t key)
{
	static const char keys[TOP_SORTS + 1] = "WJCINA";
	const char *at = key < 128 && key ? strchr(keys, (int)key) : NULL;

	if (at)
		v->sort = (enum top_sort)(at - keys);
	else if (key == 's' || key == '>' || key == KEY_F(6) || key == KEY_RIGHT)
		v->sort = (v->sort + 1) % TOP_SORTS;
	else if (key == '<' || key == KEY_LEFT)
		v->sort = (v->sort + TOP_SORTS - 1) % TOP_SORTS;
	else if (key == 'r')
		v->reverse = !v->reverse;
	else
		return false;
	return true;
}

static bool view_key(struct top_screen *s, wint_t key)
{
	struct top_view *v = s->view;

	switch (key) {
	case 't':
	case KEY_F(5):
		v->tree = !v->tree;
		return true;
	case 'i':
		v->all = !v->all;
		return true;
	case 'f':
		v->frozen = !v->frozen;
		return true;
	case 'd':
		next_domain(v);
		return true;
	case 'z':
		top_view_reset_totals(v);
		return true;
	case '-':
	case '+':
	case '=':
		fold(s, key == '-');
		return true;
	case ' ':
		if (s->cursor < v->n_order)
			fold(s, !v->order[s->cursor]->folded);
		return true;
	default:
		return sort_key(v, key) || move_key(s, key);
	}
}

static void list_key(struct top_screen *s, wint_t key)
{
	if (key == 'q' || key == KEY_F(10))
		s->quit = true;
	else if (key == '?' || key == 'h' || key == KEY_F(1))
		s->mode = TOP_HELP;
	else if (key == '/' || key == KEY_F(4))
		s->mode = TOP_FILTERING;
	else if (key == ESCAPE)
		*s->view->filter = 0;
	else
		view_key(s, key);
}

static void drop_last(char *text)
{
	size_t n = strlen(text);

	while (n && (text[n - 1] & 0xc0) == 0x80) /* all of one character in UTF-8 */
		n--;
	text[n ? n - 1 : 0] = 0;
}

static void filter_key(struct top_screen *s, wint_t key, bool code)
{
	char *filter = s->view->filter, typed[MB_LEN_MAX];
	mbstate_t state = { 0 };
	size_t n;

	if (key == ESCAPE)
		*filter = 0;
	if (key == ESCAPE || key == '\n' || key == '\r' || key == KEY_ENTER) {
		s->mode = TOP_LIST;
	} else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
		drop_last(filter);
	} else if (key == 21) { /* Ctrl-U */
		*filter = 0;
	} else if (!code && iswprint(key) && (n = wcrtomb(typed, (wchar_t)key, &state)) != (size_t)-1 &&
		   strlen(filter) + n < TOP_FILTER_MAX) {
		strncat(filter, typed, n);
	} else if (code) {
		move_key(s, key);
	}
	if (!s->pointing)
		s->cursor = s->first = 0;
}

/* Input that is announced and never comes is a terminal that was closed. */
static void listen(struct top_screen *s, bool heard)
{
	struct pollfd p = { .fd = s->source->key_fd, .events = POLLIN };

	if (heard || poll(&p, 1, 0) <= 0)
		s->deaf = 0;
	else if (++s->deaf > DEAF_MAX || p.revents & (POLLHUP | POLLERR | POLLNVAL))
		s->quit = true;
}

bool top_keys(struct top_screen *s)
{
	bool changed = false;
	wint_t key;
	int kind;

	while ((kind = get_wch(&key)) != ERR) {
		changed = true;
		if (kind == KEY_CODE_YES && key == KEY_RESIZE)
			clearok(stdscr, TRUE);
		else if (kind == OK && key == 12) /* Ctrl-L */
			clearok(stdscr, TRUE);
		else if (s->mode == TOP_HELP)
			s->mode = TOP_LIST;
		else if (s->mode == TOP_FILTERING)
			filter_key(s, key, kind == KEY_CODE_YES);
		else
			list_key(s, key);
	}
	listen(s, changed);
	return changed;
}
