/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/reading: new totals. The request is suspended until the measuring thread has read. Requests that
 * come meanwhile share a reading. */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "routes.h"

#define READINGS_PER_S 200
#define PATIENCE_NS (5 * NS_PER_S)

static const char *const json_types[] = { "application/json", NULL };

static struct waiter *take_waiter(struct serve *s, const struct MHD_Connection *conn)
{
	for (struct waiter **at = &s->waiters; *at; at = &(*at)->next)
		if ((*at)->conn == conn) {
			struct waiter *w = *at;

			*at = w->next;
			return w;
		}
	return NULL;
}

void serve_reading_done(struct serve *s, const struct MHD_Connection *conn)
{
	free(take_waiter(s, conn));
}

static void add_domains(struct json *j, const struct totals *t)
{
	json_key(j, "domains");
	json_array_begin(j);
	for (unsigned d = 0; d < t->schema->n_domains; d++) {
		const struct total_domain *dom = &t->domains[d];

		json_object_begin(j);
		json_key_str(j, "name", t->schema->domains[d].name);
		json_key_str(j, "kind", domain_kind_name(t->schema->domains[d].kind));
		json_key(j, "in_total");
		json_bool(j, schema_sums(t->schema, d));
		fields_json(j, &total_domain_fields, dom, TOTAL_OF_SUM);
		json_key_u64(j, "retired_uj", t->retired[d]);
		fields_json(j, &total_domain_fields, dom, TOTAL_OF_RATE);
		json_key(j, "intervals");
		json_object_begin(j);
		for (unsigned q = 0; q < TOTALS_QUALITIES; q++)
			json_key_u64(j, quality_name(q ? 1u << (q - 1) : 0), dom->intervals[q]);
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_row(struct json *j, const struct totals *t, unsigned row)
{
	json_object_begin(j);
	fields_json(j, &total_row_fields, &t->rows[row], 0);
	serve_use_json(j, t->schema, totals_row(t, row), NULL);
	if (t->rows[row].ranged_uj) {
		json_key_u64(j, "ranged_uj", t->rows[row].ranged_uj);
		json_key_u64(j, "range_uj", total_row_range_uj(&t->rows[row]));
	}
	json_object_end(j);
}

/* True for rows below a path. Special rows belong to every path. */
static bool is_below(const char *name, const char *below)
{
	size_t len = below ? strlen(below) : 0;

	while (len && below[len - 1] == '/')
		len--;
	return name[0] != '/' ||
	       (strncmp(name, below ? below : "", len) == 0 && (!len || !name[len] || name[len] == '/'));
}

static void answer(struct serve *s, struct http_request *r, const char *below)
{
	const struct totals *t = serve_totals(s);
	struct json j;

	if (!t) {
		http_error(r, 503, "Retry-After: 1", "reading: it could not be made; try again");
		return;
	}
	buf_reset(&s->out);
	json_init(&j, &s->out);
	json_object_begin(&j);
	json_key_str(&j, "boot_id", t->schema->boot_id);
	fields_json(&j, &totals_fields, t, 0);
	json_key_str(&j, "mount", s->o.mount);
	serve_losses_json(&j, &t->losses);
	add_domains(&j, t);
	serve_prices_json(&j, t);
	json_key(&j, "rows");
	json_array_begin(&j);
	for (unsigned i = 0; i < t->n_rows; i++)
		if (is_below(t->rows[i].name, below))
			add_row(&j, t, i);
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(&s->out, '\n');
	http_reply(r, 200, "application/json", NULL, &s->out);
}

/* Limits the rate, because each reading wakes CPUs: a burst is allowed, a flood is not. */
static bool may_read(struct serve *s)
{
	uint64_t now = clock_mono_ns();

	s->tokens += (double)(now - s->tokens_ns) * READINGS_PER_S / 1e9;
	s->tokens_ns = now;
	if (s->tokens > READINGS_PER_S)
		s->tokens = READINGS_PER_S;
	if (s->tokens < 1)
		return false;
	s->tokens--;
	return true;
}

static void wait_for_reading(struct serve *s, struct http_request *r, struct waiter *w)
{
	const struct timeval patience = { .tv_sec = PATIENCE_NS / NS_PER_S };

	w->next = s->waiters;
	s->waiters = w;
	event_add(s->waiting, &patience);
	http_wait(r);
}

static void ask(struct serve *s, struct http_request *r)
{
	struct waiter *w = may_read(s) ? calloc(1, sizeof(*w)) : NULL;

	if (!w) {
		http_error(r, 503, "Retry-After: 1", "reading: more than %d a second; ask less often", READINGS_PER_S);
		return;
	}
	pthread_mutex_lock(&s->lock);
	w->seq = ++s->asked;
	pthread_mutex_unlock(&s->lock);
	w->conn = r->conn;
	w->since_ns = clock_mono_ns();
	wait_for_reading(s, r, w);
	s->o.wake(s->o.arg);
}

void serve_post_reading(struct serve *s, struct http_request *r, const char *rest)
{
	struct waiter *w = take_waiter(s, r->conn);
	uint64_t answered;
	struct query q;

	if (!w) {
		if (serve_query(r, "below", &q) && serve_negotiate(r, json_types) >= 0)
			ask(s, r);
		return;
	}
	pthread_mutex_lock(&s->lock);
	answered = s->answered;
	pthread_mutex_unlock(&s->lock);
	if (w->seq > answered && clock_mono_ns() - w->since_ns < PATIENCE_NS) {
		wait_for_reading(s, r, w);
		return;
	}
	if (w->seq > answered)
		http_error(r, 503, "Retry-After: 1", "reading: the measuring thread does not answer; try again");
	else if (serve_query(r, "below", &q))
		answer(s, r, q.below);
	free(w);
}
