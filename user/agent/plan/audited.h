/* SPDX-License-Identifier: Apache-2.0 */
/* What the last audit says, for the snapshots of this agent. Any thread. */
#ifndef JD_AGENT_AUDITED_H
#define JD_AGENT_AUDITED_H
#include "model/audit.h"
#include "model/snapshot.h"

void audited_tell(const struct audit *a); /* copied; NULL = there is none */
/* Notes it in a snapshot, or that there is none. */
void audited_note(struct snapshot *s);

#endif
