/* SPDX-License-Identifier: Apache-2.0 */
/* How long rows wait for memory. A program that waits counts cycles and no misses, so its misses per cycle fall below those
 * that it has as a rule. These are the mean of a row over some time. The mean begins anew when the row does something else. */
#ifndef JD_WAITS_H
#define JD_WAITS_H
#include "model/snapshot.h"

struct waits {
	struct wait_key *keys; /* [cap_keys], by the key of a row */
	uint32_t cap_keys;
	/* Misses per cycle of the rows of the snapshot at hand: the mean of some time, and the most; 0 = no interval told them. */
	double *usual, *most;
	uint32_t cap_usual, cap_most;
	uint64_t end_ns; /* of the last snapshot */
};

/* Takes what the rows did in the interval and sets `usual` and `most`. An earlier snapshot than the last one is of another recording: what was
 * known is forgotten. 0 or -ENOMEM. */
int waits_take(struct waits *w, const struct snapshot *s);
/* And empties it. */
void waits_free(struct waits *w);

#endif
