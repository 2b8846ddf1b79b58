/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/loop.h"
#include "base/parse.h"
#include "notify.h"
#include "pipeline.h"
#include "watchdog.h"

/* A thread that is late once is checked again before the time is up. */
#define LOOKS_PER_PERIOD 4

static void answer(void *arg)
{
	struct watchdog *w = arg;

	atomic_fetch_add(&w->answered, 1);
}

void watchdog_start(struct watchdog *w, struct pipeline *pl, struct loop *l)
{
	const char *period = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t us, who;

	*w = (struct watchdog){ .pipeline = pl, .loop = l };
	if (!period || parse_u64(period, &us) != 0 || !us || us > UINT64_MAX / 1000)
		return;
	if (pid && (parse_u64(pid, &who) != 0 || who != (uint64_t)getpid()))
		return;
	w->step_ns = us * 1000 / LOOKS_PER_PERIOD;
	w->next_ns = clock_mono_ns() + w->step_ns;
	w->turns = pipeline_turns(pl);
	loop_post(l, answer, w);
}

int watchdog_wait_ms(const struct watchdog *w, int most_ms)
{
	uint64_t now = clock_mono_ns(), left_ms;

	if (!w->step_ns)
		return most_ms;
	left_ms = w->next_ns > now ? (w->next_ns - now + 999999) / 1000000 : 0;
	return left_ms < (uint64_t)most_ms ? (int)left_ms : most_ms;
}

void watchdog_run(struct watchdog *w)
{
	uint64_t now = clock_mono_ns();
	unsigned turns, answers;

	if (!w->step_ns || now < w->next_ns)
		return;
	w->next_ns = now + w->step_ns;
	turns = pipeline_turns(w->pipeline);
	answers = atomic_load(&w->answered);
	if (turns == w->turns || answers == w->answers)
		return;
	w->turns = turns;
	w->answers = answers;
	notify("WATCHDOG=1");
	loop_post(w->loop, answer, w);
}
