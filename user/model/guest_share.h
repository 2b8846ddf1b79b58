/* SPDX-License-Identifier: Apache-2.0 */
/* The share of a virtual machine: its energy as totals of its own cgroup's subtree per domain, a line of text each time
 * (docs/formats/guest.md). The host writes it (encode/share), the guest reads it (source/host). */
#ifndef JD_MODEL_SHARE_H
#define JD_MODEL_SHARE_H
#include "base/buf.h"
#include "schema.h"

#define SHARE_LINE_MAX 16384 /* bytes with the newline: more than 64 of the longest entries take */

struct share_domain {
	char name[64]; /* as on the host: package-0, package-0-die-1, dram-0, psys */
	enum domain_kind kind; /* these four by the name */
	uint16_t package, die;
	bool has_die;
	uint64_t uj; /* since the epoch began */
	unsigned quality; /* of the last interval */
};

struct share {
	uint64_t epoch; /* another number: the totals began anew */
	uint64_t number; /* of the line within the epoch, from 1 */
	uint64_t interval_ns; /* between two lines */
	unsigned n;
	struct share_domain domains[SCHEMA_MAX_DOMAINS];
};

/* Sets kind, package and die by the name. False when a share cannot have that domain. */
bool share_domain_named(const char *name, struct share_domain *ret);
/* Appends the line, newline included. */
void share_write(const struct share *s, struct buf *out);
/* Reads a line of any bytes, in place. len: without the newline, whose byte may be overwritten. 0, or -EINVAL with *ret
 * as it was. */
int share_read(char *line, size_t len, struct share *ret);

#endif
