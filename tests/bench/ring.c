// SPDX-License-Identifier: Apache-2.0
/* N processes pass one byte round a ring of pipes. Started once and then commanded, so that forks
 * are outside of what is measured; the first process takes the time. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include "bench.h"

#define STILL_MS 120000 /* a bound against hanging: chunks last milliseconds */

struct ring {
	unsigned n;
	uint64_t hops; /* of the commanded chunk */
	int command, done;
	pid_t *pids;
};

struct node {
	int in, out, command, done;
};

static void pin(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die("cannot pin to a CPU", errno);
}

static void pass_on(int in, int out)
{
	char c;

	while (read(in, &c, 1) == 1 && write(out, &c, 1) == 1)
		;
	_exit(0);
}

static void lead(const struct node *node)
{
	uint64_t laps, t0, elapsed;
	char c = 'x';

	while (read(node->command, &laps, sizeof(laps)) == sizeof(laps)) {
		t0 = bench_now_ns();
		for (uint64_t i = 0; i < laps; i++)
			if (write(node->out, &c, 1) != 1 || read(node->in, &c, 1) != 1)
				_exit(1);
		elapsed = bench_now_ns() - t0;
		if (write(node->done, &elapsed, sizeof(elapsed)) != sizeof(elapsed))
			_exit(1);
	}
	_exit(0);
}

static void child(const struct ring_options *o, unsigned i, const struct node *node)
{
	int err;

	if (i) { /* so that the end of the first process is the end of its pipes */
		close(node->command);
		close(node->done);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	err = groups_join(o->first_group + (o->same_group ? 0 : i));
	if (err)
		bench_die("cannot join a cgroup", -err);
	pin(o->cpu);
	if (i == 0)
		lead(node);
	pass_on(node->in, node->out);
}

static void make_pipe(int fd[2])
{
	if (pipe2(fd, O_CLOEXEC))
		bench_die("pipe", errno);
}

/* A node's descriptors are closed here as soon as it has them: N = 1000 needs no more than N = 2. */
struct ring *ring_start(const struct ring_options *o)
{
	struct ring *r = calloc(1, sizeof(*r));
	int command[2], done[2], first[2], in;

	if (!r || !(r->pids = calloc(o->n, sizeof(*r->pids))))
		bench_die("ring", ENOMEM);
	r->n = o->n;
	groups_make(o->first_group + (o->same_group ? 1 : o->n));
	make_pipe(command);
	make_pipe(done);
	make_pipe(first);
	in = first[0];
	for (unsigned i = 0; i < o->n; i++) {
		int next[2] = { -1, first[1] };
		struct node node;

		if (i + 1 < o->n)
			make_pipe(next);
		node = (struct node){ in, next[1], command[0], done[1] };
		r->pids[i] = fork();
		if (r->pids[i] < 0)
			bench_die("fork", errno);
		if (r->pids[i] == 0) {
			close(command[1]);
			if (i + 1 < o->n) {
				close(first[1]);
				close(next[0]);
			}
			child(o, i, &node);
		}
		close(in);
		close(next[1]);
		in = next[0];
	}
	close(command[0]);
	close(done[1]);
	r->command = command[1];
	r->done = done[0];
	ring_run(r, o->n); /* one lap: everybody is there and in place */
	return r;
}

void ring_command(struct ring *r, uint64_t hops)
{
	uint64_t laps = (hops + r->n - 1) / r->n;

	if (write(r->command, &laps, sizeof(laps)) != sizeof(laps))
		bench_die("ring command", EPIPE);
	r->hops = laps * r->n;
}

double ring_wait(struct ring *r)
{
	struct pollfd done = { r->done, POLLIN, 0 };
	uint64_t elapsed;

	if (poll(&done, 1, STILL_MS) == 0)
		bench_die("the ring stands still: a process of it sleeps beside a byte that waits", ETIMEDOUT);
	if (read(r->done, &elapsed, sizeof(elapsed)) != sizeof(elapsed))
		bench_die("the ring broke", EPIPE);
	return (double)elapsed / (double)r->hops;
}

struct visit {
	unsigned n, cpu;
};

/* A sleep after each move is a switch out of the new cgroup: it has been seen running. */
static void visit_all(const struct visit *v)
{
	struct timespec pause = { 0, 1 };

	pin(v->cpu);
	for (unsigned i = 0; i < v->n; i++) {
		int err = groups_join(i);

		if (err)
			bench_die("cannot join a cgroup", -err);
		nanosleep(&pause, NULL);
	}
	groups_leave();
}

static void visit_on_command(int command, int done)
{
	struct visit v;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1); /* 50 us otherwise, each */
	while (read(command, &v, sizeof(v)) == sizeof(v)) {
		visit_all(&v);
		if (write(done, "", 1) != 1)
			break;
	}
	_exit(0);
}

static struct {
	int command, done;
	bool started;
} visitor;

static void start_visitor(void)
{
	int command[2], done[2];
	pid_t pid;

	make_pipe(command);
	make_pipe(done);
	pid = fork();
	if (pid < 0)
		bench_die("fork", errno);
	if (pid == 0) { /* without what this program has open: a link would stay attached as long as it lives */
		if (dup2(command[0], STDIN_FILENO) < 0 || dup2(done[1], STDOUT_FILENO) < 0 ||
		    close_range(STDERR_FILENO + 1, ~0u, 0))
			bench_die("the process that visits cgroups", errno);
		visit_on_command(STDIN_FILENO, STDOUT_FILENO);
	}
	close(command[0]);
	close(done[1]);
	visitor.command = command[1];
	visitor.done = done[0];
	visitor.started = true;
}

/* By a process that is forked once. After each fork this program's pages would be copied as it writes to them, and the next
 * measurement would pay for it. */
void touch_groups(unsigned n, unsigned cpu)
{
	const struct visit v = { n, cpu };
	char c;

	if (!visitor.started)
		start_visitor();
	if (write(visitor.command, &v, sizeof(v)) != sizeof(v) || read(visitor.done, &c, 1) != 1)
		bench_die("the process that visits cgroups", EPIPE);
}

void ring_stop(struct ring *r)
{
	if (!r)
		return;
	close(r->command);
	for (unsigned i = 0; i < r->n; i++) {
		kill(r->pids[i], SIGKILL);
		waitpid(r->pids[i], NULL, 0);
	}
	close(r->done);
	free(r->pids);
	free(r);
}
