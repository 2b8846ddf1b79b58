/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder appends a finished snapshot to a buffer as bytes of one format. It uses no clock, does no I/O,
 * does not log, and allocates nothing in steady state. It does not know where the bytes go: that is the sink's
 * part. */
#ifndef JD_ENCODE_H
#define JD_ENCODE_H
#include "base/buf.h"
#include "base/err.h"
#include "model/grouping.h"
#include "model/snapshot.h"

struct encoder; /* one per output: its options and counters */

struct encoder_stats {
	uint64_t withheld_ticks; /* snapshots that were withheld whole; see reason */
	uint64_t withheld_rows; /* rows left out (unsafe name, no counters) */
	uint64_t renamed_rows; /* rows sent under a changed name (bytes that the format cannot carry) */
	uint64_t folded_rows; /* rows added to another row because the format has no room for them */
	char reason[200]; /* why the last snapshot was withheld; "" = none yet */
};

/* Values of the output's query part. They are already checked against the option table of the format. */
struct encode_options {
	const char *sensor;
	bool iso_time; /* hwpc, power: ISO text and "metadata":{}; false = integer ms */
	bool csv; /* hwpc, power */
	const char *csv_group; /* hwpc CSV: the group whose rows this encoder writes; NULL otherwise */
	bool leaf_only; /* hwpc */
	bool stand_ins; /* hwpc */
	bool no_metadata; /* hwpc */
	bool dialect_v02; /* vjoule: the dialect of release v0.2; false = the documented one */
	char *const *metrics; /* vjoule: NAME or NAME=EVENT each; none = the dialect's defaults */
	unsigned n_metrics;
	unsigned limit; /* table: rows shown, 0 = as many as fit height */
	uint64_t keep_ns; /* openmetrics: how long an ended cgroup's final value stays */
	unsigned top; /* openmetrics: cgroups or groups shown, 0 = all */
	struct grouping by; /* openmetrics: the groups that are its rows */
	uint64_t max_series; /* openmetrics: bound on the series of a page, 0 = none */
	bool colour; /* table */
	bool clear; /* table: move the cursor home and clear the screen before each table */
	unsigned width; /* table: columns, 0 = 80 */
	unsigned height; /* table: lines that "fit" fills, 0 = 24 */
	const char *guest; /* share: the virtual machine's cgroup, a pattern unless guest_literal */
	bool guest_literal;
	uint64_t epoch; /* share: a number that no other encoder has */
};

struct encoder_ops {
	const char *name; /* "hwpc", "power", "table", "snapshot", "vjoule" */
	/* Checks the options against the schema. 0, or negative errno with a message in err. */
	int (*create)(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err);
	/* Appends the bytes that every new client or file gets before any document. May be NULL. */
	int (*preamble)(struct encoder *e, const struct schema *s, struct buf *out);
	/* Appends the document(s) of one interval. shown says for each row of s whether the output shows it; NULL =
	 * as its `selected` says (model/selection.h). 0 = appended, or withheld on purpose (out is unchanged then,
	 * and stats count it). Negative errno = failed. */
	int (*encode)(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out);
	/* The last document was not kept: what only it said is said again. May be NULL. */
	void (*lost)(struct encoder *e);
	/* e, which has made no document yet, goes on for the readers of old, an encoder of the same format. May be NULL. */
	void (*inherit)(struct encoder *e, struct encoder *old);
	const struct encoder_stats *(*stats)(const struct encoder *e);
	/* Note i for people: a fact that the format cannot carry, such as an absent domain or a stand-in. NULL
	 * after the last note. The notes are fixed for the life of the encoder. May be NULL. */
	const char *(*note)(const struct encoder *e, unsigned i);
	void (*destroy)(struct encoder *e);
};

/* The encoder of a format, from the table in encode.c. NULL when there is none. */
const struct encoder_ops *encoder_find(const char *name);

#endif
