/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as joulectl spans and joulectl flame show them: from the agent, a spool, or a file of JSON. */
#ifndef JD_CTL_SPANS_H
#define JD_CTL_SPANS_H
#include "base/buf.h"
#include "encode/trace_json.h"
#include "base/err.h"
#include "ctl/core/verb.h"

struct spans_list {
	struct trace **v; /* newest first */
	size_t n, cap;
	struct spans_missing missing;
	void **docs; /* for each trace the json_t that holds its texts; NULL = the trace is a record */
};

/* Options of both verbs: the first rows of their tables. */
enum { SPANS_CGROUP, SPANS_COMMAND, SPANS_SINCE, SPANS_UNTIL, SPANS_TRACE, SPANS_LIMIT, SPANS_SOCKET, SPANS_OPTIONS };
#define SPANS_OPTION_ROWS(all) \
	[SPANS_CGROUP] = { "cgroup", 0, "PATTERN", \
			   "only of cgroups that match, such as /system.slice/** (* stays within a name)" }, \
	[SPANS_COMMAND] = { "command", 'c', "PATTERN", \
			    "only commands and functions that match, and what is below them" }, \
	[SPANS_SINCE] = { "since", 's', "TIME", "-10m, 2026-01-31T12:00:00Z or Unix seconds; of the agent alone" }, \
	[SPANS_UNTIL] = { "until", 'u', "TIME", "the same; now unless given" }, \
	[SPANS_TRACE] = { "trace", 't', "UUID", "only this one" }, \
	[SPANS_LIMIT] = { "limit", 'n', "N", \
			  "spans at most, " all " unless given; traces come whole, the newest first" }, \
	[SPANS_SOCKET] = { "socket", 0, "PATH", \
			   "of the agent; JOULED_SOCKET, or /run/jouled/jouled.sock unless given" }

struct spans_query {
	const struct verb_call *call; /* traces come from args[0], or from the agent without an argument */
	uint64_t limit; /* of spans, where the call has no --limit */
	/* Takes the traces a part at a time, newest first; each part is freed after the call. 0, or negative errno, which
	 * ends the loading. NULL = the list gets all traces. */
	int (*each)(void *ctx, const struct spans_list *part);
	void *ctx;
};

/* ret->missing is set with and without `each`. 0, -EINVAL for wrong options, or negative errno; err is set for every
 * failure except one of `each`. */
int spans_load(const struct spans_query *q, struct spans_list *ret, struct err *err);
void spans_list_free(struct spans_list *l);
/* Writes a sentence into text for each kind of missing data. Returns the number of sentences. */
#define SPANS_SENTENCES 5
unsigned spans_say_missing(const struct spans_missing *m, char text[SPANS_SENTENCES][200]);
/* Prints these sentences on standard error, without the one about trees that go on. */
void spans_warn_missing(const char *verb, const struct spans_missing *m);
/* spans_load.c: appends the traces of a JSON document from /v1/spans or spans --json. */
int spans_read_json(struct spans_list *l, const char *text, size_t size, const char *subject, struct err *err);

/* The tree of one trace's spans, and the spans to show. The arrays have n_spans elements. */
struct spans_shape {
	const struct trace *t;
	uint32_t *up; /* index of the parent; the root has its own */
	unsigned *depth;
	bool *shown; /* matches, or is below one that does */
	uint64_t *own_uj, *all_uj; /* energy without and with that of all spans below */
	bool has_energy;
};
/* 0 or -ENOMEM. */
int spans_shape(struct spans_shape *s, const struct trace *t, const char *command);
void spans_shape_free(struct spans_shape *s);

/* Name of a span: its command, or its function. */
const char *spans_label(const struct span *s);

/* Append a list to out: as text, as JSON, in the trace-event format. 0 or -ENOMEM. width: columns of the terminal, to which
 * command lines are cut; 0 = whole. */
int spans_print(const struct spans_list *l, const char *command, unsigned width, struct buf *out);
void spans_print_json(const struct spans_list *l, struct buf *out);
int spans_print_chrome(const struct spans_list *l, const char *command, struct buf *out);
/* flame.c: traces are added part by part, then the picture is drawn, with sentences about missing traces. add returns 0
 * or -ENOMEM; draw also -ENODATA. */
struct flame;
struct flame *spans_flame_new(const char *command); /* NULL = no memory; command is borrowed */
int spans_flame_add(struct flame *f, const struct spans_list *part);
/* A stack of joulectl profile instead of a trace: labels from the lowest frame on. 0 or -ENOMEM. */
struct flame_stack {
	const char *const *label;
	unsigned n, quality;
	uint64_t own_uj, cpu_ns, samples; /* of the highest frame */
	bool before; /* of the profile to compare with: it gives colours and no width */
	uint64_t before_uj; /* its energy there */
};
int spans_flame_add_stack(struct flame *f, const struct flame_stack *s);
int spans_flame_draw(struct flame *f, const struct spans_missing *missing, unsigned width, struct buf *out);
void spans_flame_free(struct flame *f); /* NULL accepted */

/* To a file, or standard output where path is NULL. */
int spans_write(const char *path, const struct buf *b, struct err *err);

#endif
