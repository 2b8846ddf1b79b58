/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_WATCHDOG_H
#define JD_WATCHDOG_H
#include <stdatomic.h>
#include <stdint.h>

struct loop;
struct pipeline;

/* Tells systemd that the agent is alive, as long as its threads are (WatchdogSec= of systemd.service(5)). */
struct watchdog {
	uint64_t step_ns, next_ns; /* 0 = systemd does not watch */
	struct pipeline *pipeline;
	struct loop *loop;
	unsigned turns, answers; /* values at the last check */
	_Atomic unsigned answered; /* written by the loop's thread */
};

/* Reads WATCHDOG_USEC and WATCHDOG_PID. w must live until the loop is stopped. */
void watchdog_start(struct watchdog *w, struct pipeline *pl, struct loop *l);
/* Milliseconds until watchdog_run has work, at most most_ms. */
int watchdog_wait_ms(const struct watchdog *w, int most_ms);
/* Main thread: reports "alive" when it is time and every thread has made progress since the last check. */
void watchdog_run(struct watchdog *w);

#endif
