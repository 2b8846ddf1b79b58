/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "routes.h"

bool serve_select(struct serve *s, const struct selection_rules *rules)
{
	struct selection_rules *copy, *old;

	if (s->rules && selection_rules_same(s->rules, rules)) /* no other thread changes them */
		return false;
	copy = selection_rules_copy(rules);
	pthread_mutex_lock(&s->lock);
	old = s->rules;
	s->rules = copy;
	s->selected_ns = clock_mono_ns();
	pthread_mutex_unlock(&s->lock);
	free(old);
	trace_ring_select(&s->traces, rules);
	return true;
}

bool serve_outdated(struct serve *s, uint64_t mono_ns)
{
	bool outdated;

	pthread_mutex_lock(&s->lock);
	outdated = mono_ns < s->selected_ns;
	pthread_mutex_unlock(&s->lock);
	return outdated;
}

struct selection_rules *serve_rules(struct serve *s)
{
	struct selection_rules *copy;

	pthread_mutex_lock(&s->lock);
	copy = s->rules ? selection_rules_copy(s->rules) : NULL;
	pthread_mutex_unlock(&s->lock);
	return copy;
}

const struct snapshot *serve_last(struct serve *s)
{
	struct feed *f = &s->feeds[0];
	struct snapshot_copy *c;

	/* with streams, these take each snapshot in turn */
	if (f->streams)
		serve_feed_ready(s);
	c = board_latest(&f->board);
	return c && !serve_outdated(s, c->s.end_ns) ? &c->s : NULL;
}

const struct totals *serve_totals(struct serve *s)
{
	const struct totals *t = board_latest(&s->totals_board);

	return t && !serve_outdated(s, t->mono_ns) ? t : NULL;
}

uint64_t serve_feed_interval(struct serve *s, unsigned feed)
{
	return atomic_load(&s->feeds[feed].interval_ns);
}

bool serve_wants_reading(struct serve *s)
{
	bool wanted;

	pthread_mutex_lock(&s->lock);
	wanted = s->asked != s->taken;
	s->taken = s->asked;
	pthread_mutex_unlock(&s->lock);
	return wanted;
}

void serve_publish(struct serve *s, unsigned feed, const struct snapshot *snap)
{
	struct feed *f = &s->feeds[feed];
	int box = board_take(&f->board);
	bool wanted;

	if (box < 0)
		return;
	board_put(&f->board, box, snapshot_copy(&f->copies[box], snap) == 0);
	pthread_mutex_lock(&f->board.lock);
	wanted = f->board.keep;
	pthread_mutex_unlock(&f->board.lock);
	if (wanted)
		loop_post(s->loop, serve_feed_ready, s);
}

/* On the loop: resumes the requests that wait for a reading. */
static void wake_waiters(void *arg)
{
	struct serve *s = arg;

	for (struct waiter *w = s->waiters; w; w = w->next)
		http_again(w->conn);
}

/* Shows the waiting totals if their hand-over number is at most seq. With the lock held. True = a request
 * waited for them. */
static bool show_held(struct serve *s, uint64_t seq)
{
	bool reading = s->held.reading;

	if (!s->held.seq || s->held.seq > seq)
		return false;
	if (s->held.box >= 0)
		board_put(&s->totals_board, s->held.box, s->held.filled);
	if (reading)
		s->answered = s->held.taken;
	s->held.seq = 0;
	return reading;
}

void serve_publish_totals(struct serve *s, const struct totals *t, bool reading, uint64_t seq)
{
	bool wake, filled;
	int box;

	pthread_mutex_lock(&s->lock);
	wake = show_held(s, UINT64_MAX);
	pthread_mutex_unlock(&s->lock);
	box = board_take(&s->totals_board);
	filled = box >= 0 && totals_copy(&s->totals[box], t) == 0;
	pthread_mutex_lock(&s->lock);
	s->held.seq = seq ? seq : 1;
	s->held.taken = s->taken;
	s->held.box = box;
	s->held.filled = filled;
	s->held.reading = reading;
	wake |= show_held(s, seq ? s->kept : 1);
	pthread_mutex_unlock(&s->lock);
	if (wake)
		loop_post(s->loop, wake_waiters, s);
}

void serve_totals_kept(void *serve, uint64_t seq)
{
	struct serve *s = serve;
	bool wake;

	pthread_mutex_lock(&s->lock);
	s->kept = seq;
	wake = show_held(s, seq);
	pthread_mutex_unlock(&s->lock);
	if (wake)
		loop_post(s->loop, wake_waiters, s);
}

void serve_tell_facts(struct serve *s, const struct serve_facts *f)
{
	pthread_mutex_lock(&s->lock);
	s->facts = *f;
	pthread_mutex_unlock(&s->lock);
}

void serve_tell_outputs(struct serve *s, const struct serve_output *v, unsigned n)
{
	struct serve_output *copy = calloc(n ? n : 1, sizeof(*copy)), *old;

	if (!copy)
		return;
	memcpy(copy, v, n * sizeof(*copy));
	pthread_mutex_lock(&s->lock);
	old = s->outputs;
	s->outputs = copy;
	s->n_outputs = n;
	pthread_mutex_unlock(&s->lock);
	free(old);
}

void serve_set_interval(struct serve *s, uint64_t interval_ns)
{
	atomic_store(&s->feeds[0].interval_ns, interval_ns);
}

static void on_waiting(evutil_socket_t fd, short what, void *arg)
{
	struct serve *s = arg;
	const struct timeval second = { .tv_sec = 1 };

	wake_waiters(s);
	if (s->waiters)
		event_add(s->waiting, &second);
}

static void on_request_done(void *arg, struct MHD_Connection *conn)
{
	serve_reading_done(arg, conn);
	serve_history_done(arg, conn);
	serve_profile_done(arg, conn);
}

static void free_parts(struct serve *s)
{
	for (unsigned i = 0; i < SERVE_FEEDS; i++) {
		for (unsigned k = 0; k < BOARD_BOXES; k++)
			snapshot_copy_free(&s->feeds[i].copies[k]);
		board_fini(&s->feeds[i].board);
	}
	for (unsigned k = 0; k < BOARD_BOXES; k++)
		totals_free(&s->totals[k]);
	totals_free(&s->coarse);
	board_fini(&s->totals_board);
	trace_ring_fini(&s->traces);
	serve_profile_end(s);
	for (unsigned i = 0; i < SERVE_FORMATS; i++)
		if (s->encoders[i])
			encoder_find(serve_format_names[i])->destroy(s->encoders[i]);
	while (s->waiters) {
		struct waiter *w = s->waiters;

		s->waiters = w->next;
		free(w);
	}
	if (s->waiting)
		event_free(s->waiting);
	if (s->turning)
		event_free(s->turning);
	fsroot_close(s->root);
	cost_watch_stop(&s->cost);
	free(s->audit);
	free(s->sources);
	free(s->outputs);
	buf_free(&s->out);
	buf_free(&s->scratch);
	selection_fold_free(&s->fold);
	free(s->rules);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void make_boards(struct serve *s)
{
	for (unsigned i = 0; i < SERVE_FEEDS; i++) {
		board_init(&s->feeds[i].board);
		for (unsigned k = 0; k < BOARD_BOXES; k++)
			s->feeds[i].board.boxes[k] = &s->feeds[i].copies[k];
	}
	board_init(&s->totals_board);
	for (unsigned k = 0; k < BOARD_BOXES; k++)
		s->totals_board.boxes[k] = &s->totals[k];
	s->feeds[0].interval_ns = s->o.interval_ns;
}

struct series_cost serve_cost_now(struct serve *s)
{
	if (cost_watch_look(&s->cost))
		log_warn("%s", s->cost.error);
	return (struct series_cost){ s->cost.cost.price, cost_intensity(&s->cost.cost, clock_real_ns()) };
}

int serve_start(const struct serve_options *o, struct loop *loop, struct serve **ret, struct err *err)
{
	struct http_options ho = {
		.fd = o->fd, .local = true, .max_clients = SERVE_CLIENTS, .answer = serve_route, .done = on_request_done
	};
	struct serve *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	if (!s)
		return err_set(err, -ENOMEM, "query socket: out of memory; free some");
	s->o = *o;
	s->loop = loop;
	s->start_ns = clock_mono_ns();
	pthread_mutex_init(&s->lock, NULL);
	make_boards(s);
	cost_watch_start(&s->cost, o->price, o->carbon);
	serve_cost_now(s);
	trace_ring_init(&s->traces, o->trace_bytes);
	ho.arg = s;
	s->waiting = evtimer_new(loop_base(loop), on_waiting, s);
	s->turning = evtimer_new(loop_base(loop), serve_history_turn, s);
	s->sources = calloc(o->n_sources ? o->n_sources : 1, sizeof(*s->sources));
	if (s->sources && s->waiting && s->turning)
		rc = fsroot_open("/", &s->root);
	if (!rc && o->audit && !(s->audit = malloc(sizeof(*s->audit))))
		rc = -ENOMEM;
	if (!rc && o->audit)
		*s->audit = *o->audit;
	if (!rc) {
		memcpy(s->sources, o->sources, o->n_sources * sizeof(*s->sources));
		s->n_sources = o->n_sources;
		rc = o->fd >= 0 ? http_start(&ho, loop, &s->http) : 0;
	}
	if (!rc && o->web_fd >= 0) {
		ho.fd = o->web_fd;
		ho.local = false;
		rc = http_start(&ho, loop, &s->web);
	}
	if (rc) {
		http_forget(s->http);
		free_parts(s);
		return err_set(err, rc, "query socket: %s; %s", strerror(-rc),
			       rc == -EMFILE || rc == -ENFILE ? "raise the limit of open files" : "free some memory");
	}
	*ret = s;
	return 0;
}

static void end(void *arg)
{
	serve_history_end(arg);
	serve_devices_end(arg);
	serve_streams_end(arg);
}

void serve_stop(struct serve *s)
{
	if (!s)
		return;
	loop_call(s->loop, end, s);
	http_stop(s->http);
	http_stop(s->web);
	free_parts(s);
}
