/* SPDX-License-Identifier: Apache-2.0 */
/* The power at the wall as a domain `wall-0`: learned while a power meter is there, and estimated from then on, also without it
 * (docs/wall.md). Its causes `supply`, `fans`, `disk` and `network` are rows. A thread of its own reads statistics of devices
 * and learns; the measuring thread takes what is finished and never waits. */
#ifndef JD_WALL_H
#define JD_WALL_H
#include "base/err.h"
#include "base/fsroot.h"
#include "model/reading.h"
#include "model/wall_figures.h"

struct wall;

/* Adds the domain to s, behind all others. folder: where what was seen is kept, as wall.csv, and what was seen beside psys as psys.csv;
 * copied; NULL = nowhere. What they hold is read at once: a file that cannot be used is a warning. root is borrowed, s too. */
int wall_open(const struct fsroot *root, const char *folder, struct schema *s, struct wall **ret, struct err *err);
int wall_start(struct wall *w); /* 0 or -errno; NULL accepted */
/* Measuring thread, after all other energy of the reading. Changes the domain at most ten times a second: the rates that a
 * supply's loss depends on need some time. Never waits. NULL accepted. */
void wall_read(struct wall *w, struct reading *r);
/* The thread's work, for tests without it. Returns the ns until the next look. */
uint64_t wall_step(struct wall *w, uint64_t now_ns);
void wall_figures(struct wall *w, struct wall_figures *ret); /* any thread */
bool wall_next_warning(struct wall *w, char *ret_text, size_t size); /* NULL accepted: none */
void wall_close(struct wall *w); /* keeps what was seen; NULL accepted */

#endif
