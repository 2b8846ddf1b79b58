/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/parse.h"
#include "limits.h"
#include "note.h"

struct record_limits {
	struct guard_state state;
	struct record_note note;
	pid_t pid;
	int fd; /* SOCK_SEQPACKET; the guard puts the limits back when it ends */
};

static int start_guard(struct record_limits *l, enum guard_how how, struct err *err)
{
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return err_set(err, -errno, "guard of limits: %s; raise the limit of open files", strerror(errno));
	l->pid = fork();
	if (l->pid == 0)
		record_guard(fds[1], &l->state, &l->note, how);
	rc = l->pid < 0 ? err_set(err, -errno, "guard of limits: %s; raise the limit of processes", strerror(errno)) :
			  0;
	close(fds[1]);
	l->fd = fds[0];
	return rc;
}

static int hear(struct record_limits *l, struct err *err)
{
	const char *library = l->state.library;
	struct guard_answer a;
	ssize_t n;

	do
		n = recv(l->fd, &a, sizeof(a), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(a))
		return err_set(err, -EPIPE, "guard of limits: it has ended; nothing is measured without it");
	l->state = a.state;
	l->state.library = library;
	if (a.err.code && err)
		*err = a.err;
	return a.err.code;
}

/* Ends the guard. Returns its exit status; 1 when it was killed. */
static int end_guard(struct record_limits *l)
{
	int status = 0;

	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	if (l->pid > 0)
		while (waitpid(l->pid, &status, 0) < 0 && errno == EINTR)
			;
	l->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void free_limits(struct record_limits *l)
{
	end_guard(l);
	record_note_close(&l->note);
	free(l);
}

static struct record_limits *new_limits(const char *library)
{
	struct record_limits *l = calloc(1, sizeof(*l));

	if (l) {
		l->fd = l->note.fd = -1;
		l->state.library = library;
	}
	return l;
}

/* Makes the note with the GPUs, while the root is locked: another recording looks only afterwards. */
static int claim(struct record_limits *l, const char *root, struct err *err)
{
	const char *used;
	int fd, rc = record_note_lock_root(root, &fd, err);

	if (rc)
		return rc;
	used = record_note_in_use(root, &l->state);
	rc = record_limits_left(root) ? err_set(err, -EBUSY,
						"limits: those of a recording that was killed are still set; "
						"joulectl record --root %.200s --recover puts them back",
						root) :
	     used                     ? err_set(err, -EBUSY,
						"limits: another recording below %.200s sets those of GPU %.80s now; wait for its end",
						root, used) :
					record_note_make(root, &l->note, err);
	if (!rc)
		rc = record_note_write(&l->note, &l->state, err);
	if (fd >= 0)
		close(fd);
	return rc;
}

int record_limits_open(const struct record_limits_wish *w, struct record_limits **ret, struct err *err)
{
	struct record_limits *l = NULL;
	int rc;

	if (w->n > RECORD_LIMITED_MAX)
		return err_set(err, -E2BIG, "guard of limits: more than %d GPUs; name fewer", RECORD_LIMITED_MAX);
	if (!(l = new_limits(w->library)))
		return err_set(err, -ENOMEM, "guard of limits: out of memory; free some");
	l->state.n = w->n;
	for (unsigned i = 0; i < w->n; i++)
		snprintf(l->state.gpu[i].uuid, sizeof(l->state.gpu[i].uuid), "%s", w->uuids[i]);
	rc = claim(l, w->root, err);
	if (!rc)
		rc = start_guard(l, GUARD_BEGINS, err);
	if (!rc)
		rc = hear(l, err);
	if (rc) {
		/* no limit was set yet */
		end_guard(l);
		if (l->note.fd >= 0)
			record_note_remove(&l->note);
		free_limits(l);
		return rc;
	}
	*ret = l;
	return 0;
}

/* A limit counts as changed before the guard is asked, because the guard may be killed between the change and its
 * answer. */
int record_limits_set(struct record_limits *l, const struct record_setting *s, struct err *err)
{
	for (unsigned i = 0; i < l->state.n; i++) {
		l->state.gpu[i].power_changed |= s->power_mw && l->state.gpu[i].power_mw;
		l->state.gpu[i].clocks_changed |= s->mem_mhz && l->state.gpu[i].mem_mhz;
	}
	if (send(l->fd, s, sizeof(*s), MSG_NOSIGNAL) != (ssize_t)sizeof(*s))
		return err_set(err, -EPIPE, "guard of limits: it has ended; nothing is measured without it");
	return hear(l, err);
}

static bool anything_changed(const struct guard_state *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->gpu[i].power_changed || s->gpu[i].clocks_changed)
			return true;
	return false;
}

int record_limits_close(struct record_limits *l, struct err *err)
{
	struct guard_gpu *g;
	int failed;

	if (!l)
		return 0;
	failed = end_guard(l);
	if (failed && !anything_changed(&l->state))
		record_note_remove(&l->note);
	if (failed && anything_changed(&l->state) && start_guard(l, GUARD_TAKES_OVER, NULL) == 0)
		failed = end_guard(l);
	g = &l->state.gpu[0];
	if (failed && anything_changed(&l->state))
		err_set(err, -EIO,
			"GPU %.80s: its limits could not be put back: they were %u W and %u,%u MHz; use nvidia-smi -pl and -ac, "
			"or joulectl record --recover",
			g->uuid, g->power_mw / 1000, g->mem_mhz, g->gpu_mhz);
	else
		failed = 0;
	free_limits(l);
	return failed ? -EIO : 0;
}

/* Has the recording set a limit? One that was killed before has nothing to put back. */
static bool anything_set(const struct guard_state *s)
{
	for (unsigned i = 0; i < s->n; i++)
		for (unsigned k = 0; k < 2; k++)
			if (s->gpu[i].set[k].power_mw || s->gpu[i].set[k].mem_mhz)
				return true;
	return false;
}

bool record_limits_left(const char *root)
{
	char after[NAME_MAX + 1] = "";
	bool left = false;

	while (!left) {
		struct guard_state state;
		struct record_note note;
		int rc = record_note_next(root, after, &note, NULL);

		if (rc == -ENOENT)
			break;
		if (!rc && record_note_read(&note, &state, NULL) == 0 && !anything_set(&state))
			record_note_remove(&note);
		else
			left = !rc;
		record_note_close(&note);
	}
	return left;
}

static void tell(const struct record_limits_recovery *how, bool failed, const struct guard_gpu *g)
{
	const struct guard_set *s = &g->set[1];
	uint32_t from_mw = g->now.power_mw ? g->now.power_mw : s->power_mw; /* the driver may have refused to tell */
	char text[400];

	if (g->away && (g->power_changed || g->clocks_changed)) {
		snprintf(
			text, sizeof(text),
			"GPU %s: not found by the driver; its limits stay noted (before: %u W; %u,%u MHz): look at nvidia-smi -L, "
			"and recover again",
			g->uuid, g->power_mw / 1000, g->mem_mhz, g->gpu_mhz);
		how->said(how->arg, true, text);
		return;
	}
	if (g->power_changed) {
		snprintf(text, sizeof(text),
			 failed ?
				 "GPU %s: its power limit could not be put back from %u W to %u W; use nvidia-smi -pl" :
				 "GPU %s: power limit put back from %u W to %u W",
			 g->uuid, from_mw / 1000, g->power_mw / 1000);
		how->said(how->arg, failed, text);
	} else if (s->power_mw && g->now.power_mw != g->power_mw) {
		snprintf(
			text, sizeof(text),
			"GPU %s: its power limit is %u W, which the recording has not set: left as it is (before: %u W)",
			g->uuid, g->now.power_mw / 1000, g->power_mw / 1000);
		how->said(how->arg, false, text);
	}
	if (g->clocks_changed) {
		snprintf(
			text, sizeof(text),
			failed ?
				"GPU %s: its clocks could not be put back from %u,%u MHz to %u,%u MHz; use nvidia-smi -ac" :
				"GPU %s: application clocks put back from %u,%u MHz to %u,%u MHz",
			g->uuid, g->now.mem_mhz, g->now.gpu_mhz, g->mem_mhz, g->gpu_mhz);
		how->said(how->arg, failed, text);
	} else if (s->mem_mhz && (g->now.mem_mhz != g->mem_mhz || g->now.gpu_mhz != g->gpu_mhz)) {
		snprintf(
			text, sizeof(text),
			"GPU %s: its clocks are %u,%u MHz, which the recording has not set: left as they are (before: %u,%u MHz)",
			g->uuid, g->now.mem_mhz, g->now.gpu_mhz, g->mem_mhz, g->gpu_mhz);
		how->said(how->arg, false, text);
	}
}

/* Puts back the limits of one note. 0; 1: some could not be put back; or negative errno: none was tried. */
static int recover_one(struct record_limits *l, const struct record_limits_recovery *how, struct err *err)
{
	const char *library = l->state.library;
	struct guard_state before;
	int rc = record_note_read(&l->note, &l->state, err);

	l->state.library = library;
	if (!rc && !anything_set(&l->state)) {
		record_note_remove(&l->note);
		return 0;
	}
	if (!rc)
		rc = start_guard(l, GUARD_RECOVERS, err);
	if (!rc)
		rc = hear(l, err);
	before = l->state;
	if (rc)
		return rc;
	rc = end_guard(l);
	for (unsigned i = 0; i < before.n; i++)
		tell(how, rc == GUARD_FAILED, &before.gpu[i]);
	return rc != GUARD_ALL_BACK;
}

unsigned record_limits_recover(const char *root, const char *library, const struct record_limits_recovery *how,
			       unsigned *ret_failed)
{
	char after[NAME_MAX + 1] = "", text[sizeof(((struct err *)0)->text) + PATH_MAX + 4];
	struct record_limits *l;
	unsigned n = 0;

	for (*ret_failed = 0; (l = new_limits(library)); n++) {
		struct err err = { 0 };
		int rc = record_note_next(root, after, &l->note, &err);

		if (rc == -ENOENT) {
			free_limits(l);
			break;
		}
		if (!rc)
			rc = recover_one(l, how, &err);
		*ret_failed += rc != 0;
		if (rc < 0) {
			snprintf(text, sizeof(text), "%s: %s", l->note.path, err.text);
			how->said(how->arg, true, text);
		}
		free_limits(l);
	}
	return n;
}

/* Limits as people write them: "150W", "877MHz,1065MHz". */

#define WATTS_MAX 10000
#define MHZ_MAX 100000

/* Reads a number with an optional unit behind it. */
static int number_with(const char *text, const char *unit, uint64_t max, uint32_t *ret)
{
	size_t n = strlen(text), u = strlen(unit);
	char digits[16];
	uint64_t v;

	if (n > u && strcmp(text + n - u, unit) == 0)
		n -= u;
	if (n >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, n);
	digits[n] = '\0';
	if (strspn(digits, "0123456789") != n || parse_u64(digits, &v) != 0 || !v || v > max)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

int record_setting_power(const char *text, struct record_setting *s, struct err *err)
{
	uint32_t watts;

	if (number_with(text, "W", WATTS_MAX, &watts) != 0)
		return err_set(err, -EINVAL, "--power-limit %.40s: no number of watts; write one such as 150", text);
	s->power_mw = watts * 1000;
	snprintf(s->name, sizeof(s->name), "%uW", watts);
	return 0;
}

int record_setting_clocks(const char *text, struct record_setting *s, struct err *err)
{
	char mem[24];
	const char *comma = strchr(text, ',');
	size_t n = comma ? (size_t)(comma - text) : sizeof(mem);

	if (n < sizeof(mem)) {
		memcpy(mem, text, n);
		mem[n] = '\0';
	}
	if (n >= sizeof(mem) || number_with(mem, "MHz", MHZ_MAX, &s->mem_mhz) != 0 ||
	    number_with(comma + 1, "MHz", MHZ_MAX, &s->gpu_mhz) != 0) {
		s->mem_mhz = s->gpu_mhz = 0;
		return err_set(err, -EINVAL, "--app-clocks %.40s: no pair of MHz; write MEMORY,GPU such as 877,1065",
			       text);
	}
	snprintf(s->name, sizeof(s->name), "%uMHz,%uMHz", s->mem_mhz, s->gpu_mhz);
	return 0;
}

int record_settings_sweep(const char *text, struct record_setting *list, unsigned *ret_n, struct err *err)
{
	char copy[RECORD_SETTINGS_MAX * sizeof(list->name)], *save = NULL;
	unsigned n = 0;
	int rc = 0;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return err_set(err, -E2BIG, "--sweep: more than %d settings; make it two sweeps", RECORD_SETTINGS_MAX);
	for (char *word = strtok_r(copy, " ;\t\n", &save); word && !rc; word = strtok_r(NULL, " ;\t\n", &save)) {
		if (n == RECORD_SETTINGS_MAX)
			return err_set(err, -E2BIG, "--sweep: more than %d settings; make it two sweeps",
				       RECORD_SETTINGS_MAX);
		list[n] = (struct record_setting){ 0 };
		rc = strchr(word, ',') ? record_setting_clocks(word, &list[n], err) :
					 record_setting_power(word, &list[n], err);
		n += !rc;
	}
	if (rc || !n)
		return err_set(
			err, -EINVAL,
			"--sweep %.60s: write settings such as \"150W 200W 250W\" or \"877MHz,1065MHz 877MHz,1222MHz\"",
			text);
	*ret_n = n;
	return 0;
}
