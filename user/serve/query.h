/* SPDX-License-Identifier: Apache-2.0 */
/* What a request asks for, from text that anybody may send. */
#ifndef JD_SERVE_QUERY_H
#define JD_SERVE_QUERY_H
#include <stddef.h>
#include <stdint.h>
#include "../base/err.h"

enum query_sort { SORT_POWER, SORT_ENERGY, SORT_CPU, SORT_NAME };

struct query {
	enum query_sort sort;
	uint64_t limit, depth; /* UINT64_MAX = all */
	uint64_t interval_ns; /* 0 = the agent's own */
	char format[16]; /* "" = not said */
	const char *cgroup; /* borrowed; NULL = not said */
	int64_t now_ns; /* what since and until are relative to; CLOCK_REALTIME */
	int64_t since_ns, until_ns; /* INT64_MIN = not said */
	uint64_t step_ns; /* 0 = not said */
	const char *command, *trace; /* borrowed; NULL = not said */
	const char *below; /* a path, the caller's; NULL = all */
};

/* Sets q to its defaults, then from n parameters; a value may be NULL. allowed: their names, space
 * between. 0 or -EINVAL with what is wrong. */
int query_parse(struct query *q, const char *allowed, const char *const *names, const char *const *values, unsigned n,
		struct err *err);
#endif
