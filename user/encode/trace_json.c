/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of spans fill 64 bits, which many readers of JSON do not hold: they are text. What is zero, empty or false for
 * most spans is left out. */
#include <inttypes.h>
#include <stdio.h>
#include "trace_json.h"

static void put_id(struct json *j, const char *key, uint64_t id)
{
	char text[20];

	snprintf(text, sizeof(text), "%" PRIx64, id);
	json_key_str(j, key, text);
}

static void put_i64(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_i64(j, v);
}

static void put_some(struct json *j, const char *key, uint64_t v)
{
	if (v)
		json_key_u64(j, key, v);
}

static void put_flag(struct json *j, const char *key, bool v)
{
	if (!v)
		return;
	json_key(j, key);
	json_bool(j, true);
}

static void put_text(struct json *j, const char *key, const char *s)
{
	if (s && *s)
		json_key_str(j, key, s);
}

static void put_function(struct json *j, const struct span *s)
{
	json_key_str(j, "symbol", s->symbol);
	json_key_str(j, "binary", s->binary);
	json_key_u64(j, "tid", s->tid);
	json_key_u64(j, "calls", s->calls);
	json_key_u64(j, "wall_ns", s->wall_ns);
}

static void put_process(struct json *j, const struct span *s)
{
	put_text(j, "exe", s->exe);
	put_text(j, "cmdline", s->cmdline);
	json_key_u64(j, "uid", s->uid);
	json_key_u64(j, "ns_pid", s->ns_pid);
	json_key_u64(j, "parent_pid", s->parent_pid);
	if (s->end == SPAN_EXITED)
		put_i64(j, "exit_code", s->exit_code);
	put_some(j, "signal", (unsigned)s->signal);
	json_key_u64(j, "minor_faults", s->minor_faults);
	json_key_u64(j, "major_faults", s->major_faults);
	json_key_u64(j, "peak_rss_bytes", s->peak_rss_bytes);
	put_flag(j, "moved", s->moved);
	put_flag(j, "core_dumped", s->core_dumped);
	put_flag(j, "seen_running", s->seen_running);
}

static void put_span(struct json *j, const struct span *s)
{
	json_object_begin(j);
	put_id(j, "id", s->id);
	if (s->parent)
		put_id(j, "parent", s->parent);
	json_key_str(j, "kind", span_kind_name(s->kind));
	json_key_str(j, "end", span_end_name(s->end));
	json_key_u64(j, "pid", s->pid);
	json_key_str(j, "comm", s->comm);
	put_i64(j, "start_unix_ns", s->start_real_ns);
	json_key_u64(j, "start_ns", s->start_ns);
	json_key_u64(j, "duration_ns", s->end_ns - s->start_ns);
	json_key_u64(j, "start_boot_ns", s->start_boot_ns);
	json_key_u64(j, "cpu_ns", s->cpu_ns);
	json_key(j, "energy_uj");
	json_array_begin(j);
	for (unsigned d = 0; d < s->n_domains; d++)
		json_u64(j, s->energy_uj[d]);
	json_array_end(j);
	json_key_str(j, "quality", quality_name(s->quality));
	json_key_str(j, "energy_quality", quality_name(s->energy_quality));
	if (s->kind == SPAN_FUNCTION)
		put_function(j, s);
	else
		put_process(j, s);
	json_object_end(j);
}

static void put_head(struct json *j, const struct trace *t)
{
	char uuid[40];
	const uint8_t *u = t->uuid;

	snprintf(uuid, sizeof(uuid), "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
	json_key_str(j, "trace", uuid);
	json_key_u64(j, "part", t->part);
	json_key(j, "last");
	json_bool(j, t->last);
	json_key_str(j, "sensor", t->sensor);
	json_key_str(j, "boot_id", t->boot_id);
	json_key_str(j, "cgroup", t->spans[0].cgroup);
	json_key_u64(j, "cgroup_id", t->spans[0].cgroup_id);
	put_text(j, "pod", t->pod);
	put_text(j, "namespace", t->pod_namespace);
	put_text(j, "container", t->container);
	put_text(j, "unit", t->unit);
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
