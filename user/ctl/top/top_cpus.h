/* SPDX-License-Identifier: Apache-2.0 */
/* A line about the CPUs of this machine: frequency, temperature and the time in each C-state, from sysfs. What the kernel
 * does not tell is said to be unknown. */
#ifndef JD_CTL_TOP_CPUS_H
#define JD_CTL_TOP_CPUS_H
#include "base/fsroot.h"
#include "top.h"

#define TOP_STATES_MAX 12

struct top_state {
	char name[16]; /* of the kernel, to be made safe */
	uint64_t time_us; /* of all CPUs, so far */
	double part; /* of their time, in the last 5 to 10 s */
};

/* The time of all CPUs in each state at one moment. */
struct top_residency {
	uint64_t taken_ns; /* by the monotonic clock; 0 = never */
	unsigned cpus, n_states;
	uint64_t time_us[TOP_STATES_MAX];
};

struct top_cpus {
	unsigned with_frequency; /* CPUs that tell it; 0 = none */
	double least_hz, mean_hz, most_hz;
	bool has_temperature;
	double hottest_c;
	unsigned with_states; /* CPUs that tell their C-states; 0 = none */
	unsigned n_states;
	struct top_state states[TOP_STATES_MAX];
	double active; /* what is left of their time */
	bool has_parts; /* there were two takings */
	struct top_residency older, newer; /* the parts are since the older one */
};

/* Reads all anew. now_ns: the monotonic clock. */
void top_cpus_take(struct top_cpus *c, const struct fsroot *root, uint64_t now_ns);
void top_cpus_draw(const struct top_cpus *c, struct top_paint *p);

#endif
