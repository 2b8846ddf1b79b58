/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of a profile for people: a table of functions, a flame graph, speedscope, the Firefox Profiler. profile_data.h has the others. */
#ifndef JD_PROFILE_REPORT_H
#define JD_PROFILE_REPORT_H
#include "profile/profile_data.h"

/* 0 or -ENOMEM; flame also -ENODATA: nothing used energy. */
int profile_table(const struct profile_report *r, unsigned top, struct buf *out);
int profile_flame(const struct profile_report *r, struct buf *out);
int profile_speedscope(const struct profile_report *r, struct buf *out);
/* The profile has moments, which are ended by this. */
int profile_firefox(const struct profile_report *r, struct buf *out);

#endif
