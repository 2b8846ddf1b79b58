/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of /v1/history about one cgroup has no point where the cgroup used nothing. What tells that from times in which
 * nothing was measured is the machine's row `residual`, which has a point in every step. */
#ifndef JD_CTL_HISTORY_CLOCK_H
#define JD_CTL_HISTORY_CLOCK_H
#include <jansson.h>

/* Appends to the series of doc that row of `machine`, the answer to the same question without a cgroup: its times, no energy,
 * and "clock": true. Without such a row nothing is appended. 0 or -ENOMEM. */
int history_add_clock(json_t *doc, const json_t *machine);

#endif
