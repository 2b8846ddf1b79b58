/* SPDX-License-Identifier: Apache-2.0 */
/* The series that totals are shown as: their names, labels and values. All formats of metrics have the same ones
 * (docs/formats/metrics.md), each in its own bytes. */
#ifndef JD_ENCODE_SERIES_H
#define JD_ENCODE_SERIES_H
#include "encode/encode.h"
#include "encode/totals/totals.h"
#include "model/audit.h"
#include "row_labels.h"
#include "row_order.h"

#define SERIES_MACHINE UINT32_MAX /* in place of a row */
#define SERIES_KEEP_NS (300 * 1000000000ull) /* default of `keep` */
#define SERIES_LABEL_MAX 512 /* bytes of the further labels of a sample, as text */

enum series_type { SERIES_COUNTER, SERIES_GAUGE, SERIES_INFO };

struct series_family {
	const char *name; /* without the suffix of its type */
	const char *unit; /* "" = none */
	const char *help;
	enum series_type type;
};

#define SERIES_OUTPUTS 64 /* outputs whose figures are told */
#define SERIES_SELF (5 + SCHEMA_MAX_DOMAINS + 2 * SERIES_OUTPUTS) /* series of struct series_self at most */

/* Figures of the agent itself. */
struct series_output {
	const char *name;
	uint64_t documents, dropped;
};

/* What a kWh costs now; NAN = not known. */
struct series_cost {
	double price, carbon_g;
};

struct series_self {
	uint64_t cpu_ns, resident_bytes;
	const struct series_output *outputs;
	unsigned n_outputs;
	struct series_cost cost;
	const struct audit *audit; /* the last one; NULL = none */
};

struct series_writer;

struct series_ops {
	/* A family begins. May be NULL. */
	void (*begin)(struct series_writer *w, const struct series_family *f);
	/* Appends one label to b, in the writer's own syntax. */
	void (*label)(struct buf *b, const char *key, const char *value);
	/* Completes the labels of a row, which stand in b from `from` on, or fails b. May be NULL. */
	void (*complete)(struct series_writer *w, struct buf *b, size_t from);
	/* Writes a sample of the family w->family. Its labels are those of the row (none for the machine) and more. The value
	 * is v / 10^digits; digits is 0, 6 (microjoules as joules) or 9 (nanoseconds as seconds). With w->ended it has none. */
	void (*sample)(struct series_writer *w, struct series_labels row, struct series_labels more, uint64_t v,
		       unsigned digits);
};

/* The first member of a format's own struct. */
struct series_writer {
	const struct series_ops *ops;
	struct buf *out;
	struct buf *labels; /* scratch for the labels of the rows; reused, so that steady state allocates nothing */
	const struct totals *totals; /* series_write sets it and family */
	const struct series_family *family;
	uint32_t row; /* of totals, whose sample is written; SERIES_MACHINE = none */
	struct row_order *order; /* NULL = samples stay family by family */
	struct row_ends *ends; /* NULL = the format cannot say that a series has ended */
	bool ended; /* the sample that is written says so */
};

#define SERIES_OWN 2 /* series of struct series_self without outputs */

/* Writes every series of t. self may be NULL. 0 or -ENOMEM. */
int series_write(struct series_writer *w, const struct totals *t, const struct series_self *self);
struct series_encoder;
/* The same for a document that is pushed: e's totals in groups of so many rows, with what the agent costs where the
 * snapshot has it. */
int series_write_pushed(struct series_writer *w, struct series_encoder *e, uint32_t rows, const struct snapshot *s);
/* What the names of the samples of that type end with. */
const char *series_suffix(enum series_type type);
/* Appends v / 10^digits in decimal, without zeros at the end; at most 22 bytes. Returns the end. */
char *series_number(char *p, uint64_t v, unsigned digits);

/* The common part of encoders of metrics: each has totals of its own. */
struct series_encoder {
	struct encoder_stats stats;
	struct totals *totals;
	struct buf labels;
	struct row_order order;
	struct row_ends ends;
};

/* e is zeroed. 0, -ENOMEM, or -EINVAL when max_series does not hold the machine; with err. */
int series_encoder_init(struct series_encoder *e, const struct encode_options *o, const struct schema *s,
			struct err *err);
/* e, which has written nothing yet, takes over what old showed, so that its first page ends what it does not show. Both are of one
 * format. */
void series_encoder_inherit(struct series_encoder *e, struct series_encoder *old);
void series_encoder_fini(struct series_encoder *e); /* also after a failed or no init, when it is zeroed */

#endif
