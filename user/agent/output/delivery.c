/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "delivery.h"

#define FIRST_PAUSE_NS (125 * NS_PER_MS)
#define LAST_PAUSE_NS (60 * NS_PER_S)
#define QUEUE_BYTES ((size_t)4 << 20)

void delivery_init(struct delivery *d)
{
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->queued, NULL);
	thread_cond_init(&d->arrived);
	d->pool = d->rare ? NULL : doc_pool_new();
	d->queue_bytes = d->queue_bytes ? d->queue_bytes : QUEUE_BYTES;
}

void delivery_path(char ret[DELIVERY_PATH_MAX], const char *state_dir, const char *format, const char *to,
		   const char *name, const char *suffix)
{
	uint32_t crc = crc32_gzip_refl(0, (const uint8_t *)to, strlen(to));

	crc = crc32_gzip_refl(crc, (const uint8_t *)name, strlen(name));
	snprintf(ret, DELIVERY_PATH_MAX, "%s/%s-%08" PRIx32 ".%s", state_dir ? state_dir : ".", format, crc, suffix);
}

/* The writer: from the queue to the spool. */

/* The first one, which stays in the queue; NULL = the end. */
static struct doc *first(struct delivery *d)
{
	struct doc *doc;

	pthread_mutex_lock(&d->lock);
	while (!d->waiting.first && !atomic_load(&d->stop))
		pthread_cond_wait(&d->queued, &d->lock);
	doc = d->waiting.first;
	pthread_mutex_unlock(&d->lock);
	return doc;
}

/* Removes the first document, which is on disk now; until then it counts as waiting. True when it was the last one. */
static bool taken(struct delivery *d)
{
	struct doc *doc;
	bool last;

	pthread_mutex_lock(&d->lock);
	doc = doc_list_take(&d->waiting);
	last = !d->waiting.first;
	d->held -= doc_charge(doc->len);
	d->spooled++;
	pthread_cond_signal(&d->arrived);
	pthread_mutex_unlock(&d->lock);
	doc_unref(doc);
	return last;
}

/* Whether documents wait behind the one that is being delivered. */
static bool behind(struct delivery *d)
{
	struct spool_stats st;

	spool_get_stats(d->spool, &st);
	return st.waiting > 1;
}

/* Ends when it is told to and everything is in the spool. A document that is delivered at once is not worth a sync: what
 * a power failure can take is that one. */
static void *writer(void *arg)
{
	struct delivery *d = arg;
	struct buf kept = { 0 };
	struct doc *doc;

	while ((doc = first(d))) {
		buf_reset(&kept);
		/* the spool counts failures */
		if (d->keep && d->keep(d->arg, doc->data, doc->len, &kept) == 0)
			spool_append_weighed(d->spool, doc->real_ns, doc->energy_mj, kept.data, kept.len);
		else
			spool_append_weighed(d->spool, doc->real_ns, doc->energy_mj, doc->data, doc->len);
		if (taken(d) && behind(d))
			spool_sync(d->spool);
	}
	buf_free(&kept);
	return NULL;
}

static int enqueue(struct delivery *d, struct doc *doc)
{
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	if (d->held + doc_charge(doc->len) > d->queue_bytes && d->waiting.first) {
		d->figures.dropped_queue++;
		d->figures.dropped_mj += doc->energy_mj;
		rc = -ENOBUFS;
	} else {
		doc_list_add(&d->waiting, doc);
		d->held += doc_charge(doc->len);
		pthread_cond_signal(&d->queued);
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

int delivery_submit(struct delivery *d, struct buf *document, uint64_t energy_uj)
{
	struct doc *doc = doc_take(d->pool, document);
	uint64_t mj = (energy_uj + 500) / 1000;
	int rc;

	if (!doc) {
		delivery_count(d, &d->figures.unfit, 1);
		return -ENOMEM;
	}
	doc->real_ns = clock_real_ns();
	doc->energy_mj = mj < UINT32_MAX ? (uint32_t)mj : UINT32_MAX;
	rc = enqueue(d, doc);
	if (rc)
		doc_unref(doc);
	return rc;
}

/* The sender: from the spool to the server. */

void delivery_set_state(struct delivery *d, bool failed, const char *text)
{
	size_t n = strlen(d->to);

	/* messages show the place anyway */
	if (strncmp(text, d->to, n) == 0 && strncmp(text + n, ": ", 2) == 0)
		text += n + 2;
	pthread_mutex_lock(&d->lock);
	d->figures.failures = failed ? d->figures.failures + 1 : 0;
	snprintf(d->figures.state, sizeof(d->figures.state), "%s", text);
	pthread_mutex_unlock(&d->lock);
}

void delivery_count(struct delivery *d, uint64_t *figure, uint64_t n)
{
	pthread_mutex_lock(&d->lock);
	*figure += n;
	pthread_mutex_unlock(&d->lock);
}

/* Returns 0.5 to 1.5 times ns, so that agents that lost their server together return at different times. */
static uint64_t with_jitter(uint64_t ns)
{
	uint32_t r = UINT32_MAX / 2;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) < 0)
		r = UINT32_MAX / 2;
	return ns / 2 + (uint64_t)((double)ns * ((double)r / UINT32_MAX));
}

/* Waits until the time is over or the program ends. ns 0: until the spool gets a record. */
static void pause_for(struct delivery *d, uint64_t ns, uint64_t seen)
{
	const uint64_t until_ns = clock_mono_ns() + (ns ? ns : 3600 * NS_PER_S);

	pthread_mutex_lock(&d->lock);
	while (!atomic_load(&d->stop) && (ns || d->spooled == seen))
		if (!thread_cond_wait(&d->arrived, &d->lock, until_ns))
			break;
	pthread_mutex_unlock(&d->lock);
}

void delivery_pause(struct delivery *d, uint64_t ns)
{
	if (ns)
		pause_for(d, ns, 0);
}

uint64_t delivery_next_pause(struct delivery *d, uint64_t at_least_ns, uint64_t at_most_ns)
{
	d->pause_ns = d->pause_ns ? d->pause_ns * 2 : FIRST_PAUSE_NS;
	if (d->pause_ns < at_least_ns)
		d->pause_ns = at_least_ns;
	if (d->pause_ns > at_most_ns)
		d->pause_ns = at_most_ns;
	return with_jitter(d->pause_ns);
}

uint64_t delivery_period_ns(struct delivery *d)
{
	uint64_t n;

	pthread_mutex_lock(&d->lock);
	n = d->spooled;
	pthread_mutex_unlock(&d->lock);
	return (clock_mono_ns() - d->began_ns) / (n ? n : 1);
}

void delivery_back_off(struct delivery *d, uint64_t at_least_ns, uint64_t at_most_ns)
{
	delivery_pause(d, delivery_next_pause(d, at_least_ns, at_most_ns));
}

static void *sender(void *arg)
{
	struct delivery *d = arg;
	struct buf record = { 0 };
	struct spool_mark mark;
	uint64_t seen;

	while (!atomic_load(&d->stop)) {
		pthread_mutex_lock(&d->lock);
		seen = d->spooled;
		pthread_mutex_unlock(&d->lock);
		buf_reset(&record);
		switch (spool_next(d->spool, clock_real_ns(), &record, &mark)) {
		case 0:
			if (d->deliver(d->arg, &record, &mark))
				spool_done(d->spool, &mark);
			else
				spool_sync(d->spool);
			break;
		case -ENOENT:
			pause_for(d, 0, seen);
			break;
		default:
			delivery_back_off(d, NS_PER_S, LAST_PAUSE_NS);
		}
	}
	buf_free(&record);
	return NULL;
}

int delivery_begin(struct delivery *d, const struct spool_options *o, const char *thread, struct err *err)
{
	int rc = spool_open(o, &d->spool, err);

	if (rc)
		return rc;
	d->began_ns = clock_mono_ns();
	rc = thread_start(&d->writer, "jouled-spool", 0, writer, d);
	d->writing = !rc;
	if (!rc)
		rc = thread_start(&d->sender, thread, 0, sender, d);
	d->sending = d->writing && !rc;
	return rc ? err_set(err, rc, "output %.*s: no thread: %s; raise the limit of tasks", TEXT_SUBJECT(d->to),
			    strerror(-rc)) :
		    0;
}

void delivery_end(struct delivery *d)
{
	pthread_mutex_lock(&d->lock);
	atomic_store(&d->stop, true);
	pthread_cond_broadcast(&d->queued);
	pthread_cond_broadcast(&d->arrived);
	pthread_mutex_unlock(&d->lock);
	if (d->writing)
		pthread_join(d->writer, NULL);
	if (d->sending)
		pthread_join(d->sender, NULL);
	if (d->writing)
		spool_sync(d->spool);
	d->writing = d->sending = false;
}

void delivery_free(struct delivery *d)
{
	struct doc *doc;

	while ((doc = doc_list_take(&d->waiting)))
		doc_unref(doc);
	doc_pool_close(d->pool);
	spool_close(d->spool);
	d->spool = NULL;
	pthread_cond_destroy(&d->arrived);
	pthread_cond_destroy(&d->queued);
	pthread_mutex_destroy(&d->lock);
}

/* Figures. */

uint32_t delivery_waiting(struct delivery *d)
{
	uint32_t n;

	pthread_mutex_lock(&d->lock);
	n = d->waiting.n;
	pthread_mutex_unlock(&d->lock);
	return n;
}

void delivery_stats(struct delivery *d, struct sink_stats *ret, uint64_t *ret_spooled)
{
	struct spool_stats sp = { 0 };
	struct delivery_figures f;

	if (d->spool)
		spool_get_stats(d->spool, &sp);
	pthread_mutex_lock(&d->lock);
	f = d->figures;
	pthread_mutex_unlock(&d->lock);
	*ret = (struct sink_stats){
		.up = f.delivered && !f.failures,
		.documents = f.delivered,
		.bytes = f.delivered_bytes,
		.dropped_documents = f.dropped_queue + f.refused + f.unfit + sp.dropped_full + sp.dropped_old,
		.dropped_series = f.refused_items + f.rejected,
		.dropped_energy_uj = (f.dropped_mj + sp.dropped_weight) * 1000,
		.queued = delivery_waiting(d),
	};
	snprintf(ret->state, sizeof(ret->state), "%.159s", *f.state ? f.state : "nothing was sent yet");
	snprintf(ret->why, sizeof(ret->why), f.refused ? "refused by %s" : "%s",
		 f.refused       ? d->server :
		 sp.dropped_full ? "no room in the spool" :
		 sp.dropped_old  ? "older than spool-age" :
		 f.dropped_queue ? "the disk of the spool is too slow" :
		 f.unfit         ? "they could not be encoded" :
				   "");
	*ret_spooled = sp.waiting;
}

static const char *spool_remedy(int rc)
{
	if (!rc || rc == -EMSGSIZE)
		return "raise spool-size";
	return err_write_remedy(rc);
}

static void say_spool(struct delivery *d)
{
	struct spool_stats st;

	spool_get_stats(d->spool, &st);
	if (st.dropped_full != d->said_spool.dropped_full)
		log_warn("output %.*s: %llu %s dropped so far: %s; %s", TEXT_SUBJECT(d->to),
			 (unsigned long long)st.dropped_full, d->what,
			 st.error ? strerrordesc_np(-st.error) : "the spool is full", spool_remedy(st.error));
	if (st.sync_error && !d->said_spool.sync_error)
		log_warn(
			"output %.*s: the disk of the spool did not take it: %s; a power failure now would lose %s; %s",
			TEXT_SUBJECT(d->to), strerrordesc_np(-st.sync_error), d->what, spool_remedy(st.sync_error));
	if (st.dropped_old != d->said_spool.dropped_old)
		log_warn(
			"output %.*s: %llu %s dropped so far: older than spool-age; raise it, or mend the way to the server",
			TEXT_SUBJECT(d->to), (unsigned long long)st.dropped_old, d->what);
	if (st.damaged_bytes != d->said_spool.damaged_bytes)
		log_warn("output %.*s: %llu bytes of the spool are damaged and were read over", TEXT_SUBJECT(d->to),
			 (unsigned long long)st.damaged_bytes);
	d->said_spool = st;
}

/* Counters are cumulative: a dropped document costs the course of energy, and no energy. */
static void say_energy(struct delivery *d, uint64_t here_mj)
{
	uint64_t mj = here_mj + d->said_spool.dropped_weight;

	if (mj != d->said_mj)
		log_warn(
			"output %.*s: %llu.%03llu J were measured in the times of the documents dropped so far; later ones "
			"hold their sum",
			TEXT_SUBJECT(d->to), (unsigned long long)(mj / 1000), (unsigned long long)(mj % 1000));
	d->said_mj = mj;
}

void delivery_say(struct delivery *d)
{
	struct delivery_figures f;

	pthread_mutex_lock(&d->lock);
	f = d->figures;
	pthread_mutex_unlock(&d->lock);
	if (d->spool)
		say_spool(d);
	if (strcmp(f.state, d->said.state) != 0 && *f.state)
		log_msg(f.failures ? LOG_LVL_WARN : LOG_LVL_INFO, "output %.*s: %s", TEXT_SUBJECT(d->to), f.state);
	if (f.refused != d->said.refused)
		log_warn("output %.*s: %llu %s refused by %s so far and dropped", TEXT_SUBJECT(d->to),
			 (unsigned long long)f.refused, d->what, d->server);
	if (f.refused_items != d->said.refused_items)
		log_warn("output %.*s: %llu %s refused by %s so far and dropped, the rest arrived; the last: %s",
			 TEXT_SUBJECT(d->to), (unsigned long long)f.refused_items, d->items, d->server, f.refused_item);
	if (strcmp(f.answer, d->said.answer) != 0)
		log_warn("output %.*s: %s", TEXT_SUBJECT(d->to), f.answer);
	if (f.withheld != d->said.withheld)
		log_warn(
			"output %.*s: %llu %s that waited on disk are not sent: their cgroups are not selected any more",
			TEXT_SUBJECT(d->to), (unsigned long long)f.withheld, d->what);
	if (f.unfit != d->said.unfit)
		log_warn("output %.*s: %llu %s could not be encoded so far: %s", TEXT_SUBJECT(d->to),
			 (unsigned long long)f.unfit, d->what, f.state);
	say_energy(d, f.dropped_mj);
	if (f.dropped_queue != d->said.dropped_queue)
		log_warn(
			"output %.*s: %llu %s dropped so far: the disk of the spool is too slow; take another with --state-dir",
			TEXT_SUBJECT(d->to), (unsigned long long)f.dropped_queue, d->what);
	d->said = f;
}
