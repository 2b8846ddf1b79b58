/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "../base/thread.h"
#include "pipeline.h"

/* BPF ring callbacks and path buffers of 4 KiB are the largest frames. */
#define STACK_BYTES (256u << 10)

struct pipeline {
	struct machine *m;
	struct plan *plan; /* measuring thread only */
	pthread_t thread;
	int wake_fd, done_fd;
	uint64_t start_ns;
	_Atomic unsigned turns;
	pthread_mutex_t lock; /* the rest */
	pthread_cond_t swapped;
	struct plan *next, *previous;
	bool stop;
};

static bool same_formula(const struct plan *a, const struct plan *b)
{
	return a->formula == b->formula &&
	       memcmp(&a->formula_options, &b->formula_options, sizeof(a->formula_options)) == 0;
}

/* A group of the old plan with the same interval goes on: its consumer, its deadline, and what its
 * formula has learned unless the formula itself changed. */
static void inherit(struct group *g, struct plan *p, struct plan *old)
{
	for (unsigned i = 0; old && i < old->n_groups; i++) {
		struct group *from = &old->groups[i];

		if (from->interval_ns != g->interval_ns)
			continue;
		g->consumer = from->consumer;
		g->deadline_ns = from->deadline_ns;
		g->done = from->done;
		from->consumer = NULL;
		if (same_formula(p, old)) {
			g->formula = from->formula;
			from->formula = NULL;
		}
	}
}

/* 0 or -ENOMEM, with the groups as far as they came. */
static int begin(struct machine *m, struct plan *p, struct plan *old)
{
	for (unsigned i = 0; i < p->n_groups; i++) {
		struct group *g = &p->groups[i];

		inherit(g, p, old);
		if (!g->consumer) {
			g->consumer = consumer_new(&m->reading);
			g->deadline_ns = m->reading.mono_ns + g->interval_ns;
		}
		if (!g->formula)
			g->formula = plan_formula(p);
		if (!g->consumer || !g->formula)
			return -ENOMEM;
	}
	return 0;
}

static void send_snapshot(struct plan *p, struct group *g, struct snapshot *s)
{
	if (!g->formula || p->formula->apply(g->formula, s) != 0)
		formula_all_residual(s);
	for (unsigned i = 0; i < g->n; i++)
		output_send(g->outputs[i], s);
}

static void run_group(struct pipeline *pl, struct group *g, uint64_t now_ns)
{
	uint64_t missed = (now_ns - g->deadline_ns) / g->interval_ns;
	struct snapshot *s = g->consumer ? consumer_snapshot(g->consumer, &pl->m->reading) : NULL;

	g->deadline_ns += (missed + 1) * g->interval_ns;
	g->done++;
	if (!s) {
		log_error("out of memory: an interval is joined to the next one");
		return;
	}
	s->nominal_ns = g->interval_ns;
	s->missed = missed;
	s->khz = NULL;
	s->package_mc = 0;
	if (g->gauges)
		cpufreq_read(pl->m->cpufreq, s);
	send_snapshot(pl->plan, g, s);
}

/* -n counts intervals of the configured length; where no output has it, their time. */
static bool reached_count(const struct pipeline *pl)
{
	const struct config *c = pl->plan->config;

	if (!c->count)
		return false;
	for (unsigned i = 0; i < pl->plan->n_groups; i++)
		if (pl->plan->groups[i].interval_ns == c->interval_ns)
			return pl->plan->groups[i].done >= c->count;
	return (pl->m->reading.mono_ns - pl->start_ns) / c->interval_ns >= c->count;
}

static uint64_t next_deadline(struct machine *m, const struct plan *p)
{
	uint64_t first = serving_deadline(p->serving, m), traces = tracing_deadline(p->tracing, p);

	if (traces < first)
		first = traces;

	for (unsigned i = 0; i < p->n_groups; i++)
		if (p->groups[i].deadline_ns < first)
			first = p->groups[i].deadline_ns;
	return first;
}

static void run_due(struct pipeline *pl)
{
	uint64_t now = clock_mono_ns();

	if (now < next_deadline(pl->m, pl->plan)) {
		machine_attend(pl->m, now);
		return;
	}
	machine_read(pl->m);
	now = pl->m->reading.mono_ns;
	for (unsigned i = 0; i < pl->plan->n_groups; i++)
		if (pl->plan->groups[i].deadline_ns <= now)
			run_group(pl, &pl->plan->groups[i], now);
	serving_run(pl->plan->serving, pl->m);
	tracing_run(pl->plan->tracing, pl->plan);
	machine_sweep(pl->m);
	machine_say(pl->m);
}

/* Sleeps until an event, an order or the time; until_ns UINT64_MAX = for ever. */
static void wait_for_order(struct pipeline *pl, int fd, uint64_t until_ns)
{
	struct pollfd fds[5] = { { .fd = pl->wake_fd, .events = POLLIN },
				 { .fd = fd, .events = POLLIN },
				 { .fd = serving_fd(pl->plan->serving), .events = POLLIN },
				 { .fd = pl->m->jump_fd, .events = POLLIN },
				 { .fd = pl->m->spans ? spans_fd(pl->m->spans) : -1, .events = POLLIN } };
	uint64_t now = clock_mono_ns(), left_ns = until_ns > now ? until_ns - now : 0, count;
	struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_S), .tv_nsec = (long)(left_ns % NS_PER_S) };

	ppoll(fds, 5, until_ns == UINT64_MAX ? NULL : &left, NULL);
	if (fds[0].revents && read(pl->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_error("measuring: wake-up: %s", strerror(errno));
}

static void wait_for_work(struct pipeline *pl)
{
	uint64_t until = next_deadline(pl->m, pl->plan);

	if (pl->m->rapl_due_ns < until)
		until = pl->m->rapl_due_ns;
	wait_for_order(pl, pl->m->lifecycle ? lifecycle_fd(pl->m->lifecycle) : -1, until);
}

static void rest_gauges(struct machine *m, const struct plan *p)
{
	bool wanted = false;

	for (unsigned i = 0; i < p->n_groups; i++)
		wanted |= p->groups[i].gauges;
	if (!wanted)
		cpufreq_rest(m->cpufreq);
}

/* Orders of the main thread. false = stop. */
static bool take_orders(struct pipeline *pl)
{
	bool stop;

	pthread_mutex_lock(&pl->lock);
	if (pl->next) {
		struct plan *old = pl->plan;

		plan_take(pl->next, old);
		pl->next->serving = old->serving;
		pl->next->tracing = old->tracing;
		serving_use(pl->next->serving, pl->next);
		machine_select(pl->m, pl->next->config);
		rest_gauges(pl->m, pl->next);
		if (begin(pl->m, pl->next, old) != 0)
			log_error("out of memory: some outputs get nothing until the next reload");
		pl->plan = pl->next;
		pl->previous = old;
		pl->next = NULL;
		pthread_cond_signal(&pl->swapped);
	}
	stop = pl->stop;
	pthread_mutex_unlock(&pl->lock);
	return !stop;
}

/* Among busy processes a reading would begin when the scheduler comes round to it, tens of
 * milliseconds late. Readings are short, and who waits for a deadline uses nothing; the kernel keeps
 * 5 % for others whatever happens (sched(7)). Without the right it is as before. */
static void hurry(void)
{
	const struct sched_param p = { .sched_priority = sched_get_priority_min(SCHED_RR) };

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &p) != 0)
		log_debug("measuring: no real-time priority: %s", strerror(errno));
}

static void *measure(void *arg)
{
	struct pipeline *pl = arg;
	const uint64_t one = 1;
	bool said = false;

	hurry();
	while (take_orders(pl)) {
		atomic_fetch_add(&pl->turns, 1);
		if (!reached_count(pl)) {
			wait_for_work(pl);
			run_due(pl);
			continue;
		}
		/* -n is done: only orders are waited for */
		if (!said && write(pl->done_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
			said = true;
		wait_for_order(pl, -1, UINT64_MAX);
	}
	tracing_finish(pl->plan->tracing, pl->plan);
	return NULL;
}

int pipeline_start(struct machine *m, struct plan *p, int done_fd, struct pipeline **ret, struct err *err)
{
	struct pipeline *pl = calloc(1, sizeof(*pl));
	int rc = -ENOMEM;

	if (!pl)
		return err_set(err, rc, "measuring: out of memory");
	*pl = (struct pipeline){ .m = m, .plan = p, .done_fd = done_fd, .start_ns = m->reading.mono_ns };
	pthread_mutex_init(&pl->lock, NULL);
	pthread_cond_init(&pl->swapped, NULL);
	pl->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pl->wake_fd < 0)
		rc = -errno;
	else
		rc = begin(m, p, NULL);
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
		return err_set(err, rc, "measuring: %s; raise the limits of memory, files or tasks", strerror(-rc));
	}
	*ret = pl;
	return 0;
}

static void wake(struct pipeline *pl)
{
	const uint64_t one = 1;

	/* fails only when the counter is full: it is awake then */
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
