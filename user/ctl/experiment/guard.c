/* SPDX-License-Identifier: Apache-2.0 */
#include "guard.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "model/nvml.h"
#include "note.h"

#define TRIES 5 /* attempts to put limits back */
#define TRY_US 200000

/* NVML, and its handles of the guarded GPUs. */
struct driver {
	struct nvml nvml;
	nvml_device dev[RECORD_LIMITED_MAX];
};

static const char *cause_of(int rc)
{
	switch (rc) {
	case NVML_ARGUMENT:
		return "the driver does not take this value; nvidia-smi -q -d POWER,SUPPORTED_CLOCKS lists those it takes";
	case NVML_NOT_SUPPORTED:
		return "this GPU cannot do that; leave it out";
	case NVML_PERMISSION:
		return "permission denied; become root";
	case NVML_LOST:
		return "the GPU is lost; reset it";
	default:
		return "the driver refused; look at nvidia-smi and the kernel's log";
	}
}

static int open_library(struct nvml *v, const struct guard_state *s, struct err *err)
{
	const char *name = s->library ? s->library : NVML_LIBRARY;
	int rc = nvml_load(v, name);

	if (rc == -ENOENT)
		return err_set(err, -ENOENT, "%.200s: %s; limits need NVIDIA's driver", name, dlerror());
	if (rc || !v->by_uuid)
		return err_set(err, -ENOSYS, "%.200s: it is no NVML; limits need NVIDIA's driver", name);
	return v->init() == NVML_OK ? 0 :
				      err_set(err, -ENODEV, "%.200s: it cannot be used; is the driver loaded?", name);
}

static struct guard_set look(const struct nvml *v, nvml_device dev)
{
	struct guard_set now = { 0 };

	if (!v->power_managed || v->power_managed(dev, &now.power_mw) != NVML_OK)
		now.power_mw = 0;
	if (!v->app_clock || v->app_clock(dev, NVML_CLOCK_MEM, &now.mem_mhz) != NVML_OK ||
	    v->app_clock(dev, NVML_CLOCK_SM, &now.gpu_mhz) != NVML_OK)
		now.mem_mhz = now.gpu_mhz = 0;
	return now;
}

/* Decides which limits are still those of the recording. Another user may have set others since, or the driver was
 * loaded anew. A limit that cannot be read counts as the recording's. */
static void judge(struct guard_gpu *g)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct guard_set *s = &g->set[i];

		g->power_changed |= s->power_mw && g->power_mw && (!g->now.power_mw || s->power_mw == g->now.power_mw);
		g->clocks_changed |= s->mem_mhz && g->mem_mhz &&
				     (!g->now.mem_mhz ||
				      (s->mem_mhz == g->now.mem_mhz && s->gpu_mhz == g->now.gpu_mhz));
	}
}

/* Finds the GPUs and reads their limits. Except at the beginning, a GPU that is away is noted and no error, so that
 * the others are put back. */
static int find_gpus(struct driver *v, struct guard_state *s, enum guard_how how, struct err *err)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct guard_gpu *g = &s->gpu[i];

		g->away = v->nvml.by_uuid(g->uuid, &v->dev[i]) != NVML_OK;
		if (g->away && how == GUARD_BEGINS)
			return err_set(err, -ENODEV, "GPU %.80s: not found by the driver; look at nvidia-smi -L",
				       g->uuid);
		g->now = (struct guard_set){ 0 };
		if (!g->away)
			g->now = look(&v->nvml, v->dev[i]);
		if (how == GUARD_RECOVERS)
			judge(g);
		if (how != GUARD_BEGINS)
			continue;
		g->power_mw = g->now.power_mw;
		g->mem_mhz = g->now.mem_mhz;
		g->gpu_mhz = g->now.gpu_mhz;
	}
	return 0;
}

/* Sets the limits of one GPU. A limit whose value before is not known is refused, because it could not be put back.
 * The limit is noted as changed first: the driver may change it and still return an error. */
static int apply_one(struct nvml *v, nvml_device dev, struct guard_gpu *g, const struct record_setting *s,
		     struct err *err)
{
	int rc = NVML_OK;

	if (s->power_mw) {
		if (!v->set_power_managed || !g->power_mw)
			return err_set(err, -ENOTSUP,
				       "GPU %.80s: --power-limit: this driver or GPU cannot do that; leave it out",
				       g->uuid);
		g->power_changed = true;
		rc = v->set_power_managed(dev, s->power_mw);
	}
	if (rc == NVML_OK && s->mem_mhz) {
		if (!v->set_app_clocks || !g->mem_mhz)
			return err_set(err, -ENOTSUP,
				       "GPU %.80s: --app-clocks: this driver or GPU cannot do that; leave it out",
				       g->uuid);
		g->clocks_changed = true;
		rc = v->set_app_clocks(dev, s->mem_mhz, s->gpu_mhz);
	}
	return rc == NVML_OK ? 0 : err_set(err, -EIO, "GPU %.80s: %s: %s", g->uuid, s->name, cause_of(rc));
}

/* Sets the limits of all GPUs. The note is on the disk before the first change, so that it can be put back whoever is
 * killed. */
static int apply(struct driver *v, struct guard_state *st, const struct record_setting *s,
		 const struct record_note *note, struct err *err)
{
	int rc;

	for (unsigned i = 0; i < st->n; i++) {
		st->gpu[i].set[0] = st->gpu[i].set[1];
		st->gpu[i].set[1] = (struct guard_set){ s->power_mw, s->mem_mhz, s->gpu_mhz };
	}
	rc = record_note_write(note, st, err);
	for (unsigned i = 0; i < st->n && !rc; i++)
		rc = apply_one(&v->nvml, v->dev[i], &st->gpu[i], s, err);
	return rc;
}

static bool put_back_one(struct nvml *v, nvml_device dev, struct guard_gpu *g)
{
	if (g->power_changed && !g->away && v->set_power_managed && v->set_power_managed(dev, g->power_mw) == NVML_OK)
		g->power_changed = false;
	if (g->clocks_changed && !g->away && v->set_app_clocks &&
	    v->set_app_clocks(dev, g->mem_mhz, g->gpu_mhz) == NVML_OK)
		g->clocks_changed = false;
	return !g->power_changed && !g->clocks_changed;
}

static int put_back(struct driver *v, struct guard_state *s)
{
	int left = GUARD_FAILED;

	for (unsigned t = 0; t < TRIES && left == GUARD_FAILED; t++) {
		if (t)
			usleep(TRY_US);
		left = GUARD_ALL_BACK;
		for (unsigned i = 0; i < s->n; i++)
			if (!put_back_one(&v->nvml, v->dev[i], &s->gpu[i]) && left != GUARD_FAILED)
				left = s->gpu[i].away ? GUARD_AWAY : GUARD_FAILED;
	}
	return left;
}

/* Gives the guard a session of its own and blocks all signals, so that Ctrl-C does not end it. Closes all other
 * descriptors: another process may wait for the end of a pipe. */
static void settle_down(int *fd, int *note_fd)
{
	int from[2] = { *fd, *note_fd }, low, high;
	sigset_t all;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* 0, 1 and 2 stay unused, because libraries may write to them */
	low = *fd = fcntl(from[0], F_DUPFD_CLOEXEC, 3);
	high = *note_fd = fcntl(from[1], F_DUPFD_CLOEXEC, low + 1);
	if (low < 0 || high < 0)
		_exit(1);
	close_range(0, (unsigned)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0u, 0);
}

static bool answer(int fd, const struct guard_answer *a)
{
	return write(fd, a, sizeof(*a)) == (ssize_t)sizeof(*a);
}

static _Noreturn void leave(struct driver *v, struct guard_state *state, const struct record_note *note)
{
	int left = put_back(v, state);

	if (left == GUARD_ALL_BACK)
		record_note_remove(note);
	_exit(left);
}

void record_guard(int fd, struct guard_state *state, struct record_note *note, enum guard_how how)
{
	struct guard_answer a = { 0 };
	struct record_setting s;
	struct driver v = { 0 };
	int rc;

	settle_down(&fd, &note->fd);
	rc = open_library(&v.nvml, state, &a.err);
	if (!rc)
		rc = find_gpus(&v, state, how, &a.err);
	/* The note names the GPUs: from now on other recordings refuse to set their limits. */
	if (!rc && how == GUARD_BEGINS)
		rc = record_note_write(note, state, &a.err);
	a.state = *state;
	if (rc && how == GUARD_BEGINS)
		record_note_remove(note);
	if (!answer(fd, &a) || rc) {
		if (rc)
			_exit(1);
		leave(&v, state, note);
	}
	while (read(fd, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		a.err = (struct err){ 0 };
		apply(&v, state, &s, note, &a.err);
		a.state = *state;
		if (!answer(fd, &a))
			break;
	}
	leave(&v, state, note);
}
