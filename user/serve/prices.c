/* SPDX-License-Identifier: Apache-2.0 */
/* The prices that the formula had in the last interval, with what a profiler needs to sample by them. */
#include <string.h>
#include "routes.h"

/* A list of CPUs as the kernel writes them: 0-3,8. */
static void put_cpus(struct json *j, const uint8_t *cpus)
{
	struct buf text = { 0 };
	const unsigned n = sizeof(((struct event_variant *)0)->cpus) * 8;

	for (unsigned from = 0, to; from < n; from = to + 1) {
		for (to = from; to < n && cpus[to / 8] >> to % 8 & 1;)
			to++;
		if (to > from)
			buf_printf(&text, to > from + 1 ? "%s%u-%u" : "%s%u", text.len ? "," : "", from, to - 1);
	}
	buf_add_char(&text, '\0');
	if (!text.failed)
		json_key_str(j, "cpus", (const char *)text.data);
	buf_free(&text);
}

static void put_encoding(struct json *j, const struct event_variant *v, bool cpus)
{
	json_object_begin(j);
	json_key_u64(j, "type", v->type);
	json_key_u64(j, "config", v->config);
	json_key_u64(j, "config1", v->config1);
	json_key_u64(j, "config2", v->config2);
	if (cpus)
		put_cpus(j, v->cpus);
	json_object_end(j);
}

static void put_encodings(struct json *j, const struct schema *s, unsigned event)
{
	const struct event_desc *e = &s->core.ev[event];
	const struct event_variants *more = s->core_variants ? &s->core_variants[event] : NULL;
	struct event_variant only = {
		.type = e->type, .config = e->config, .config1 = e->config1, .config2 = e->config2
	};

	memcpy(only.cpus, e->cpus, sizeof(only.cpus));
	json_key(j, "perf");
	json_array_begin(j);
	for (unsigned i = 0; more && i < more->n; i++)
		put_encoding(j, &more->v[i], true);
	if (e->kind == EVENT_PERF && (!more || !more->n))
		put_encoding(j, &only, e->cpus_only_known);
	json_array_end(j);
}

static void put_price(struct json *j, const struct totals *t, int event)
{
	const struct schema *s = t->schema;

	json_object_begin(j);
	json_key_str(j, "event", event < 0 ? "time" : s->core.ev[event].name);
	json_key(j, event < 0 ? "joules_per_second" : "joules_per_count");
	json_object_begin(j);
	for (unsigned d = 0; d < s->n_domains; d++) {
		json_key(j, s->domains[d].name);
		json_double(j, event < 0 ? t->domains[d].price.per_second : t->domains[d].price.per_count[event]);
	}
	json_object_end(j);
	if (event >= 0)
		put_encodings(j, s, (unsigned)event);
	json_object_end(j);
}

void serve_prices_json(struct json *j, const struct totals *t)
{
	json_key(j, "prices");
	json_array_begin(j);
	for (int i = -1; i < (int)t->schema->core.n; i++)
		put_price(j, t, i);
	json_array_end(j);
}
