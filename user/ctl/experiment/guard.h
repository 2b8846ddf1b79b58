/* SPDX-License-Identifier: Apache-2.0 */
/* The guard process of record_limits.h, and what goes over its socket. */
#ifndef JD_CTL_RECORD_GUARD_H
#define JD_CTL_RECORD_GUARD_H
#include "record_limits.h"

struct guard_gpu {
	char uuid[96];
	uint32_t power_mw; /* what was set before; 0 = not known, then it is not touched */
	uint32_t mem_mhz, gpu_mhz;
	bool power_changed, clocks_changed;
	bool away; /* the driver does not find it */
	struct guard_set {
		uint32_t power_mw, mem_mhz, gpu_mhz;
	} set[2], now; /* the last two; 0 = none. What there is */
};

struct guard_state {
	const char *library;
	unsigned n;
	struct guard_gpu gpu[RECORD_LIMITED_MAX];
};

struct guard_answer {
	struct err err;
	struct guard_state state;
};

enum guard_how {
	GUARD_BEGINS, /* notes what is set now */
	GUARD_TAKES_OVER, /* from one that was killed: the state tells what was set before, and what is changed */
	GUARD_RECOVERS, /* from a note: changed is what is still as the recording has set it */
};

/* How it exits. AWAY: but for GPUs that are, all is as it was. */
enum { GUARD_ALL_BACK = 0, GUARD_FAILED = 1, GUARD_AWAY = 2 };

struct record_note;

/* In a child process, with the socket to joulectl: answers once for the start and once for each setting that
 * comes; at the end of the socket puts back what is changed and exits; the note goes when all is as it was. */
_Noreturn void record_guard(int fd, struct guard_state *state, struct record_note *note, enum guard_how how);

#endif
