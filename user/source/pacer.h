/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that does one thing at a pace of its own, for devices that may answer late. */
#ifndef JD_PACER_H
#define JD_PACER_H
#include <stdint.h>

struct pacer;

/* step is called at once and then again after as many ns as it returned, from the deadline before (0 = after the
 * shortest pause); a step that came too late is left out, not made up for. name: at most 15 bytes. 0 or -errno. */
int pacer_start(const char *name, uint64_t (*step)(void *ctx), void *ctx, struct pacer **ret);
/* Its next step is due now. Any thread. */
void pacer_wake(struct pacer *p);
/* Waits for the step in progress. NULL accepted. */
void pacer_stop(struct pacer *p);

#endif
