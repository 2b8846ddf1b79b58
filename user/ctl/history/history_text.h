/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of /v1/history as a table for people or as CSV for programs. Both print to standard output. */
#ifndef JD_CTL_HISTORY_TEXT_H
#define JD_CTL_HISTORY_TEXT_H
#include <jansson.h>
#include <stdbool.h>
#include "base/clock.h"
#include "model/cost.h"
#include "sums.h"

#define HISTORY_COLUMNS 6 /* of the table of steps: the machine, and cgroups */

struct history_text {
	const json_t *doc;
	const struct cost *cost;
	bool csv;
};

struct history_unit {
	const char *word;
	double uj;
	int decimals;
};
/* J, or kWh from a total of 1 kWh on. */
const struct history_unit *history_unit(double total_uj);
char history_mark(unsigned quality);
/* UTC with Z for programs, otherwise local time with its zone. */
void history_time(char dst[CLOCK_LOCAL_BYTES], long long unix_ns, bool utc);
/* The columns of costs: their heads, or the values of so much energy. g: NAN = not known; some: a part of it is not. */
void history_cost_heads(const struct history_text *t);
void history_costs(const struct history_text *t, double uj, double g, bool some);

/* The times in which nothing is known, with the reason, as lines for people. */
void history_lost(const struct history_text *t);
/* A line per step and a total. one: of one cgroup, with its domains. */
void history_steps(const struct history_text *t, bool one);
/* A line per name or time, and a total. 0 or -ENOMEM. */
int history_sums(const struct history_text *t, enum sums_by by);

#endif
