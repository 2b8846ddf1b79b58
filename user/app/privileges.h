/* SPDX-License-Identifier: Apache-2.0 */
/* Least privilege: what the agent gives up once everything is open (docs/privileges.md). */
#ifndef JD_PRIVILEGES_H
#define JD_PRIVILEGES_H
#include <stdbool.h>
#include "../base/err.h"
#include "machine.h"

/* Gives up every capability that measuring does not need any more, then system calls (seccomp.h) and places to write
 * (landlock.h). Before the first thread: what a thread inherits is what its creator has. What this machine cannot
 * take away is noted, not an error. */
int privileges_drop(struct machine *m, const struct config *c, struct err *err);

/* What a capability buys, in the words of jouled doctor and docs/privileges.md. */
struct privilege {
	unsigned cap;
	const char *name, *buys;
};

extern const struct privilege privileges[]; /* up to a NULL name */
/* perf events for SYS_ADMIN alone: levels above 2 are Debian's and Ubuntu's. */
bool privileges_paranoid(const struct fsroot *root);
/* Real-time priority without CAP_SYS_NICE: by the limit, raised where that may be done. */
bool privileges_realtime(void);

#endif
