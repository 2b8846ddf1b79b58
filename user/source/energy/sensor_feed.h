/* SPDX-License-Identifier: Apache-2.0 */
/* A domain beside RAPL over time: counters added up, power integrated, part by part. One thread reads it. */
#ifndef JD_SENSOR_FEED_H
#define JD_SENSOR_FEED_H
#include "rapl.h"
#include "sensor_list.h"

struct sensor_part {
	const struct sensor *sensor; /* borrowed */
	char place[64]; /* the sensor's, or where it was found again */
	int fd;
	struct energy_accumulator counter;
	uint64_t power_uw, rest; /* the last value; uW x ns x 2 below 1 uJ */
	uint64_t uj; /* integral of power */
	bool have_power;
};

struct sensor_feed {
	unsigned n;
	struct sensor_part *parts;
	uint64_t pace_ns, longest_ns; /* a longer pause between two values of power is not bridged */
	uint64_t sure_ns; /* after a longer pause energy may be missing */
	uint64_t due_ns, time_ns; /* of the next read; of the last good one, 0 = none */
	uint64_t units, moved_ns;
	uint64_t gaps, errors, restarts; /* cumulative */
	unsigned failures; /* in a row */
	bool still;
	char warning[400]; /* of the last read, "" = none */
};

const char *sensor_way_text(enum sensor_way way); /* "energy counter" ... */
/* Opens and reads the sensor and adds it. 0, or -errno and why: it is not added then. */
int sensor_feed_add(struct sensor_feed *f, const struct fsroot *root, const struct sensor *s, char *why, size_t size);
/* Reads all parts, or looks for them again after a failure, and sets due_ns. */
void sensor_feed_read(struct sensor_feed *f, const struct fsroot *root, uint64_t now_ns, uint64_t boot_ns);
void sensor_feed_publish(const struct sensor_feed *f, struct reading_domain *ret);
void sensor_feed_free(struct sensor_feed *f);

#endif
