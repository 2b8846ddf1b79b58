/* SPDX-License-Identifier: Apache-2.0 */
/* Which formula is better here: the agent's intervals are recorded during an audit, and split again by each formula
 * (jouled --replay), so that both are judged by the same readings. */
#ifndef JD_CTL_AUDIT_TAPE_H
#define JD_CTL_AUDIT_TAPE_H
#include "session.h"

struct audit_tape;

/* When a block of a round began and ended, CLOCK_MONOTONIC. */
struct audit_times {
	uint64_t start_ns, end_ns;
};

/* Starts a process that records the stream of the agent into a file without a name. 0 or negative errno with err. */
int audit_tape_start(const struct audit_session *s, struct audit_tape **ret, struct err *err);
void audit_tape_end(struct audit_tape *t); /* no more is recorded */
/* Judges both formulas by the rounds, whose blocks had these times, and fills in `better` and `why`. paths: of the loads.
 * The first quarter of the rounds is to learn from. What cannot be told is said in `why`. */
void audit_tape_judge(struct audit_tape *t, const struct audit_session *s, const struct audit_rounds *r,
		      const struct audit_times (*times)[AUDIT_STATES], const char *const paths[AUDIT_LOADS],
		      struct audit *ret);
void audit_tape_free(struct audit_tape *t); /* NULL accepted */

#endif
