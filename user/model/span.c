// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include "span.h"

const char *span_kind_name(enum span_kind k)
{
	return k == SPAN_FUNCTION ? "function" : "process";
}

const char *span_end_name(enum span_end e)
{
	static const char *const names[] = { "exited", "signaled", "oom", "cut", "unknown" };

	return (unsigned)e < sizeof(names) / sizeof(names[0]) ? names[e] : "unknown";
}

/* Parents stand before their children, so the way up is a way back. */
static uint32_t parent_of(const struct trace *t, uint32_t i)
{
	for (uint32_t at = i; at-- > 0;)
		if (t->spans[at].id == t->spans[i].parent)
			return at;
	return 0;
}

unsigned trace_depth(const struct trace *t, uint32_t i)
{
	unsigned depth = 0;

	for (; i; i = parent_of(t, i))
		depth++;
	return depth;
}

/* Siblings mostly follow each other: *guess is the last one's parent. */
static bool has_parent(const struct trace *t, uint32_t i, uint32_t *guess)
{
	if (t->spans[*guess].id == t->spans[i].parent)
		return true;
	for (uint32_t at = i; at-- > 0;) {
		if (t->spans[at].id != t->spans[i].parent)
			continue;
		*guess = at;
		return true;
	}
	return false;
}

static bool is_text(const char *s, size_t max)
{
	return s && memchr(s, '\0', max);
}

static const char *check_span(const struct span *s)
{
	if (!s->id)
		return "a span without id";
	if (s->end_ns < s->start_ns)
		return "a span ends before it starts";
	if (!s->calls)
		return "a span of no call";
	if (s->n_domains > SCHEMA_MAX_DOMAINS)
		return "more domains than there can be";
	if (!is_text(s->comm, SPAN_COMM_MAX) || !is_text(s->exe, SPAN_PATH_MAX) ||
	    !is_text(s->cmdline, SPAN_CMDLINE_MAX))
		return "text of a process is missing or too long";
	if (s->kind == SPAN_FUNCTION && (!is_text(s->symbol, SPAN_SYMBOL_MAX) || !is_text(s->binary, SPAN_PATH_MAX)))
		return "text of a function is missing or too long";
	return s->cgroup ? NULL : "a span without cgroup path";
}

const char *trace_check(const struct trace *t)
{
	uint32_t guess = 0;

	if (!t->n_spans || !t->spans)
		return "a trace without spans";
	for (uint32_t i = 0; i < t->n_spans; i++) {
		const char *wrong = check_span(&t->spans[i]);

		if (wrong)
			return wrong;
		if (i && !has_parent(t, i, &guess))
			return "a span before its parent, or without one";
	}
	return NULL;
}
