/* SPDX-License-Identifier: Apache-2.0 */
/* What opening (sampler.c) and taking (sampler_take.c) share. */
#ifndef JD_SAMPLER_STATE_H
#define JD_SAMPLER_STATE_H
#include <linux/perf_event.h>
#include "base/buf.h"
#include "sampler.h"
#include "unwind.h"

#define CPUS_MAX 4096

struct ring {
	int fd; /* cpu-clock */
	int event[SCHEMA_MAX_EVENTS]; /* -1 = not on this CPU; they write into the ring too */
	uint64_t id[STACK_COLUMNS]; /* the kernel's, by which a sample tells its column; 0 = none */
	int cpu;
	uint8_t *memory; /* a page of control, then ring_bytes */
};

struct sampled {
	uint64_t period; /* 0 = it is off */
	unsigned opened; /* on so many CPUs */
	int error; /* the first that the kernel gave */
};

struct record {
	uint64_t time_ns;
	uint32_t at, size; /* in bytes */
};

struct sampler {
	struct ring *rings;
	uint32_t n_rings, rings_cap;
	size_t page, ring_bytes;
	uint32_t stack_bytes;
	unsigned rate_hz;
	struct pace {
		uint64_t ns; /* a sample of time stands for, from since_ns on */
		uint64_t before_ns; /* and for, until then */
		uint64_t since_ns; /* CLOCK_MONOTONIC */
	} pace;
	int cgroup; /* only what runs in it; -1 = everything */
	uint8_t online[CPUS_MAX / 8];
	struct sampled event[SCHEMA_MAX_EVENTS];
	struct unwind unwind;
	struct buf bytes;
	struct record *records;
	uint32_t n_records, records_cap;
	uint64_t lost;
	uint64_t taken[UINT16_MAX / 8 + 1]; /* the record that is taken now */
};

#endif
