/* SPDX-License-Identifier: Apache-2.0 */
/* Least privilege: gives up rights once everything is open (docs/privileges.md). */
#ifndef JD_PRIVILEGES_H
#define JD_PRIVILEGES_H
#include <stdbool.h>
#include "base/err.h"
#include "base/fsroot.h"
#include "model/config/config.h"

/* The work that the agent still has to do once everything is open, and that needs a right. */
struct rights {
	bool runs_bpf; /* programs, from time to time or on CPUs that come online */
	bool opens_events; /* perf events, on CPUs that come online */
	bool events_by_admin; /* privileges_paranoid */
	bool reads_msr; /* energy counters, on CPUs that come online */
	bool reads_code; /* of processes, for the profile; a process under Landlock cannot (landlock(7)) */
	bool looks_into_processes; /* their executables, or the processes that use a GPU */
	bool reads_descriptors; /* of processes, to find the users of a GPU; a process under Landlock cannot (landlock(7)) */
	bool starts_programs; /* meters */
};

/* Gives up every capability that r does not need, then system calls (seccomp.h) and places to write
 * (landlock.h). Call before the first thread, because a thread inherits the rights of its creator. A missing
 * seccomp is no error: ret_note says why, or is left empty. 0, or -EPERM with err. */
int privileges_drop(const struct rights *r, const struct config *c, struct err *ret_note, struct err *err);

/* The use of a capability, in the words of jouled doctor and docs/privileges.md. */
struct privilege {
	unsigned cap;
	const char *name, *buys;
};

extern const struct privilege privileges[]; /* ends with a NULL name */
/* True when perf events are for CAP_SYS_ADMIN only: perf_event_paranoid above 2 (Debian and Ubuntu). */
bool privileges_paranoid(const struct fsroot *root);
/* Allows real-time priority without CAP_SYS_NICE, by the resource limit, which is raised where that is
 * permitted. */
bool privileges_realtime(void);

#endif
