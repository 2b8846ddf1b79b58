/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of all sinks: the table of schemes, the bounded inbox, the figures. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "impl.h"

static const struct {
	const struct sink_ops *ops;
	enum sink_url_form form;
} kinds[] = {
	{ &sink_null, SINK_URL_BARE },        { &sink_stdout, SINK_URL_BARE },
	{ &sink_file, SINK_URL_PATH },        { &sink_tcp, SINK_URL_HOST_PORT },
	{ &sink_unix, SINK_URL_PATH },        { &sink_tcp_listen, SINK_URL_ADDR_PORT },
	{ &sink_unix_listen, SINK_URL_PATH }, { &sink_vsock_listen, SINK_URL_HOST_PORT },
};

static const struct sink_ops *sink_kind(const char *url, struct sink_url *u, struct err *err)
{
	if (sink_url_scheme(url, u, err) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].ops->scheme, u->scheme) == 0)
			return sink_url_rest(url, kinds[i].form, u, err) == 0 ? kinds[i].ops : NULL;
	err_set(err, -EINVAL,
		"output \"%s\": unknown scheme \"%s\"; write one of stdout: file: tcp: unix: "
		"tcp-listen: unix-listen: vsock-listen: null:",
		u->text, u->scheme);
	return NULL;
}

int sink_check_url(const char *url, struct err *err)
{
	struct sink_url u;

	return sink_kind(url, &u, err) ? 0 : -EINVAL;
}

int sink_open(const char *url, const struct sink_options *o, struct loop *loop, struct sink **ret, struct err *err)
{
	static const struct sink_options defaults;
	struct sink_url u;
	const struct sink_ops *ops = sink_kind(url, &u, err);

	return ops ? ops->open(&u, o ? o : &defaults, loop, ret, err) : -EINVAL;
}

int sink_init(struct sink *s, const struct sink_ops *ops, size_t bound)
{
	s->ops = ops;
	s->bound = bound ? bound : SINK_QUEUE_BYTES;
	pthread_mutex_init(&s->lock, NULL);
	thread_cond_init(&s->changed);
	s->pool = doc_pool_new();
	return s->pool ? 0 : -ENOMEM;
}

void sink_settle(struct sink *s)
{
	if (s->last)
		*s->last = s->stats;
	s->last = NULL;
}

void sink_fini(struct sink *s)
{
	struct doc *d;

	if (!s->ops)
		return;
	sink_settle(s);
	while ((d = doc_list_take(&s->inbox)))
		doc_unref(d);
	doc_unref(s->preamble);
	doc_pool_close(s->pool);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
}

/* With the lock held. */
static int sink_refuse(struct sink *s, size_t len)
{
	if (s->stats.up) {
		snprintf(s->stats.why, sizeof(s->stats.why), "its reader is too slow");
		s->stats.error = 0;
	}
	s->stats.dropped_documents++;
	s->stats.dropped_bytes += len;
	pthread_mutex_unlock(&s->lock);
	return -ENOBUFS;
}

/* Takes room for a document: 1 = taken, 0 = nobody wants it (counted), or -ENOBUFS. One alone may be of any size. */
static int sink_room(struct sink *s, size_t len)
{
	if (len == 0)
		return 0;
	pthread_mutex_lock(&s->lock);
	if (!s->ops->wake) {
		s->stats.documents++;
		s->stats.bytes += len;
		pthread_mutex_unlock(&s->lock);
		return 0;
	}
	if (s->held && (s->held >= s->bound || doc_charge(len) > s->bound - s->held))
		return sink_refuse(s, len);
	s->held += doc_charge(len);
	pthread_mutex_unlock(&s->lock);
	return 1;
}

/* Queues a document for which there is room; d NULL: there was no memory for it. */
static int sink_queue(struct sink *s, uint32_t channel, struct doc *d, size_t len)
{
	bool wake;

	pthread_mutex_lock(&s->lock);
	if (!d) {
		s->held -= doc_charge(len);
		return sink_refuse(s, len);
	}
	wake = !s->inbox.first;
	d->epoch = s->epoch;
	d->channel = channel;
	doc_list_add(&s->inbox, d);
	s->stats.queued++;
	pthread_mutex_unlock(&s->lock);
	if (wake)
		s->ops->wake(s);
	return 0;
}

int sink_submit(struct sink *s, const void *data, size_t len)
{
	return sink_submit_to(s, 0, data, len);
}

int sink_submit_to(struct sink *s, uint32_t channel, const void *data, size_t len)
{
	int rc = sink_room(s, len);

	/* The copy is made outside the lock, so no thread waits for it. */
	return rc <= 0 ? rc : sink_queue(s, channel, doc_new(s->pool, data, len), len);
}

int sink_submit_buf(struct sink *s, struct buf *b)
{
	size_t len = b->len;
	int rc = sink_room(s, len);

	if (rc > 0)
		rc = sink_queue(s, 0, doc_take(s->pool, b), len);
	buf_reset(b);
	return rc;
}

static int set_preamble(struct sink *s, const void *data, size_t len, uint32_t epochs)
{
	struct doc *d = NULL;

	if (len && !(d = doc_new(s->pool, data, len)))
		return -ENOMEM;
	pthread_mutex_lock(&s->lock);
	struct doc *old = s->preamble;
	s->preamble = d;
	s->epoch += epochs;
	pthread_mutex_unlock(&s->lock);
	doc_unref(old);
	return 0;
}

int sink_set_preamble(struct sink *s, const void *data, size_t len)
{
	return set_preamble(s, data, len, 0);
}

int sink_restart(struct sink *s, const void *preamble, size_t len)
{
	int rc = s->ops->restart ? set_preamble(s, preamble, len, 1) : -EOPNOTSUPP;

	if (!rc)
		s->ops->restart(s);
	return rc;
}

void sink_get_stats(struct sink *s, struct sink_stats *ret)
{
	pthread_mutex_lock(&s->lock);
	*ret = s->stats;
	pthread_mutex_unlock(&s->lock);
}

const char *sink_remedy(const struct sink *s)
{
	return s->ops->remedy ? s->ops->remedy : "free memory";
}

void sink_close(struct sink *s, uint64_t timeout_ns)
{
	uint64_t now = clock_mono_ns();

	if (s)
		s->ops->close(s, timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns);
}

void sink_end(struct sink *s, uint64_t timeout_ns, struct sink_stats *ret)
{
	pthread_mutex_lock(&s->lock);
	s->last = ret;
	pthread_mutex_unlock(&s->lock);
	sink_close(s, timeout_ns);
}

struct doc_list sink_take(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	struct doc_list l = s->inbox;
	memset(&s->inbox, 0, sizeof(s->inbox));
	pthread_mutex_unlock(&s->lock);
	return l;
}

struct doc *sink_preamble(struct sink *s, uint32_t *ret_epoch)
{
	pthread_mutex_lock(&s->lock);
	struct doc *d = s->preamble ? doc_ref(s->preamble) : NULL;
	*ret_epoch = s->epoch;
	pthread_mutex_unlock(&s->lock);
	return d;
}

void sink_count(struct sink *s, const struct doc *d, enum sink_end_of end)
{
	if (end == SINK_DELIVERED) {
		s->stats.documents++;
		s->stats.bytes += d->len;
		return;
	}
	s->stats.dropped_documents++;
	s->stats.dropped_bytes += d->len;
	s->stats.left_documents += end == SINK_LEFT;
}

void sink_done(struct sink *s, struct doc *d, enum sink_end_of end)
{
	pthread_mutex_lock(&s->lock);
	s->held -= doc_charge(d->len);
	s->stats.queued--;
	sink_count(s, d, end);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	doc_unref(d);
}

void sink_failed(struct sink *s, int error, const char *why)
{
	pthread_mutex_lock(&s->lock);
	s->stats.error = error;
	snprintf(s->stats.why, sizeof(s->stats.why), "%s", why);
	pthread_mutex_unlock(&s->lock);
}

void sink_state(struct sink *s, bool up, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&s->lock);
	s->stats.up = up;
	va_start(ap, fmt);
	vsnprintf(s->stats.state, sizeof(s->stats.state), fmt, ap);
	va_end(ap);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

bool sink_wait(struct sink *s, uint64_t deadline_ns)
{
	return thread_cond_wait(&s->changed, &s->lock, deadline_ns);
}
