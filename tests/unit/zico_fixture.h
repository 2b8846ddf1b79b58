/* SPDX-License-Identifier: Apache-2.0 */
/* Traces to encode: small ones whose bytes are worked out by hand, and random trees. */
#ifndef ZICO_FIXTURE_H
#define ZICO_FIXTURE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "model/span.h"

#define FIXTURE_SPANS 64
#define FIXTURE_CLOCK_MS 1700000000000ll

struct world {
	struct trace t;
	struct span spans[FIXTURE_SPANS];
	char names[FIXTURE_SPANS][SPAN_COMM_MAX];
	uint64_t seed;
};

static const char *const fixture_domains[] = { "package-0", "dram-0" };
static const char *const fixture_interfaces[] = { "powercap", "powercap" };

static struct span *fixture_add(struct world *w, uint32_t parent, const char *comm, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t i = w->t.n_spans++;
	struct span *s = &w->spans[i];

	snprintf(w->names[i], sizeof(w->names[i]), "%s", comm);
	*s = (struct span){
		.id = 1000 + i,
		.parent = i ? w->spans[parent].id : 0,
		.pid = 100 + i,
		.tid = 100 + i,
		.uid = 7,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.start_real_ns = FIXTURE_CLOCK_MS * 1000000 +
				 (int64_t)(start_ns - (i ? w->spans[0].start_ns : start_ns)),
		.calls = 1,
		.comm = w->names[i],
		.exe = "",
		.cmdline = "",
		.cgroup = "/a.slice/b",
		.symbol = "",
		.binary = "",
	};
	return s;
}

static void fixture_begin(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->t = (struct trace){
		.sensor = "",
		.boot_id = "",
		.pod = "",
		.pod_namespace = "",
		.container = "",
		.unit = "",
		.last = true,
		.spans = w->spans,
	};
	for (int i = 0; i < 16; i++)
		w->t.uuid[i] = (uint8_t)(i + 1);
}

/* xorshift64* */
static uint32_t fixture_random(struct world *w, uint32_t below)
{
	w->seed ^= w->seed >> 12;
	w->seed ^= w->seed << 25;
	w->seed ^= w->seed >> 27;
	return (uint32_t)((w->seed * 0x2545f4914f6cdd1dull) >> 33) % below;
}

#endif
