/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the power encoder: its state, and one part of a domain's energy. */
#ifndef JD_POWER_H
#define JD_POWER_H
#include "emit.h"
#include "encode.h"
#include "model/selection.h"
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
	const bool *shown; /* by row; NULL = as the rows say */
	unsigned renamed;
	struct buf head; /* start of every line */
	struct buf tail; /* end of every line of one domain and quality */
	unsigned tail_domain, tail_quality;
};

/* One part of a domain's energy. */
struct power_part {
	const char *target; /* NULL = the path of `row` */
	uint32_t row;
	unsigned domain;
	uint64_t energy_uj;
	unsigned quality;
	uint32_t uncertainty_ppm; /* of the energy; SNAPSHOT_UNKNOWN = not told */
};

#endif
