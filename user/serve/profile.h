/* SPDX-License-Identifier: Apache-2.0 */
/* A question for a profile, between the query server and the thread that profiles. */
#ifndef JD_SERVE_PROFILE_H
#define JD_SERVE_PROFILE_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"
#include "model/selection.h"

struct serve_profile {
	/* the question */
	char *cgroup; /* it and those below; NULL = all */
	int64_t since_ns, until_ns; /* CLOCK_REALTIME */
	bool folded; /* a line for each stack; else pprof's form, packed */
	struct selection_rules *rules; /* cgroups that may be shown */
	/* the answer */
	int rc; /* 0; -ENODATA: there is nothing of that time; or another errno. err says so */
	struct err err;
	struct buf body;
	/* Called once the answer is there, on the thread that profiles; what asked frees it. */
	void (*answered)(struct serve_profile *p);
	void *arg;
	struct serve_profile *next; /* of whom holds it */
};

struct serve_profile_figures {
	uint64_t samples, lost_samples; /* taken; those that the kernel had no room or time for */
	uint64_t dropped_samples; /* without room for their stack */
	uint64_t rowless_samples; /* of cgroups without a row */
	uint64_t chunks, chunk_bytes; /* on disk */
	uint64_t lost_chunks; /* that could not be written */
	uint64_t lost_intervals; /* whose energy is in no chunk */
};

struct serve_profiling {
	void (*ask)(void *arg, struct serve_profile *p); /* any thread; never blocks */
	void (*figures)(void *arg, struct serve_profile_figures *ret); /* any thread */
	void *arg;
};

#endif
