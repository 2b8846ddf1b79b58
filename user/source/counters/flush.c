// SPDX-License-Identifier: Apache-2.0
/* Flushing CPUs. The kernel interrupts each and runs the flush program there, and the caller waits for it: some
 * microseconds a CPU, one after the other. On large machines helpers take their share of the CPUs. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include "base/clock.h"
#include "base/thread.h"
#include "rows.h"

#define FLUSH_TRIES 16
#define CPUS_A_HELPER 64
#define MOST_HELPERS 8
#define WORTH_NS 300000 /* waking helpers and waiting for them takes some tens of microseconds */
#define STACK_BYTES (64u << 10)

int counters_flush(struct counters *c, unsigned cpu, enum jd_flush_arg what)
{
	__u64 args[1] = { what };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);

	for (int i = 0; i < FLUSH_TRIES; i++) {
		if (bpf_prog_test_run_opts(c->flush_fd, &opts))
			return -errno;
		if (opts.retval == JD_FLUSHED)
			return 0;
	}
	return -EBUSY;
}

void counters_flip(struct counters *c, unsigned cpu)
{
	struct cpu_source *cs = &c->cpus[cpu];

	cs->left_bank = READ_ONCE(c->states[cpu].bank) & 1;
	cs->flush_rc = counters_flush(c, cpu, JD_FLUSH_FLIP);
	cs->flushed = true;
}

struct flush_crew {
	struct counters *c;
	pthread_t threads[MOST_HELPERS];
	unsigned n_threads;
	uint64_t worth_ns, each_ns; /* each_ns: what a flush takes, smoothed */
	atomic_uint next; /* in to_flush: the first that nobody took */
	unsigned n; /* in to_flush */
	pthread_mutex_t lock; /* protects the rest, and n while busy is 0 */
	pthread_cond_t begun, done;
	uint64_t round;
	unsigned busy; /* helpers at work */
	bool stop;
};

/* Flushes CPUs until all are taken; returns how many. */
static unsigned work(struct flush_crew *crew)
{
	unsigned i, did = 0;

	while ((i = atomic_fetch_add(&crew->next, 1)) < crew->n) {
		counters_flip(crew->c, crew->c->to_flush[i]);
		did++;
	}
	return did;
}

static void *help(void *arg)
{
	struct flush_crew *crew = arg;
	uint64_t seen = 0;

	thread_hurry("flushing");
	pthread_mutex_lock(&crew->lock);
	while (!crew->stop) {
		if (crew->round == seen) {
			pthread_cond_wait(&crew->begun, &crew->lock);
			continue;
		}
		seen = crew->round;
		crew->busy++;
		pthread_mutex_unlock(&crew->lock);
		work(crew);
		pthread_mutex_lock(&crew->lock);
		if (!--crew->busy)
			pthread_cond_signal(&crew->done);
	}
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

/* A helper that wakes late finds nothing left, or the next round. */
static void wait_for_helpers(struct flush_crew *crew)
{
	while (crew->busy)
		pthread_cond_wait(&crew->done, &crew->lock);
}

void counters_flush_all(struct counters *c, unsigned n)
{
	struct flush_crew *crew = c->crew;
	uint64_t from_ns;
	unsigned did;
	bool helped;

	if (!crew) {
		for (unsigned i = 0; i < n; i++)
			counters_flip(c, c->to_flush[i]);
		return;
	}
	pthread_mutex_lock(&crew->lock);
	wait_for_helpers(crew);
	crew->n = n;
	atomic_store(&crew->next, 0);
	helped = n * crew->each_ns >= crew->worth_ns;
	if (helped) {
		crew->round++;
		pthread_cond_broadcast(&crew->begun);
	}
	pthread_mutex_unlock(&crew->lock);
	from_ns = clock_mono_ns();
	did = work(crew);
	if (did)
		crew->each_ns = (7 * crew->each_ns + (clock_mono_ns() - from_ns) / did + 7) / 8;
	pthread_mutex_lock(&crew->lock);
	wait_for_helpers(crew);
	pthread_mutex_unlock(&crew->lock);
}

int counters_helpers_start(struct counters *c, unsigned n, uint64_t worth_ns)
{
	struct flush_crew *crew = n ? calloc(1, sizeof(*crew)) : NULL;
	int rc = 0;

	if (!crew)
		return n ? -ENOMEM : 0;
	crew->c = c;
	crew->worth_ns = worth_ns;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->begun, NULL);
	pthread_cond_init(&crew->done, NULL);
	c->crew = crew;
	while (crew->n_threads < n && crew->n_threads < MOST_HELPERS && !rc) {
		rc = thread_start(&crew->threads[crew->n_threads], "jouled-flush", STACK_BYTES, help, crew);
		crew->n_threads += !rc;
	}
	return rc;
}

int counters_start(struct counters *c)
{
	return c ? counters_helpers_start(c, c->n_cpus / CPUS_A_HELPER, WORTH_NS) : 0;
}

void counters_helpers_stop(struct counters *c)
{
	struct flush_crew *crew = c->crew;

	if (!crew)
		return;
	pthread_mutex_lock(&crew->lock);
	crew->stop = true;
	pthread_cond_broadcast(&crew->begun);
	pthread_mutex_unlock(&crew->lock);
	for (unsigned i = 0; i < crew->n_threads; i++)
		pthread_join(crew->threads[i], NULL);
	pthread_cond_destroy(&crew->begun);
	pthread_cond_destroy(&crew->done);
	pthread_mutex_destroy(&crew->lock);
	free(crew);
	c->crew = NULL;
}
