/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_TOTALS_LATE_H
#define JD_TOTALS_LATE_H
#include "totals.h"

/* Names of a cgroup that came after its last interval; n is borrowed. Of no effect where its row has not ended or is gone, too. */
void totals_name_late(struct totals *t, uint64_t id, struct names *n);

#endif
