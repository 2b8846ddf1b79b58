/* SPDX-License-Identifier: Apache-2.0 */
/* Which counter of a set a name stands for; -1 = it has none. Pure look-ups by name. */
#ifndef JD_EVENT_FIND_H
#define JD_EVENT_FIND_H
#include "schema.h"

int event_find_cycles(const struct event_set *set);
int event_find_misses(const struct event_set *set);
/* Is this one of the names of unhalted cycles, of last-level cache misses? */
bool event_is_cycles(const char *text);
bool event_is_misses(const char *text);

#endif
