/* SPDX-License-Identifier: Apache-2.0 */
/* The trace-event format (docs/formats/spans.md). Trace viewers nest its complete events by time. A trace is a
 * "process" there, and each of our processes a "thread" of it, so that a tree is one block of lines. Complete events
 * must not overlap, but summed calls do, so summed calls are asynchronous events. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include "base/format/json.h"
#include "ctl_spans.h"

struct writer {
	struct json j;
	uint64_t base_ns; /* start of the earliest span */
};

/* Microseconds since the earliest span, with nanoseconds behind the point. */
static void put_us(struct writer *w, const char *key, uint64_t ns)
{
	json_key(&w->j, key);
	json_double(&w->j, (double)(ns / 1000) + (double)(ns % 1000) / 1000);
}

static void begin_event(struct writer *w, const char *ph, const char *name, uint32_t pid, uint32_t tid)
{
	json_object_begin(&w->j);
	json_key_str(&w->j, "ph", ph);
	json_key_str(&w->j, "name", name);
	json_key_u64(&w->j, "pid", pid);
	json_key_u64(&w->j, "tid", tid);
}

static void put_name(struct writer *w, const char *what, uint32_t pid, uint32_t tid, const char *name)
{
	begin_event(w, "M", what, pid, tid);
	json_key(&w->j, "args");
	json_object_begin(&w->j);
	json_key_str(&w->j, "name", name);
	json_object_end(&w->j);
	json_object_end(&w->j);
}

static void put_args(struct writer *w, const struct spans_shape *sh, uint32_t i)
{
	const struct span *s = &sh->t->spans[i];

	json_key(&w->j, "args");
	json_object_begin(&w->j);
	if (*s->cmdline)
		json_key_str(&w->j, "cmdline", s->cmdline);
	if (s->kind == SPAN_FUNCTION)
		json_key_u64(&w->j, "calls", s->calls);
	json_key_str(&w->j, "end", span_end_name(s->end));
	if (s->exit_code)
		json_key_u64(&w->j, "exit_code", (uint64_t)(unsigned)s->exit_code);
	if (s->signal)
		json_key_u64(&w->j, "signal", (uint64_t)(unsigned)s->signal);
	json_key_u64(&w->j, "cpu_ns", s->cpu_ns);
	for (unsigned d = 0; d < s->n_domains && d < sh->t->n_domains; d++) {
		char key[SCHEMA_NAME_MAX + 16];

		snprintf(key, sizeof(key), "energy_uj %s", sh->t->domains[d]);
		json_key_u64(&w->j, key, s->energy_uj[d]);
	}
	json_key_u64(&w->j, "subtree_energy_uj", sh->all_uj[i]);
	json_key_str(&w->j, "energy_quality", quality_name(s->energy_quality));
	json_object_end(&w->j);
}

/* Limits a call to the time of its process. Processes in a later part of a trace begin with that part, but their calls
 * may have begun before. */
static void clip(const struct spans_shape *sh, uint32_t i, uint64_t *start, uint64_t *end)
{
	const struct span *s = &sh->t->spans[i];

	*start = s->start_ns;
	*end = s->end_ns;
	while (s->kind == SPAN_FUNCTION && i) {
		i = sh->up[i];
		s = &sh->t->spans[i];
		*start = *start > s->start_ns ? *start : s->start_ns;
		*end = *end < s->end_ns ? *end : s->end_ns;
	}
	if (*end < *start)
		*end = *start;
}

static void put_sum(struct writer *w, const struct spans_shape *sh, uint32_t i, uint32_t pid)
{
	const struct span *s = &sh->t->spans[i];
	char id[20];
	uint64_t start, end;

	snprintf(id, sizeof(id), "0x%" PRIx64, s->id);
	clip(sh, i, &start, &end);
	for (unsigned last = 0; last < 2; last++) {
		begin_event(w, last ? "e" : "b", spans_label(s), pid, s->tid);
		json_key_str(&w->j, "cat", "calls");
		json_key_str(&w->j, "id", id);
		put_us(w, "ts", (last ? end : start) - w->base_ns);
		if (!last)
			put_args(w, sh, i);
		json_object_end(&w->j);
	}
}

static void put_span(struct writer *w, const struct spans_shape *sh, uint32_t i, uint32_t pid)
{
	const struct span *s = &sh->t->spans[i];
	uint64_t start, end;
	char name[64];

	if (s->kind == SPAN_FUNCTION && s->calls != 1) {
		put_sum(w, sh, i, pid);
		return;
	}
	if (s->kind == SPAN_PROCESS) {
		snprintf(name, sizeof(name), "%s %" PRIu32, spans_label(s), s->pid);
		put_name(w, "thread_name", pid, s->tid, name);
	}
	clip(sh, i, &start, &end);
	begin_event(w, "X", spans_label(s), pid, s->tid);
	json_key_str(&w->j, "cat", span_kind_name(s->kind));
	put_us(w, "ts", start - w->base_ns);
	put_us(w, "dur", end - start);
	put_args(w, sh, i);
	json_object_end(&w->j);
}

static int put_trace(struct writer *w, const struct trace *t, const char *command)
{
	const uint32_t pid = t->spans[0].pid;
	struct spans_shape sh;

	if (spans_shape(&sh, t, command) != 0)
		return -ENOMEM;
	put_name(w, "process_name", pid, pid, t->spans[0].cgroup);
	for (uint32_t i = 0; i < t->n_spans; i++)
		if (sh.shown[i])
			put_span(w, &sh, i, pid);
	spans_shape_free(&sh);
	return 0;
}

static uint64_t earliest(const struct spans_list *l)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; k < l->v[i]->n_spans; k++)
			if (l->v[i]->spans[k].start_ns < first)
				first = l->v[i]->spans[k].start_ns;
	return first;
}

/* Viewers show otherData as notes about the file. */
static void put_missing(struct json *j, const struct spans_missing *m)
{
	char text[SPANS_SENTENCES][200];
	unsigned n = spans_say_missing(m, text);

	if (!n)
		return;
	json_key(j, "otherData");
	json_object_begin(j);
	for (unsigned i = 0; i < n; i++) {
		char key[24];

		snprintf(key, sizeof(key), "missing %u", i + 1);
		json_key_str(j, key, text[i]);
	}
	json_object_end(j);
}

int spans_print_chrome(const struct spans_list *l, const char *command, struct buf *out)
{
	struct writer w = { .base_ns = earliest(l) };
	int rc = 0;

	json_init(&w.j, out);
	json_object_begin(&w.j);
	json_key_str(&w.j, "displayTimeUnit", "ms");
	json_key(&w.j, "traceEvents");
	json_array_begin(&w.j);
	for (size_t i = l->n; i-- > 0 && !rc;)
		rc = put_trace(&w, l->v[i], command);
	json_array_end(&w.j);
	put_missing(&w.j, &l->missing);
	json_object_end(&w.j);
	buf_add_char(out, '\n');
	return rc;
}
