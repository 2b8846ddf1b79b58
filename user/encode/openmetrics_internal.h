/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of openmetrics*.c. */
#ifndef JD_OPENMETRICS_INTERNAL_H
#define JD_OPENMETRICS_INTERNAL_H
#include "openmetrics.h"

struct metrics_writer {
	const struct totals *t;
	bool version_1;
	struct buf *out;
	struct buf *labels; /* n_rows pairs of u32 offset and length, then the texts */
	const char *family; /* the one that is being written */
};

struct metrics_family {
	const char *name; /* without _total */
	const char *unit; /* "" = none */
	const char *help;
};

/* openmetrics_write.c */
void metrics_begin(struct metrics_writer *w, const struct metrics_family *f, const char *type);
void metrics_escaped(struct buf *b, const char *s);
/* family_total{labels} value; labels without braces, may be empty. digits 6: microjoules as joules;
 * 9: nanoseconds as seconds; 0: as it is. */
void metrics_sample(struct metrics_writer *w, const char *labels, uint64_t v, unsigned digits);

/* openmetrics_machine.c */
/* Is it the first domain of its kind, or of its kind, package and die? Those are one series: two GPUs. */
bool metrics_first_of(const struct schema *s, unsigned domain, bool any_package);
void metrics_machine(struct metrics_writer *w);
void metrics_self(struct metrics_writer *w, const struct openmetrics_self *self);

#endif
