/* SPDX-License-Identifier: Apache-2.0 */
/* Samples what runs on every CPU, by the kernel's own sampling (perf_event_open(2)): cpu-clock, with the stack of kernel
 * and user space, and the cgroup of the task. No program is loaded into the kernel. */
#ifndef JD_PROFILE_SAMPLER_H
#define JD_PROFILE_SAMPLER_H
#include "base/err.h"
#include "code.h"
#include "stacks.h"

struct sampler;

/* Opens an event on each CPU that is online; sampling does not begin. 0, or negative errno with err. */
int sampler_open(unsigned rate_hz, struct sampler **ret, struct err *err);
int sampler_start(struct sampler *s, struct err *err);
void sampler_stop(struct sampler *s);
/* Takes what was sampled since the last call, in the order of time. */
void sampler_drain(struct sampler *s, struct code *code, struct stacks *stacks);
uint64_t sampler_lost(const struct sampler *s); /* samples and events that the kernel had no room for; NULL accepted */
uint64_t sampler_unread(const struct sampler *s); /* files whose unwind rules could not all be read; NULL accepted */
void sampler_close(struct sampler *s); /* NULL accepted */

#endif
