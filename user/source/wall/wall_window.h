/* SPDX-License-Identifier: Apache-2.0 */
/* A stretch of time in which the meter and what is inside are measured together: it becomes a point. */
#ifndef JD_WALL_WINDOW_H
#define JD_WALL_WINDOW_H
#include "model/reading.h"
#include "wall_fit.h"

#define WALL_WINDOW_NS 3000000000ull /* at least */
#define WALL_WINDOW_VALUES 5 /* of every meter, at least: a slow meter makes longer windows */
#define WALL_WINDOW_MAX_NS 120000000000ull /* a meter that is silent for so long gives no point */

struct wall_window {
	enum domain_kind meter_kind; /* of the domains that are taken for meters */
	uint64_t start_ns; /* 0 = none is open */
	double seconds, x[WALL_INPUTS]; /* inputs times seconds */
	struct {
		uint64_t uj, first_ns, last_ns, bad;
		unsigned values;
	} meter[SCHEMA_MAX_DOMAINS];
};

/* Adds the inputs of the last seconds. True: the window has ended, and *ret is its point; a window in which a meter had a gap ends
 * without one. */
bool wall_window_add(struct wall_window *w, const struct reading *r, const double x[WALL_INPUTS], double seconds,
		     struct wall_point *ret);
bool wall_has_meter(const struct schema *s);

#endif
