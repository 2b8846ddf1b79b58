/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/text.h"
#include "push_sender.h"

#define URL_MAX 4400
#define LAST_PAUSE_NS (60 * NS_PER_S)
#define DENIED_PAUSE_NS (10 * NS_PER_S) /* a person has to repair something */
#define LOOK_NS NS_PER_S /* time between two looks whether it was repaired */
#define TRIES 5 /* for a document of which no part is taken */
#define BAD_ITEMS 64 /* dropped one by one; then whole parts are */
#define LOOKS 2 /* items sent alone of a refused document, when the one before was dropped, until it is dropped too */
#define CPU_SHARE 50 /* while documents wait, sending takes at most this part of a CPU: 2 % */
#define WORDS_MAX 160 /* of what the server says */

enum verdict {
	TAKEN,
	BAD_DATA, /* this part of the document is refused */
	DENIED, /* a person has to repair something */
	LATER,
	ENDS, /* the program ends */
};

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

/* The URL, with what the format adds for this document. */
static const char *address(struct push_sender *s, const void *body, size_t n, char url[URL_MAX])
{
	char query[200];
	struct buf document = { 0 };

	if (!s->format->query || !n || unpack(s->format->packing, body, n, &document) != 0)
		return s->url;
	s->format->query(s->url, document.data, document.len, query, sizeof(query));
	buf_free(&document);
	if (!*query || snprintf(url, URL_MAX, "%s%c%s", s->url, strchr(s->url, '?') ? '&' : '?', query) >= URL_MAX)
		return s->url;
	return url;
}

static enum verdict send_body(struct push_sender *s, const void *body, size_t n, struct err *err)
{
	const char *headers[8] = { packing_header(s->format->packing) };
	char url[URL_MAX];
	const struct http_ask ask = { .url = address(s, body, n, url),
				      .headers = headers,
				      .post = true,
				      .type = s->format->type,
				      .body = body,
				      .len = n };
	enum verdict v;
	int rc;

	for (unsigned i = 0; s->format->headers && s->format->headers[i] && i < 6; i++)
		headers[i + 1] = s->format->headers[i];
	s->answer.retry_after_ns = 0;
	rc = http_client_ask(s->http, &ask, &s->answer, err);
	if (rc == -ECANCELED)
		return ENDS;
	if (rc)
		return rc == -EINVAL || rc == -EKEYREJECTED || rc == -EACCES ? DENIED : LATER;
	v = judge_status(s, err);
	if (v == TAKEN) {
		judge_answer(s);
		delivery_count(s->d, &s->d->figures.delivered_bytes, n);
	}
	return v;
}

static enum verdict cannot_send(int rc, struct err *err)
{
	if (rc == -EBADMSG) {
		err_set(err, rc, "does not read in the spool; look for its disk in the kernel's log");
		return BAD_DATA;
	}
	err_set(err, rc, "out of memory; free some");
	return LATER;
}

static enum verdict send_part(struct push_sender *s, const struct buf *document, size_t end, struct err *err)
{
	const struct push_part part = { document->data, document->data + s->at, s->head, end - s->at };
	int rc = push_body_make(&s->body, s->format, &part);

	return rc ? cannot_send(rc, err) : send_body(s, s->body.packed.data, s->body.packed.len, err);
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
	if (!s->took && s->n_bad >= (s->gave_up ? LOOKS - 1 : BAD_ITEMS / 8))
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

/* Pauses in proportion to the processor time since cpu_ns, while more documents wait. */
static void spare_cpu(struct push_sender *s, uint64_t cpu_ns)
{
	struct delivery *d = s->d;
	struct spool_stats st;
	uint64_t pause_ns;

	spool_get_stats(d->spool, &st);
	pause_ns = (clock_thread_cpu_ns() - cpu_ns) * CPU_SHARE;
	if (pause_ns > delivery_period_ns(d) / 4)
		pause_ns = delivery_period_ns(d) / 4; /* what waits must become less */
	if (st.waiting > 1)
		delivery_pause(d, pause_ns);
}

/* Gives the whole document up after some tries. True: it is dropped. The next ones are tried once until one passes: a
 * store that takes nothing so old refuses all that waited. */
static bool refuse(struct push_sender *s, uint64_t cpu_ns, const struct err *err)
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
	spare_cpu(s, cpu_ns);
	return true;
}

static void delivered(struct push_sender *s, uint64_t cpu_ns)
{
	struct delivery *d = s->d;

	s->gave_up = !s->took;
	delivery_set_state(d, false, "delivers");
	delivery_count(d, &d->figures.delivered, 1);
	d->pause_ns = 0;
	spare_cpu(s, cpu_ns);
}

int push_keep(void *arg, const void *document, size_t n, struct buf *out)
{
	struct push_sender *s = arg;

	return push_record_make(&s->kept, s->format, document, n, out);
}

static void begin_record(struct push_sender *s, const struct buf *record, const struct spool_mark *mark)
{
	size_t n;

	s->whole = push_record_body(record, &n);
	s->opened = false;
	s->at = s->head = s->whole || !s->format->head ? 0 : s->format->head(record->data, record->len);
	s->bad_end = 0;
	s->n_bad = s->refused = 0;
	s->took = false;
	s->mark = *mark;
}

/* Takes the document of a refused body apart. False: it does not read, or all of it is refused. */
static bool open_record(struct push_sender *s, const struct buf *record, struct err *err)
{
	int rc;

	buf_reset(&s->document);
	rc = push_record_open(s->format, record, &s->scratch, &s->document);
	if (rc) {
		cannot_send(rc, err);
		return false;
	}
	s->whole = false;
	s->opened = true;
	s->at = s->head = s->format->head ? s->format->head(s->document.data, s->document.len) : 0;
	return halve(s, &s->document, s->document.len, err);
}

static enum verdict send_record(struct push_sender *s, const struct buf *record, struct err *err)
{
	size_t n;
	const void *body = push_record_body(record, &n);
	enum verdict v = send_body(s, body, n, err);

	s->took = v == TAKEN;
	return v;
}

/* The end of the next part. When the document before was dropped, it is one item: this tells with few requests whether the
 * server takes anything of the document. */
static size_t part_end(const struct push_sender *s, const struct buf *document)
{
	size_t n = 0;

	if (s->gave_up && !s->took && (s->bad_end || s->n_bad))
		n = s->format->item(document->data + s->at, document->len - s->at);
	if (n)
		return s->at + n;
	return s->bad_end ? push_middle(s->format, document, s->at, s->bad_end) : document->len;
}

/* Sends the rest of a document in parts, until one is not taken or all is done. */
static enum verdict send_parts(struct push_sender *s, const struct buf *document, struct err *err)
{
	while (s->at < document->len) {
		size_t end = part_end(s, document);
		enum verdict v = send_part(s, document, end, err);

		if (v == BAD_DATA && halve(s, document, end, err))
			continue;
		if (v != TAKEN)
			return v;
		s->took = true;
		s->at = end;
		if (s->at >= s->bad_end)
			s->bad_end = 0;
	}
	return TAKEN;
}

bool push_deliver(void *arg, const struct buf *record, const struct spool_mark *mark)
{
	struct push_sender *s = arg;
	const uint64_t cpu_ns = clock_thread_cpu_ns();
	struct err err = { 0 };
	enum verdict v = BAD_DATA;

	if (mark->segment != s->mark.segment || mark->end != s->mark.end)
		begin_record(s, record, mark);
	if (s->whole)
		v = send_record(s, record, &err);
	if (v == BAD_DATA && (!s->whole || open_record(s, record, &err)))
		v = send_parts(s, s->opened ? &s->document : record, &err);
	if (v == BAD_DATA)
		return refuse(s, cpu_ns, &err);
	if (v != TAKEN)
		return back_off(s, v, &err);
	delivered(s, cpu_ns);
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
	push_body_free(&s->body);
	push_body_free(&s->kept);
	buf_free(&s->document);
	buf_free(&s->scratch);
}
