/* SPDX-License-Identifier: Apache-2.0 */
/* top on a terminal (ncursesw). The screen keeps the last interval when the agent ends, until an agent runs again. */
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>
#include "base/clock.h"
#include "base/log.h"
#include "ctl/core/verb.h"
#include "screen.h"
#include <term.h> /* last, because it defines macros such as columns */

#define HISTORY_SPEED 7 /* a minute of the history in half a second */

static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	ended = 1;
}

static bool top_keys(struct top_screen *s);
static void use_mouse(struct top_screen *s, bool on);
static void take_processes(struct top_screen *s);
static void show_processes(struct top_screen *s, const char *cgroup);

/* Asks for the functions of the row of the pane, of a running agent alone. true = there is something new to draw. */
static bool follow_functions(struct top_screen *s)
{
	const bool wanted = s->mode == TOP_PANE && !top_screen_plays(s) && *s->pane == '/';

	if (s->functions && (!wanted || strcmp(top_functions_cgroup(s->functions), s->pane) != 0)) {
		top_functions_free(s->functions);
		s->functions = NULL;
	}
	if (wanted && !s->functions)
		s->functions = top_functions_new(s->source->socket, s->pane, s->source->key_fd);
	return wanted && s->functions && !s->view->frozen && top_functions_turn(s->functions);
}

static bool idle(void *arg)
{
	struct top_screen *s = arg;
	bool changed;

	if (!stdscr)
		return false;
	if (ended)
		s->quit = true;
	changed = top_keys(s);
	changed |= follow_functions(s);
	if (changed && !s->quit) {
		if (top_view_arrange(s->view) != 0)
			snprintf(s->message, sizeof(s->message), "out of memory; free some");
		top_screen_draw(s);
	}
	return s->quit;
}

/* Shows the last interval until the user leaves or goes back. */
static void end_of_feed(struct top_screen *s, struct top_feed *f, int rc, const struct err *err)
{
	if (rc == -ENODATA)
		snprintf(s->message, sizeof(s->message), "end of the %s; q leaves",
			 s->source->since ? "history" : "recording");
	else
		snprintf(s->message, sizeof(s->message), "%.500s",
			 rc == -ENOMEM ? "out of memory; free some" : err->text);
	s->play.seeking = s->play.now = false;
	top_screen_draw(s);
	while (!top_feed_wait(f, NS_PER_S / 10) && !s->back)
		s->play.seeking = s->play.now = false;
}

/* Goes back to the first interval, where that is asked for. Failure is said, and nothing is lost. */
static void go_back(struct top_screen *s, struct top_feed *f)
{
	struct err err = { 0 };

	if (!s->back)
		return;
	s->back = s->failed = false;
	if (top_feed_rewind(f, &err) != 0) {
		snprintf(s->note, sizeof(s->note), "%.150s", err.text);
		s->play.seeking = false;
		return;
	}
	s->pointed = NULL;
	top_view_forget(s->view);
}

/* true = the interval that was just taken is one to be shown. */
static bool arrived(struct top_screen *s)
{
	if (!s->play.seeking)
		return true;
	if (s->back || s->view->samples < s->until_n || s->view->machine.time_ns < s->until_ns)
		return false;
	s->play.seeking = false;
	return true;
}

/* Takes what the feed gave. false = this is the end. */
static bool take(struct top_screen *s, struct top_feed *f, struct snapshot *snap, int rc, struct err *err)
{
	bool lost = rc < 0 && !top_screen_plays(s);

	*s->message = 0;
	if (lost)
		snprintf(s->message, sizeof(s->message), "LOST %.500s   trying again", err->text);
	else if (rc == 1)
		rc = s->back ? 0 : top_view_take(s->view, snap);
	else
		rc = rc ? rc : -ENODATA;
	if (rc && !lost) {
		end_of_feed(s, f, rc, err);
		s->failed = rc != -ENODATA;
		return s->back && !s->quit;
	}
	if (s->mode == TOP_PROCESSES && !rc)
		take_processes(s);
	if (s->machine && !rc && !s->view->frozen)
		top_cpus_take(&s->cpus, s->machine, clock_mono_ns());
	return true;
}

static int watch(struct top_screen *s, struct top_feed *f)
{
	top_screen_draw(s);
	while (!s->quit) {
		struct err err = { 0 };
		struct snapshot *snap = NULL;
		int rc = top_feed_next(f, &snap, &err);

		if (s->quit || !take(s, f, snap, rc, &err))
			break;
		go_back(s, f);
		if (arrived(s))
			top_screen_draw(s);
	}
	return s->failed ? CTL_FAILED : CTL_OK;
}

/* true = the terminal is known and can move its cursor. top asks before it reads anything from a pipe. */
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
	with_keys.play = &s.play;
	s.play.speed = src->since ? HISTORY_SPEED : 0;
	if (top_feed_open(&with_keys, &f, &err) != 0) {
		log_error("top: %s", err.text);
		return CTL_FAILED;
	}
	screen = open_screen(with_keys.key_fd);
	if (!screen) {
		top_feed_close(f);
		return -ENOTTY;
	}
	use_mouse(&s, true);
	if (src->pid) {
		s.pid = src->pid;
		show_processes(&s, src->pid_cgroup);
	}
	status = watch(&s, f);
	endwin();
	delscreen(screen);
	top_feed_close(f);
	top_procs_close(s.procs);
	top_functions_free(s.functions);
	fsroot_close(s.machine);
	if (status != CTL_OK && *s.message)
		log_error("top: %s", s.message);
	return status;
}

#define ESCAPE 27
#define DEAF_MAX 20 /* announcements of input without input; more mean that the terminal is closed */

static void move_to(struct top_screen *s, long at)
{
	long last = (long)s->view->n_order - 1;

	s->cursor = at < 0 || last < 0 ? 0 : at > last ? (unsigned)last : (unsigned)at;
	s->pointing = true;
	s->pointed = s->view->n_order ? s->view->order[s->cursor] : NULL;
}

static void fold(struct top_screen *s, bool folded)
{
	struct top_row *r = s->cursor < s->view->n_order ? s->view->order[s->cursor] : NULL;

	if (!s->view->tree || !r) {
		snprintf(s->note, sizeof(s->note), "only the tree folds; t shows it");
		return;
	}
	move_to(s, s->cursor);
	if (r->child)
		r->folded = folded;
	else
		snprintf(s->note, sizeof(s->note), "%.100s: nothing is below it", r->leaf);
}

/* Chooses the next domain that the machine has. All domains together come after the last one. */
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
		move_to(s, (long)s->cursor + s->pointing); /* the first press only shows the cursor */
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
	case 'g': /* also lets go of the row, so that the list stays at its top */
		s->cursor = s->first = 0;
		s->pointing = false;
		return true;
	default:
		return false;
	}
}

static void sort_by(struct top_view *v, enum top_sort sort)
{
	if (v->sort == sort)
		v->reverse = !v->reverse;
	v->sort = sort;
}

static bool sort_key(struct top_view *v, wint_t key)
{
	static const char keys[TOP_SORTS + 1] = "WJCINBA";
	const char *at = key < 128 && key ? strchr(keys, (int)key) : NULL;

	if (at)
		sort_by(v, (enum top_sort)(at - keys));
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

#define SEEK_STEPS 60

/* From the interval that is shown on: n intervals on, or back. */
static void seek(struct top_screen *s, long n)
{
	uint64_t at = s->play.seeking ? s->until_n : s->view->samples;

	if (s->view->frozen)
		snprintf(s->note, sizeof(s->note), "the screen is frozen; f lets it go on");
	if (s->view->frozen || !at)
		return;
	s->until_ns = 0;
	s->until_n = n < 0 && at <= (uint64_t)-n ? 1 : at + (uint64_t)n;
	s->back |= n < 0;
	s->play.seeking = true;
	s->play.paused |= n == 1 || n == -1;
}

static bool play_key(struct top_screen *s, wint_t key)
{
	struct top_play *play = &s->play;

	if (!(key < 128 && key && strchr("P.,[]{}", (int)key)))
		return false;
	if (!top_screen_plays(s))
		snprintf(s->note, sizeof(s->note),
			 "what is measured now cannot be paused; --replay and --since can, f freezes");
	else if (key == 'P')
		play->paused = !play->paused;
	else if (key == '.' || key == ',')
		seek(s, key == '.' ? 1 : -1);
	else if (key == '{' || key == '}')
		seek(s, key == '}' ? SEEK_STEPS : -SEEK_STEPS);
	else if (key == ']' && play->speed < TOP_SPEED_MAX)
		play->speed++;
	else if (key == '[' && play->speed > TOP_SPEED_MIN)
		play->speed--;
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
	case 'o':
		v->own_scale = !v->own_scale;
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
		return play_key(s, key) || sort_key(v, key) || move_key(s, key);
	}
}

static bool is_enter(wint_t key)
{
	return key == '\n' || key == '\r' || key == KEY_ENTER;
}

/* Opens the pane of the row that the cursor is on. */
static void open_pane(struct top_screen *s)
{
	if (s->cursor >= s->view->n_order)
		return;
	move_to(s, s->cursor);
	s->mode = TOP_PANE;
	snprintf(s->pane, sizeof(s->pane), "%s", s->pointed->path);
}

/* Reads the processes again, against the row's figures now. */
static void take_processes(struct top_screen *s)
{
	struct top_view *v = s->view;
	const struct top_row *r = top_row_find(v, s->pane);
	struct top_procs_row row = { .has_power = r && v->machine.split };
	struct err err = { 0 };

	if (!s->procs)
		return;
	if (r && v->machine.interval_ns) {
		row.watts = top_watts(v, r->shown[TOP_OWN].watts);
		row.cpu = (double)r->shown[TOP_OWN].time_ns / (double)v->machine.interval_ns;
		row.quality = top_energy_quality(v, &r->shown[TOP_OWN]);
	}
	*s->procs_why = 0;
	if (top_procs_take(s->procs, &row, &err) != 0)
		snprintf(s->procs_why, sizeof(s->procs_why), "%.500s", err.text);
}

static void show_processes(struct top_screen *s, const char *cgroup)
{
	struct err err = { 0 };

	if (cgroup != s->pane)
		snprintf(s->pane, sizeof(s->pane), "%s", cgroup);
	s->mode = TOP_PROCESSES;
	s->procs_first = 0;
	*s->procs_why = 0;
	top_procs_close(s->procs);
	s->procs = NULL;
	if (top_screen_plays(s))
		snprintf(s->procs_why, sizeof(s->procs_why),
			 "what is over has no processes; of a running agent, joulectl top shows them");
	else if (*s->pane != '/')
		snprintf(s->procs_why, sizeof(s->procs_why), "%.100s: no cgroup, so it has no list of processes",
			 s->pane);
	else if (top_procs_open(s->source->socket, s->pane, &s->procs, &err) != 0)
		snprintf(s->procs_why, sizeof(s->procs_why), "%.500s", err.text);
	take_processes(s);
}

static void processes_key(struct top_screen *s, wint_t key)
{
	unsigned n = s->procs ? top_procs_count(s->procs) : 0;

	if (key == 'q' || key == KEY_F(10))
		s->quit = true;
	else if (key == ESCAPE || key == 'p' || key == KEY_BACKSPACE || key == KEY_LEFT)
		s->mode = TOP_LIST;
	else if (is_enter(key))
		s->mode = TOP_PANE;
	else if ((key == KEY_DOWN || key == 'j') && s->procs_first + 1 < n)
		s->procs_first++;
	else if ((key == KEY_UP || key == 'k') && s->procs_first)
		s->procs_first--;
	else if (key == KEY_HOME || key == 'g')
		s->procs_first = 0;
}

static void pane_key(struct top_screen *s, wint_t key)
{
	if (key == 'q' || key == KEY_F(10)) {
		s->quit = true;
	} else if (key == ESCAPE || is_enter(key) || key == KEY_BACKSPACE || key == KEY_LEFT) {
		s->mode = TOP_LIST;
	} else if (key == '?' || key == 'h' || key == KEY_F(1)) {
		s->mode = TOP_HELP;
	} else if (key == 'p') {
		show_processes(s, s->pane);
	} else if (key == 'f' || key == 't' || key == 'd' || key == 'z') {
		view_key(s, key);
	} else if (play_key(s, key)) {
		;
	} else if (move_key(s, key)) {
		open_pane(s); /* of the row that the cursor is on now */
	}
}

static void export(struct top_screen *s, bool json)
{
	char file[80];
	int rc = top_export(s->view, json, file, sizeof(file));

	if (rc)
		snprintf(s->note, sizeof(s->note), "%s: %s; start top where you may write", file, strerrordesc_np(-rc));
	else
		snprintf(s->note, sizeof(s->note), "%u line%s written to %s", s->view->n_order,
			 s->view->n_order == 1 ? "" : "s", file);
}

static void mouse_key(struct top_screen *s);

/* The CPUs are those of this machine now, so only a running agent's screen has them. */
static void cpus_key(struct top_screen *s)
{
	int rc;

	if (top_screen_plays(s)) {
		snprintf(s->note, sizeof(s->note), "frequency, temperature and C-states are not recorded");
	} else if (s->machine) {
		fsroot_close(s->machine);
		s->machine = NULL;
		s->cpus = (struct top_cpus){ 0 };
	} else if ((rc = fsroot_open("/", &s->machine)) == 0) {
		top_cpus_take(&s->cpus, s->machine, clock_mono_ns());
	} else {
		s->machine = NULL;
		snprintf(s->note, sizeof(s->note), "/sys: %s; start top where it can be read", strerrordesc_np(-rc));
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
	else if (is_enter(key))
		open_pane(s);
	else if (key == 'e' || key == 'E')
		export(s, key == 'E');
	else if (key == 'm')
		mouse_key(s);
	else if (key == 'c')
		cpus_key(s);
	else if (key == 'p' && s->cursor < s->view->n_order)
		show_processes(s, s->view->order[s->cursor]->path);
	else
		view_key(s, key);
}

static void drop_last(char *text)
{
	size_t n = strlen(text);

	while (n && (text[n - 1] & 0xc0) == 0x80) /* all bytes of one character in UTF-8 */
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
	if (key == ESCAPE || is_enter(key)) {
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

/* A closed terminal announces input that never comes. */
static void listen(struct top_screen *s, bool heard)
{
	struct pollfd p = { .fd = s->source->key_fd, .events = POLLIN };

	if (heard || poll(&p, 1, 0) <= 0)
		s->deaf = 0;
	else if (++s->deaf > DEAF_MAX || p.revents & (POLLHUP | POLLERR | POLLNVAL))
		s->quit = true;
}

static void use_mouse(struct top_screen *s, bool on)
{
	const mmask_t wanted = BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED;

	mouseinterval(0); /* a press counts at once */
	s->mouse = mousemask(on ? wanted : 0, NULL) != 0;
}

static void mouse_key(struct top_screen *s)
{
	if (s->mouse) {
		use_mouse(s, false);
		snprintf(s->note, sizeof(s->note), "the mouse is the terminal's; m takes it back");
		return;
	}
	use_mouse(s, true);
	snprintf(s->note, sizeof(s->note),
		 s->mouse ? "the mouse chooses rows and headings; m gives it to the terminal" :
			    "this terminal tells of no mouse");
}

static void click(struct top_screen *s, unsigned x, unsigned y)
{
	struct top_view *v = s->view;
	unsigned at = s->first + y - s->head;

	for (unsigned i = 0; y + 1 == s->head && i < v->n_headings; i++)
		if (x >= v->headings[i].from && x < v->headings[i].until) {
			sort_by(v, v->headings[i].sort);
			return;
		}
	if (y < s->head || y >= s->head + s->rows || at >= v->n_order)
		return;
	if (s->pointing && s->cursor == at)
		open_pane(s);
	else
		move_to(s, at);
}

/* In the pane and the list of processes a click goes back. */
static void mouse(struct top_screen *s)
{
	MEVENT e;
	wint_t key = 0;

	if (getmouse(&e) != OK)
		return;
	if (e.bstate & BUTTON4_PRESSED)
		key = KEY_UP;
	else if (e.bstate & BUTTON5_PRESSED)
		key = KEY_DOWN;
	else if (!(e.bstate & BUTTON1_PRESSED))
		return;
	if (s->mode == TOP_PROCESSES)
		processes_key(s, key ? key : ESCAPE);
	else if (s->mode == TOP_PANE)
		pane_key(s, key ? key : ESCAPE);
	else if (s->mode == TOP_HELP)
		s->mode = TOP_LIST;
	else if (key)
		move_key(s, key);
	else if (e.x >= 0 && e.y >= 0)
		click(s, (unsigned)e.x, (unsigned)e.y);
}

/* Handles every key that was typed. true = there was one. */
static bool top_keys(struct top_screen *s)
{
	bool changed = false;
	wint_t key;
	int kind;

	while ((kind = get_wch(&key)) != ERR) {
		changed = true;
		*s->note = 0;
		if (kind == KEY_CODE_YES && key == KEY_RESIZE)
			clearok(stdscr, TRUE);
		else if (kind == OK && key == 12) /* Ctrl-L */
			clearok(stdscr, TRUE);
		else if (kind == KEY_CODE_YES && key == KEY_MOUSE)
			mouse(s);
		else if (s->mode == TOP_HELP)
			s->mode = TOP_LIST;
		else if (s->mode == TOP_FILTERING)
			filter_key(s, key, kind == KEY_CODE_YES);
		else if (s->mode == TOP_PANE)
			pane_key(s, key);
		else if (s->mode == TOP_PROCESSES)
			processes_key(s, key);
		else
			list_key(s, key);
	}
	listen(s, changed);
	return changed;
}
