/* SPDX-License-Identifier: Apache-2.0 */
/* Samples what runs on every CPU, by the kernel's own sampling (perf_event_open(2)), with the stack of kernel and user
 * space, and the cgroup of the task: time by cpu-clock, and each counter of the schema by its own overflow. A sample of a
 * counter stands for its period's counts, wherever these happened: that is unbiased, for it asks nothing about what ran
 * between two samples. No program is loaded into the kernel. */
#ifndef JD_PROFILE_SAMPLER_H
#define JD_PROFILE_SAMPLER_H
#include "base/err.h"
#include "code.h"
#include "stacks.h"

struct sampler;
struct snapshot;

/* Opens cpu-clock on each CPU that is online; sampling does not begin. 0, or negative errno with err. */
int sampler_open(unsigned rate_hz, struct sampler **ret, struct err *err);
/* Samples only what runs in a cgroup or below it, given as a descriptor of its directory, before sampler_events. Where the
 * kernel has perf events in a hierarchy of their own (cgroup v1) the whole machine is sampled on. 0, or negative errno
 * with err. */
int sampler_narrow(struct sampler *s, int cgroup, struct err *err);
/* Opens the counters that may have prices beside it, at most once. variants: [events->n], or NULL where no event has several
 * encodings. They are off until they have a period. What the PMU cannot sample is left out: see sampler_lacks. */
void sampler_events(struct sampler *s, const struct event_set *events, const struct event_variants *variants);
/* True when CPUs were away in the interval, by suspend or off line: their events are dead, though they are on line. */
bool sampler_outdated(const struct snapshot *s);
int sampler_start(struct sampler *s, struct err *err);
void sampler_stop(struct sampler *s);
/* Samples time once in so many nanoseconds from now on. A change loses half a sample of each CPU, on an average. */
void sampler_pace(struct sampler *s, uint64_t ns);
uint64_t sampler_rest_ns(const struct sampler *s); /* how long a pace and a period are kept, so that little is lost */
uint64_t sampler_mean_ns(const struct sampler *s); /* between two samples of time, by the rate that was asked for */
/* Samples an event of the schema once in so many counts from now on; 0 = not. A change loses the counts of the period that was
 * going on. */
void sampler_period(struct sampler *s, unsigned event, uint64_t period);
uint64_t sampler_period_of(const struct sampler *s, unsigned event); /* 0 = it is not sampled now */
/* The period for so many times the rate that was asked for, by the counts that CPUs had in so much CPU time. 0 = nothing is
 * counted. */
uint64_t sampler_period_for(const struct sampler *s, uint64_t counts, uint64_t cpu_ns, double times);
/* Why an event of the schema is not sampled; NULL = it can be. */
const char *sampler_lacks(const struct sampler *s, unsigned event);
/* Takes what was sampled since the last call, in the order of time. */
void sampler_drain(struct sampler *s, struct code *code, struct stacks *stacks);
/* Takes it out of the kernel's rings only, while there is no time for more; the next sampler_drain goes on from there. */
void sampler_collect(void *sampler);
/* Samplers that are opened from now on have little memory: for a program that samples for months. */
void sampler_be_frugal(void);
/* What it keeps of files counts in this room. NULL = no limit. */
void sampler_use_room(struct sampler *s, struct room *room);
/* Forgets the files of a code that begins anew. */
void sampler_forget(struct sampler *s);
uint64_t sampler_lost(const struct sampler *s); /* samples and events that the kernel had no room for; NULL accepted */
uint64_t sampler_unread(const struct sampler *s); /* files whose unwind rules could not all be read; NULL accepted */
void sampler_close(struct sampler *s); /* NULL accepted */

#endif
