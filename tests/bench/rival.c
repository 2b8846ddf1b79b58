// SPDX-License-Identifier: Apache-2.0
/* perf stat per cgroup, by kernel cgroup events or by its own BPF program (--bpf-counters, where
 * that perf was built with it). It is ready when it has acknowledged "enable" on its control pipe. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"

#define READY_MS 20000

struct rival {
	struct program p;
	pid_t pid;
};

unsigned rival_pair;
static char reasons[2][256];

const char *rival_reason(bool bpf)
{
	return reasons[bpf];
}

static void rival_detach(struct program *p)
{
	struct rival *r = (struct rival *)p;

	kill(r->pid, SIGINT);
	waitpid(r->pid, NULL, 0);
	free(r);
}

static void no_stats(const struct program *p, uint64_t *ret_run_ns, uint64_t *ret_runs)
{
	(void)p;
	*ret_run_ns = *ret_runs = 0;
}

static const struct program_ops rival_ops = { rival_detach, no_stats };

static void exec_perf(bool bpf, unsigned n_events, const int ctl[2], const int ack[2], int log)
{
	char events[512] = "", groups[1024], control[64];
	const char *perf = getenv("PERF");
	size_t at = 0;

	for (unsigned i = 0; i < n_events; i++)
		at += (size_t)snprintf(events + at, sizeof(events) - at, "%s%s,name=t%u/", i ? "," : "",
				       bench_cycles() ? "cpu/cpu-cycles" : "msr/tsc", i);
	snprintf(groups, sizeof(groups), "%s,%s", groups_name(rival_pair * 2), groups_name(rival_pair * 2 + 1));
	fcntl(ctl[0], F_SETFD, 0);
	fcntl(ack[1], F_SETFD, 0);
	snprintf(control, sizeof(control), "--control=fd:%d,%d", ctl[0], ack[1]);
	dup2(log, 1);
	dup2(log, 2);
	execlp(perf && *perf ? perf : "perf", "perf", "stat", "-a", "-D", "-1", control, "-o", "/dev/null", "-e",
	       events, "--for-each-cgroup", groups, bpf ? "--bpf-counters" : NULL, NULL);
	dprintf(2, "%s: %s\n", perf && *perf ? perf : "perf", strerror(errno));
	_exit(127);
}

static bool wait_for_ack(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	char text[16];

	return poll(&p, 1, READY_MS) == 1 && read(fd, text, sizeof(text)) >= 3 && !strncmp(text, "ack", 3);
}

/* First line of what it said, for the "not run" line. */
static void take_reason(bool bpf, int log)
{
	ssize_t n = pread(log, reasons[bpf], sizeof(reasons[bpf]) - 1, 0);
	char *text = reasons[bpf];

	text[n > 0 ? n : 0] = '\0';
	while (*text == '\n' || *text == ' ')
		memmove(text, text + 1, strlen(text));
	text[strcspn(text, "\n")] = '\0';
	if (!*text)
		snprintf(reasons[bpf], sizeof(reasons[bpf]), "perf did not acknowledge within %d ms", READY_MS);
}

struct program *rival_attach(bool bpf, unsigned n_events)
{
	struct rival *r = calloc(1, sizeof(*r));
	int ctl[2], ack[2], log = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	bool ready;

	if (!r || log < 0 || pipe2(ctl, O_CLOEXEC) || pipe2(ack, O_CLOEXEC))
		bench_die("rival", errno);
	r->p.ops = &rival_ops;
	r->pid = fork();
	if (r->pid < 0)
		bench_die("fork", errno);
	if (r->pid == 0)
		exec_perf(bpf, n_events, ctl, ack, log);
	close(ctl[0]);
	close(ack[1]);
	ready = write(ctl[1], "enable\n", 7) == 7 && wait_for_ack(ack[0]);
	close(ack[0]);
	if (!ready) {
		kill(r->pid, SIGKILL);
		waitpid(r->pid, NULL, 0);
		take_reason(bpf, log);
		free(r);
		r = NULL;
	}
	close(ctl[1]);
	close(log);
	return r ? &r->p : NULL;
}
