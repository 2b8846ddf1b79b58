/* SPDX-License-Identifier: Apache-2.0 */
/* The guard process of record_limits.h, and what goes over its socket. */
#ifndef JD_CTL_RECORD_GUARD_H
#define JD_CTL_RECORD_GUARD_H
#include "record_limits.h"

struct guard_gpu {
	char uuid[96];
	uint32_t power_mw;          /* what was set before; 0 = not known, then it is not touched */
	uint32_t mem_mhz, gpu_mhz;
	bool power_changed, clocks_changed;
};

struct guard_state {
	const char *library;
	unsigned n;
	struct guard_gpu gpu[RECORD_LIMITED_MAX];
};

struct guard_answer { struct err err; struct guard_state state; };

/* In a child process, with the socket to joulectl: answers once for the start and once for each setting that
 * comes; at the end of the socket puts back what is changed and exits: 0 = all is as it was. known: the state
 * tells already what was set before (a second guard). */
_Noreturn void record_guard(int fd, struct guard_state *state, bool known);

#endif
