/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/thread.h"
#include "pipeline.h"

/* The least squares of a fit take 200 KiB (solve.c). */
#define STACK_BYTES (512u << 10)

struct pipeline {
	struct machine *m;
	struct plan *plan; /* measuring thread only */
	struct serving *serving;
	struct tracing *tracing;
	struct profiler *profiler;
	pthread_t thread;
	int wake_fd, done_fd;
	uint64_t start_ns;
	_Atomic unsigned turns;
	pthread_mutex_t lock; /* protects the rest */
	pthread_cond_t swapped;
	struct plan *next, *previous;
	bool stop;
};

/* Takes over the tap of a group of the old plan with the same interval. Its formula keeps all it has learned. */
static void inherit(struct group *g, struct plan *old)
{
	for (unsigned i = 0; old && i < old->n_groups; i++) {
		struct group *from = &old->groups[i];

		if (from->tap.interval_ns != g->tap.interval_ns)
			continue;
		g->tap = from->tap;
		g->done = from->done;
		from->tap = (struct tap){ 0 };
	}
}

/* Starts the groups. 0, or -ENOMEM with some groups started. */
static int begin(struct machine *m, struct plan *p, struct plan *old)
{
	for (unsigned i = 0; i < p->n_groups; i++) {
		struct group *g = &p->groups[i];
		int rc = 0;

		inherit(g, old);
		if (!g->tap.consumer)
			rc = tap_begin(&g->tap, &m->reading, g->tap.interval_ns);
		if (!rc)
			rc = tap_use(&g->tap, &p->formula);
		if (rc)
			return rc;
	}
	return 0;
}

static void report(struct pipeline *pl, struct group *g, uint64_t missed)
{
	struct snapshot *s = tap_take(&g->tap, &pl->m->reading);

	if (!s) {
		log_error("out of memory: an interval is joined to the next one");
		return;
	}
	s->missed = missed;
	if (g->gauges)
		cpufreq_read(pl->m->cpufreq, s);
	if (g->self) {
		s->self_cpu_ns = own_cpu_ns();
		s->self_resident_bytes = own_resident_kept(pl->m->statm_fd);
	}
	tap_split(&g->tap, s);
	for (unsigned i = 0; i < g->n; i++)
		output_send(g->outputs[i], s);
}

static void run_group(struct pipeline *pl, struct group *g, uint64_t now_ns)
{
	uint64_t missed = tap_next(&g->tap, now_ns);

	g->done++;
	report(pl, g, missed);
}

/* Reports what came since the last interval of a group, if anything did. */
static void close_group(struct pipeline *pl, uint64_t interval_ns)
{
	for (unsigned i = 0; i < pl->plan->n_groups; i++) {
		struct group *g = &pl->plan->groups[i];

		if (g->tap.interval_ns == interval_ns && g->tap.consumer && !tap_is_at(&g->tap, &pl->m->reading))
			report(pl, g, 0);
	}
}

static bool moves(const struct output *o)
{
	return o->twin && o->twin->interval_ns != o->interval_ns;
}

/* An output whose interval changes goes from one tap to another. What lies between their last snapshots would reach it twice or never,
 * so both begin at one reading. It is a new one: after the last one, counts may have come to it (counters_make_room). */
static void close_changed(struct pipeline *pl, const struct plan *next)
{
	bool any = false;

	for (const struct output *o = next->outputs; o; o = o->next)
		any |= moves(o);
	if (any)
		machine_read(pl->m);
	for (const struct output *o = next->outputs; o; o = o->next) {
		if (!moves(o))
			continue;
		close_group(pl, o->twin->interval_ns);
		close_group(pl, o->interval_ns);
	}
}

/* True when -n is reached. It counts intervals of the configured length; when no output has this interval, it
 * counts time. */
static bool reached_count(const struct pipeline *pl)
{
	const struct config *c = pl->plan->config;

	if (!c->count)
		return false;
	for (unsigned i = 0; i < pl->plan->n_groups; i++)
		if (pl->plan->groups[i].tap.interval_ns == c->interval_ns)
			return pl->plan->groups[i].done >= c->count;
	return (pl->m->reading.mono_ns - pl->start_ns) / c->interval_ns >= c->count;
}

/* Hands a finished trace to the outputs and the query server, unless its cgroup is not reported. */
static void deliver(void *ctx, struct trace *t)
{
	struct pipeline *pl = ctx;
	const struct selection_rules rules = config_rules(&pl->plan->config->machine.cgroups);

	if (!selection_admits(&rules, t->spans[0].cgroup)) {
		free(t);
		return;
	}
	plan_trace(pl->plan, t);
	serving_trace(pl->serving, t); /* takes it over */
}

/* Energy of spans is split from the snapshots of the totals, so that spans never sum to more than those. Without
 * a query server there are no totals, and the traces take snapshots of their own. */
static void run_totals_and_traces(struct pipeline *pl)
{
	struct snapshot *sums;

	if (!pl->serving) {
		tracing_run(pl->tracing, &pl->plan->formula);
		profiler_run(pl->profiler, &pl->m->reading, &pl->plan->formula);
	} else if (serving_run(pl->serving, pl->m, &sums)) {
		if (sums) {
			tracing_add(pl->tracing, sums);
			profiler_feed(pl->profiler, sums);
		}
		serving_show(pl->serving, pl->m, sums, tracing_figures(pl->tracing));
	}
}

static uint64_t next_deadline(struct pipeline *pl)
{
	const struct plan *p = pl->plan;
	uint64_t first = pl->serving ? serving_deadline(pl->serving, pl->m) : tracing_deadline(pl->tracing);

	if (!pl->serving && profiler_deadline(pl->profiler) < first)
		first = profiler_deadline(pl->profiler);
	for (unsigned i = 0; i < p->n_groups; i++)
		if (p->groups[i].tap.deadline_ns < first)
			first = p->groups[i].tap.deadline_ns;
	return first;
}

static void run_due(struct pipeline *pl, bool events)
{
	uint64_t now = clock_mono_ns();

	if (now < next_deadline(pl)) {
		machine_attend(pl->m, now, events);
		return;
	}
	machine_read(pl->m);
	now = pl->m->reading.mono_ns;
	for (unsigned i = 0; i < pl->plan->n_groups; i++)
		if (pl->plan->groups[i].tap.deadline_ns <= now)
			run_group(pl, &pl->plan->groups[i], now);
	run_totals_and_traces(pl);
	machine_sweep(pl->m);
	machine_say(pl->m);
}

/* Sleeps until an event, an order or until_ns; UINT64_MAX = no time limit. False when the time has come and nothing
 * else. */
static bool wait_for_order(struct pipeline *pl, int fd, uint64_t until_ns)
{
	struct pollfd fds[6] = { { .fd = pl->wake_fd, .events = POLLIN },
				 { .fd = fd, .events = POLLIN },
				 { .fd = serving_fd(pl->serving), .events = POLLIN },
				 { .fd = pl->m->jump_fd, .events = POLLIN },
				 { .fd = pl->m->spans ? spans_fd(pl->m->spans) : -1, .events = POLLIN },
				 { .fd = pl->m->counters ? counters_fd(pl->m->counters) : -1, .events = POLLIN } };
	uint64_t now = clock_mono_ns(), left_ns = until_ns > now ? until_ns - now : 0, count;
	struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_S), .tv_nsec = (long)(left_ns % NS_PER_S) };

	int ready = ppoll(fds, sizeof(fds) / sizeof(fds[0]), until_ns == UINT64_MAX ? NULL : &left, NULL);

	if (fds[0].revents && read(pl->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_error("measuring: wake-up: %s", strerror(errno));
	return ready != 0;
}

static bool wait_for_work(struct pipeline *pl)
{
	uint64_t until = next_deadline(pl), due = machine_due(pl->m);

	if (due < until)
		until = due;
	return wait_for_order(pl, pl->m->lifecycle ? lifecycle_fd(pl->m->lifecycle) : -1, until);
}

static void rest_gauges(struct machine *m, const struct plan *p)
{
	bool wanted = false;

	for (unsigned i = 0; i < p->n_groups; i++)
		wanted |= p->groups[i].gauges;
	if (!wanted)
		cpufreq_rest(m->cpufreq);
}

/* Carries out orders of the main thread. False = stop. */
static bool take_orders(struct pipeline *pl)
{
	bool stop;

	pthread_mutex_lock(&pl->lock);
	if (pl->next) {
		struct plan *old = pl->plan;

		close_changed(pl, pl->next);
		plan_take(pl->next, old);
		serving_use(pl->serving, pl->next);
		machine_select(pl->m, &pl->next->config->machine.cgroups);
		rest_gauges(pl->m, pl->next);
		if (begin(pl->m, pl->next, old) != 0)
			log_error("out of memory: some outputs get nothing until the next reload");
		plan_free_groups(old);
		pl->plan = pl->next;
		pl->previous = old;
		pl->next = NULL;
		pthread_cond_signal(&pl->swapped);
	}
	stop = pl->stop;
	pthread_mutex_unlock(&pl->lock);
	return !stop;
}

static void *measure(void *arg)
{
	struct pipeline *pl = arg;
	const uint64_t one = 1;
	bool said = false;

	thread_hurry("measuring");
	while (take_orders(pl)) {
		atomic_fetch_add(&pl->turns, 1);
		if (!reached_count(pl)) {
			run_due(pl, wait_for_work(pl));
			continue;
		}
		/* -n is reached: wait for orders only */
		if (!said && write(pl->done_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
			said = true;
		wait_for_order(pl, -1, UINT64_MAX);
	}
	tracing_finish(pl->tracing);
	return NULL;
}

int pipeline_start(const struct pipeline_options *o, struct pipeline **ret, struct err *err)
{
	struct pipeline *pl = calloc(1, sizeof(*pl));
	struct machine *m = o->machine;
	int rc = -ENOMEM;

	if (!pl)
		return err_set(err, rc, "measuring: out of memory; free some");
	*pl = (struct pipeline){
		.m = m,
		.plan = o->plan,
		.serving = o->serving,
		.tracing = o->tracing,
		.profiler = o->profiler,
		.done_fd = o->done_fd,
		.start_ns = m->reading.mono_ns,
	};
	tracing_deliver(o->tracing, deliver, pl);
	pthread_mutex_init(&pl->lock, NULL);
	pthread_cond_init(&pl->swapped, NULL);
	pl->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pl->wake_fd < 0)
		rc = -errno;
	else
		rc = begin(m, o->plan, NULL);
	if (!rc)
		rc = naming_start(m->naming);
	if (!rc)
		rc = spans_start(m->spans);
	if (!rc)
		rc = machine_start_devices(m);
	if (!rc)
		rc = thread_start(&pl->thread, "jouled-measure", STACK_BYTES, measure, pl);
	if (rc) {
		if (pl->wake_fd >= 0)
			close(pl->wake_fd);
		free(pl);
		return err_set(err, rc, "measuring: %s; raise the limit of %s", strerror(-rc),
			       rc == -EMFILE || rc == -ENFILE ? "open files" : "memory or tasks");
	}
	*ret = pl;
	return 0;
}

static void wake(struct pipeline *pl)
{
	const uint64_t one = 1;

	/* fails only when the counter is full; the thread is awake then */
	if (write(pl->wake_fd, &one, sizeof(one)) < 0)
		return;
}

unsigned pipeline_turns(struct pipeline *pl)
{
	wake(pl);
	return atomic_load(&pl->turns);
}

struct plan *pipeline_swap(struct pipeline *pl, struct plan *p)
{
	struct plan *previous;

	pthread_mutex_lock(&pl->lock);
	pl->next = p;
	wake(pl);
	while (pl->next)
		pthread_cond_wait(&pl->swapped, &pl->lock);
	previous = pl->previous;
	pthread_mutex_unlock(&pl->lock);
	return previous;
}

struct plan *pipeline_stop(struct pipeline *pl)
{
	struct plan *p;

	pthread_mutex_lock(&pl->lock);
	pl->stop = true;
	wake(pl);
	pthread_mutex_unlock(&pl->lock);
	pthread_join(pl->thread, NULL);
	p = pl->plan;
	close(pl->wake_fd);
	pthread_cond_destroy(&pl->swapped);
	pthread_mutex_destroy(&pl->lock);
	free(pl);
	return p;
}
