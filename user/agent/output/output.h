/* SPDX-License-Identifier: Apache-2.0 */
/* One configured output: an encoder and a sink; hwpc as CSV has one of each per group. The main thread opens
 * and closes it, the measuring thread feeds it, and both read it (sink statistics). */
#ifndef JD_OUTPUT_H
#define JD_OUTPUT_H
#include "base/buf.h"
#include "base/err.h"
#include "encode/encode.h"
#include "model/config/config.h"
#include "model/config/formats.h"
#include "model/selection.h"
#include "sink/sink.h"
#include "csv_files.h"
#include "guest_output.h"
#include "metrics_port.h"
#include "output_context.h"
#include "push_output.h"
#include "zico_output.h"

#define OUTPUT_PARTS CSV_SET_FILES

struct output_part {
	const struct encoder_ops *ops; /* NULL: format null */
	struct encoder *encoder;
	struct sink *sink;
	struct buf text;
	struct encoder_stats told; /* measuring thread: figures already reported */
	_Atomic uint64_t withheld_rows, folded_rows; /* of the encoder, for other threads */
	_Atomic uint64_t unmade; /* documents that could not be encoded */
	struct sink_stats said; /* main thread: the same, of the sink */
	bool said_away; /* main thread: reported that its reader or place is absent */
};

struct output {
	struct output_config config; /* borrowed from the configuration in force */
	uint64_t interval_ns;
	unsigned n_parts;
	int csv_set; /* hwpc as CSV: number of the set of files */
	struct output_part parts[OUTPUT_PARTS];
	struct zico_output *zico; /* format zico: takes traces and has no parts; others push traces */
	struct push_output *push; /* to a server over HTTP: its one part has no sink */
	struct page *page; /* to http-listen: answers requests and has no parts */
	struct output_guests *guests; /* to vsock-listen: one sink, and an encoder per machine */
	bool replays; /* a recording is replayed: documents that no reader gets are lost */
	bool stuck; /* replay: it is not waited for until its reader takes a document again */
	struct selection selection; /* measuring thread: config.cgroups */
	struct output *twin; /* during a reload: the same output in the other plan */
	struct output *place; /* during a reload: the output whose listening sink or collector it takes */
	struct output *heir; /* the reverse of place: the output that takes over */
	struct output *next;
};

/* The output when none is configured. */
extern const struct output_config output_default;

/* oc must stay as long as the output. 0 or negative errno with err. */
int output_open(const struct output_config *oc, const struct output_context *c, struct output **ret, struct err *err);
/* The same on the listening socket of another output, which output_move_in takes over. */
int output_open_at(const struct output_config *oc, const struct output_context *c, struct output *place,
		   struct output **ret, struct err *err);
void output_move_in(struct output *o); /* call while no thread measures; readers see a new connection */
/* Checks everything except opening: format, place, metrics, and options that a replay does not have. -EINVAL with
 * err. */
int output_check(const struct output_config *oc, const struct output_context *c, struct err *err);
/* True when both would be opened alike. Interval and cgroups may differ: they are no reason to cut a
 * connection. */
bool output_same(const struct output_config *a, const struct output_config *b);
/* True when both listen on one address. */
bool output_same_place(const struct output_config *a, const struct output_config *b);
/* True when it writes a set of files in a directory, each for one period of time. */
bool output_in_directory(const struct output_config *oc);
/* True when it takes the chunks of the continuous profile. */
bool output_takes_profiles(const struct output_config *oc);
/* The directory of an output of files of profiles. */
const char *output_directory(const struct output *o);
/* True when its format sends frequencies and temperature. */
bool output_wants_gauges(const struct output *o);
/* True when its format tells what the agent costs. */
bool output_wants_self(const struct output *o);
/* Encodes and queues; never blocks. Each kind of encoding failure is logged once. */
void output_send(struct output *o, const struct snapshot *s);
/* Sends one finished trace, if the output takes traces. Never blocks. */
void output_trace(struct output *o, const struct trace *t);
/* The largest number of documents waiting in one of its sinks. away: counts sinks without a reader too. */
uint32_t output_waiting(struct output *o, bool away);
/* Number of documents that have left its queues, for any reason. */
uint64_t output_progress(struct output *o);
/* True when a reader has connected so far, or none is needed. */
bool output_met(struct output *o);
/* The state of its place for the user, such as "listening on ...". */
void output_state(struct output *o, char *dst, size_t size);
/* Logs peers that came or went and documents dropped since the last call. */
void output_say(struct output *o);
/* Closes the output. Documents waiting in its sinks get a moment and are then dropped. Returns the number of
 * documents lost since it was opened, and logs it. NULL accepted. */
uint64_t output_close(struct output *o);

#endif
