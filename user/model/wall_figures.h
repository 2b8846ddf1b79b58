/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the power at the wall, for people (docs/wall.md). */
#ifndef JD_MODEL_WALL_H
#define JD_MODEL_WALL_H
#include <stdbool.h>
#include <stdint.h>

#define WALL_PRICES 12

struct wall_price { /* of something that is measured inside */
	const char *name; /* "dram", "disk-read" ..., static */
	double watts; /* per unit of the input (docs/wall.md); 0 = it has none */
	double low, high; /* of what was seen */
};

struct wall_figures {
	const char *state; /* "ok", "learning", "absent"; static */
	char reason[240];
	uint64_t points; /* seen together with a meter */
	double error, half_width; /* of points that were held out, relative: the mean, and what 9 of 10 stay within */
	double base_w, gain, bend; /* of the supply */
	unsigned n_prices;
	struct wall_price prices[WALL_PRICES];
	bool psys, psys_ready; /* there is a psys that may hold disks and networks; enough was seen to say so */
	uint64_t psys_points;
	unsigned n_psys_prices; /* 0: none of them is in it */
	struct wall_price psys_prices[WALL_PRICES];
};

#endif
