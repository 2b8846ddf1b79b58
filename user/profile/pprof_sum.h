/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up profiles in pprof's form (github.com/google/pprof, proto/profile.proto): equal stacks of several become one, and
 * values stay whole numbers. The agent's minutes become the answer to a question like this; joulectl top reads answers.
 * A message is foreign input. */
#ifndef JD_PROFILE_PPROF_SUM_H
#define JD_PROFILE_PPROF_SUM_H
#include <stdbool.h>
#include "base/buf.h"
#include "stacks.h"

struct pprof_sum;

/* Which samples are taken, by their label `cgroup`; {0} = all. */
struct pprof_filter {
	const char *cgroup; /* it and those below; NULL = all */
	bool (*admits)(void *arg, const char *cgroup); /* called for what is a path; NULL = all */
	void *arg;
};

#define PPROF_NO_ROOM "[no room]"
/* A comment of a profile without names: the kernel's boot id follows, by which its addresses keep their meaning. */
#define PPROF_BOOT "boot "

/* bytes_max: what it may hold. Samples beyond are added up in the stack PPROF_NO_ROOM of their cgroup. NULL = out of
 * memory. */
struct pprof_sum *pprof_sum_new(size_t bytes_max);
void pprof_sum_free(struct pprof_sum *s); /* NULL accepted */
/* Adds a plain message, not packed. 0; -EBADMSG: it does not read, and nothing of it is taken; -ENOMEM. */
int pprof_sum_add(struct pprof_sum *s, const void *message, size_t n, const struct pprof_filter *f);
/* CLOCK_REALTIME of the first one's begin, and how long all are together; 0 = there is none. */
int64_t pprof_sum_time_ns(const struct pprof_sum *s);
uint64_t pprof_sum_duration_ns(const struct pprof_sum *s);

struct pprof_sample {
	const char *cgroup, *process, *quality; /* "" = it has no such label; from outside */
	unsigned n;
	const char *frame[STACK_FRAMES_MAX + 1]; /* names, where it ran first */
	uint64_t samples, energy_uj; /* of the value types of these names */
};
/* Calls each for every sample until it returns non-zero, and returns that. */
int pprof_sum_each(const struct pprof_sum *s, int (*each)(void *arg, const struct pprof_sample *sample), void *arg);

/* Append the sum: as a plain message, or a line for each stack. 0 or -ENOMEM. */
int pprof_sum_write(const struct pprof_sum *s, struct buf *out);
int pprof_sum_folded(const struct pprof_sum *s, struct buf *out);
/* Appends the sum as OpenTelemetry's ExportProfilesServiceRequest (v1development) of the machine named sensor; nothing where it
 * has no profile. Names of attributes are entered into the sum. 0 or -ENOMEM. */
int pprof_sum_otlp(struct pprof_sum *s, const char *sensor, struct buf *out);

#endif
