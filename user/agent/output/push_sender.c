/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <snappy-c.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/text.h"
#include "push_sender.h"

#define LAST_PAUSE_NS (60 * NS_PER_S)
#define DENIED_PAUSE_NS (10 * NS_PER_S) /* a person has to repair something */
#define LOOK_NS NS_PER_S /* time between two looks whether it was repaired */
#define TRIES 5 /* for a document of which no part is taken */
#define BAD_ITEMS 64 /* dropped one by one; then whole parts are */
#define CPU_SHARE 50 /* while documents wait, sending takes at most this part of a CPU: 2 % */
#define WORDS_MAX 160 /* of what the server says */

enum verdict {
	TAKEN,
	BAD_DATA, /* this part of the document is refused */
	DENIED, /* a person has to repair something */
	LATER,
	ENDS, /* the program ends */
};

static int pack_gzip(struct push_sender *s, const void *data, size_t n)
{
	z_stream *z = &s->deflate;
	size_t room;

	if (!s->deflates && deflateInit2(z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	s->deflates = true;
	deflateReset(z);
	room = deflateBound(z, n);
	buf_reset(&s->body);
	z->next_out = buf_reserve(&s->body, room);
	if (!z->next_out)
		return -ENOMEM;
	z->next_in = (Bytef *)(uintptr_t)data;
	z->avail_in = (uInt)n;
	z->avail_out = (uInt)room;
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return -ENOMEM;
	s->body.len = room - z->avail_out;
	return 0;
}

static int pack_snappy(struct push_sender *s, const void *data, size_t n)
{
	size_t room = snappy_max_compressed_length(n);
	uint8_t *to;

	buf_reset(&s->body);
	to = buf_reserve(&s->body, room);
	if (!to || snappy_compress(data, n, (char *)to, &room) != SNAPPY_OK)
		return -ENOMEM;
	s->body.len = room;
	return 0;
}

/* The server's own words, on one line and cut. */
static const char *words(const struct http_answer *a, char dst[WORDS_MAX * 4])
{
	char line[WORDS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < a->body.len && n + 1 < sizeof(line); i++)
		if (a->body.data[i] >= ' ' || (n && line[n - 1] != ' '))
			line[n++] = a->body.data[i] < ' ' ? ' ' : (char)a->body.data[i];
	while (n && line[n - 1] == ' ')
		n--;
	line[n] = '\0';
	return text_escape(dst, WORDS_MAX * 4, line);
}

static enum verdict judge_status(const struct push_sender *s, struct err *err)
{
	const long status = s->answer.status;
	char said[WORDS_MAX * 4];

	words(&s->answer, said);
	if (status >= 200 && status < 300)
		return TAKEN;
	if (status == 400 || status == 413 || status == 422) {
		err_set(err, -EBADMSG, "answered with %ld: %s", status, said);
		return BAD_DATA;
	}
	if (status == 401 || status == 403)
		err_set(err, -EACCES,
			"answered with %ld: it does not accept who asks; mend token-file, or user and password-file: %s",
			status, said);
	else if (status == 404 || status == 405)
		err_set(err, -EACCES, "answered with %ld: it takes nothing there; %s: %s", status,
			s->format->remedy ? s->format->remedy : "mend path and query of the URL", said);
	else if (status >= 300 && status < 400)
		err_set(err, -EACCES,
			"answered with %ld, a redirect, which is not followed; name the URL that it leads to", status);
	else
		err_set(err, -EAGAIN, "answered with %ld: %s", status, said);
	return err->code == -EACCES ? DENIED : LATER;
}

/* A server may take a document and say that it did not take all of it. It is never asked again. */
static void judge_answer(struct push_sender *s)
{
	struct delivery *d = s->d;
	struct push_answer a = { 0 };
	int rc;

	if (!s->format->answer)
		return;
	rc = s->format->answer(s->answer.body.data, s->answer.body.len, &a);
	pthread_mutex_lock(&d->lock);
	if (rc)
		snprintf(d->figures.answer, sizeof(d->figures.answer),
			 "answers \"taken\" in a form that such a server does not use; look whether it is one");
	if (a.rejected) {
		d->figures.rejected += a.rejected;
		snprintf(d->figures.answer, sizeof(d->figures.answer),
			 "%s rejected by a server that takes the rest, and dropped: %s", d->items,
			 *a.why ? a.why : "it does not say why; look at its log");
	}
	pthread_mutex_unlock(&d->lock);
}

/* The bytes that are sent for a run of items, before they are packed. */
static int wrap(struct push_sender *s, const struct buf *record, size_t end, struct push_part *part)
{
	int rc;

	*part = (struct push_part){ record->data, record->data + s->at, s->head, end - s->at };
	if (!s->format->wrap || !part->n_items)
		return 0;
	buf_reset(&s->wrapped);
	rc = s->format->wrap(part, &s->wrapped);
	part->items = s->wrapped.data;
	part->n_items = s->wrapped.len;
	return rc;
}

static enum verdict send_part(struct push_sender *s, const struct buf *record, size_t end, struct err *err)
{
	const bool snappy = s->format->packing == PUSH_SNAPPY;
	const char *headers[8] = { snappy ? "Content-Encoding: snappy" : "Content-Encoding: gzip" };
	const struct http_ask ask = { .url = s->url, .headers = headers, .post = true, .type = s->format->type };
	struct http_ask full = ask;
	unsigned h = 1;
	struct push_part part;
	enum verdict v;
	int rc = wrap(s, record, end, &part);

	if (rc == -EBADMSG) {
		err_set(err, rc, "does not read in the spool; look for its disk in the kernel's log");
		return BAD_DATA;
	}
	if (!rc)
		rc = snappy ? pack_snappy(s, part.items, part.n_items) : pack_gzip(s, part.items, part.n_items);
	for (unsigned i = 0; s->format->headers && s->format->headers[i] && h < 7; i++)
		headers[h++] = s->format->headers[i];
	full.body = s->body.data;
	full.len = s->body.len;
	s->answer.retry_after_ns = 0;
	rc = rc ? err_set(err, rc, "out of memory; free some") : http_client_ask(s->http, &full, &s->answer, err);
	if (rc == -ECANCELED)
		return ENDS;
	if (rc)
		return rc == -EINVAL || rc == -EKEYREJECTED || rc == -EACCES ? DENIED : LATER;
	v = judge_status(s, err);
	if (v == TAKEN)
		judge_answer(s);
	return v;
}

/* The middle of a range of items, at the end of one. It is `end` when there is only one. */
static size_t middle(const struct push_sender *s, const struct buf *record, size_t at, size_t end)
{
	size_t half = at + (end - at) / 2, p = at, n;

	while (p < end && (n = s->format->item(record->data + p, end - p))) {
		p += n;
		if (p >= half)
			break;
	}
	return p;
}

static void name_bad(struct push_sender *s, const struct buf *record, size_t n_bytes, unsigned n_items,
		     const struct err *err)
{
	struct delivery *d = s->d;
	char name[200];

	s->format->name(record->data + s->at, n_bytes, name, sizeof(name));
	pthread_mutex_lock(&d->lock);
	d->figures.refused_items += n_items;
	snprintf(d->figures.refused_item, sizeof(d->figures.refused_item), "%s: %.200s", name, err->text);
	pthread_mutex_unlock(&d->lock);
}

static unsigned count_items(const struct push_sender *s, const struct buf *record, size_t at, size_t end)
{
	unsigned count = 0;

	for (size_t n; at < end && (n = s->format->item(record->data + at, end - at)); at += n)
		count++;
	return count;
}

/* The part up to `end` was refused. True: go on with another part. False: the whole document is refused. */
static bool halve(struct push_sender *s, const struct buf *record, size_t end, const struct err *err)
{
	unsigned n = count_items(s, record, s->at, end);

	if (n > 1 && s->n_bad < BAD_ITEMS) {
		s->bad_end = end;
		return true;
	}
	/* when nothing passes, the server is at fault and not each item */
	if (!s->took && s->n_bad >= BAD_ITEMS / 8)
		return false;
	name_bad(s, record, end - s->at, n ? n : 1, err);
	s->n_bad += n ? n : 1;
	s->at = end;
	s->bad_end = 0;
	return true;
}

/* Pauses before the next try. Always false, for push_deliver. What a person has to repair may be repaired earlier: a file
 * of credentials that changes ends the pause. */
static bool back_off(struct push_sender *s, enum verdict v, const struct err *err)
{
	uint64_t pause_ns, until_ns, now_ns;

	if (v == ENDS)
		return false;
	delivery_set_state(s->d, true, err->text);
	if (s->answer.retry_after_ns)
		s->d->pause_ns = 0; /* the server is there, and says itself when it wants to be asked */
	pause_ns = delivery_next_pause(s->d, v == DENIED ? DENIED_PAUSE_NS : 0, LAST_PAUSE_NS);
	/* agents that were told the same time still return at different ones */
	pause_ns += s->answer.retry_after_ns;
	until_ns = clock_mono_ns() + pause_ns;
	while ((now_ns = clock_mono_ns()) < until_ns && !atomic_load(&s->d->stop)) {
		bool looks = v == DENIED && until_ns - now_ns > LOOK_NS;

		delivery_pause(s->d, looks ? LOOK_NS : until_ns - now_ns);
		if (looks && http_client_changed(s->http))
			break;
	}
	return false;
}

/* Gives the whole document up after some tries. True: it is dropped. The next ones are tried once until one passes: a
 * store that takes nothing so old refuses all that waited. */
static bool refuse(struct push_sender *s, const struct err *err)
{
	if (!s->gave_up && ++s->refused < TRIES) {
		s->at = s->head;
		s->bad_end = 0;
		s->n_bad = 0;
		return back_off(s, LATER, err);
	}
	delivery_set_state(s->d, true, err->text);
	delivery_count(s->d, &s->d->figures.refused, 1);
	delivery_count(s->d, &s->d->figures.dropped_mj, s->mark.weight);
	s->gave_up = true;
	s->d->pause_ns = 0;
	return true;
}

static void delivered(struct push_sender *s, const struct buf *record, uint64_t cpu_ns)
{
	struct delivery *d = s->d;
	struct spool_stats st;
	uint64_t pause_ns;

	s->gave_up = !s->took;
	delivery_set_state(d, false, "delivers");
	delivery_count(d, &d->figures.delivered, 1);
	delivery_count(d, &d->figures.delivered_bytes, record->len);
	d->pause_ns = 0;
	spool_get_stats(d->spool, &st);
	pause_ns = (clock_thread_cpu_ns() - cpu_ns) * CPU_SHARE;
	if (pause_ns > delivery_period_ns(d) / 4)
		pause_ns = delivery_period_ns(d) / 4; /* what waits must become less */
	if (st.waiting > 1)
		delivery_pause(d, pause_ns);
}

bool push_deliver(void *arg, const struct buf *record, const struct spool_mark *mark)
{
	struct push_sender *s = arg;
	const uint64_t cpu_ns = clock_thread_cpu_ns();
	struct err err = { 0 };

	if (mark->segment != s->mark.segment || mark->end != s->mark.end) {
		s->at = s->head = s->format->head ? s->format->head(record->data, record->len) : 0;
		s->bad_end = 0;
		s->n_bad = s->refused = 0;
		s->took = false;
		s->mark = *mark;
	}
	while (s->at < record->len) {
		size_t end = s->bad_end ? middle(s, record, s->at, s->bad_end) : record->len;
		enum verdict v = send_part(s, record, end, &err);

		if (v == BAD_DATA && halve(s, record, end, &err))
			continue;
		if (v == BAD_DATA)
			return refuse(s, &err);
		if (v != TAKEN)
			return back_off(s, v, &err);
		s->took = true;
		s->at = end;
		if (s->at >= s->bad_end)
			s->bad_end = 0;
	}
	delivered(s, record, cpu_ns);
	return true;
}

int push_sender_try(struct push_sender *s, struct err *err)
{
	const struct buf nothing = { .data = (uint8_t *)"" };

	err->code = 0;
	if (send_part(s, &nothing, 0, err) == TAKEN)
		return 0;
	if (s->answer.status == 404 || s->answer.status == 405)
		return -ENOTSUP; /* nobody is refused there, the place is wrong */
	return err->code ? err->code : -EAGAIN;
}

void push_sender_free(struct push_sender *s)
{
	http_client_free(s->http);
	buf_free(&s->answer.body);
	buf_free(&s->wrapped);
	buf_free(&s->body);
	if (s->deflates)
		deflateEnd(&s->deflate);
}
