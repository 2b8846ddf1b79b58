/* SPDX-License-Identifier: Apache-2.0 */
#include "kafka_sender.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/http/secret.h"
#include "base/text.h"
#include "encode/push.h"
#include "model/config/formats.h"
#include "sink/kafka/kafka_load.h"

#define SCHEME "kafka://"
#define SETTINGS_MAX 64
#define MESSAGE_BYTES ((size_t)512 << 10) /* a broker takes 1 MB, unless it is told otherwise */
#define TURN_MS 100
#define TRY_MS 5000
#define LAST_PAUSE_NS (60 * NS_PER_S)
#define DENIED_PAUSE_NS (10 * NS_PER_S) /* a person has to repair something */
#define WHY_MAX 300
#define MESSAGES_MAX ((size_t)1 << 18) /* of a record, whose ends are known; later ones may come twice */

struct kafka_sender {
	struct delivery *d;
	const struct kafka_plugin *plugin;
	const struct output_format *format;
	char *brokers, *topic, *key;
	char *settings[SETTINGS_MAX * 2 +
		       1]; /* name, value, ..., NULL; a value file:PATH stands for what is in the file */
	const char *files[SETTINGS_MAX]; /* these paths */
	unsigned n_files;
	/* of the sender's thread */
	struct kafka_producer *producer;
	uint64_t files_stamp;
	struct buf wrapped;
	struct spool_mark mark; /* of the record that is sent */
	uint8_t ended[MESSAGES_MAX / 8]; /* bits of its messages that have arrived, or were refused and counted */
	size_t group; /* so many of them are under way at a time; 0 = all */
};

static int parse_place(const char *to, char **ret_brokers, char **ret_topic, struct err *err)
{
	const char *brokers = to + strlen(SCHEME), *slash = strchr(brokers, '/');
	const char *topic = slash ? slash + 1 : "";

	if (!slash || slash == brokers || !*topic || strlen(topic) > 249 ||
	    topic[strspn(topic, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")])
		return err_set(err, -EINVAL, "output %.*s: expected kafka://BROKER[:PORT][,BROKER[:PORT]...]/TOPIC",
			       TEXT_SUBJECT(to));
	*ret_brokers = strndup(brokers, (size_t)(slash - brokers));
	*ret_topic = strdup(topic);
	return *ret_brokers && *ret_topic ?
		       0 :
		       err_set(err, -ENOMEM, "output %.*s: out of memory; free some", TEXT_SUBJECT(to));
}

static int copy_settings(struct kafka_sender *s, const struct str_list *config)
{
	for (unsigned i = 0; i < config->n && i < SETTINGS_MAX; i++) {
		const char *is = strchr(config->v[i], '=');

		s->settings[i * 2] = strndup(config->v[i], (size_t)(is - config->v[i]));
		s->settings[i * 2 + 1] = strdup(is + 1);
		if (!s->settings[i * 2] || !s->settings[i * 2 + 1])
			return -ENOMEM;
		if (strncmp(is + 1, "file:", 5) == 0)
			s->files[s->n_files++] = s->settings[i * 2 + 1] + 5;
	}
	return 0;
}

int kafka_sender_new(const struct output_config *oc, const char *key, struct delivery *d, struct kafka_sender **ret,
		     struct err *err)
{
	struct kafka_sender *s = calloc(1, sizeof(*s));
	struct err why = { 0 };
	int rc;

	if (!s)
		return err_set(err, -ENOMEM, "output %.*s: out of memory; free some", TEXT_SUBJECT(oc->to));
	s->d = d;
	s->format = output_format_find(oc->format);
	s->key = strdup(key);
	rc = parse_place(oc->to, &s->brokers, &s->topic, err);
	if (!rc && (!s->key || copy_settings(s, &oc->push.config)))
		rc = err_set(err, -ENOMEM, "output %.*s: out of memory; free some", TEXT_SUBJECT(oc->to));
	if (!rc && kafka_load(&s->plugin, &why) != 0)
		rc = err_set(err, why.code, "output %.*s: %s", TEXT_SUBJECT(oc->to), why.text);
	if (rc)
		kafka_sender_free(s);
	else
		*ret = s;
	return rc;
}

int kafka_sender_check(const struct output_config *oc, struct err *err)
{
	struct kafka_sender *s = NULL;
	int rc = kafka_sender_new(oc, "", NULL, &s, err);
	char why[WHY_MAX];

	if (!rc && s->plugin->check((const char *const *)s->settings, why, sizeof(why)))
		rc = err_set(err, -EINVAL, "output %.*s: %s", TEXT_SUBJECT(oc->to), why);
	kafka_sender_free(s);
	return rc;
}

/* Opens a producer with the secrets as they are now. */
static int open_producer(struct kafka_sender *s, struct err *err)
{
	const char *all[SETTINGS_MAX * 2 + 1];
	char *read[SETTINGS_MAX] = { 0 }, why[WHY_MAX] = "";
	unsigned n_read = 0, i = 0;
	int rc = 0;

	s->files_stamp = http_files_stamp(s->files, s->n_files);
	for (; s->settings[i] && !rc; i++) {
		all[i] = s->settings[i];
		if (i % 2 == 0 || strncmp(all[i], "file:", 5) != 0)
			continue;
		all[i] = read[n_read] = malloc(HTTP_SECRET_MAX);
		rc = all[i] ? http_secret_read(s->settings[i] + 5, read[n_read], err) :
			      err_set(err, -EAGAIN, "out of memory; free some");
		n_read++;
	}
	all[i] = NULL;
	if (!rc) {
		s->producer = s->plugin->open(s->brokers, s->topic, all, why, sizeof(why));
		rc = s->producer ? 0 : err_set(err, -EACCES, "%s", why);
	}
	for (unsigned k = 0; k < n_read; k++) {
		if (read[k])
			explicit_bzero(read[k], HTTP_SECRET_MAX);
		free(read[k]);
	}
	return rc;
}

static void close_producer(struct kafka_sender *s)
{
	if (s->producer)
		s->plugin->close(s->producer);
	s->producer = NULL;
}

int kafka_sender_try(struct kafka_sender *s, struct err *err)
{
	char why[WHY_MAX] = "no answer";
	int rc = open_producer(s, err);

	if (!rc && s->plugin->look(s->producer, TRY_MS, why, sizeof(why)))
		rc = err_set(err, -ECONNREFUSED, "%s", why);
	close_producer(s);
	return rc;
}

/* The message at `at` of the record: how many bytes of the record it takes. 0 = the record cannot be read. */
static size_t next_message(struct kafka_sender *s, const struct buf *record, size_t head, size_t at,
			   struct kafka_message *ret)
{
	const struct push_format *f = s->format->push;
	const uint8_t *from = record->data + at, *end;
	size_t left = record->len - at, n = 0, step;
	struct push_part part;

	if (!f) {
		end = s->format->lines ? memchr(from, '\n', left) : NULL;
		ret->data = from;
		ret->n_data = end ? (size_t)(end - from) : left;
		return ret->n_data + (end != NULL);
	}
	while (n < left && (step = f->item(from + n, left - n)) && (!n || n + step <= MESSAGE_BYTES))
		n += step;
	part = (struct push_part){ record->data, from, head, n };
	ret->data = from;
	ret->n_data = n;
	if (!f->wrap || !n)
		return n;
	buf_reset(&s->wrapped);
	if (f->wrap(&part, &s->wrapped) != 0)
		return 0;
	ret->data = s->wrapped.data;
	ret->n_data = s->wrapped.len;
	return n;
}

static bool has_ended(const struct kafka_sender *s, size_t nth)
{
	return nth < MESSAGES_MAX && s->ended[nth / 8] >> nth % 8 & 1;
}

static void set_ended(struct kafka_sender *s, size_t nth)
{
	if (nth < MESSAGES_MAX)
		s->ended[nth / 8] |= (uint8_t)(1u << nth % 8);
}

static void refused(struct kafka_sender *s, const struct kafka_message *m, const char *why)
{
	struct delivery *d = s->d;

	set_ended(s, m->nth);
	pthread_mutex_lock(&d->lock);
	d->figures.refused_items++;
	snprintf(d->figures.refused_item, sizeof(d->figures.refused_item), "one of %zu bytes: %.300s", m->n_data, why);
	pthread_mutex_unlock(&d->lock);
}

struct sending {
	struct kafka_sender *s;
	size_t n_group, n_under_way; /* messages since all before had ended, and those of them that have not */
	struct kafka_message last;
	bool failed; /* messages were not confirmed */
	bool again; /* messages are to come again in smaller groups */
	bool whole; /* all of the record was queued */
	char refused[WHY_MAX]; /* why a message of the group was; "" = none was */
	char why[WHY_MAX], told[WHY_MAX];
};

static void on_end(void *arg, size_t nth, enum kafka_end end, const char *why)
{
	struct sending *g = arg;

	g->n_under_way--;
	g->failed |= end == KAFKA_FAILED;
	if (end == KAFKA_DELIVERED)
		set_ended(g->s, nth);
	if (end == KAFKA_REFUSED)
		snprintf(g->refused, sizeof(g->refused), "%s", why);
}

static void turn(struct kafka_sender *s, struct sending *g)
{
	const struct kafka_taker taker = { on_end, g };

	s->plugin->turn(s->producer, TURN_MS, &taker, g->why, sizeof(g->why));
	/* librdkafka goes on trying; what keeps it from going on is said now */
	if (strcmp(g->why, g->told) != 0)
		delivery_set_state(s->d, true, memcpy(g->told, g->why, sizeof(g->told)));
}

/* Waits for the reports of a group. Brokers refuse messages that were sent together for one of them, or because they are too
 * large together: so smaller groups come again, and only a message that was alone is dropped. */
static void settle(struct kafka_sender *s, struct sending *g)
{
	while (g->n_under_way && !atomic_load(&s->d->stop))
		turn(s, g);
	if (*g->refused && g->n_group == 1) {
		refused(s, &g->last, g->refused);
	} else if (*g->refused) {
		s->group = g->n_group / 2;
		g->again = true;
	} else if (s->group && g->n_group == s->group && s->group < MESSAGES_MAX) {
		s->group *= 2; /* the one that was refused is behind */
	}
	g->refused[0] = '\0';
	g->n_group = 0;
}

/* Queues a message. False: the program ends. */
static bool send_message(struct kafka_sender *s, const struct kafka_message *m, struct sending *g)
{
	char why[WHY_MAX];
	int rc;

	while ((rc = s->plugin->produce(s->producer, m, why, sizeof(why))) > 0 && !atomic_load(&s->d->stop))
		turn(s, g);
	if (rc < 0)
		refused(s, m, why);
	if (rc == 0) {
		g->last = *m;
		g->n_under_way++;
		if (++g->n_group == s->group)
			settle(s, g);
	}
	return rc <= 0;
}

/* Queues the messages that have not ended yet, and waits for their reports. 0, or -EBADMSG. */
static int send_record(struct kafka_sender *s, const struct buf *record, struct sending *g)
{
	const struct push_format *f = s->format->push;
	const size_t head = f && f->head ? f->head(record->data, record->len) : 0;
	struct kafka_message m = { .key = s->key, .n_key = strlen(s->key) };
	size_t at = head, step;

	g->again = false;
	for (; at < record->len && !g->failed && !g->again && !atomic_load(&s->d->stop); at += step, m.nth++) {
		step = next_message(s, record, head, at, &m);
		if (!step)
			return -EBADMSG;
		if (m.n_data && !has_ended(s, m.nth) && !send_message(s, &m, g))
			break;
	}
	g->whole = at >= record->len;
	settle(s, g);
	return 0;
}

/* Pauses. Always false, for deliver. A file of a secret that changes ends a pause early. */
static bool back_off(struct kafka_sender *s, const struct err *err)
{
	const bool denied = err->code == -EACCES;
	uint64_t until_ns, now_ns;

	delivery_set_state(s->d, true, err->text);
	close_producer(s);
	until_ns = clock_mono_ns() + delivery_next_pause(s->d, denied ? DENIED_PAUSE_NS : 0, LAST_PAUSE_NS);
	while ((now_ns = clock_mono_ns()) < until_ns && !atomic_load(&s->d->stop)) {
		delivery_pause(s->d, until_ns - now_ns < NS_PER_S ? until_ns - now_ns : NS_PER_S);
		if (s->n_files && http_files_stamp(s->files, s->n_files) != s->files_stamp)
			break;
	}
	return false;
}

bool kafka_deliver(void *arg, const struct buf *record, const struct spool_mark *mark)
{
	struct kafka_sender *s = arg;
	struct delivery *d = s->d;
	struct sending g = { .s = s };
	const struct kafka_taker taker = { on_end, &g };
	struct err err = { 0 };

	if (mark->segment != s->mark.segment || mark->end != s->mark.end) {
		s->mark = *mark;
		memset(s->ended, 0, sizeof(s->ended));
		s->group = 0;
	}
	if (s->producer && s->n_files && http_files_stamp(s->files, s->n_files) != s->files_stamp)
		close_producer(s);
	if (!s->producer && open_producer(s, &err) != 0)
		return back_off(s, &err);
	s->plugin->turn(s->producer, 0, &taker, g.why, sizeof(g.why));
	g.why[0] = '\0';
	do {
		if (send_record(s, record, &g) != 0) {
			delivery_count(d, &d->figures.unfit, 1);
			close_producer(s); /* a part of it may be queued */
			return true;
		}
	} while (g.again && !g.failed && !atomic_load(&d->stop));
	if (g.failed) {
		err_set(&err, -EAGAIN, "%s", *g.why ? g.why : "the brokers did not confirm in time");
		return back_off(s, &err);
	}
	if (g.again || g.n_under_way || !g.whole)
		return false; /* the program ends */
	delivery_set_state(d, false, "delivers");
	delivery_count(d, &d->figures.delivered, 1);
	delivery_count(d, &d->figures.delivered_bytes, record->len);
	d->pause_ns = 0;
	return true;
}

void kafka_sender_free(struct kafka_sender *s)
{
	if (!s)
		return;
	close_producer(s);
	for (unsigned i = 0; s->settings[i]; i++)
		free(s->settings[i]);
	buf_free(&s->wrapped);
	free(s->brokers);
	free(s->topic);
	free(s->key);
	free(s);
}
