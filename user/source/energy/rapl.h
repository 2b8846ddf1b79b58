/* SPDX-License-Identifier: Apache-2.0 */
/* State of `rapl`: rapl.c is its face and compares two interfaces, choose.c chooses the interface of each domain,
 * feed.c reads one counter over time. */
#ifndef JD_RAPL_H
#define JD_RAPL_H
#include "energy.h"

#define RAPL_MAX_SOURCES 3
#define RAPL_MAX_WARNINGS 32
#define RAPL_WARNING_SIZE 800 /* three interfaces, a reason of 200 bytes each */

/* Lines for the log, oldest first. When the list is full, further lines are counted and not kept. */
struct rapl_warnings {
	unsigned first, n;
	uint64_t lost;
	char text[RAPL_MAX_WARNINGS][RAPL_WARNING_SIZE];
};
void rapl_warn(struct rapl_warnings *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One domain as one interface counts it, accumulated part by part. */
struct rapl_feed {
	const struct energy_source_ops *ops;
	struct energy_source *src;
	const struct energy_probe *probe;
	unsigned index; /* of the probe */
	struct energy_accumulator *parts; /* probe->parts of them */
	uint64_t wrap_ns; /* shortest time in which a part can wrap; 0 = never */
	uint32_t restarts; /* of the probe, as last seen */
	uint64_t restarted, ambiguous; /* reopened; read later than wrap_ns allows */
	uint64_t units, time_ns; /* of the last complete read */
	bool have_time;
	bool failing;
	bool still; /* a package that used nothing: its counter is frozen */
	uint64_t moved_ns; /* when units moved last */
	uint64_t retry_ns, backoff_ns, errors;
};

int rapl_feed_init(struct rapl_feed *f, const struct energy_source_ops *ops, struct energy_source *src, unsigned index,
		   double watts);
/* Reads all parts when it is time to (a failing feed waits, twice as long each time, but never so
 * long that a wrap is missed for pace_ns > 0). Changes of state go to w. True = fresh values. */
bool rapl_feed_read(struct rapl_feed *f, uint64_t now_ns, uint64_t boot_ns, uint64_t pace_ns, struct rapl_warnings *w);
/* Something changed: a failing feed need not wait. */
void rapl_feed_retry(struct rapl_feed *f);
struct rapl_feed_events {
	uint64_t wraps, resets, dropped;
};
struct rapl_feed_events rapl_feed_events(const struct rapl_feed *f);
/* Microjoules since the feed began, floor. */
uint64_t rapl_feed_uj(const struct rapl_feed *f);
void rapl_feed_free(struct rapl_feed *f);

/* Two interfaces of one domain compared over windows. */
struct rapl_check {
	bool started, differs;
	uint64_t start_ns, main_uj, other_uj, main_events, other_events;
};

struct rapl_domain {
	struct rapl_feed feed, other; /* other.ops = NULL: not cross-checked */
	struct rapl_check check;
	unsigned schema_index;
};

struct rapl {
	unsigned n_sources;
	const struct energy_source_ops *ops[RAPL_MAX_SOURCES];
	struct energy_source *src[RAPL_MAX_SOURCES];
	unsigned n_domains;
	struct rapl_domain domains[SCHEMA_MAX_DOMAINS];
	struct rapl_options options;
	uint64_t poll_ns;
	struct rapl_looks looks;
	uint64_t looked_ns, told_left_out;
	struct rapl_warnings warnings;
};

/* True when the configured mode lets this source give domains. */
bool rapl_wanted(const struct rapl *rp, unsigned source);
/* Fills rp->domains and s->domains from the opened sources. 0 or -ENOMEM. */
int rapl_choose(struct rapl *rp, struct schema *s);

#endif
