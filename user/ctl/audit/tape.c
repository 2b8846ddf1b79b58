/* SPDX-License-Identifier: Apache-2.0 */
#include "tape.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/array.h"
#include "model/recording/recording.h"

#define STREAM "/v1/stream?format=cbor&interval=100ms"
#define BYTES_MAX ((uint64_t)2 << 30) /* of a recording; what comes later is not judged */
#define LEARN 4 /* one of so many rounds is to learn from */

struct audit_tape {
	int fd;
	pid_t pid;
};

static const char *const formulas[] = { "share", "model" };
enum { FORMULAS = 2 };

/* Recording. */

struct taker {
	int fd;
	uint64_t bytes;
};

static int take(void *arg, const char *piece, size_t size)
{
	struct taker *t = arg;

	t->bytes += size;
	return t->bytes > BYTES_MAX || write(t->fd, piece, size) != (ssize_t)size ? -EFBIG : 0;
}

static _Noreturn void record(int fd, const char *socket, pid_t parent)
{
	const atomic_bool stop = false;
	struct taker t = { .fd = fd };
	struct agent *a;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && agent_open(socket, &a, NULL) == 0 && agent_begin(a, STREAM, "*/*", NULL) == 0)
		agent_take(a, take, &t, &stop, NULL);
	_exit(0);
}

static int open_file(struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/jouled-audit-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/var/tmp");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "%.200s: %s; set TMPDIR", path, strerrordesc_np(errno));
	unlink(path);
	return fd;
}

int audit_tape_start(const struct audit_session *s, struct audit_tape **ret, struct err *err)
{
	const char *socket = s->with.own ? private_agent_socket(s->with.own) : s->plan->wish.socket;
	struct audit_tape *t = calloc(1, sizeof(*t));
	const pid_t parent = getpid();

	if (!t)
		return err_set(err, -ENOMEM, "audit: out of memory; free some");
	t->fd = open_file(err);
	t->pid = t->fd < 0 ? -1 : fork();
	if (t->pid == 0)
		record(t->fd, socket, parent);
	if (t->pid < 0) {
		int rc = t->fd < 0 ? t->fd :
				     err_set(err, -errno, "audit: %s; raise the limit of processes",
					     strerrordesc_np(errno));

		audit_tape_free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void audit_tape_end(struct audit_tape *t)
{
	if (t->pid <= 0)
		return;
	kill(t->pid, SIGTERM);
	while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
		;
	t->pid = 0;
}

void audit_tape_free(struct audit_tape *t)
{
	if (!t)
		return;
	audit_tape_end(t);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
}

/* Replaying. */

/* Sums up to an instant, by the domains of the session. */
struct mark {
	uint64_t end_ns;
	double drawn[SCHEMA_MAX_DOMAINS], charged[AUDIT_LOADS][SCHEMA_MAX_DOMAINS]; /* uJ */
};

struct marks {
	struct mark *v;
	unsigned n, cap;
};

static int domain_of(const struct run_facts *f, const char *name)
{
	for (unsigned d = 0; d < f->n_domains; d++)
		if (strcmp(f->domain[d].name, name) == 0)
			return (int)d;
	return -1;
}

static int load_of(const char *const paths[AUDIT_LOADS], const struct snap_row *row)
{
	for (int i = 0; i < AUDIT_LOADS && row->kind == ROW_CGROUP; i++)
		if (strcmp(paths[i], row->path) == 0)
			return i;
	return -1;
}

static void add_snapshot(struct mark *m, const struct run_facts *f, const struct snapshot *s,
			 const char *const paths[AUDIT_LOADS])
{
	m->end_ns = s->end_ns;
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		int to = domain_of(f, s->schema->domains[d].name);

		if (to < 0)
			continue;
		m->drawn[to] += (double)s->domains[d].energy_uj;
		for (unsigned i = 0; i < s->n_rows; i++) {
			int load = load_of(paths, &s->rows[i]);

			if (load >= 0)
				m->charged[load][to] += (double)*snapshot_energy(s, i, d);
		}
	}
}

static int read_marks(int fd, const struct run_facts *f, const char *const paths[AUDIT_LOADS], struct marks *ret)
{
	struct recording *rec = NULL;
	struct snapshot *s;
	int rc = recording_open_fd(fd, &rec, NULL);

	while (!rc && recording_next(rec, &s, NULL) == 1) {
		if (ARRAY_ROOM(ret->v, ret->cap, ret->n + 1)) {
			rc = -ENOMEM;
			break;
		}
		ret->v[ret->n] = ret->n ? ret->v[ret->n - 1] : (struct mark){ 0 };
		add_snapshot(&ret->v[ret->n++], f, s, paths);
	}
	recording_close(rec);
	return rc;
}

static _Noreturn void become_replay(int tape, int out, const char *formula)
{
	char program[PATH_MAX], file[40];
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	private_agent_program(program);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", tape);
	fcntl(tape, F_SETFD, 0);
	dup2(nothing, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(nothing, STDERR_FILENO);
	execlp(program, program, "--replay", file, "--formula", formula, "--idle", "own", "-o",
	       "snapshot=stdout:", (char *)NULL);
	_exit(127);
}

static int replay(const struct audit_tape *t, const char *formula, const struct run_facts *f,
		  const char *const paths[AUDIT_LOADS], struct marks *ret)
{
	int fds[2], rc;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become_replay(t->fd, fds[1], formula);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -EAGAIN;
	}
	rc = read_marks(fds[0], f, paths, ret);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return rc;
}

/* Judging. */

/* The part of mark k's interval that is before an instant, 0 to 1; *ret_k: that mark. False: the instant is outside. */
static bool find(const struct marks *m, uint64_t ns, unsigned *ret_k, double *ret_part)
{
	unsigned low = 0, high = m->n;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (m->v[middle].end_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || low == m->n)
		return false;
	*ret_k = low;
	*ret_part = (double)(ns - m->v[low - 1].end_ns) / (double)(m->v[low].end_ns - m->v[low - 1].end_ns);
	return true;
}

static double between(double before, double after, double part)
{
	return before + (after - before) * part;
}

/* Replaces watts of a block. Its ends lie within intervals, whose energy counts as even: of what was drawn and of what was
 * charged alike, so that their ratio stays. */
static bool fill_block(const struct marks *m, const struct run_facts *f, const struct audit_times *t,
		       struct audit_block *ret)
{
	double part[2], us = (double)(t->end_ns - t->start_ns) / 1e3;
	unsigned k[2];

	if (t->end_ns <= t->start_ns || !find(m, t->start_ns, &k[0], &part[0]) || !find(m, t->end_ns, &k[1], &part[1]))
		return false;
	for (unsigned d = 0; d < f->n_domains; d++) {
		double at[2];

		for (unsigned i = 0; i < 2; i++)
			at[i] = between(m->v[k[i] - 1].drawn[d], m->v[k[i]].drawn[d], part[i]);
		ret->drawn[d] = (at[1] - at[0]) / us;
		for (unsigned load = 0; load < AUDIT_LOADS; load++) {
			for (unsigned i = 0; i < 2; i++)
				at[i] = between(m->v[k[i] - 1].charged[load][d], m->v[k[i]].charged[load][d], part[i]);
			ret->charged[load][d] = (at[1] - at[0]) / us;
		}
	}
	return true;
}

static int fill_rounds(const struct marks *m, const struct audit_session *s, const struct audit_rounds *r,
		       const struct audit_times (*times)[AUDIT_STATES], struct audit_rounds *ret)
{
	for (unsigned i = r->n / LEARN; i < r->n; i++) {
		struct audit_block blocks[AUDIT_STATES];
		bool whole = true;

		memcpy(blocks, r->v[i], sizeof(blocks));
		for (unsigned k = 0; k < AUDIT_STATES; k++)
			whole &= fill_block(m, &s->with.facts, &times[i][k], &blocks[k]);
		if (whole && audit_rounds_add(ret, blocks))
			return -ENOMEM;
	}
	audit_hold_equal(ret, s->with.facts.n_domains, s->plan->cpus);
	return 0;
}

/* Mean of the biases' sizes, by what was drawn, and of the half widths of their intervals. NaN = nothing is known. */
static double mean_error(const struct audit_session *s, const struct audit_rounds *r, uint64_t seed, double *ret_half)
{
	double error = 0, half = 0, drawn = 0;

	for (unsigned load = 0; load < AUDIT_LOADS; load++)
		for (unsigned d = 0; d < s->with.facts.n_domains; d++) {
			struct audit_answer a = { 0 };

			if (s->audited[d])
				a = audit_ask(r, load, d, AUDIT_AVERAGE, seed);
			if (!a.known)
				continue;
			error += fabs(a.bias) * a.drawn_w;
			half += (a.interval.high - a.interval.low) / 2 * a.drawn_w;
			drawn += a.drawn_w;
		}
	*ret_half = drawn > 0 ? half / drawn : NAN;
	return drawn > 0 ? error / drawn : NAN;
}

void audit_tape_judge(struct audit_tape *t, const struct audit_session *s, const struct audit_rounds *r,
		      const struct audit_times (*times)[AUDIT_STATES], const char *const paths[AUDIT_LOADS],
		      struct audit *ret)
{
	double error[FORMULAS], half[FORMULAS];
	bool split = true;
	unsigned best;

	for (unsigned i = 0; i < FORMULAS; i++) {
		struct audit_rounds by = { 0 };
		struct marks m = { 0 };

		error[i] = half[i] = NAN;
		if (replay(t, formulas[i], &s->with.facts, paths, &m) == 0 && fill_rounds(&m, s, r, times, &by) == 0)
			error[i] = mean_error(s, &by, ret->seed, &half[i]);
		split &= m.n > 0;
		audit_rounds_free(&by);
		free(m.v);
	}
	best = error[1] < error[0];
	if (isnan(error[0]) || isnan(error[1])) {
		snprintf(ret->why, sizeof(ret->why), "the formulas cannot be compared: %s",
			 split ? "too few rounds, or too small draws" : "the recording could not be split again");
		return;
	}
	snprintf(ret->why, sizeof(ret->why),
		 "share is off by %.1f %%, model by %.1f %%, each learned in this audit alone", 100 * error[0],
		 100 * error[1]);
	if (fabs(error[0] - error[1]) > fmax(half[0], half[1]))
		snprintf(ret->better, sizeof(ret->better), "%s", formulas[best]);
}
