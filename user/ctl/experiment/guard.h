/* SPDX-License-Identifier: Apache-2.0 */
/* The guard process of limits.h, and the messages on its socket. */
#ifndef JD_CTL_RECORD_GUARD_H
#define JD_CTL_RECORD_GUARD_H
#include "limits.h"

struct guard_gpu {
	char uuid[96];
	uint32_t power_mw; /* limit before the recording; 0 = not known: it is never changed */
	uint32_t mem_mhz, gpu_mhz;
	bool power_changed, clocks_changed;
	bool away; /* the driver does not find the GPU */
	struct guard_set {
		uint32_t power_mw, mem_mhz, gpu_mhz;
	} set[2], now; /* set: the last two settings of the recording, 0 = none; now: the values read last */
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
	GUARD_BEGINS, /* notes the limits that are set now */
	GUARD_TAKES_OVER, /* after a guard that was killed: the state has the limits before and what was changed */
	GUARD_RECOVERS, /* from a note: a limit counts as changed while it has the value that the recording has set */
};

/* Exit statuses. GUARD_AWAY: all limits are put back except those of GPUs that the driver does not find. */
enum { GUARD_ALL_BACK = 0, GUARD_FAILED = 1, GUARD_AWAY = 2 };

struct record_note;

/* Runs the guard in a child process. fd is its socket to joulectl. It answers once for the start and once for each
 * setting that it receives. When the socket ends it puts back the changed limits and exits. It removes the note when
 * all limits are as before. */
_Noreturn void record_guard(int fd, struct guard_state *state, struct record_note *note, enum guard_how how);

#endif
