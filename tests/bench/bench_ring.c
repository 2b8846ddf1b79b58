// SPDX-License-Identifier: Apache-2.0
/* Cost of a switch: every variant in every round, in shuffled order, each measured chunk between
 * two baseline chunks on the same ring. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

#define MAX_CGROUPS 4096
#define IDLE_GROUPS 1000

enum place { TWO, SAME, SHARED };
enum what { EMPTY, COMPARE, LIMIT, OWN, OWN_COLUMNS, PERF_BPF, PERF_CGROUP };

struct variant {
	const char *name;
	enum place place;
	enum what what;
	unsigned events;
	unsigned registered; /* cgroups beside the ring that the program knows, all idle */
	struct samples plus_ns, ratio, base_ns;
	unsigned drifted;
};

static struct variant variants[] = {
	{ "empty tp_btf", TWO, EMPTY, .events = 0 },
	{ "compare cgroups and leave", TWO, COMPARE, .events = 0 },
	{ "limit: stamp, no read", TWO, LIMIT, .events = 0 },
	{ "limit: stamp, 1 read", TWO, LIMIT, .events = 1 },
	{ "limit: stamp, 3 reads", TWO, LIMIT, .events = 3 },
	{ "limit: stamp, 6 reads", TWO, LIMIT, .events = 6 },
	{ "jouled, time only", TWO, OWN, .events = 0 },
	{ "jouled, 1 counter", TWO, OWN, .events = 1 },
	{ "jouled, 3 counters", TWO, OWN, .events = 3 },
	{ "jouled, 6 counters", TWO, OWN, .events = 6 },
	{ "jouled, 6 counters, SIBLING_BUSY, IDLE_EXITS", TWO, OWN_COLUMNS, .events = 6 },
	{ "jouled, 6 counters, 1000 idle cgroups", TWO, OWN, .events = 6, .registered = IDLE_GROUPS },
	{ "same cgroup: empty tp_btf", SAME, EMPTY, .events = 0 },
	{ "same cgroup: jouled, 6 counters", SAME, OWN, .events = 6 },
	{ "same cgroup: jouled, 6 counters, SIBLING_BUSY, IDLE_EXITS", SAME, OWN_COLUMNS, .events = 6 },
	{ "both CPUs, same cgroups: limit, 6 reads", SHARED, LIMIT, .events = 6 },
	{ "both CPUs, same cgroups: jouled, 6 counters", SHARED, OWN, .events = 6 },
	{ "both CPUs, same cgroups: the same with SIBLING_BUSY, IDLE_EXITS", SHARED, OWN_COLUMNS, .events = 6 },
	{ "perf --bpf-counters, 3 events", TWO, PERF_BPF, .events = 3 },
	{ "perf --bpf-counters, 6 events", TWO, PERF_BPF, .events = 6 },
	{ "perf cgroup events, 3 events", TWO, PERF_CGROUP, .events = 3 },
	{ "perf cgroup events, 6 events", TWO, PERF_CGROUP, .events = 6 },
};
#define N_VARIANTS (sizeof(variants) / sizeof(variants[0]))

/* Several pairs of cgroups, a round each in turn: where ids fall in a hash or cache is luck of a pair. */
#define PAIRS 7
static struct ring *two[PAIRS], *same, *beside[PAIRS];
static unsigned pair;
static uint64_t hops = CHUNK_HOPS, warm_hops = WARM_HOPS;

static struct program *attach(const struct variant *v)
{
	switch (v->what) {
	case EMPTY:
		return limit_attach(LIMIT_EMPTY, 0);
	case COMPARE:
		return limit_attach(LIMIT_COMPARE, 0);
	case LIMIT:
		return limit_attach(LIMIT_READS, v->events);
	case OWN:
		return counters_attach(v->events, MAX_CGROUPS);
	case OWN_COLUMNS:
		return counters_attach_columns(v->events, MAX_CGROUPS);
	case PERF_BPF:
		return rival_attach(true, v->events);
	case PERF_CGROUP:
		return rival_attach(false, v->events);
	}
	return NULL;
}

/* SHARED: a ring in the same two cgroups keeps the other CPU busy for longer than the chunk. */
static double chunk(const struct variant *v, uint64_t n)
{
	double ns;

	if (v->place != SHARED)
		return ring_run(v->place == SAME ? same : two[pair], n);
	ring_command(beside[pair], n * 3 / 2);
	ns = ring_run(two[pair], n);
	ring_wait(beside[pair]);
	return ns;
}

/* Moving through a thousand cgroups leaves work behind (freed css_sets, cold caches): it happens
 * before the baselines too, with a longer warm-up, so that only the rows make the difference. */
static double chunk_after_warm_up(const struct variant *v)
{
	if (v->registered)
		touch_groups(v->registered, BENCH_CPU);
	chunk(v, v->registered ? 20 * warm_hops : warm_hops);
	return chunk(v, hops);
}

static bool measure(struct variant *v)
{
	double before, during, after, base;
	struct program *p;

	before = chunk_after_warm_up(v);
	p = attach(v);
	if (!p)
		return false;
	during = chunk_after_warm_up(v);
	program_detach(p);
	after = chunk_after_warm_up(v);
	base = (before + after) / 2;
	if (fabs(before - after) > MAX_DRIFT * base) {
		v->drifted++;
		return true;
	}
	samples_add(&v->plus_ns, during - base);
	samples_add(&v->ratio, during / base);
	samples_add(&v->base_ns, base);
	return true;
}

static bool rival_absent(const struct variant *v, bool absent[2])
{
	return (v->what == PERF_BPF && absent[1]) || (v->what == PERF_CGROUP && absent[0]);
}

static void run_rounds(unsigned rounds, bool absent[2])
{
	uint64_t seed = bench_now_ns() | 1;
	unsigned order[N_VARIANTS];
	bool more = true;

	for (unsigned i = 0; i < N_VARIANTS; i++)
		order[i] = i;
	for (unsigned round = 0; more && round < 4 * rounds; round++) {
		more = false;
		pair = rival_pair = round % PAIRS;
		shuffle(order, N_VARIANTS, &seed);
		for (unsigned i = 0; i < N_VARIANTS; i++) {
			struct variant *v = &variants[order[i]];

			if (v->plus_ns.n >= rounds || rival_absent(v, absent))
				continue;
			if (!measure(v))
				absent[v->what == PERF_BPF] = true;
			else
				more |= v->plus_ns.n < rounds;
		}
	}
}

static void print_table(unsigned rounds, const bool absent[2])
{
	printf("\n### Ring of two processes, ns per switch\n\n");
	report_machine();
	printf("%llu hops a chunk, at least %u rounds, variants shuffled; a sample whose two baselines differ by more than %.0f %% "
	       "is discarded.\n\n",
	       (unsigned long long)hops, rounds, MAX_DRIFT * 100);
	puts("| variant | base ns | +ns | quartiles | ratio | quartiles | samples | discarded |");
	puts("|---|---|---|---|---|---|---|---|");
	for (unsigned i = 0; i < N_VARIANTS; i++) {
		struct variant *v = &variants[i];

		if (rival_absent(v, (bool *)absent)) {
			printf("| %s | | not run: %s | | | | | |\n", v->name, rival_reason(v->what == PERF_BPF));
			continue;
		}
		printf("| %s | %.0f | %.0f | %.0f to %.0f | %.3f | %.3f to %.3f | %u | %u |\n", v->name,
		       samples_median(&v->base_ns), samples_median(&v->plus_ns), samples_quantile(&v->plus_ns, 0.25),
		       samples_quantile(&v->plus_ns, 0.75), samples_median(&v->ratio),
		       samples_quantile(&v->ratio, 0.25), samples_quantile(&v->ratio, 0.75), v->plus_ns.n, v->drifted);
	}
}

static const struct variant *find(enum place place, enum what what, unsigned events, unsigned registered)
{
	for (unsigned i = 0; i < N_VARIANTS; i++)
		if (variants[i].place == place && variants[i].what == what && variants[i].events == events &&
		    variants[i].registered == registered)
			return &variants[i];
	abort();
}

static double plus(const struct variant *v)
{
	return samples_median(&v->plus_ns);
}

/* Whether own is at most `times` the other + more_ns. A miss that is within the noise of both is none. */
static enum verdict compare(const struct variant *own, double times, const struct variant *other, double more_ns)
{
	double over_ns = plus(own) - times * plus(other) - more_ns;
	double error_ns = hypot(samples_error(&own->plus_ns), times * samples_error(&other->plus_ns));

	if (over_ns <= 0)
		return PASS;
	return over_ns > AT_95 * error_ns ? MISS : NOT_TOLD;
}

static void report_times(const char *line, const char *goal, const struct variant *own, double times,
			 const struct variant *other)
{
	report_goal(line, compare(own, times, other, 0), goal,
		    "%.2f x (%+.0f ns against %+.0f ns), %.3f of the bare ring", plus(own) / plus(other), plus(own),
		    plus(other), samples_median(&own->ratio));
}

static void report_more(const char *line, const char *goal, const struct variant *own, const struct variant *other,
			double more_ns)
{
	report_goal(line, compare(own, 1, other, more_ns), goal, "%+.0f ns against %+.0f ns, %.3f of the bare ring",
		    plus(own), plus(other), samples_median(&own->ratio));
}

/* On some machines two CPUs in the same cgroups cost the limit program more too. */
static void report_shared(const struct variant *own6, const struct variant *limit6)
{
	const struct variant *shared = find(SHARED, OWN, 6, 0), *limit = find(SHARED, LIMIT, 6, 0);
	enum verdict v = compare(shared, 1.10, own6, 0);

	if (v == MISS && compare(limit, 1.10, limit6, 0) == MISS)
		v = AT_LIMIT;
	report_goal("4", v, "both CPUs in the same cgroups at most 1.10 x one CPU",
		    "%.2f x (%+.0f ns against %+.0f ns); limit program %.2f x", plus(shared) / plus(own6), plus(shared),
		    plus(own6), plus(limit) / plus(limit6));
}

static void report_own(void)
{
	const struct variant *own6 = find(TWO, OWN, 6, 0), *limit6 = find(TWO, LIMIT, 6, 0),
			     *empty = find(SAME, EMPTY, 0, 0);
	const struct variant *idle = find(TWO, OWN, 6, IDLE_GROUPS);

	report_times("1", "6 counters at most 1.10 x the limit program", own6, 1.10, limit6);
	report_times("1", "the same with SIBLING_BUSY and IDLE_EXITS", find(TWO, OWN_COLUMNS, 6, 0), 1.10, limit6);
	report_times("2", "3 counters at most 1.15 x the limit program", find(TWO, OWN, 3, 0), 1.15,
		     find(TWO, LIMIT, 3, 0));
	report_more("2", "time only at most the limit program without a read + 15 ns", find(TWO, OWN, 0, 0),
		    find(TWO, LIMIT, 0, 0), 15);
	report_more("3", "same cgroup at most the empty program + 8 ns", find(SAME, OWN, 6, 0), empty, 8);
	report_more("3", "the same with SIBLING_BUSY and IDLE_EXITS", find(SAME, OWN_COLUMNS, 6, 0), empty, 8);
	report_shared(own6, limit6);
	report_goal("6", compare(idle, 1.05, own6, 0), "1000 idle cgroups at most +5 %",
		    "%+.1f %% (+%.0f ns against +%.0f ns)", (plus(idle) / plus(own6) - 1) * 100, plus(idle),
		    plus(own6));
}

static void report_rival(enum what what, double most, const char *goal, bool absent)
{
	for (unsigned events = 3; events <= 6; events += 3) {
		const struct variant *own = find(TWO, OWN, events, 0), *rival = find(TWO, what, events, 0);

		if (absent) {
			report_goal("5", NOT_RUN, goal, "not run: %s", rival_reason(what == PERF_BPF));
			return;
		}
		report_goal("5", compare(own, most, rival, 0), goal, "%u events: %.2f x (+%.0f ns against +%.0f ns)",
			    events, plus(own) / plus(rival), plus(own), plus(rival));
	}
}

/* ring [ROUNDS [HOPS]]: fewer hops are no measurement, but show that every variant runs. */
int bench_ring(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 21;
	bool absent[2] = { false, false };

	if (argc > 2)
		hops = warm_hops = strtoull(argv[2], NULL, 10);
	if (!rounds || !hops) {
		fputs("bench: ring: ROUNDS and HOPS are numbers above 0\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < PAIRS; i++) {
		two[i] = ring_start(&(struct ring_options){ .n = 2, .cpu = BENCH_CPU, .first_group = 2 * i });
		beside[i] = ring_start(&(struct ring_options){ .n = 2, .cpu = HARNESS_CPU, .first_group = 2 * i });
	}
	same = ring_start(&(struct ring_options){ .n = 2, .cpu = BENCH_CPU, .same_group = true });
	groups_make(IDLE_GROUPS);
	run_rounds(rounds, absent);
	print_table(rounds, absent);
	report_own();
	report_rival(PERF_BPF, 0.60, "at most 0.60 x perf stat --bpf-counters --for-each-cgroup", absent[1]);
	report_rival(PERF_CGROUP, 0.40, "at most 0.40 x perf stat --for-each-cgroup (kernel events)", absent[0]);
	for (unsigned i = 0; i < PAIRS; i++) {
		ring_stop(two[i]);
		ring_stop(beside[i]);
	}
	ring_stop(same);
	return 0;
}
