/* SPDX-License-Identifier: Apache-2.0 */
/* attrib [OPTION...]: until it is terminated, programs of different kinds in cgroups of their own under a load that changes,
 * and the truth of what they used, sampled while they run (tests/vm/modules/README).
 * -d DIR	where the cgroups p0, p1, ... are made
 * -n N	how many; -s SEED	of their kinds and of their load
 * -b PERMILLE	CPUs that all of them ask for on average (1000 = one)
 * -x H	hidden events per 1000 instructions: 0 to H, another for each
 * -o FILE	a line "t NS" of CLOCK_MONOTONIC per sample, then "ID KIND CORE UNCORE DRAM" per row that changed:
 *		cumulative nanojoules; a line "m NS" and the same, as they were when energy was last read */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull
#define CYCLE_NS 40000000ull /* of running and sleeping */
#define PHASE_CYCLES 20 /* after so many the load changes */
#define SAMPLE_NS 20000000ull
#define MAX_PROGRAMS 32
#define MAX_ROWS 256

struct row {
	unsigned long long id, nj[3], told[3], told_at_mark[3];
	char kind[8];
};

static const char *dir = "/sys/fs/cgroup";
static unsigned n_programs = 1, load = 1000, hidden;
static uint64_t seed = 1;
static struct row rows[MAX_ROWS];
static unsigned n_rows;
static unsigned long long last_mark;
static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void wait_until_ns(uint64_t mono_ns)
{
	struct timespec t = { .tv_sec = (time_t)(mono_ns / NS_PER_S), .tv_nsec = (long)(mono_ns % NS_PER_S) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t random_below(uint64_t *state, uint64_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 11) % n;
}

static void join_cgroup(unsigned i)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/p%u", dir, i);
	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		die(path);
	snprintf(path, sizeof(path), "%s/p%u/cgroup.procs", dir, i);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		die(path);
	close(fd);
}

/* Per mille of a CPU in this phase: on and off, in bursts, or anything. */
static uint64_t level(uint64_t *state, unsigned kind, uint64_t mean, unsigned phase)
{
	switch (kind) {
	case 0:
		return mean * (phase / 2 % 2 ? 18 : 2) / 10;
	case 1:
		return random_below(state, 10) < 3 ? mean * 26 / 10 : mean * 3 / 10;
	default:
		return mean * random_below(state, 200) / 100;
	}
}

static void run_program(unsigned i, uint64_t share)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15u + i * 7919 + 12345, at = now_ns(CLOCK_MONOTONIC), want = 0, per = 0;
	unsigned kind = (unsigned)(i + seed) % 3;
	volatile unsigned n = 0;
	char name[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	join_cgroup(i);
	for (unsigned k = 0; k < 8; k++)
		random_below(&state, 2);
	/* 4 to 35 tenths of an instruction per cycle, 0 to 24 misses and 0 to -x hidden per 1000 */
	snprintf(name, sizeof(name), "ipc%um%uh%u", 4 + (unsigned)random_below(&state, 32),
		 (unsigned)random_below(&state, 25), hidden ? (unsigned)random_below(&state, hidden + 1) : 0);
	prctl(PR_SET_NAME, name);
	for (unsigned cycle = 0;; cycle++) {
		if (cycle % PHASE_CYCLES == 0)
			per = level(&state, kind, share, cycle / PHASE_CYCLES);
		want += CYCLE_NS * (per < 950 ? per : 950) / 1000;
		while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < want)
			while (++n % 2048)
				;
		at += CYCLE_NS;
		wait_until_ns(at);
	}
}

static struct row *row_of(unsigned long long id, const char *kind)
{
	for (unsigned i = 0; i < n_rows; i++)
		if (rows[i].id == id && strcmp(rows[i].kind, kind) == 0)
			return &rows[i];
	if (n_rows == MAX_ROWS)
		die("more rows than there is room for");
	rows[n_rows] = (struct row){ .id = id };
	snprintf(rows[n_rows].kind, sizeof(rows[n_rows].kind), "%s", kind);
	return &rows[n_rows++];
}

static void clear_rows(void)
{
	for (unsigned i = 0; i < n_rows; i++)
		memset(rows[i].nj, 0, sizeof(rows[i].nj));
}

/* Lines are cgroup x CPU; columns as the module's README has them. */
static void add_to_row(const char *line, bool marked)
{
	unsigned long long id, v[3];
	char kind[8];
	struct row *r;
	int n = marked ? sscanf(line, "%llu %7s %*u %llu %llu %llu", &id, kind, &v[0], &v[1], &v[2]) :
			 sscanf(line, "%llu %7s %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu %llu %llu", &id, kind,
				&v[0], &v[1], &v[2]);

	if (n != 5)
		die("/proc/simpmu: not as its README says");
	r = row_of(id, kind);
	for (unsigned k = 0; k < 3; k++)
		r->nj[k] += v[k];
}

static void tell_row(FILE *out, const struct row *r, unsigned long long *told)
{
	if (memcmp(r->nj, told, sizeof(r->nj)) != 0)
		fprintf(out, "%llu %s %llu %llu %llu\n", r->id, r->kind, r->nj[0], r->nj[1], r->nj[2]);
	memcpy(told, r->nj, sizeof(r->nj));
}

static void sample_mark(FILE *out)
{
	unsigned long long at = 0, end = 0;
	FILE *f = fopen("/proc/simpmu_mark", "re");
	char line[512];

	if (!f || !fgets(line, sizeof(line), f) || sscanf(line, "mark %llu", &at) != 1)
		die("/proc/simpmu_mark");
	clear_rows();
	while (fgets(line, sizeof(line), f) && sscanf(line, "mark %llu", &end) != 1)
		add_to_row(line, true);
	fclose(f);
	if (!at || end != at) /* the next sample reads the newer one */
		return;
	fprintf(out, "m %llu\n", at);
	for (unsigned i = 0; i < n_rows; i++)
		tell_row(out, &rows[i], rows[i].told_at_mark);
	last_mark = at;
}

static void sample(FILE *out)
{
	unsigned long long mono, mark;
	FILE *f = fopen("/proc/simpmu", "re");
	char line[512];

	if (!f || !fgets(line, sizeof(line), f) || sscanf(line, "mono %llu boot %*u mark %llu", &mono, &mark) != 2 ||
	    !fgets(line, sizeof(line), f))
		die("/proc/simpmu");
	clear_rows();
	while (fgets(line, sizeof(line), f))
		add_to_row(line, false);
	fclose(f);
	fprintf(out, "t %llu\n", mono);
	for (unsigned i = 0; i < n_rows; i++)
		tell_row(out, &rows[i], rows[i].told);
	if (mark != last_mark)
		sample_mark(out);
}

static void sample_all(const char *name)
{
	FILE *out = fopen(name, "we");
	uint64_t at = now_ns(CLOCK_MONOTONIC);

	if (!out)
		die(name);
	for (; !stop; at += SAMPLE_NS) {
		sample(out);
		wait_until_ns(at + SAMPLE_NS);
		if (now_ns(CLOCK_MONOTONIC) > at + 2 * SAMPLE_NS)
			at = now_ns(CLOCK_MONOTONIC);
	}
	sample(out);
	if (fclose(out) != 0)
		die(name);
}

int main(int argc, char **argv)
{
	const char *file = "/dev/null";
	pid_t pid[MAX_PROGRAMS];
	int opt;

	while ((opt = getopt(argc, argv, "d:n:s:b:x:o:")) != -1) {
		switch (opt) {
		case 'd':
			dir = optarg;
			break;
		case 'n':
			n_programs = (unsigned)atoi(optarg);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 10);
			break;
		case 'b':
			load = (unsigned)atoi(optarg);
			break;
		case 'x':
			hidden = (unsigned)atoi(optarg);
			break;
		case 'o':
			file = optarg;
			break;
		default:
			return 2;
		}
	}
	if (argc != optind || n_programs < 1 || n_programs > MAX_PROGRAMS)
		return 2;
	for (unsigned i = 0; i < n_programs; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			run_program(i, load / n_programs);
		if (pid[i] < 0)
			die("fork");
	}
	/* the truth of an instant, whatever the programs do */
	if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 40 }) != 0)
		die("sched_setscheduler");
	signal(SIGTERM, on_term);
	sample_all(file);
	for (unsigned i = 0; i < n_programs; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	return 0;
}
