/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the counter of a set that a name stands for; -1 = there is none. Only names are compared. */
#ifndef JD_EVENT_FIND_H
#define JD_EVENT_FIND_H
#include "schema.h"

int event_find_cycles(const struct event_set *set);
int event_find_misses(const struct event_set *set);
/* True for a name of unhalted cycles, or of last-level cache misses. */
bool event_is_cycles(const char *text);
bool event_is_misses(const char *text);

#endif
