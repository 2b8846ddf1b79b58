/* SPDX-License-Identifier: Apache-2.0 */
/* CPU frequencies and package temperature as sysfs tells them now: gauges, not counters, and read
 * only for outputs that send them. Kept descriptors, opened at the first reading. */
#ifndef JD_CPUFREQ_H
#define JD_CPUFREQ_H
#include "base/fsroot.h"
#include "model/snapshot.h"

struct cpufreq;

/* Sets s->cpufreq when the machine tells frequencies. s must outlive the source. 0 or -ENOMEM. */
int cpufreq_open(const struct fsroot *root, struct schema *s, struct cpufreq **ret);
/* Fills khz and package_mc of a snapshot of that schema; they are valid until the next call. A value that cannot be
 * read is 0. */
void cpufreq_read(struct cpufreq *c, struct snapshot *s);
/* Closes the descriptors until the next reading, when no output needs the values any more. */
void cpufreq_rest(struct cpufreq *c);
void cpufreq_close(struct cpufreq *c); /* NULL accepted */

#endif
