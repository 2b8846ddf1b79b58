/* SPDX-License-Identifier: Apache-2.0 */
/* A profile in its forms: a table of functions, folded stacks, a flame graph, pprof, speedscope. */
#ifndef JD_PROFILE_REPORT_H
#define JD_PROFILE_REPORT_H
#include "base/buf.h"
#include "profile_session.h"

#define PROFILE_ALL_DOMAINS (-1)

struct profile_report {
	const struct profile_session *s;
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
#define PROFILE_LABELS_MAX (STACK_FRAMES_MAX + 3)
unsigned profile_labels(const struct profile_report *r, uint32_t stack, const char *ret[PROFILE_LABELS_MAX],
			unsigned *ret_first);

#define PROFILE_TRUNCATED "[truncated]"
#define PROFILE_NO_SAMPLE "[no sample]"

/* 0 or -ENOMEM; flame also -ENODATA: nothing used energy. */
int profile_table(const struct profile_report *r, unsigned top, struct buf *out);
int profile_folded(const struct profile_report *r, struct buf *out);
int profile_flame(const struct profile_report *r, struct buf *out);
int profile_pprof(const struct profile_report *r, struct buf *out);
int profile_speedscope(const struct profile_report *r, struct buf *out);

#endif
