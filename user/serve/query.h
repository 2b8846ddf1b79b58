/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a request. Their text is untrusted. */
#ifndef JD_SERVE_QUERY_H
#define JD_SERVE_QUERY_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum query_sort { SORT_POWER, SORT_ENERGY, SORT_CPU, SORT_NAME };

struct query {
	enum query_sort sort;
	uint64_t limit, depth; /* UINT64_MAX = all */
	uint64_t before; /* number of a trace; UINT64_MAX = all */
	uint64_t interval_ns; /* 0 = the agent's own */
	char format[16]; /* "" = not given */
	const char *cgroup, *job; /* borrowed; NULL = not said */
	int64_t now_ns; /* since and until are relative to this; CLOCK_REALTIME */
	int64_t since_ns, until_ns; /* INT64_MIN = not given */
	uint64_t step_ns; /* 0 = not given */
	const char *command, *trace; /* borrowed; NULL = not said */
	const char *below; /* a path, owned by the caller; NULL = all */
};

/* The parameters as they were sent. */
struct query_args {
	const char *const *names, *const *values; /* a value may be NULL */
	unsigned n;
};

/* Sets q to its defaults, then from the parameters. allowed: the names that are accepted, separated by spaces. 0,
 * or -EINVAL with err. */
int query_parse(struct query *q, const char *allowed, const struct query_args *args, struct err *err);

#endif
