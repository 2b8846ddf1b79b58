/* SPDX-License-Identifier: Apache-2.0 */
/* Delivers the traces in the spool, one after the other, until each succeeds or is given up. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include "base/clock.h"
#include "base/thread.h"
#include "zico_output.h"

#define FIRST_PAUSE_NS (125 * NS_PER_MS)
#define LAST_PAUSE_NS (60 * NS_PER_S)
#define DENIED_PAUSE_NS (10 * NS_PER_S) /* a person has to repair something */
#define FAILED_PAUSE_NS NS_PER_S /* for registrations, each of which may leave a host behind */
#define LAST_FAILED_PAUSE_NS (600 * NS_PER_S)
#define TRIES 10 /* for a refused trace while no other trace passes either */

struct sending {
	struct zico_output *z;
	struct trace *t;
	const char *profile; /* profile of the encoder */
	size_t len; /* length of the trace encoded last */
	struct spool_mark mark; /* of the trace tried last */
	unsigned refused; /* how often it was refused */
	bool passed; /* a trace was accepted since one was given up */
	uint64_t pause_ns;
};

static int begin(void *arg, const char *profile, struct err *err)
{
	struct sending *s = arg;
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
	struct sending *s = arg;
	int rc = zico_encode(s->z->encoder, s->t, agent, trace, err);

	s->len = agent->len + trace->len;
	return rc == -ENOMEM ? -EAGAIN : rc ? -EINVAL : 0;
}

static void told(void *arg)
{
	struct sending *s = arg;

	zico_told(s->z->encoder);
}

/* Removes the place at the start of text: messages show it anyway. */
static void set_state(struct zico_output *z, bool failed, const char *text)
{
	size_t n = strlen(z->to);

	if (strncmp(text, z->to, n) == 0 && strncmp(text + n, ": ", 2) == 0)
		text += n + 2;
	pthread_mutex_lock(&z->lock);
	z->figures.failures = failed ? z->figures.failures + 1 : 0;
	snprintf(z->figures.state, sizeof(z->figures.state), "%s", text);
	pthread_mutex_unlock(&z->lock);
}

static void count(struct zico_output *z, uint64_t *figure, uint64_t n)
{
	pthread_mutex_lock(&z->lock);
	*figure += n;
	pthread_mutex_unlock(&z->lock);
}

/* Returns 0.5 to 1.5 times ns, so that agents that lost their collector together return at different times. */
static uint64_t with_jitter(uint64_t ns)
{
	uint32_t r = UINT32_MAX / 2;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) < 0)
		r = UINT32_MAX / 2;
	return ns / 2 + (uint64_t)((double)ns * ((double)r / UINT32_MAX));
}

/* Waits until the time is over or the program ends. ns 0: until the spool gets a record. */
static void pause_for(struct zico_output *z, uint64_t ns, uint64_t seen)
{
	const uint64_t until_ns = clock_mono_ns() + (ns ? ns : 3600 * NS_PER_S);

	pthread_mutex_lock(&z->lock);
	while (!atomic_load(&z->stop) && (ns || z->spooled == seen))
		if (!thread_cond_wait(&z->arrived, &z->lock, until_ns))
			break;
	pthread_mutex_unlock(&z->lock);
}

static void back_off(struct sending *s, uint64_t at_least_ns, uint64_t at_most_ns)
{
	s->pause_ns = s->pause_ns ? s->pause_ns * 2 : FIRST_PAUSE_NS;
	if (s->pause_ns < at_least_ns)
		s->pause_ns = at_least_ns;
	if (s->pause_ns > at_most_ns)
		s->pause_ns = at_most_ns;
	pause_for(s->z, with_jitter(s->pause_ns), 0);
}

/* True when a refused trace is to be dropped. When no other trace passes either, the collector is probably at
 * fault. */
static bool give_up(struct sending *s)
{
	if (!s->passed && ++s->refused < TRIES)
		return false;
	count(s->z, &s->z->figures.refused, 1);
	s->passed = false;
	return true;
}

/* True when the trace needs no further try. */
static bool judge(struct sending *s, int rc, const struct err *err)
{
	char text[160];

	switch (rc) {
	case 0:
		snprintf(text, sizeof(text), "delivers as %s", zico_client_profile(s->z->client));
		set_state(s->z, false, text);
		count(s->z, &s->z->figures.delivered, 1);
		count(s->z, &s->z->figures.delivered_bytes, s->len);
		s->passed = true;
		s->pause_ns = 0;
		return true;
	case -EBADMSG:
		set_state(s->z, true, err->text);
		if (give_up(s))
			return true;
		back_off(s, 0, LAST_PAUSE_NS);
		return false;
	case -EINVAL:
	case -ERANGE:
		set_state(s->z, true, err->text);
		count(s->z, &s->z->figures.unfit, 1);
		return true;
	case -ECANCELED:
		return false;
	}
	set_state(s->z, true, err->text);
	s->passed = false; /* a refusal right after the collector's return may have the same cause */
	if (rc == -EREMOTEIO)
		back_off(s, FAILED_PAUSE_NS, LAST_FAILED_PAUSE_NS);
	else
		back_off(s, rc == -EACCES ? DENIED_PAUSE_NS : 0, LAST_PAUSE_NS);
	return false;
}

/* Tries once. The spool returns the record again until it is done or too old. */
static bool deliver(struct sending *s, const struct buf *record, const struct spool_mark *mark)
{
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
		count(s->z, &s->z->figures.withheld, 1);
		return true;
	}
	rc = zico_client_send(s->z->client, s->t->uuid, &e, &err);
	trace_record_free(s->t);
	s->t = NULL;
	return judge(s, rc, &err);
}

void *zico_sender(void *arg)
{
	struct sending s = { .z = arg };
	struct buf record = { 0 };
	struct spool_mark mark;
	uint64_t seen;

	while (!atomic_load(&s.z->stop)) {
		pthread_mutex_lock(&s.z->lock);
		seen = s.z->spooled;
		pthread_mutex_unlock(&s.z->lock);
		buf_reset(&record);
		switch (spool_next(s.z->spool, clock_real_ns(), &record, &mark)) {
		case 0:
			if (deliver(&s, &record, &mark))
				spool_done(s.z->spool, &mark);
			break;
		case -ENOENT:
			pause_for(s.z, 0, seen);
			break;
		default:
			back_off(&s, NS_PER_S, LAST_PAUSE_NS);
		}
	}
	buf_free(&record);
	return NULL;
}
