/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/stream: one document per interval until the client leaves. Streams of one interval share a feed, and
 * each format is encoded once for all of them. A client that does not keep up loses whole documents, which the
 * number of the next one shows. The server never waits for a client. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "routes.h"

#define QUEUE_BYTES ((size_t)1 << 20) /* bytes that may wait for a client; one document always may */
#define STREAMS_MAX 128

struct stream {
	struct serve *serve;
	struct feed *feed;
	struct MHD_Connection *conn;
	enum serve_format format;
	struct buf queue;
	size_t sent; /* bytes of queue already sent */
	bool ended;
	struct stream *next, **at;
};

static void offer(struct stream *st, const struct buf *doc)
{
	size_t waiting = st->queue.len - st->sent;

	if (waiting && waiting + doc->len > QUEUE_BYTES)
		return;
	/* What was sent makes room, also for a client that is never through with all of it. No more is moved than was sent. */
	if (st->sent >= waiting) {
		if (waiting)
			memmove(st->queue.data, st->queue.data + st->sent, waiting);
		st->queue.len = waiting;
		st->sent = 0;
	}
	buf_add(&st->queue, doc->data, doc->len);
	if (st->queue.failed)
		st->ended = true; /* no memory: end the stream rather than send half a document */
	http_again(st->conn);
}

static void offer_all(struct serve *s, struct feed *f, const struct snapshot *snap)
{
	for (unsigned format = 0; format < SERVE_FORMATS; format++) {
		bool made = false, good = false;
		struct err err;

		for (struct stream *st = f->streams; st; st = st->next) {
			if (st->format != format)
				continue;
			if (!made) {
				buf_reset(&s->scratch);
				good = serve_document(s, format, snap, &s->scratch, &err) == 0;
				made = true;
			}
			if (good && s->scratch.len)
				offer(st, &s->scratch);
		}
	}
}

/* Sends new snapshots of the feeds. Skips those made before the interval of the feed changed. */
void serve_feed_ready(void *arg)
{
	struct serve *s = arg;

	for (unsigned i = 0; i < SERVE_FEEDS; i++) {
		struct feed *f = &s->feeds[i];
		struct snapshot_copy *c;

		while (f->streams && (c = board_next(&f->board)))
			if (c->s.nominal_ns == f->interval_ns && !serve_outdated(s, c->s.end_ns))
				offer_all(s, f, &c->s);
	}
}

static ssize_t stream_read(void *arg, char *dst, size_t n)
{
	struct stream *st = arg;
	size_t left = st->queue.len - st->sent;

	if (!left)
		return st->ended ? -1 : 0;
	n = left < n ? left : n;
	memcpy(dst, st->queue.data + st->sent, n);
	st->sent += n;
	return (ssize_t)n;
}

/* A feed without streams ends, except the agent's own feed. */
static void end_unused(struct serve *s, struct feed *f)
{
	if (f->streams)
		return;
	board_keep(&f->board, false);
	if (f == &s->feeds[0])
		return;
	atomic_store(&f->interval_ns, 0);
	s->o.wake(s->o.arg);
}

static void leave(struct stream *st)
{
	struct feed *f = st->feed;

	if (!f)
		return;
	*st->at = st->next;
	if (st->next)
		st->next->at = st->at;
	st->feed = NULL;
	end_unused(st->serve, f);
}

static void stream_free(void *arg)
{
	struct stream *st = arg;

	leave(st);
	buf_free(&st->queue);
	free(st);
}

static const struct http_stream_ops stream_ops = { stream_read, stream_free };

static struct feed *feed_of(struct serve *s, uint64_t interval_ns)
{
	struct feed *unused = NULL;

	if (!interval_ns)
		return &s->feeds[0];
	for (unsigned i = 0; i < SERVE_FEEDS; i++) {
		if (s->feeds[i].interval_ns == interval_ns)
			return &s->feeds[i];
		if (!s->feeds[i].interval_ns && !unused)
			unused = &s->feeds[i];
	}
	if (!unused)
		return NULL;
	atomic_store(&unused->interval_ns, interval_ns);
	s->o.wake(s->o.arg);
	return unused;
}

static void enter(struct stream *st, struct feed *f)
{
	/* discards snapshots that are older than the stream */
	board_latest(&f->board);
	st->feed = f;
	st->next = f->streams;
	if (st->next)
		st->next->at = &st->next;
	st->at = &f->streams;
	f->streams = st;
	board_keep(&f->board, true);
}

static unsigned count(const struct serve *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SERVE_FEEDS; i++)
		for (const struct stream *st = s->feeds[i].streams; st; st = st->next)
			n++;
	return n;
}

static void begin(struct serve *s, struct http_request *r, enum serve_format format, struct feed *f)
{
	struct stream *st = calloc(1, sizeof(*st));
	struct err err = { 0 };
	int rc = st ? serve_preamble(s, format, &st->queue, &err) : -ENOMEM;

	if (!rc) {
		*st = (struct stream){ .serve = s, .conn = r->conn, .format = format, .queue = st->queue };
		enter(st, f);
		rc = http_stream(r, serve_format_types[format], &stream_ops, st);
	}
	if (!rc)
		return;
	http_error(r, rc == -ENOENT ? 400 : 503, NULL, "%s",
		   err.text[0] ? err.text : "stream: out of memory; try again");
	if (st)
		stream_free(st);
	end_unused(s, f);
}

/* Returns the format; -1: the request is already answered. The words match the types; cbor is called snapshot
 * elsewhere. */
static int choose_format(struct http_request *r, const struct query *q)
{
	static const char *const words[] = { "json", "cbor", "hwpc", "power", "table", "vjoule" };
	static const char *const types[] = { "application/json",
					     "application/cbor",
					     "application/x-ndjson",
					     "application/x-ndjson",
					     "text/plain",
					     "application/x-vjoule",
					     NULL };

	if (!q->format[0])
		return serve_negotiate(r, types);
	for (int i = 0; i < SERVE_FORMATS; i++)
		if (strcmp(words[i], q->format) == 0 || strcmp(serve_format_names[i], q->format) == 0)
			return i;
	http_error(r, 400, NULL, "format: unknown; write json, cbor, hwpc, power, table or vjoule");
	return -1;
}

void serve_get_stream(struct serve *s, struct http_request *r, const char *rest)
{
	struct query q;
	struct feed *f;
	int format;

	if (!serve_query(r, "format interval", &q) || (format = choose_format(r, &q)) < 0)
		return;
	if (r->head) {
		struct buf nothing = { 0 };

		http_reply(r, 200, serve_format_types[format], NULL, &nothing);
		return;
	}
	f = count(s) < STREAMS_MAX ? feed_of(s, q.interval_ns) : NULL;
	if (f)
		begin(s, r, (enum serve_format)format, f);
	else
		http_error(r, 503, "Retry-After: 1",
			   "stream: %d streams or %d intervals at once; use one of those that run", STREAMS_MAX,
			   SERVE_FEEDS);
}

void serve_streams_end(struct serve *s)
{
	for (unsigned i = 0; i < SERVE_FEEDS; i++)
		for (struct stream *st = s->feeds[i].streams; st; st = st->next)
			st->ended = true;
}
