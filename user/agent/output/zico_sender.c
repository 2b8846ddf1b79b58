/* SPDX-License-Identifier: Apache-2.0 */
/* Delivers one trace to a collector, and judges what it answers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "zico_output.h"

#define LAST_PAUSE_NS (60 * NS_PER_S)
#define DENIED_PAUSE_NS (10 * NS_PER_S) /* a person has to repair something */
#define FAILED_PAUSE_NS NS_PER_S /* for registrations, each of which may leave a host behind */
#define LAST_FAILED_PAUSE_NS (600 * NS_PER_S)
#define TRIES 10 /* for a refused trace while no other trace passes either */

struct zico_sending {
	struct zico_output *z;
	struct trace *t;
	const char *profile; /* profile of the encoder */
	size_t len; /* length of the trace encoded last */
	struct spool_mark mark; /* of the trace tried last */
	unsigned refused; /* how often it was refused */
	bool passed; /* a trace was accepted since one was given up */
};

static int begin(void *arg, const char *profile, struct err *err)
{
	struct zico_sending *s = arg;
	struct zico_options o = s->z->options;
	struct zico *made;
	int rc;

	if (s->profile && !strcmp(s->profile, profile)) {
		zico_forget(s->z->encoder);
		return 0;
	}
	o.profile = profile;
	if (!(zico_profile(profile)->flags & 1u << o.flags))
		o.flags = ZICO_FLAGS_NONE;
	rc = zico_new(&o, &made, err);
	if (rc)
		return rc == -ENOMEM ? -EAGAIN : rc;
	zico_free(s->z->encoder);
	s->z->encoder = made;
	s->profile = profile;
	return 0;
}

static int encode(void *arg, struct buf *agent, struct buf *trace, struct err *err)
{
	struct zico_sending *s = arg;
	int rc = zico_encode(s->z->encoder, s->t, agent, trace, err);

	s->len = agent->len + trace->len;
	return rc == -ENOMEM ? -EAGAIN : rc ? -EINVAL : 0;
}

static void told(void *arg)
{
	struct zico_sending *s = arg;

	zico_told(s->z->encoder);
}

/* True when a refused trace is to be dropped. When no other trace passes either, the collector is probably at
 * fault. */
static bool give_up(struct zico_sending *s)
{
	struct delivery *d = &s->z->d;

	if (!s->passed && ++s->refused < TRIES)
		return false;
	delivery_count(d, &d->figures.refused, 1);
	s->passed = false;
	return true;
}

/* True when the trace needs no further try. */
static bool judge(struct zico_sending *s, int rc, const struct err *err)
{
	struct delivery *d = &s->z->d;
	char text[160];

	switch (rc) {
	case 0:
		snprintf(text, sizeof(text), "delivers as %s", zico_client_profile(s->z->client));
		delivery_set_state(d, false, text);
		delivery_count(d, &d->figures.delivered, 1);
		delivery_count(d, &d->figures.delivered_bytes, s->len);
		s->passed = true;
		d->pause_ns = 0;
		return true;
	case -EBADMSG:
		delivery_set_state(d, true, err->text);
		if (give_up(s))
			return true;
		delivery_back_off(d, 0, LAST_PAUSE_NS);
		return false;
	case -EINVAL:
	case -ERANGE:
		delivery_set_state(d, true, err->text);
		delivery_count(d, &d->figures.unfit, 1);
		return true;
	case -ECANCELED:
		return false;
	}
	delivery_set_state(d, true, err->text);
	s->passed = false; /* a refusal right after the collector's return may have the same cause */
	if (rc == -EREMOTEIO)
		delivery_back_off(d, FAILED_PAUSE_NS, LAST_FAILED_PAUSE_NS);
	else
		delivery_back_off(d, rc == -EACCES ? DENIED_PAUSE_NS : 0, LAST_PAUSE_NS);
	return false;
}

/* Tries once. The spool returns the record again until it is done or too old. */
bool zico_deliver(void *arg, const struct buf *record, const struct spool_mark *mark)
{
	struct zico_sending *s = arg;
	struct delivery *d = &s->z->d;
	const struct zico_encoding e = { s, begin, encode, told };
	struct err err = { 0 };
	int rc = trace_record_read(record->data, record->len, &s->t, &err);

	if (rc)
		return judge(s, rc == -ENOMEM ? -EAGAIN : -EINVAL, &err);
	if (mark->segment != s->mark.segment || mark->end != s->mark.end)
		s->refused = 0;
	s->mark = *mark;
	if (!zico_output_admits(s->z, s->t->spans[0].cgroup)) {
		trace_record_free(s->t);
		s->t = NULL;
		delivery_count(d, &d->figures.withheld, 1);
		return true;
	}
	rc = zico_client_send(s->z->client, s->t->uuid, &e, &err);
	trace_record_free(s->t);
	s->t = NULL;
	return judge(s, rc, &err);
}

struct zico_sending *zico_sending_new(struct zico_output *z)
{
	struct zico_sending *s = calloc(1, sizeof(*s));

	if (s)
		s->z = z;
	return s;
}

void zico_sending_free(struct zico_sending *s)
{
	free(s);
}
