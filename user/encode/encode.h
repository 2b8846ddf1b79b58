/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder turns a finished snapshot into bytes. Pure: no clock, no I/O, no logging; it appends
 * to the buffer it is given and allocates nothing in steady state. A format is not a transport. */
#ifndef JD_ENCODE_H
#define JD_ENCODE_H
#include "../base/buf.h"
#include "../base/err.h"
#include "../model/snapshot.h"

struct encoder; /* per output: options and counters */

struct encoder_stats {
	uint64_t withheld_ticks; /* snapshots of which nothing was sent, and why last */
	uint64_t withheld_rows; /* rows left out (unsafe name, no counters) */
	uint64_t renamed_rows; /* rows sent under a changed name (bytes that the format cannot carry) */
	uint64_t folded_rows; /* rows added up in another one because the format has no room for them */
	char reason[200]; /* of the last withholding; "" = none yet */
};

/* Values of the output's query part, already checked against the option table of the format. */
struct encode_options {
	const char *sensor;
	bool iso_time; /* hwpc, power: ISO text and "metadata":{}; false = integer ms */
	bool csv; /* hwpc, power */
	const char *csv_group; /* hwpc CSV: the group whose rows this encoder writes; NULL otherwise */
	bool leaf_only; /* hwpc */
	bool stand_ins; /* hwpc */
	bool dialect_v02; /* vjoule: as release v0.2 speaks; false = as its document says */
	char *const *metrics; /* vjoule: NAME or NAME=EVENT each; none = the dialect's own */
	unsigned n_metrics;
	unsigned limit; /* table: rows shown, 0 = fit */
	uint64_t keep_ns; /* openmetrics: an ended cgroup's final value, 0 = the default */
	unsigned top; /* openmetrics: cgroups shown, 0 = all */
	bool colour; /* table */
	bool clear; /* table: home the cursor and clear the screen before each table */
	unsigned width; /* table: columns, 0 = 80 */
	unsigned height; /* table: lines that "fit" fills, 0 = 24 */
	const char *guest; /* share: the machine's cgroup, a pattern unless ... */
	bool guest_literal;
	uint64_t epoch; /* share: no other encoder's */
};

struct encoder_ops {
	const char *name; /* "hwpc", "power", "table", "snapshot", "vjoule" */
	const char *help; /* one line */
	/* Checks the options against the schema; message in err. */
	int (*create)(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err);
	/* Bytes every new client or file gets before any document; may be NULL. */
	int (*preamble)(struct encoder *e, const struct schema *s, struct buf *out);
	/* Appends the document(s) of one interval. 0 = appended or withheld on purpose (out unchanged
	 * then, counted in stats), negative errno = failed. */
	int (*encode)(struct encoder *e, const struct snapshot *s, struct buf *out);
	const struct encoder_stats *(*stats)(const struct encoder *e);
	/* What a reader should know and the format cannot say (domains that are not there, stand-ins):
	 * line i, NULL behind the last one. Fixed for the life of the encoder. May be NULL. */
	const char *(*note)(const struct encoder *e, unsigned i);
	void (*destroy)(struct encoder *e);
};

extern const struct encoder_ops encode_hwpc, encode_power, encode_table, encode_snapshot, encode_vjoule,
	encode_openmetrics;
const struct encoder_ops *encoder_find(const char *name);

#endif
