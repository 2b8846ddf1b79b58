/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as JSON (docs/formats/spans.md), for /v1/spans and joulectl spans --json. */
#ifndef JD_TRACE_JSON_H
#define JD_TRACE_JSON_H
#include "base/format/json.h"
#include "model/span.h"

void trace_json(struct json *j, const struct trace *t);

/* Figures of the traces that match a query but are not in its answer. They follow the traces. */
struct spans_missing {
	uint64_t left_out, left_out_spans, left_out_uj; /* beyond the limit */
	uint64_t next; /* the agent's number of the last trace in the answer, where it left out older ones */
	uint64_t forgotten, forgotten_uj; /* traces that made room for newer ones in the agent's memory */
	int64_t forgotten_until_ns; /* CLOCK_REALTIME of the latest end among them */
	bool has_lost; /* the next line is known; counts of the agent since it began */
	uint64_t lost_records, lost_processes, lost_ends, lost_calls, lost_spans;
	uint64_t open_trees, open_spans, open_uj; /* of all cgroups: trees that are told at their end or cut */
	uint64_t unread; /* records of a spool */
};
enum { MISSING_NEXT = 1, MISSING_REST = 2 };
extern const struct fields spans_missing_fields, spans_open_fields, spans_lost_fields;
/* agent: writes `next`, and the open and lost figures even when they are 0. */
void spans_missing_json(struct json *j, const struct spans_missing *m, bool agent);

/* A filter of traces. */

struct trace_pick { /* NULL = any; borrowed */
	const char *cgroup; /* glob of text.h */
	const char *command; /* glob of a span's comm or symbol; one in the trace is enough */
	const char *uuid; /* with or without dashes */
	int64_t since_ns, until_ns; /* it ran at some time between them; INT64_MIN = any */
};

bool trace_picked(const struct trace *t, const struct trace_pick *p);
/* True when the span is of the command. NULL = every span is. */
bool span_picked(const struct span *s, const char *command);
/* True for 32 hexadecimal digits with dashes anywhere. */
bool trace_uuid_ok(const char *text);

/* CLOCK_REALTIME of the latest end in the trace. */
int64_t trace_end_unix_ns(const struct trace *t);

#endif
