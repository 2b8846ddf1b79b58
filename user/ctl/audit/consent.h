/* SPDX-License-Identifier: Apache-2.0 */
/* Which cgroups may be frozen for an audit (docs/audit.md has the rule). Naming a cgroup is the consent; some are
 * refused all the same, because the machine or the caller would stand still with them. */
#ifndef JD_CTL_AUDIT_CONSENT_H
#define JD_CTL_AUDIT_CONSENT_H
#include <stdbool.h>
#include "ctl/run/cgroup_of_run.h"

/* Checks a cgroup that was named, and opens its directory: the descriptor, or negative errno with subject, cause and
 * remedy in err. path: below the mount, with a leading slash; a slash at the end is cut off. */
int audit_consent(const struct run_place *place, char *path, struct err *err);

/* The parts of the rule, for tests. NULL = the name does not forbid it, or the reason. own: cgroup of the caller. */
const char *audit_refuses_path(const char *path, const char *own);
/* True when the cgroups of such a program are never frozen. comm: of a process. */
bool audit_refuses_program(const char *comm);

#endif
