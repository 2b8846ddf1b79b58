/* SPDX-License-Identifier: Apache-2.0 */
#include "loads.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY_BYTES ((size_t)64 << 20) /* of each process of `memory`: more than caches hold */
#define LINE 64
#define BURST 20000 /* turns between two looks at the word */

const char *const audit_load_names[AUDIT_LOADS] = { "compute", "memory" };

/* What the processes of both loads see. */
struct shared {
	_Atomic uint32_t on[AUDIT_LOADS];
	_Atomic uint32_t ready; /* processes that have their memory */
};

struct audit_loads {
	struct run_cgroup cgroup;
	struct run_cgroup own[AUDIT_LOADS];
	char path[AUDIT_LOADS][RUN_PATH_MAX];
	struct shared *shared;
	unsigned n;
	pid_t *pid; /* by turns of the loads */
};

/* The work. Its results are used, so that no compiler drops it. */

static uint64_t compute(uint64_t x)
{
	double y = 1.5;

	for (unsigned i = 0; i < BURST; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		y = y * 0.999999 + (double)(x & 0xff) * 1e-9;
	}
	return x + (uint64_t)y;
}

static uint64_t read_memory(uint8_t *memory, uint64_t x)
{
	for (unsigned i = 0; i < BURST / 8; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		x += ++memory[(x >> 20) % (MEMORY_BYTES / LINE) * LINE];
	}
	return x;
}

static _Noreturn void work(struct shared *shared, unsigned load)
{
	_Atomic uint32_t *on = &shared->on[load];
	volatile uint64_t kept = 88172645463325252u;
	uint8_t *memory = load == 0 ?
				  NULL :
				  mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	if (memory)
		memset(memory, 1, MEMORY_BYTES);
	atomic_fetch_add(&shared->ready, 1);
	for (;;) {
		if (!atomic_load(on))
			syscall(SYS_futex, on, FUTEX_WAIT, 0, NULL, NULL, 0);
		else
			kept = memory ? read_memory(memory, kept) : compute(kept);
	}
}

/* Each process has a CPU of its own, as long as there are enough: else the loads would share CPU time, and draw less
 * beside each other for that. */
static void pin(unsigned n)
{
	cpu_set_t all, one;
	unsigned at = 0, count;

	if (sched_getaffinity(0, sizeof(all), &all) != 0)
		return;
	count = (unsigned)CPU_COUNT(&all);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && at++ == n % count) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
		}
}

static _Noreturn void become_load(struct audit_loads *l, unsigned load, unsigned number, pid_t parent)
{
	const struct sched_param idle = { 0 };

	signal(SIGINT, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, audit_load_names[load]);
	if (getppid() != parent || run_cgroup_enter(&l->own[load], getpid()) != 0)
		_exit(1);
	pin(number);
	setpriority(PRIO_PROCESS, 0, 19);
	sched_setscheduler(0, SCHED_IDLE, &idle);
	close_range(0, ~0u, 0);
	work(l->shared, load);
}

static int make_cgroups(struct audit_loads *l, struct run_place *place, struct err *err)
{
	int rc = run_cgroup_make(place, &l->cgroup, err);

	for (unsigned i = 0; i < AUDIT_LOADS && !rc; i++) {
		struct run_cgroup *c = &l->own[i];

		c->fd = -1;
		if (mkdirat(l->cgroup.fd, audit_load_names[i], 0755) == 0)
			c->fd = openat(l->cgroup.fd, audit_load_names[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (c->fd < 0)
			rc = err_set(err, -errno,
				     "%.250s: no cgroup can be made in it: %s; look at its limits (cgroup.max.*)",
				     l->cgroup.dir, strerrordesc_np(errno));
		snprintf(l->path[i], sizeof(l->path[i]), "%s/%s", l->cgroup.path, audit_load_names[i]);
	}
	return rc;
}

static int start_processes(struct audit_loads *l, struct err *err)
{
	const pid_t parent = getpid();

	for (unsigned i = 0; i < AUDIT_LOADS * l->n; i++) {
		l->pid[i] = fork();
		if (l->pid[i] == 0)
			become_load(l, i % AUDIT_LOADS, i, parent);
		if (l->pid[i] < 0)
			return err_set(err, -errno, "load: %s; raise the limit of processes", strerrordesc_np(errno));
	}
	return 0;
}

int audit_loads_start(struct run_place *place, unsigned cpus, struct audit_loads **ret, struct err *err)
{
	struct audit_loads *l = calloc(1, sizeof(*l));
	int rc;

	if (!l || !(l->pid = calloc(AUDIT_LOADS * cpus, sizeof(*l->pid)))) {
		free(l);
		return err_set(err, -ENOMEM, "load: out of memory; free some");
	}
	l->n = cpus;
	l->own[0].fd = l->own[1].fd = -1;
	l->shared = mmap(NULL, sizeof(*l->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->shared == MAP_FAILED) {
		l->shared = NULL;
		rc = err_set(err, -ENOMEM, "load: out of memory; free some");
	} else {
		rc = make_cgroups(l, place, err);
	}
	if (!rc)
		rc = start_processes(l, err);
	if (rc)
		audit_loads_stop(l);
	else
		*ret = l;
	return rc;
}

bool audit_loads_ready(const struct audit_loads *l)
{
	return atomic_load(&l->shared->ready) == AUDIT_LOADS * l->n;
}

const char *audit_loads_ended(struct audit_loads *l)
{
	for (unsigned i = 0; i < AUDIT_LOADS * l->n; i++)
		if (l->pid[i] > 0 && waitpid(l->pid[i], NULL, WNOHANG) == l->pid[i]) {
			l->pid[i] = 0;
			return audit_load_names[i % AUDIT_LOADS];
		}
	return NULL;
}

void audit_loads_set(struct audit_loads *l, unsigned state)
{
	for (unsigned i = 0; i < AUDIT_LOADS; i++) {
		atomic_store(&l->shared->on[i], state >> i & 1);
		syscall(SYS_futex, &l->shared->on[i], FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	}
}

const char *audit_loads_path(const struct audit_loads *l, unsigned load)
{
	return l->path[load];
}

const char *audit_loads_top(const struct audit_loads *l)
{
	return l->cgroup.path;
}

void audit_loads_stop(struct audit_loads *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < AUDIT_LOADS * l->n; i++)
		if (l->pid[i] > 0) {
			kill(l->pid[i], SIGKILL);
			while (waitpid(l->pid[i], NULL, 0) < 0 && errno == EINTR)
				;
		}
	for (unsigned i = 0; i < AUDIT_LOADS; i++)
		if (l->own[i].fd >= 0)
			close(l->own[i].fd);
	run_cgroup_remove(&l->cgroup);
	if (l->shared)
		munmap(l->shared, sizeof(*l->shared));
	free(l->pid);
	free(l);
}
