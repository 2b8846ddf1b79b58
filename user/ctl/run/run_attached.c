/* SPDX-License-Identifier: Apache-2.0 */
#include "run_attached.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fsroot.h"
#include "base/parse.h"
#include "child.h"
#include "ctl/core/choice.h"
#include "run_plan.h"

#define LOOK_MS 100
#define READ_NS (20 * NS_PER_S) /* the agent keeps the values of ended cgroups for a while only */
#define DURATION_MAX_NS (7 * 86400 * NS_PER_S)
/* A process is alone in its cgroup if the row has no more CPU time than its own and this: the clock of the process is
 * not read in the instant of the reading. */
#define ALONE_PART 50
#define ALONE_NS (20 * NS_PER_MS)

struct session {
	struct run_agent with;
	struct run_signals signals;
	struct run_rows rows;
	struct run_machine before;
	struct run_attached *what;
	char dir[2 * RUN_PATH_MAX]; /* of the cgroup */
	ino_t inode;
	bool v2;
	/* Of a process. */
	int pidfd;
	clockid_t clock;
	uint64_t cpu_start_ns, cpu_ns; /* last known */
	bool alone; /* at every look */
	bool cpu_cut; /* the last part of its CPU time is not known */
};

bool run_attached_asked(const struct verb_call *call)
{
	return call->option[RUN_OPTION_PID] || call->option[RUN_OPTION_CGROUP] || call->option[RUN_OPTION_DURATION];
}

static int check_options(const struct verb_call *call, struct err *err)
{
	static const bool allowed[RUN_OPTIONS] = {
		[RUN_OPTION_JSON] = true,     [RUN_OPTION_CSV] = true,    [RUN_OPTION_OUTPUT] = true,
		[RUN_OPTION_IDLE] = true,     [RUN_OPTION_EVENTS] = true, [RUN_OPTION_PRIVATE] = true,
		[RUN_OPTION_SOCKET] = true,   [RUN_OPTION_PID] = true,    [RUN_OPTION_CGROUP] = true,
		[RUN_OPTION_DURATION] = true, [RUN_OPTION_PRICE] = true,  [RUN_OPTION_CARBON] = true,
	};

	if (!call->option[RUN_OPTION_PID] && !call->option[RUN_OPTION_CGROUP])
		return err_set(err, -EINVAL,
			       "--duration: a command has its own time; give --pid or --cgroup, or leave it out");
	if (call->option[RUN_OPTION_PID] && call->option[RUN_OPTION_CGROUP])
		return err_set(err, -EINVAL, "--pid and --cgroup: only one of them can be measured; leave one out");
	if (call->n)
		return err_set(
			err, -EINVAL,
			"--pid and --cgroup measure what already runs; leave the command '%.60s' out, or the option",
			call->args[0]);
	for (unsigned i = 0; i < RUN_OPTIONS; i++)
		if (call->option[i] && !allowed[i])
			return err_set(
				err, -EINVAL,
				"--%s: it is for commands; --pid and --cgroup measure what already runs; leave it out",
				run_options[i].name);
	return 0;
}

int run_attached_read(const struct verb_call *call, struct run_attached_plan *ret, struct err *err)
{
	const char *duration = call->option[RUN_OPTION_DURATION], *path = call->option[RUN_OPTION_CGROUP];
	uint64_t pid = 0;
	int rc = check_options(call, err);

	if (!rc)
		rc = run_plan_read_forms(call, err);
	if (!rc)
		rc = choice_number("--pid", call->option[RUN_OPTION_PID], choice_range(1, 1 << 22), &pid, err);
	if (!rc && path &&
	    (path[0] != '/' || strlen(path) >= RUN_PATH_MAX || strstr(path, "/../") || strstr(path, "/./")))
		rc = err_set(
			err, -EINVAL,
			"--cgroup %.100s: no path below the mount of the cgroups; write one as joulectl list has it, "
			"/system.slice",
			path);
	if (!rc && duration &&
	    (parse_duration_ns(duration, &ret->duration_ns) || ret->duration_ns < 10 * NS_PER_MS ||
	     ret->duration_ns > DURATION_MAX_NS))
		rc = err_set(err, -EINVAL, "--duration %.100s: not from 10ms to 7d; -d 30s", duration);
	ret->pid = (pid_t)pid;
	ret->cgroup = path;
	return rc;
}

/* Fills in path: the cgroup of the process. false = it has ended. */
static bool cgroup_of(const struct session *s, char path[RUN_PATH_MAX])
{
	char file[40];

	snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)s->what->pid);
	if (!run_cgroup_of_process(file, s->v2, path))
		return false;
	if (!*path)
		snprintf(path, RUN_PATH_MAX, "/");
	return true;
}

static int no_process(const struct session *s, struct err *err)
{
	return err_set(err, -ESRCH, "--pid %d: no such process; look for it with ps", (int)s->what->pid);
}

static int find_process(struct session *s, struct err *err)
{
	struct run_attached *a = s->what;
	struct fsroot *root = NULL;
	char text[64] = "";

	s->pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);
	if (s->pidfd < 0 && errno == EINVAL)
		return err_set(err, -EINVAL, "--pid %d: this is a thread; give its process", (int)a->pid);
	if (s->pidfd < 0)
		return errno == ESRCH ? no_process(s, err) :
					err_set(err, -errno, "--pid %d: %s; a kernel from 5.3 on can watch a process",
						(int)a->pid, strerrordesc_np(errno));
	if (fsroot_open("/", &root) == 0)
		fsroot_readf(root, text, sizeof(text), "/proc/%d/comm", (int)a->pid);
	fsroot_close(root);
	snprintf(a->comm, sizeof(a->comm), "%.15s", text);
	a->comm[strcspn(a->comm, "\n")] = '\0';
	if (!cgroup_of(s, a->cgroup) || clock_getcpuclockid(a->pid, &s->clock) != 0)
		return no_process(s, err);
	a->by = RUN_BY_CPU_SHARE;
	s->alone = true;
	s->rows.only = a->cgroup;
	return 0;
}

static int find_target(struct session *s, const struct run_attached_plan *p, const char *mount, struct err *err)
{
	struct run_attached *a = s->what;
	struct run_place place;
	struct stat st;
	size_t len;
	int rc = run_place_find(mount, &place, err);

	if (rc)
		return rc;
	s->v2 = place.v2;
	a->pid = p->pid;
	a->share = 1;
	if (!p->cgroup)
		rc = find_process(s, err);
	else
		snprintf(a->cgroup, sizeof(a->cgroup), "%s", p->cgroup);
	if (rc)
		return rc;
	for (len = strlen(a->cgroup); len > 1 && a->cgroup[len - 1] == '/'; len--)
		a->cgroup[len - 1] = '\0';
	snprintf(s->dir, sizeof(s->dir), "%s%s", place.mount, a->cgroup);
	if (stat(s->dir, &st) != 0 || !S_ISDIR(st.st_mode))
		return err_set(err, -ENOENT,
			       "cgroup %.200s: there is none below %.100s; joulectl list names those there are",
			       a->cgroup, place.mount);
	s->inode = st.st_ino;
	return 0;
}

/* Has the cgroup the process, and no other? */
static bool is_alone(const struct session *s)
{
	char path[sizeof(s->dir) + 16];
	bool found = false, other = false;
	FILE *f;
	int pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", s->dir);
	f = fopen(path, "re");
	while (f && !other && fscanf(f, "%d", &pid) == 1) {
		found |= pid == s->what->pid;
		other |= pid != s->what->pid;
	}
	if (f)
		fclose(f);
	return found && !other;
}

/* Reads the CPU time of the process. A process that has ended has a clock until its parent has waited for it. */
static void read_clock(struct session *s)
{
	struct timespec t;

	s->cpu_cut = clock_gettime(s->clock, &t) != 0;
	if (!s->cpu_cut)
		s->cpu_ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static int take_reading(struct session *s, struct run_machine *m, struct err *err)
{
	return run_reading_ask(s->with.agent, s->what->cgroup,
			       &(struct run_reading){ .facts = &s->with.facts, .machine = m, .rows = &s->rows }, err);
}

/* Returns why the measurement ends now; NULL = it goes on. */
static const char *look(struct session *s)
{
	struct pollfd p = { .fd = s->pidfd, .events = POLLIN };
	char path[RUN_PATH_MAX];
	struct stat st;

	if (run_signals_look(&s->signals))
		return "signal";
	if (!s->what->pid)
		return stat(s->dir, &st) == 0 && st.st_ino == s->inode ? NULL : "end";
	read_clock(s);
	if (poll(&p, 1, 0) != 0)
		return "end";
	if (!cgroup_of(s, path))
		return "end";
	if (strcmp(path, s->what->cgroup) != 0)
		return "move";
	s->alone = s->alone && is_alone(s);
	return NULL;
}

/* Waits for the end. A reading now and then keeps the values of cgroups that end meanwhile. */
static void watch(struct session *s, uint64_t duration_ns)
{
	uint64_t begin = clock_mono_ns(), read_at = begin, now = begin;
	struct run_machine m;

	for (;;) {
		uint64_t left_ms = duration_ns ? (begin + duration_ns - now + NS_PER_MS - 1) / NS_PER_MS : LOOK_MS;
		struct pollfd p[2] = { { .fd = s->signals.fd, .events = POLLIN },
				       { .fd = s->pidfd, .events = POLLIN } };

		poll(p, 2, (int)(left_ms < LOOK_MS ? left_ms : LOOK_MS));
		now = clock_mono_ns();
		s->what->until = look(s);
		if (!s->what->until && duration_ns && now >= begin + duration_ns)
			s->what->until = "duration";
		if (s->what->until)
			return;
		if (now - read_at >= READ_NS) {
			take_reading(s, &m, NULL);
			read_at = now;
		}
	}
}

/* Makes the row's figures those of the process. */
static void take_share(struct session *s, struct run_result *r)
{
	struct run_facts *f = &s->with.facts;
	struct run_attached *a = s->what;
	uint64_t row_ns = r->value[f->n_domains + RUN_CPU], own_ns = s->cpu_ns - s->cpu_start_ns;

	if (s->alone && (s->cpu_cut || row_ns <= own_ns + own_ns / ALONE_PART + ALONE_NS)) {
		a->by = RUN_BY_ROW;
		return;
	}
	own_ns = own_ns < row_ns ? own_ns : row_ns;
	a->share = row_ns ? (double)own_ns / (double)row_ns : 0;
	for (unsigned k = 0; k < RUN_VALUES_MAX; k++)
		r->value[k] = row_ns ? (uint64_t)((unsigned __int128)r->value[k] * own_ns / row_ns) : 0;
	r->value[RUN_RANGED] = 0; /* how far a part by CPU time is off, nothing tells */
	f->switches = f->network = f->block = false;
	r->quality |= QUALITY_ESTIMATED | (s->cpu_cut ? QUALITY_PARTIAL : 0);
	for (unsigned d = 0; d < f->n_domains; d++)
		r->energy_quality[d] |= r->quality;
}

static int measure(struct session *s, uint64_t duration_ns, struct run_result *r, struct err *err)
{
	struct run_attached *a = s->what;
	struct run_machine after;
	int rc = take_reading(s, &s->before, err);

	if (rc)
		return rc;
	run_rows_start(&s->rows);
	if (a->pid) {
		read_clock(s);
		s->cpu_start_ns = s->cpu_ns;
		s->alone = is_alone(s);
	}
	watch(s, duration_ns);
	rc = take_reading(s, &after, err);
	if (rc)
		return rc;
	if (!s->rows.n)
		return err_set(
			err, -ENOENT,
			"agent: it does not report %.200s; look at its cgroups.include, exclude and max, or use --private",
			a->cgroup);
	run_result_fill(r, &s->with.facts, &s->rows, &s->before, &after);
	r->started = true;
	r->wall_ns = r->window_ns;
	if (strcmp(a->until, "move") == 0)
		r->quality |= QUALITY_PARTIAL;
	if (a->pid)
		take_share(s, r);
	return 0;
}

int run_attached_measure(const struct run_attached_plan *p, const struct run_agent_wish *wish,
			 struct run_attached_end *ret, struct err *err)
{
	struct session s = { .what = &ret->what, .pidfd = -1 };
	char mount[RUN_PATH_MAX];
	int rc = run_agent_find(&s.with, wish, mount, err);

	if (!rc)
		rc = find_target(&s, p, mount, err);
	if (!rc)
		rc = run_signals_take(&s.signals, err);
	if (!rc)
		rc = measure(&s, p->duration_ns, &ret->result, err);
	ret->facts = s.with.facts;
	run_rows_free(&s.rows);
	if (s.pidfd >= 0)
		close(s.pidfd);
	run_agent_close(&s.with);
	return rc;
}
