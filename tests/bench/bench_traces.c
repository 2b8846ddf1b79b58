// SPDX-License-Identifier: Apache-2.0
/* The cost of a span on its way to a collector: written for the spool, appended to it, read back, encoded for each
 * release. A trace of 101 processes, a tenth of which failed; collectors know its names already, as they do of what
 * runs again and again. Heap allocations are counted under alloc_count.so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "bench.h"
#include "encode/zico/zico.h"
#include "store/spool/spool.h"
#include "store/trace_record.h"

#define SPANS 101
#define DOMAINS 4
#define MAX_ENCODE_NS 10000
#define MAX_SPOOL_NS 5000

unsigned long long alloc_count_calls(void) __attribute__((weak)); /* of alloc_count.so, where it is there */

static const char *const domains[DOMAINS] = { "package-0", "core-0", "dram-0", "psys" };
static const char *const interfaces[DOMAINS] = { "powercap", "powercap", "powercap", "powercap" };
static struct span spans[SPANS];
static char lines[SPANS][160];

struct cost {
	struct samples ns;
	double allocations;
	size_t bytes;
};

static struct trace make_trace(void)
{
	struct trace t = { .uuid = { 1 },
			   .sensor = "bench",
			   .boot_id = "",
			   .pod = "shop-7d9f",
			   .pod_namespace = "prod",
			   .container = "web",
			   .unit = "",
			   .n_domains = DOMAINS,
			   .domains = domains,
			   .interfaces = interfaces,
			   .last = true,
			   .n_spans = SPANS,
			   .spans = spans };

	for (unsigned i = 0; i < SPANS; i++) {
		spans[i] = (struct span){
			.id = 1000 + i,
			.parent = i ? 1000 + (i - 1) / 4 : 0,
			.pid = 2000 + i,
			.tid = 2000 + i,
			.uid = 1000,
			.start_ns = 1000000000ull + i * 1000000ull,
			.end_ns = 3000000000ull + i * 1000000ull,
			.start_real_ns = 1700000000000000000ll + i * 1000000ll,
			.calls = 1,
			.cpu_ns = 123456789,
			.exit_code = i % 10 == 9,
			.n_domains = DOMAINS,
			.energy_uj = { 123456, 45678, 7890, 234567 },
			.comm = i % 3 ? "cc1" : "make",
			.exe = "/usr/bin/make",
			.cgroup =
				"/kubepods.slice/kubepods-burstable.slice/kubepods-pod12345678.slice/cri-12345678901234.scope",
			.cmdline = lines[i],
			.symbol = "",
			.binary = "",
		};
		snprintf(lines[i], sizeof(lines[i]),
			 "/usr/bin/cc1 -quiet -O2 -Wall -Iinclude -DNUMBER=%u source/file%u.c -o /tmp/object%u.o", i, i,
			 i);
	}
	return t;
}

static unsigned long long allocations(void)
{
	return alloc_count_calls ? alloc_count_calls() : 0;
}

/* One job ROUNDS times; what the first does is not counted, for buffers grow in it. */
static void repeat(struct cost *c, unsigned rounds, void (*job)(void *arg), void *arg)
{
	unsigned long long before;

	job(arg);
	before = allocations();
	for (unsigned i = 0; i < rounds && i < BENCH_MAX_SAMPLES; i++) {
		uint64_t begin = bench_now_ns();

		job(arg);
		samples_add(&c->ns, (double)(bench_now_ns() - begin) / SPANS);
	}
	c->allocations = (double)(allocations() - before) / (rounds * (double)SPANS);
}

struct job {
	struct trace t;
	struct zico *z;
	struct spool *s;
	struct buf agent, body, record;
};

static void encode(void *arg)
{
	struct job *j = arg;
	struct err err = { 0 };

	buf_reset(&j->agent);
	buf_reset(&j->body);
	if (zico_encode(j->z, &j->t, &j->agent, &j->body, &err) != 0)
		bench_die(err.text, 1);
	zico_told(j->z);
}

static void spool(void *arg)
{
	struct job *j = arg;

	buf_reset(&j->record);
	if (trace_record_write(&j->t, &j->record) != 0 ||
	    spool_append(j->s, 1700000000000000000ll, j->record.data, j->record.len) != 0)
		bench_die("spool", 1);
}

static void unspool(void *arg)
{
	struct job *j = arg;
	struct spool_mark m;
	struct trace *t = NULL;
	struct err err = { 0 };

	buf_reset(&j->record);
	if (spool_next(j->s, 1700000000000000000ll, &j->record, &m) != 0 ||
	    trace_record_read(j->record.data, j->record.len, &t, &err) != 0)
		bench_die("spool", 1);
	spool_done(j->s, &m);
	trace_record_free(t);
}

static void encoders(struct job *j, unsigned rounds)
{
	char text[240] = "";
	double worst = 0, most = 0;
	size_t n = 0;

	for (unsigned i = 0; zico_profile_name(i); i++) {
		struct cost c = { 0 };
		struct err err = { 0 };

		if (zico_new(&(struct zico_options){ .profile = zico_profile_name(i) }, &j->z, &err) != 0)
			bench_die(err.text, 1);
		repeat(&c, rounds, encode, j);
		worst = samples_median(&c.ns) > worst ? samples_median(&c.ns) : worst;
		most = c.allocations > most ? c.allocations : most;
		if (n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %.0f ns, %zu bytes", i ? "; " : "",
					      zico_profile_name(i), samples_median(&c.ns), j->body.len / SPANS);
		zico_free(j->z);
	}
	report_goal("traces: a span encoded", verdict_of(worst <= MAX_ENCODE_NS), "at most 10 us", "%s", text);
	report_goal("traces: a span encoded", alloc_count_calls ? verdict_of(most < 0.005) : NOT_RUN,
		    "no heap allocation", "%.2f", most);
}

static void spools(struct job *j, unsigned rounds)
{
	char dir[] = "/tmp/jouled-bench-spool-XXXXXX", command[64];
	struct cost to = { 0 }, from = { 0 };
	struct err err = { 0 };

	if (!mkdtemp(dir) || spool_open(&(struct spool_options){ .dir = dir }, &j->s, &err) != 0)
		bench_die(dir, 1);
	repeat(&to, rounds, spool, j);
	repeat(&from, rounds, unspool, j);
	report_goal("traces: a span to the spool", verdict_of(samples_median(&to.ns) <= MAX_SPOOL_NS), "at most 5 us",
		    "%.0f ns, %zu bytes", samples_median(&to.ns), j->record.len / SPANS);
	report_goal("traces: a span to the spool", alloc_count_calls ? verdict_of(to.allocations < 0.005) : NOT_RUN,
		    "no heap allocation", "%.2f", to.allocations);
	report_goal("traces: a span from the spool", verdict_of(samples_median(&from.ns) <= MAX_SPOOL_NS),
		    "at most 5 us", "%.0f ns, %.2f allocations", samples_median(&from.ns), from.allocations);
	spool_close(j->s);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command) != 0)
		bench_die(dir, 1);
}

int bench_traces(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 41;
	struct job j = { .t = make_trace() };

	if (rounds < 1 || rounds > BENCH_MAX_SAMPLES)
		return 2;
	encoders(&j, rounds);
	spools(&j, rounds);
	buf_free(&j.agent);
	buf_free(&j.body);
	buf_free(&j.record);
	return 0;
}
