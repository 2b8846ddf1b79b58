/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_WATCHDOG_H
#define JD_WATCHDOG_H
#include <stdatomic.h>
#include <stdint.h>

struct loop;
struct pipeline;

/* Tells systemd that the agent lives, while its threads do (WatchdogSec= of systemd.service(5)). */
struct watchdog {
	uint64_t step_ns, next_ns; /* 0 = nobody watches */
	struct pipeline *pipeline;
	struct loop *loop;
	unsigned turns, answers; /* as of the last look */
	_Atomic unsigned answered; /* by the loop's thread */
};

/* Reads WATCHDOG_USEC and WATCHDOG_PID; w lives until the loop is stopped. */
void watchdog_start(struct watchdog *w, struct pipeline *pl, struct loop *l);
/* How long to sleep until watchdog_run has work, at most most_ms. */
int watchdog_wait_ms(const struct watchdog *w, int most_ms);
/* The main thread's: says "alive" when it is time and every thread came round since the last look. */
void watchdog_run(struct watchdog *w);

#endif
