/* SPDX-License-Identifier: Apache-2.0 */
#include "record_limits.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../base/parse.h"
#include "record_guard.h"

#define WATTS_MAX 10000
#define MHZ_MAX 100000

struct record_limits {
	struct guard_state state;
	pid_t pid;
	int fd;                     /* SOCK_SEQPACKET; its end is the guard's sign */
};

/* text up to a unit that may be missing. */
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
		return err_set(err, -EINVAL, "--app-clocks %.40s: no pair of MHz; write MEMORY,GPU such as 877,1065", text);
	}
	snprintf(s->name, sizeof(s->name), "%uMHz,%uMHz", s->mem_mhz, s->gpu_mhz);
	return 0;
}

int record_settings_sweep(const char *text, struct record_setting *list, unsigned *ret_n, struct err *err)
{
	char copy[RECORD_SETTINGS_MAX * sizeof(list->name)], *save = NULL;
	unsigned n = 0;
	int code = 0;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return err_set(err, -E2BIG, "--sweep: more than %d settings; make it two sweeps", RECORD_SETTINGS_MAX);
	for (char *word = strtok_r(copy, " ;\t\n", &save); word && !code; word = strtok_r(NULL, " ;\t\n", &save)) {
		if (n == RECORD_SETTINGS_MAX)
			return err_set(err, -E2BIG, "--sweep: more than %d settings; make it two sweeps", RECORD_SETTINGS_MAX);
		list[n] = (struct record_setting){ 0 };
		code = strchr(word, ',') ? record_setting_clocks(word, &list[n], err) : record_setting_power(word, &list[n], err);
		n += !code;
	}
	if (code || !n)
		return err_set(err, -EINVAL, "--sweep %.60s: write settings such as \"150W 200W 250W\" or \"877MHz,1065MHz 877MHz,1222MHz\"", text);
	*ret_n = n;
	return 0;
}

static int start_guard(struct record_limits *l, bool known, struct err *err)
{
	int fds[2], code;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return err_set(err, -errno, "guard of limits: %s; raise the limit of open files", strerror(errno));
	l->pid = fork();
	if (l->pid == 0)
		record_guard(fds[1], &l->state, known);
	code = l->pid < 0 ? err_set(err, -errno, "guard of limits: %s; raise the limit of processes", strerror(errno)) : 0;
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

int record_limits_open(const char *library, const char *const *uuids, unsigned n, struct record_limits **ret, struct err *err)
{
	struct record_limits *l = calloc(1, sizeof(*l));
	int code;

	if (!l || n > RECORD_LIMITED_MAX) {
		free(l);
		return err_set(err, -ENOMEM, "guard of limits: no memory, or more than %d GPUs; name fewer", RECORD_LIMITED_MAX);
	}
	l->fd = -1;
	l->state.library = library;
	l->state.n = n;
	for (unsigned i = 0; i < n; i++)
		snprintf(l->state.gpu[i].uuid, sizeof(l->state.gpu[i].uuid), "%s", uuids[i]);
	code = start_guard(l, false, err);
	if (!code)
		code = hear(l, err);
	if (code) {
		end_guard(l);
		free(l);
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
	if (failed && anything_changed(&l->state) && start_guard(l, true, NULL) == 0)
		failed = end_guard(l);
	g = &l->state.gpu[0];
	if (failed && anything_changed(&l->state))
		err_set(err, -EIO, "GPU %.80s: its limits could not be put back: they were %u W and %u,%u MHz; use nvidia-smi -pl and -ac",
			g->uuid, g->power_mw / 1000, g->mem_mhz, g->gpu_mhz);
	else
		failed = 0;
	free(l);
	return failed ? -EIO : 0;
}
