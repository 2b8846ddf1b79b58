/* SPDX-License-Identifier: Apache-2.0 */
/* The loads that an audit runs itself, in cgroups of its own: one computes, one reads memory. Both run at the lowest
 * priority (SCHED_IDLE), so that they take only time that nobody wants, each process on a CPU of its own. They end with
 * this program. */
#ifndef JD_CTL_AUDIT_LOADS_H
#define JD_CTL_AUDIT_LOADS_H
#include "ctl/run/cgroup_of_run.h"
#include "trial.h"

struct audit_loads;

extern const char *const audit_load_names[AUDIT_LOADS]; /* "compute", "memory" */

/* Starts them, resting. cpus: processes of each. 0 or negative errno with err. */
int audit_loads_start(struct run_place *place, unsigned cpus, struct audit_loads **ret, struct err *err);
/* True when all of them have their memory: until then one works even at rest. */
bool audit_loads_ready(const struct audit_loads *l);
/* What a load of which a process has ended (killed, or it got no memory) is called; NULL: all live. It says so once. */
const char *audit_loads_ended(struct audit_loads *l);
/* Lets those of `state` (bit 0: the first) run, and the others rest. */
void audit_loads_set(struct audit_loads *l, unsigned state);
const char *audit_loads_path(const struct audit_loads *l, unsigned load); /* of its cgroup, below the mount */
const char *audit_loads_top(const struct audit_loads *l); /* of the cgroup that has both */
void audit_loads_stop(struct audit_loads *l); /* removes the cgroups; NULL accepted */

#endif
