/* SPDX-License-Identifier: Apache-2.0 */
/* One configured output: an encoder and a sink; hwpc as CSV has one of each per group. Opened and
 * closed by the main thread, fed by the measuring thread, looked at by both (sink statistics). */
#ifndef JD_OUTPUT_H
#define JD_OUTPUT_H
#include "../base/buf.h"
#include "../base/err.h"
#include "../encode/encode.h"
#include "../model/config.h"
#include "../model/selection.h"
#include "../sink/sink.h"
#include "output_guests.h"
#include "page.h"
#include "zico_output.h"

#define OUTPUT_PARTS 3

struct output_part {
	const struct encoder_ops *ops; /* NULL: format null */
	struct encoder *encoder;
	struct sink *sink;
	struct buf text;
	struct encoder_stats told; /* measuring thread: figures it has told about */
	struct sink_stats said; /* main thread: the same */
	bool said_away; /* main thread: that its reader or place is not there */
};

struct output {
	struct output_config config; /* borrowed from the configuration in force */
	uint64_t interval_ns;
	unsigned n_parts;
	struct output_part parts[OUTPUT_PARTS];
	struct zico_output *zico; /* format zico, which has no parts: it takes traces */
	struct page *page; /* to http-listen, which has none either: who asks is answered */
	struct output_guests *guests; /* to vsock-listen: one sink, an encoder for each machine */
	struct selection selection; /* measuring thread: config.cgroups */
	struct output *twin; /* while a reload builds: itself in the other plan */
	struct output *place; /* while a reload builds: whose listening sink or collector it will take over ... */
	struct output *heir; /* ... and of that, by whom */
	struct output *next;
};

/* The output of a program that was given none. */
extern const struct output_config output_default;

int output_open(const struct output_config *oc, const struct config *c, const struct schema *s, struct loop *loop,
		struct output **ret, struct err *err);
/* The same on the socket that another output listens on, which output_move_in takes over. */
int output_open_at(const struct output_config *oc, const struct config *c, const struct schema *s, struct output *place,
		   struct output **ret, struct err *err);
void output_move_in(struct output *o); /* while nobody measures; readers see a new connection */
/* Everything but opening: format, place, metrics. -EINVAL with err. */
int output_check(const struct output_config *oc, const struct config *c, struct err *err);
/* Would both be opened alike? Interval and cgroups may differ: no reason to cut a connection. */
bool output_same(const struct output_config *a, const struct output_config *b);
/* Do both listen on one address? */
bool output_same_place(const struct output_config *a, const struct output_config *b);
/* Does its format send frequencies and temperature? */
bool output_wants_gauges(const struct output *o);
/* Encodes and queues; never blocks. Encoding failures are told once each. s is as before afterwards. */
void output_send(struct output *o, struct snapshot *s);
/* One finished trace to an output that takes traces; the others want none. Never blocks. */
void output_trace(struct output *o, const struct trace *t);
/* The largest number of documents that wait in one of its sinks; away: also in those without a reader. */
uint32_t output_waiting(struct output *o, bool away);
/* To the log: peers that came or went, documents dropped, since the last call. */
void output_say(struct output *o);
/* Closes; what still waits in its sinks gets a moment and is dropped then. NULL accepted. */
void output_close(struct output *o);

#endif
