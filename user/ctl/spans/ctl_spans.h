/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as joulectl spans and joulectl flame show them: from the agent, a spool, or a file of JSON. */
#ifndef JD_CTL_SPANS_H
#define JD_CTL_SPANS_H
#include "../base/buf.h"
#include "../encode/trace_pick.h"
#include "../base/err.h"
#include "verb.h"

struct spans_list {
	struct trace **v; /* newest first */
	size_t n, cap;
	uint64_t left_out, forgotten; /* what the agent says of others */
	void **docs; /* json_t that texts belong to, one per trace or NULL */
};

/* Options that both verbs have, by row of their tables. */
enum { SPANS_CGROUP, SPANS_COMMAND, SPANS_SINCE, SPANS_UNTIL, SPANS_TRACE, SPANS_LIMIT, SPANS_SOCKET, SPANS_OPTIONS };
#define SPANS_OPTION_ROWS \
	[SPANS_CGROUP] = { "cgroup", 0, "PATTERN", \
			   "only of cgroups that match, such as /system.slice/** (* stays within a name)" }, \
	[SPANS_COMMAND] = { "command", 'c', "PATTERN", \
			    "only commands and functions that match, and what is below them" }, \
	[SPANS_SINCE] = { "since", 's', "TIME", "-10m, 2026-01-31T12:00:00Z or Unix seconds; of the agent alone" }, \
	[SPANS_UNTIL] = { "until", 'u', "TIME", "the same; now unless given" }, \
	[SPANS_TRACE] = { "trace", 't', "UUID", "only this one" }, \
	[SPANS_LIMIT] = { "limit", 'n', "N", \
			  "spans at most, 1000 unless given; traces come whole, the newest first" }, \
	[SPANS_SOCKET] = { "socket", 0, "PATH", \
			   "of the agent; JOULED_SOCKET, or /run/jouled/jouled.sock unless given" }

/* From args[0], or from the agent. 0, -EINVAL for wrong options, or negative errno; err in any case. */
int spans_load(const struct verb_call *call, struct spans_list *ret, struct err *err);
void spans_list_free(struct spans_list *l);
/* spans_json.c: what /v1/spans or spans --json said, appended. */
int spans_read_json(struct spans_list *l, const char *text, size_t size, const char *subject, struct err *err);
/* Takes t; doc: what its texts belong to, NULL = t is a record (store/trace_record.h). 0 or -ENOMEM: then nothing was
 * taken. */
int spans_list_add(struct spans_list *l, struct trace *t, void *doc);

/* Where each span hangs, and what is asked for. One for each trace; arrays of n_spans. */
struct spans_shape {
	const struct trace *t;
	uint32_t *up; /* number of the parent, of the root its own */
	unsigned *depth;
	bool *shown; /* matches, or is below one that does */
	uint64_t *own_uj, *all_uj; /* energy without and with all below */
	bool has_energy;
};
/* 0 or -ENOMEM. */
int spans_shape(struct spans_shape *s, const struct trace *t, const char *command);
void spans_shape_free(struct spans_shape *s);

/* Name of a span: its command, or its function. */
const char *spans_label(const struct span *s);

/* What they make of a list, appended to out: text; JSON; the trace-event format; SVG. 0 or -ENOMEM, -ENODATA. */
int spans_print(const struct spans_list *l, const char *command, struct buf *out);
void spans_print_json(const struct spans_list *l, struct buf *out);
int spans_print_chrome(const struct spans_list *l, const char *command, struct buf *out);
int spans_draw_flame(const struct spans_list *l, const char *command, unsigned width, struct buf *out);

/* To a file, or standard output where path is NULL. */
int spans_write(const char *path, const struct buf *b, struct err *err);

#endif
