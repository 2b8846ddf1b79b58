/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "schema.h"
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

static const char *kind_word(unsigned v)
{
	return span_kind_name((enum span_kind)v);
}

static const char *end_word(unsigned v)
{
	return span_end_name((enum span_end)v);
}

static const struct field_words kinds = { kind_word, SPAN_FUNCTION + 1, false };
static const struct field_words ends = { end_word, SPAN_UNKNOWN + 1, false };

#define BEFORE (SPAN_BEFORE_ENERGY | SPAN_RECORD)
#define BEHIND (SPAN_BEHIND_ENERGY | SPAN_RECORD)
#define FUNCTION (SPAN_OF_FUNCTION | SPAN_RECORD)
#define PROCESS (SPAN_OF_PROCESS | SPAN_RECORD)
#define EXIT (SPAN_OF_EXIT | SPAN_RECORD)
static const struct field span_rows[] = {
	FIELD(span, id, .in = BEFORE, .key = 0, .how = FIELD_HEX),
	FIELD(span, parent, .in = BEFORE, .key = 1, .how = FIELD_HEX | FIELD_SOME),
	FIELD(span, kind, .in = BEFORE, .key = 2, .words = &kinds),
	FIELD(span, end, .in = BEFORE, .key = 3, .words = &ends),
	FIELD(span, pid, .in = BEFORE, .key = 4),
	FIELD(span, comm, .in = BEFORE, .key = 27, .max = SPAN_COMM_MAX),
	FIELD_AS("start_unix_ns", span, start_real_ns, .in = BEFORE, .key = 25),
	FIELD(span, start_ns, .in = BEFORE, .key = 10),
	FIELD_LENGTH_OF("duration_ns", span, start_ns, end_ns, .in = SPAN_BEFORE_ENERGY),
	FIELD(span, start_boot_ns, .in = BEFORE, .key = 9),
	FIELD(span, cpu_ns, .in = BEFORE, .key = 17),
	FIELD(span, quality, .in = BEHIND, .key = 21, .words = &quality_words),
	FIELD(span, energy_quality, .in = BEHIND, .key = 22, .words = &quality_words),
	FIELD(span, symbol, .in = FUNCTION, .key = 31, .max = SPAN_SYMBOL_MAX),
	FIELD(span, binary, .in = FUNCTION, .key = 32, .max = SPAN_PATH_MAX),
	FIELD(span, tid, .in = FUNCTION, .key = 5),
	FIELD(span, calls, .in = FUNCTION, .key = 16),
	FIELD(span, wall_ns, .in = FUNCTION, .key = 24),
	FIELD(span, exe, .in = PROCESS, .key = 28, .how = FIELD_SOME, .max = SPAN_PATH_MAX),
	FIELD(span, cmdline, .in = PROCESS, .key = 29, .how = FIELD_SOME, .max = SPAN_CMDLINE_MAX),
	FIELD(span, uid, .in = PROCESS, .key = 8),
	FIELD(span, ns_pid, .in = PROCESS, .key = 6),
	FIELD(span, parent_pid, .in = PROCESS, .key = 7),
	FIELD(span, exit_code, .in = EXIT, .key = 26),
	FIELD(span, signal, .in = PROCESS, .key = 13, .how = FIELD_SOME, .max = INT32_MAX),
	FIELD(span, minor_faults, .in = PROCESS, .key = 18),
	FIELD(span, major_faults, .in = PROCESS, .key = 19),
	FIELD(span, peak_rss_bytes, .in = PROCESS, .key = 20),
	FIELD(span, moved, .in = PROCESS, .key = 23, .how = FIELD_SOME | FIELD_DIGIT),
	FIELD(span, core_dumped, .in = PROCESS, .key = 14, .how = FIELD_SOME | FIELD_DIGIT),
	FIELD(span, seen_running, .in = PROCESS, .key = 15, .how = FIELD_SOME | FIELD_DIGIT),
	FIELD(span, end_ns, .in = SPAN_RECORD, .key = 11),
	FIELD(span, cgroup_id, .in = SPAN_RECORD, .key = 12),
	FIELD(span, cgroup, .in = SPAN_RECORD, .key = 30, .max = 4096),
};
const struct fields span_fields = FIELDS(span_rows);

static const struct field trace_rows[] = {
	FIELD(trace, part, .in = TRACE_HEAD),
	FIELD(trace, last, .in = TRACE_HEAD),
	FIELD(trace, sensor, .in = TRACE_HEAD | TRACE_RECORD, .key = 0, .max = 4096),
	FIELD(trace, boot_id, .in = TRACE_HEAD | TRACE_RECORD, .key = 1, .max = 4096),
	FIELD(trace, pod, .in = TRACE_NAMES | TRACE_RECORD, .key = 2, .how = FIELD_SOME, .max = 4096),
	FIELD_AS("namespace", trace, pod_namespace, .in = TRACE_NAMES | TRACE_RECORD, .key = 3, .how = FIELD_SOME,
		 .max = 4096),
	FIELD(trace, container, .in = TRACE_NAMES | TRACE_RECORD, .key = 4, .how = FIELD_SOME, .max = 4096),
	FIELD(trace, unit, .in = TRACE_NAMES | TRACE_RECORD, .key = 5, .how = FIELD_SOME, .max = 4096),
};
const struct fields trace_fields = FIELDS(trace_rows);

/* Index of the parent of span i. Parents stand before their children, so the search goes backwards. */
static uint32_t parent_of(const struct trace *t, uint32_t i)
{
	for (uint32_t at = i; at-- > 0;)
		if (t->spans[at].id == t->spans[i].parent)
			return at;
	return 0;
}

void trace_part_uuid(const struct trace *t, uint32_t part, uint8_t ret_uuid[16])
{
	const uint32_t differs = t->part ^ part;

	memmove(ret_uuid, t->uuid, 16);
	for (unsigned i = 0; i < 4; i++)
		ret_uuid[12 + i] ^= (uint8_t)(differs >> (24 - 8 * i));
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

bool span_energy_uj(const struct trace *t, const struct span *s, uint64_t *ret)
{
	unsigned n = t->n_domains < s->n_domains ? t->n_domains : s->n_domains;
	bool summed[SCHEMA_MAX_DOMAINS];
	uint64_t sum = 0;

	n = n < SCHEMA_MAX_DOMAINS ? n : SCHEMA_MAX_DOMAINS;
	domain_names_summed((const char *const *)t->domains, n, summed);
	for (unsigned d = 0; d < n; d++)
		sum += summed[d] ? s->energy_uj[d] : 0;
	if (n)
		*ret = sum;
	return n;
}

bool trace_energy_uj(const struct trace *t, uint64_t *ret)
{
	bool any = false;
	uint64_t uj;

	*ret = 0;
	for (uint32_t i = 0; i < t->n_spans; i++) {
		if (!span_energy_uj(t, &t->spans[i], &uj))
			continue;
		*ret += uj;
		any = true;
	}
	return any;
}
