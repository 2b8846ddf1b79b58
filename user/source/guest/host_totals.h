/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_HOST_TOTALS_H
#define JD_HOST_TOTALS_H
#include <pthread.h>
#include "model/guest_share.h"
#include "source/energy/energy.h"
#include "host.h"

#define HOST_WARNINGS 8

/* Lines out of a stream that may begin and break anywhere. */
struct host_lines {
	size_t used;
	bool skip; /* of a line that was too long: to its end */
	char text[SHARE_LINE_MAX + 1];
};
/* Takes n bytes. The newest whole line among them goes to *ret, with the quality of the lines before it added.
 * *ret_any becomes true when there was one; if it was true before the call, *ret is an earlier line. */
void host_lines_add(struct host_lines *l, const char *data, size_t n, struct share *ret, bool *ret_any);

struct host_domain {
	char name[64];
	unsigned column; /* in the schema */
	struct energy_accumulator total;
	uint64_t told_ns; /* CLOCK_MONOTONIC of the last line that had news of it */
	uint64_t anew, partial; /* totals that began anew; intervals that the host calls partial or lost */
	bool estimated, read; /* read: since the last line */
};

/* The totals, pure: fed with lines and their time. */
struct host_totals {
	bool any;
	uint64_t epoch, number, boot_ns; /* of the last line, and when it came */
	uint64_t ahead_ns; /* by how much the host's time is before ours, a day at most */
	uint64_t granted_ns; /* total of the time added to ours for that */
	unsigned n;
	struct host_domain domains[SCHEMA_MAX_DOMAINS];
};
/* The first line: domains into totals and schema. -E2BIG: no room, -EEXIST: a name that the schema has. */
int host_totals_init(struct host_totals *t, const struct share *s, const char *place, struct schema *schema);
/* A later line. A repeated line is passed over: false. The time of a domain that the line lacks stands still. A
 * domain that the first line lacked is not taken. */
bool host_totals_add(struct host_totals *t, const struct share *s, uint64_t now_ns, uint64_t boot_ns);
void host_totals_read(struct host_totals *t, struct reading *r);

/* host.c: 0 or -EINVAL with err. */
int host_place_check(const char *place, struct err *err);

#endif
