/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the power encoder: what it keeps, and how one part of a domain's energy is written. */
#ifndef JD_POWER_H
#define JD_POWER_H
#include "emit.h"
#include "encode.h"
#include "target.h"

#define POWER_TEXT_MAX 40 /* watts with nine decimals */

struct encoder {
	struct encoder_stats stats;
	bool iso, csv;
	char sensor[TARGET_SENSOR_MAX];
	const struct schema *schema;
	/* of the current interval */
	struct targets targets;
	const struct snapshot *snap;
	unsigned renamed;
	struct buf head; /* what every line begins with */
	struct buf tail; /* ... and ends with, for one domain and quality */
	unsigned tail_domain, tail_quality;
};

/* One part of a domain's energy. */
struct power_part {
	const char *target; /* NULL = the path of `row` */
	uint32_t row;
	unsigned domain;
	uint64_t energy_uj;
	unsigned quality;
	uint32_t uncertainty_ppm; /* of the energy, SNAPSHOT_UNKNOWN = none is told */
};

/* power_write.c */
void power_begin(struct encoder *e, const struct snapshot *s);
int power_line(struct encoder *e, const struct power_part *p, struct buf *out); /* 0 or -ENOMEM */
/* Watts as decimal text, to the nanowatt; returns the end (no NUL). */
char *power_text(char *p, uint64_t energy_uj, uint64_t time_ns);

#endif
