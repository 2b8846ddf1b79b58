/* SPDX-License-Identifier: Apache-2.0 */
#include "record_guard.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "record_note.h"

#define TRIES 5 /* of putting back */
#define TRY_US 200000

enum { NVML_OK = 0, NVML_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_PERMISSION = 4, NVML_LOST = 15 };
enum { NVML_SM = 1, NVML_MEM = 2 }; /* nvmlClockType_t */

/* Own declarations of what NVML's public header says. Any of them may be missing. */
struct nvml {
	int (*init)(void);
	int (*by_uuid)(const char *uuid, void **ret);
	int (*get_limit)(void *dev, unsigned *ret_mw);
	int (*set_limit)(void *dev, unsigned mw);
	int (*get_clock)(void *dev, int type, unsigned *ret_mhz);
	int (*set_clocks)(void *dev, unsigned mem_mhz, unsigned gpu_mhz);
	void *dev[RECORD_LIMITED_MAX];
};

static const char *cause_of(int code)
{
	switch (code) {
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
	const char *name = s->library ? s->library : "libnvidia-ml.so.1";
	void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return err_set(err, -ENOENT, "%.200s: %s; limits need NVIDIA's driver", name, dlerror());
	*(void **)&v->init = dlsym(lib, "nvmlInit_v2");
	*(void **)&v->by_uuid = dlsym(lib, "nvmlDeviceGetHandleByUUID");
	*(void **)&v->get_limit = dlsym(lib, "nvmlDeviceGetPowerManagementLimit");
	*(void **)&v->set_limit = dlsym(lib, "nvmlDeviceSetPowerManagementLimit");
	*(void **)&v->get_clock = dlsym(lib, "nvmlDeviceGetApplicationsClock");
	*(void **)&v->set_clocks = dlsym(lib, "nvmlDeviceSetApplicationsClocks");
	if (!v->init || !v->by_uuid)
		return err_set(err, -ENOSYS, "%.200s: it is no NVML; limits need NVIDIA's driver", name);
	return v->init() == NVML_OK ? 0 :
				      err_set(err, -ENODEV, "%.200s: it cannot be used; is the driver loaded?", name);
}

static struct guard_set look(const struct nvml *v, void *dev)
{
	struct guard_set now = { 0 };

	if (!v->get_limit || v->get_limit(dev, &now.power_mw) != NVML_OK)
		now.power_mw = 0;
	if (!v->get_clock || v->get_clock(dev, NVML_MEM, &now.mem_mhz) != NVML_OK ||
	    v->get_clock(dev, NVML_SM, &now.gpu_mhz) != NVML_OK)
		now.mem_mhz = now.gpu_mhz = 0;
	return now;
}

/* Somebody may have set it again since, or the driver was loaded anew. What cannot be read counts as still set. */
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

/* One that is away does not keep the others limited. */
static int find_gpus(struct nvml *v, struct guard_state *s, enum guard_how how, struct err *err)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct guard_gpu *g = &s->gpu[i];

		g->away = v->by_uuid(g->uuid, &v->dev[i]) != NVML_OK;
		if (g->away && how == GUARD_BEGINS)
			return err_set(err, -ENODEV, "GPU %.80s: not found by the driver; look at nvidia-smi -L",
				       g->uuid);
		g->now = (struct guard_set){ 0 };
		if (!g->away)
			g->now = look(v, v->dev[i]);
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

/* What was there before has to be known: otherwise it could not be put back. Noted as changed before it is: the
 * driver may have done it and failed to say so. */
static int apply_one(struct nvml *v, void *dev, struct guard_gpu *g, const struct record_setting *s, struct err *err)
{
	int code = NVML_OK;

	if (s->power_mw) {
		if (!v->set_limit || !g->power_mw)
			return err_set(err, -ENOTSUP,
				       "GPU %.80s: --power-limit: this driver or GPU cannot do that; leave it out",
				       g->uuid);
		g->power_changed = true;
		code = v->set_limit(dev, s->power_mw);
	}
	if (code == NVML_OK && s->mem_mhz) {
		if (!v->set_clocks || !g->mem_mhz)
			return err_set(err, -ENOTSUP,
				       "GPU %.80s: --app-clocks: this driver or GPU cannot do that; leave it out",
				       g->uuid);
		g->clocks_changed = true;
		code = v->set_clocks(dev, s->mem_mhz, s->gpu_mhz);
	}
	return code == NVML_OK ? 0 : err_set(err, -EIO, "GPU %.80s: %s: %s", g->uuid, s->name, cause_of(code));
}

/* On the disk before it is done: whatever comes, somebody can put it back. */
static int apply(struct nvml *v, struct guard_state *st, const struct record_setting *s, const struct record_note *note,
		 struct err *err)
{
	int code;

	for (unsigned i = 0; i < st->n; i++) {
		st->gpu[i].set[0] = st->gpu[i].set[1];
		st->gpu[i].set[1] = (struct guard_set){ s->power_mw, s->mem_mhz, s->gpu_mhz };
	}
	code = record_note_write(note, st, err);
	for (unsigned i = 0; i < st->n && !code; i++)
		code = apply_one(v, v->dev[i], &st->gpu[i], s, err);
	return code;
}

static bool put_back_one(struct nvml *v, void *dev, struct guard_gpu *g)
{
	if (g->power_changed && !g->away && v->set_limit && v->set_limit(dev, g->power_mw) == NVML_OK)
		g->power_changed = false;
	if (g->clocks_changed && !g->away && v->set_clocks && v->set_clocks(dev, g->mem_mhz, g->gpu_mhz) == NVML_OK)
		g->clocks_changed = false;
	return !g->power_changed && !g->clocks_changed;
}

static int put_back(struct nvml *v, struct guard_state *s)
{
	int left = GUARD_FAILED;

	for (unsigned t = 0; t < TRIES && left == GUARD_FAILED; t++) {
		if (t)
			usleep(TRY_US);
		left = GUARD_ALL_BACK;
		for (unsigned i = 0; i < s->n; i++)
			if (!put_back_one(v, v->dev[i], &s->gpu[i]) && left != GUARD_FAILED)
				left = s->gpu[i].away ? GUARD_AWAY : GUARD_FAILED;
	}
	return left;
}

/* In a session of its own and deaf to signals: Ctrl-C is for the others. No other descriptor stays open, for
 * somebody may wait for its end. */
static void settle_down(int *fd, int *note_fd)
{
	int from[2] = { *fd, *note_fd }, low, high;
	sigset_t all;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* apart from 0, 1 and 2, which libraries write to */
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

static _Noreturn void leave(struct nvml *v, struct guard_state *state, const struct record_note *note)
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
	struct nvml v = { 0 };
	int code;

	settle_down(&fd, &note->fd);
	code = open_library(&v, state, &a.err);
	if (!code)
		code = find_gpus(&v, state, how, &a.err);
	/* which GPUs: others shall not set theirs from now on */
	if (!code && how == GUARD_BEGINS)
		code = record_note_write(note, state, &a.err);
	a.state = *state;
	if (code && how == GUARD_BEGINS)
		record_note_remove(note);
	if (!answer(fd, &a) || code) {
		if (code)
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
