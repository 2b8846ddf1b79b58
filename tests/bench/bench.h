/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of the benchmark. Method: an A/B chunk between two baseline chunks, variants in shuffled
 * order, medians over rounds; samples whose two baselines differ by more than 10 % are discarded. */
#ifndef JD_BENCH_H
#define JD_BENCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_CPU 0 /* where rings and toucher run */
#define HARNESS_CPU 1
#define BENCH_MAX_SAMPLES 256
#define CHUNK_HOPS 15000
#define WARM_HOPS 3000
#define MAX_DRIFT 0.10

/* stats.c */
struct samples {
	unsigned n;
	double v[BENCH_MAX_SAMPLES];
};
void samples_add(struct samples *s, double v);
double samples_quantile(const struct samples *s, double q); /* NaN when empty */
static inline double samples_median(const struct samples *s)
{
	return samples_quantile(s, 0.5);
}
/* Standard error of the median, by the quartiles of a normal distribution. */
double samples_error(const struct samples *s);
#define AT_95 1.96 /* standard errors that hold the truth in 95 of 100 cases */
void shuffle(unsigned *order, unsigned n, uint64_t *seed);
uint64_t bench_now_ns(void); /* CLOCK_MONOTONIC */
void bench_die(const char *what, int err) __attribute__((noreturn));

/* report.c: one line of section 7's table, appended to the file $BENCH_RESULTS. */
enum verdict { PASS, MISS, NOT_RUN, AT_LIMIT, NOT_TOLD };
void report_goal(const char *line, enum verdict v, const char *goal, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static inline enum verdict verdict_of(bool pass)
{
	return pass ? PASS : MISS;
}
/* Of a goal that the limit program of the same kind of work, in the same run, does not reach on this machine either. */
static inline enum verdict verdict_beside(bool pass, bool limit_passes)
{
	return pass ? PASS : limit_passes ? MISS : AT_LIMIT;
}
void report_machine(void); /* kernel, CPUs, load: head of a table */

/* groups.c: cgroups of this run, below one directory that vanishes with it. */
int groups_begin(const char **ret_reason); /* mounts found, left-overs removed */
const char *groups_mount(void);
const char *groups_dir(void); /* "<mount>/jouled-bench.<pid>" */
const char *groups_name(unsigned i); /* below the mount, no leading slash */
void groups_make(unsigned n); /* directories 0 .. n-1, those missing */
int groups_join(unsigned i); /* the calling process into group i */
void groups_leave(void); /* the calling process into the root */
void groups_end(void);

/* ring.c */
struct ring;
struct ring_options {
	unsigned n;
	unsigned cpu;
	bool same_group;
	unsigned first_group;
};
struct ring *ring_start(const struct ring_options *o);
void ring_command(struct ring *r, uint64_t hops); /* rounded up to whole laps */
double ring_wait(struct ring *r); /* ns per hop of the commanded chunk */
static inline double ring_run(struct ring *r, uint64_t hops)
{
	ring_command(r, hops);
	return ring_wait(r);
}
void ring_stop(struct ring *r);
/* One process that visits groups 0 .. n-1 on a CPU, each for at least one switch. */
void touch_groups(unsigned n, unsigned cpu);

/* What is attached during a measured chunk. */
struct program;
enum limit_kind { LIMIT_EMPTY, LIMIT_COMPARE, LIMIT_READS };
struct program *limit_attach(enum limit_kind kind, unsigned n_events); /* limit.c */
struct program *counters_attach(unsigned n_events, uint64_t max_cgroups); /* own.c */
/* Also SIBLING_BUSY, as if CPUs 0 and 1 were threads of one core, and IDLE_EXITS. */
struct program *counters_attach_columns(unsigned n_events, uint64_t max_cgroups);
struct program *rival_attach(bool bpf, unsigned n_events); /* rival.c; NULL: why in rival_reason */
extern unsigned rival_pair; /* whose groups it counts: 2 * n and the next */
const char *rival_reason(bool bpf);
void program_detach(struct program *p);
/* Sum over its switch programs, while statistics are on. */
void program_stats(const struct program *p, uint64_t *ret_run_ns, uint64_t *ret_runs);
struct program_ops {
	void (*detach)(struct program *p);
	void (*stats)(const struct program *p, uint64_t *ret_run_ns, uint64_t *ret_runs);
};
struct program {
	const struct program_ops *ops;
};
/* limit.c: a counter of a CPU, msr/tsc/ or with EVENT=cycles a hardware one; fd or -errno. */
int counter_open(int cpu, bool times);
bool bench_cycles(void);
void prog_stats_fd(int prog_fd, uint64_t *ret_run_ns, uint64_t *ret_runs);

/* main.c: from CPU HARNESS_CPU alone to all CPUs, as the agent runs. */
void bench_unpin(void);

/* verbs */
int bench_ring(int argc, char **argv);
int bench_running(int argc, char **argv);
int bench_storm(int argc, char **argv);
int bench_readout(int argc, char **argv);
int bench_large(int argc, char **argv);
int bench_energy(int argc, char **argv);
int bench_spans(int argc, char **argv);
int bench_block(int argc, char **argv);
int bench_traces(int argc, char **argv);
int bench_report(int argc, char **argv);
int bench_start(int argc, char **argv);
int bench_load(int argc, char **argv);
int bench_hold(int argc, char **argv);
int bench_sums(int argc, char **argv);

#endif
