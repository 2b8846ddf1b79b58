/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include "base/text.h"
#include "trace_json.h"

static void put_span(struct json *j, const struct span *s)
{
	json_object_begin(j);
	fields_json(j, &span_fields, s, SPAN_BEFORE_ENERGY);
	json_key(j, "energy_uj");
	json_array_begin(j);
	for (unsigned d = 0; d < s->n_domains; d++)
		json_u64(j, s->energy_uj[d]);
	json_array_end(j);
	fields_json(j, &span_fields, s, SPAN_BEHIND_ENERGY);
	fields_json(j, &span_fields, s,
		    s->kind == SPAN_FUNCTION ? SPAN_OF_FUNCTION :
		    s->end == SPAN_EXITED    ? SPAN_OF_PROCESS | SPAN_OF_EXIT :
					       SPAN_OF_PROCESS);
	json_object_end(j);
}

static void put_head(struct json *j, const struct trace *t)
{
	char uuid[40];
	const uint8_t *u = t->uuid;

	snprintf(uuid, sizeof(uuid), "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
	json_key_str(j, "trace", uuid);
	fields_json(j, &trace_fields, t, TRACE_HEAD);
	json_key_str(j, "cgroup", t->spans[0].cgroup);
	json_key_u64(j, "cgroup_id", t->spans[0].cgroup_id);
	fields_json(j, &trace_fields, t, TRACE_NAMES);
}

static void put_domains(struct json *j, const struct trace *t)
{
	json_key(j, "domains");
	json_array_begin(j);
	for (unsigned d = 0; d < t->n_domains; d++)
		json_str(j, t->domains[d]);
	json_array_end(j);
	json_key(j, "interfaces");
	json_array_begin(j);
	for (unsigned d = 0; d < t->n_domains; d++)
		json_str(j, t->interfaces ? t->interfaces[d] : "");
	json_array_end(j);
}

void trace_json(struct json *j, const struct trace *t)
{
	json_object_begin(j);
	put_head(j, t);
	put_domains(j, t);
	json_key(j, "spans");
	json_array_begin(j);
	for (uint32_t i = 0; i < t->n_spans; i++)
		put_span(j, &t->spans[i]);
	json_array_end(j);
	json_object_end(j);
}

static const struct field missing_rows[] = {
	FIELD_AS("left_out_traces", spans_missing, left_out),
	FIELD(spans_missing, left_out_spans),
	FIELD_AS("left_out_energy_uj", spans_missing, left_out_uj),
	FIELD(spans_missing, next, .how = FIELD_SOME, .in = MISSING_NEXT),
	FIELD_AS("forgotten_traces", spans_missing, forgotten),
	FIELD_AS("forgotten_energy_uj", spans_missing, forgotten_uj),
	FIELD_AS("forgotten_until_unix_ns", spans_missing, forgotten_until_ns, .how = FIELD_SOME),
	FIELD_AS("unread_records", spans_missing, unread, .how = FIELD_SOME),
};
const struct fields spans_missing_fields = FIELDS(missing_rows);

static const struct field open_rows[] = {
	FIELD_AS("trees", spans_missing, open_trees),
	FIELD_AS("spans", spans_missing, open_spans),
	FIELD_AS("energy_uj", spans_missing, open_uj),
};
const struct fields spans_open_fields = FIELDS(open_rows);

static const struct field lost_rows[] = {
	FIELD_AS("records", spans_missing, lost_records), FIELD_AS("processes", spans_missing, lost_processes),
	FIELD_AS("ends", spans_missing, lost_ends),       FIELD_AS("calls", spans_missing, lost_calls),
	FIELD_AS("spans", spans_missing, lost_spans),
};
const struct fields spans_lost_fields = FIELDS(lost_rows);

void spans_missing_json(struct json *j, const struct spans_missing *m, bool agent)
{
	fields_json(j, &spans_missing_fields, m, agent ? MISSING_NEXT : MISSING_REST);
	if (agent || m->open_trees)
		json_key_fields(j, "open", &spans_open_fields, m, 0);
	if (agent || m->has_lost)
		json_key_fields(j, "lost", &spans_lost_fields, m, 0);
}

bool trace_uuid_ok(const char *text)
{
	size_t digits = 0;

	for (; *text; text++) {
		if (*text != '-' && !isxdigit((unsigned char)*text))
			return false;
		digits += *text != '-';
	}
	return digits == 32;
}

static bool has_uuid(const struct trace *t, const char *text)
{
	char hex[3] = "";
	unsigned n = 0;

	for (; *text && n < 2 * sizeof(t->uuid); text++) {
		if (*text == '-')
			continue;
		snprintf(hex, sizeof(hex), "%02x", t->uuid[n / 2]);
		if (tolower((unsigned char)*text) != hex[n % 2])
			return false;
		n++;
	}
	return n == 2 * sizeof(t->uuid);
}

bool span_picked(const struct span *s, const char *command)
{
	return !command || text_glob(command, s->comm) || (s->kind == SPAN_FUNCTION && text_glob(command, s->symbol));
}

static bool has_command(const struct trace *t, const char *command)
{
	for (uint32_t i = 0; i < t->n_spans; i++)
		if (span_picked(&t->spans[i], command))
			return true;
	return false;
}

int64_t trace_end_unix_ns(const struct trace *t)
{
	int64_t last = INT64_MIN;

	for (uint32_t i = 0; i < t->n_spans; i++) {
		const struct span *s = &t->spans[i];
		int64_t end_ns = (int64_t)((uint64_t)s->start_real_ns + (s->end_ns - s->start_ns));

		last = end_ns > last ? end_ns : last;
	}
	return last;
}

bool trace_picked(const struct trace *t, const struct trace_pick *p)
{
	const struct span *root = &t->spans[0];

	if (p->cgroup && !text_glob(p->cgroup, root->cgroup))
		return false;
	if (p->uuid && !has_uuid(t, p->uuid))
		return false;
	if (p->until_ns != INT64_MIN && root->start_real_ns > p->until_ns)
		return false;
	if (p->since_ns != INT64_MIN && trace_end_unix_ns(t) < p->since_ns)
		return false;
	return !p->command || has_command(t, p->command);
}
