/* SPDX-License-Identifier: Apache-2.0 */
/* A profile: what was asked, the samples, and the energy of each. joulectl profile fills it from readings of the agent,
 * the agent from its own snapshots; the forms below read it. */
#ifndef JD_PROFILE_DATA_H
#define JD_PROFILE_DATA_H
#include "base/buf.h"
#include "code.h"
#include "frame_names.h"
#include "model/schema.h"
#include "priced.h"
#include "row_shares.h"
#include "sampler.h"
#include "stacks.h"

#define PROFILE_NAME_MAX 4096

struct moments;

struct profile_domain {
	char name[64];
	bool summed; /* it is added up over domains: schema.h has the rule */
};

struct profile {
	/* the question */
	const char *cgroup; /* only it and those below; NULL = all */
	int pid; /* only this process; 0 = all */
	unsigned rate_hz;
	/* what was found */
	struct profile_domain domain[SCHEMA_MAX_DOMAINS];
	unsigned n_domains;
	char formula[16], idle[16];
	struct code code;
	struct stacks stacks;
	struct row_shares shares;
	struct priced priced;
	struct frame_names names;
	struct sampler *sampler;
	uint64_t began_ns, ended_ns; /* the readings */
	int64_t ended_real_ns; /* CLOCK_REALTIME of the later one; 0 = it is told from the clocks now */
	struct moments *moments; /* borrowed; NULL = when the energy was spent is not kept */
};

/* Bounds what it may hold, for a profile that is always taken: its stacks, names, maps, unwind rules and rows together have
 * the room, which is the caller's and outlives it; and each alone has a limit. To be called again where names begin anew. */
void profile_bound(struct profile *p, struct room *room);
#define PROFILE_ANSWER_MAX ((size_t)6 << 20) /* what a sum of such profiles may hold */

void profile_free(struct profile *p); /* zeroed accepted */

/* Is the row, or the stack, asked for? */
bool profile_wants_row(const struct profile *p, const struct share_row *row);
bool profile_wants_stack(const struct profile *p, uint32_t stack);

#define PROFILE_ALL_DOMAINS (-1)

struct profile_report {
	const struct profile *s;
	int domain; /* PROFILE_ALL_DOMAINS = those that are added up */
};

/* Energy of a row in intervals without a sample. */
uint64_t profile_none_uj(const struct profile_report *r, const struct share_row *row);

/* Is the domain asked for? */
bool profile_counts(const struct profile_report *r, unsigned domain);
const struct share_row *profile_row(const struct profile_report *r, uint32_t stack);
/* Energy of a stack. */
uint64_t profile_stack_uj(const struct profile_report *r, uint32_t stack);
/* Number of the stack's frames up to the program's start. *ret_whole: they show it. */
unsigned profile_reach(const struct profile_report *r, uint32_t stack, bool *ret_whole);
/* Labels of a stack from its cgroup on to where it ran; those of the first two are not escaped. Returns their number;
 * *ret_first: the first that is code. */
#define PROFILE_LABELS_MAX (STACK_FRAMES_MAX * (1 + SOURCE_INLINES_MAX) + 3)
unsigned profile_labels(const struct profile_report *r, uint32_t stack, const char *ret[PROFILE_LABELS_MAX],
			unsigned *ret_first);

#define PROFILE_TRUNCATED "[truncated]"
#define PROFILE_NO_SAMPLE "[no sample]"

/* 0 or -ENOMEM. */
int profile_folded(const struct profile_report *r, struct buf *out);
/* by: the program that writes it, for a comment. plain: not packed. */
int profile_pprof(const struct profile_report *r, const char *by, struct buf *out);
int profile_pprof_plain(const struct profile_report *r, const char *by, struct buf *out);

#endif
