/* SPDX-License-Identifier: Apache-2.0 */
/* Which traces somebody asks for. */
#ifndef JD_TRACE_PICK_H
#define JD_TRACE_PICK_H
#include "../model/span.h"

struct trace_pick { /* NULL = any; borrowed */
	const char *cgroup; /* glob of text.h */
	const char *command; /* glob of a span's comm or symbol; one in the trace is enough */
	const char *uuid; /* with or without dashes */
	int64_t since_ns, until_ns; /* it was there between them; INT64_MIN = any */
};

bool trace_picked(const struct trace *t, const struct trace_pick *p);
/* Is that one span of the command? NULL = every one is. */
bool span_picked(const struct span *s, const char *command);
/* 32 hexadecimal digits, dashes anywhere. */
bool trace_uuid_ok(const char *text);

#endif
