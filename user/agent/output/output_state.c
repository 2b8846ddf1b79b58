// SPDX-License-Identifier: Apache-2.0
/* The state of an output: what waits, how far it came, and what it says about both. */
#include <stdio.h>
#include "base/log.h"
#include "base/text.h"
#include "output.h"

uint32_t output_waiting(struct output *o, bool away)
{
	struct sink_stats st;
	uint32_t most = o->zico ? zico_output_waiting(o->zico, away) : o->push ? push_output_waiting(o->push) : 0;

	for (unsigned i = 0; i < o->n_parts; i++) {
		if (!o->parts[i].sink)
			continue; /* another output has this sink now */
		sink_get_stats(o->parts[i].sink, &st);
		if ((st.up || away) && st.queued > most)
			most = st.queued;
	}
	return most;
}

uint64_t output_progress(struct output *o)
{
	struct sink_stats st;
	uint64_t n = 0;

	for (unsigned i = 0; i < o->n_parts; i++) {
		if (!o->parts[i].sink)
			continue;
		sink_get_stats(o->parts[i].sink, &st);
		n += st.documents + st.dropped_documents + st.early_documents;
	}
	return n;
}

bool output_met(struct output *o)
{
	struct sink_stats st;

	if (!(output_place(o->config.to) & PLACES_SOCKET) || !o->parts[0].sink)
		return true;
	sink_get_stats(o->parts[0].sink, &st);
	return st.arrivals;
}

void output_state(struct output *o, char *dst, size_t size)
{
	struct sink_stats st = { 0 };

	if (o->parts[0].sink)
		sink_get_stats(o->parts[0].sink, &st);
	snprintf(dst, size, "%s", st.state);
}

static void say_state(const struct output *o, struct output_part *p, const struct sink_stats *st)
{
	const char *to = o->config.to;

	if (st->up && p->said_away)
		log_warn("output %.*s: %s", TEXT_SUBJECT(to), st->state);
	else if (st->up && !p->said.up)
		log_info("output %.*s: %s", TEXT_SUBJECT(to), st->state);
	else if (!st->up && *st->state && !p->said_away)
		log_warn("output %.*s: %s", TEXT_SUBJECT(to), st->state);
	p->said_away = !st->up && *st->state;
}

void output_say(struct output *o)
{
	struct sink_stats st;

	if (o->zico)
		zico_output_say(o->zico);
	if (o->push)
		push_output_say(o->push);
	output_guests_say(o->guests);
	for (unsigned i = 0; i < o->n_parts && o->parts[i].sink; i++) {
		struct output_part *p = &o->parts[i];

		sink_get_stats(p->sink, &st);
		say_state(o, p, &st);
		/* documents of a client that left on its own are not lost */
		if (st.dropped_documents - st.left_documents != p->said.dropped_documents - p->said.left_documents)
			log_warn("output %.*s: documents dropped so far: %llu: %s", TEXT_SUBJECT(o->config.to),
				 (unsigned long long)(st.dropped_documents - st.left_documents),
				 *st.why ? st.why : "the reader is too slow");
		p->said = st;
	}
}
