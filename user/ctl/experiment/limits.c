/* SPDX-License-Identifier: Apache-2.0 */
#include "record_limits.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "record_note.h"

struct record_limits {
	struct guard_state state;
	struct record_note note;
	pid_t pid;
	int fd; /* SOCK_SEQPACKET; its end is the guard's sign */
};

static int start_guard(struct record_limits *l, enum guard_how how, struct err *err)
{
	int fds[2], code;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return err_set(err, -errno, "guard of limits: %s; raise the limit of open files", strerror(errno));
	l->pid = fork();
	if (l->pid == 0)
		record_guard(fds[1], &l->state, &l->note, how);
	code = l->pid < 0 ? err_set(err, -errno, "guard of limits: %s; raise the limit of processes", strerror(errno)) :
			    0;
	close(fds[1]);
	l->fd = fds[0];
	return code;
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

/* Its exit status; 1 when it was killed. */
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

int record_limits_open(const struct record_limits_wish *w, struct record_limits **ret, struct err *err)
{
	struct record_limits *l = NULL;
	const char *used;
	int code;

	if (record_limits_left(w->root))
		return err_set(err, -EBUSY,
			       "limits: a recording that was killed has left its own set; "
			       "joulectl record --root %.200s --recover puts them back",
			       w->root);
	if (w->n > RECORD_LIMITED_MAX || !(l = new_limits(w->library)))
		return err_set(err, -ENOMEM, "guard of limits: no memory, or more than %d GPUs; name fewer",
			       RECORD_LIMITED_MAX);
	l->state.n = w->n;
	for (unsigned i = 0; i < w->n; i++)
		snprintf(l->state.gpu[i].uuid, sizeof(l->state.gpu[i].uuid), "%s", w->uuids[i]);
	used = record_note_in_use(w->root, &l->state);
	code = used ? err_set(err, -EBUSY,
			      "limits: another recording below %.200s sets those of GPU %.80s now; wait for its end",
			      w->root, used) :
		      record_note_make(w->root, &l->note, err);
	if (!code)
		code = start_guard(l, GUARD_BEGINS, err);
	if (!code)
		code = hear(l, err);
	if (code) {
		/* nothing was set yet */
		end_guard(l);
		if (l->note.fd >= 0)
			record_note_remove(&l->note);
		free_limits(l);
		return code;
	}
	*ret = l;
	return 0;
}

/* The guard may be killed between the change and its answer: what is asked for counts as changed from here on. */
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

bool record_limits_left(const char *root)
{
	char after[NAME_MAX + 1] = "";
	struct record_note note;
	int code = record_note_next(root, after, &note, NULL);

	record_note_close(&note);
	return code == 0;
}

static void tell(const struct record_limits_recovery *how, bool failed, const struct guard_gpu *g)
{
	const struct guard_set *s = &g->set[1];
	uint32_t from_mw = g->now.power_mw ? g->now.power_mw : s->power_mw; /* it may not have told */
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

/* 0, 1: something could not be put back, or negative errno: nothing was tried. */
static int recover_one(struct record_limits *l, const struct record_limits_recovery *how, struct err *err)
{
	const char *library = l->state.library;
	struct guard_state before;
	int code = record_note_read(&l->note, &l->state, err);

	l->state.library = library;
	if (!code && !l->state.n) {
		record_note_remove(&l->note);
		return 0;
	}
	if (!code)
		code = start_guard(l, GUARD_RECOVERS, err);
	if (!code)
		code = hear(l, err);
	before = l->state;
	if (code)
		return code;
	code = end_guard(l);
	for (unsigned i = 0; i < before.n; i++)
		tell(how, code == GUARD_FAILED, &before.gpu[i]);
	return code != GUARD_ALL_BACK;
}

unsigned record_limits_recover(const char *root, const char *library, const struct record_limits_recovery *how,
			       unsigned *ret_failed)
{
	char after[NAME_MAX + 1] = "", text[sizeof(((struct err *)0)->text) + PATH_MAX + 4];
	struct record_limits *l;
	unsigned n = 0;

	for (*ret_failed = 0; (l = new_limits(library)); n++) {
		struct err err = { 0 };
		int code = record_note_next(root, after, &l->note, &err);

		if (code == -ENOENT) {
			free_limits(l);
			break;
		}
		if (!code)
			code = recover_one(l, how, &err);
		*ret_failed += code != 0;
		if (code < 0) {
			snprintf(text, sizeof(text), "%s: %s", l->note.path, err.text);
			how->said(how->arg, true, text);
		}
		free_limits(l);
	}
	return n;
}
