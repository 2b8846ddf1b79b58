/* SPDX-License-Identifier: Apache-2.0 */
/* What a calibration has seen: points of the meter beside what was measured inside, kept so that all loads stay represented, and
 * their text, which is all that is stored. */
#ifndef JD_WALL_POINTS_H
#define JD_WALL_POINTS_H
#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"
#include "wall_fit.h"

struct wall_points {
	unsigned n;
	struct wall_point v[WALL_POINTS]; /* in the order of `when` */
};

/* Adds a point behind the others. When there is no room, the oldest point of the power that has most points goes. */
void wall_points_add(struct wall_points *p, const struct wall_point *point);
/* The text: a line of columns, then a line a point. `inside`: one word that names the domains that stand behind the inputs; points
 * of others mean nothing. */
void wall_points_write(const struct wall_points *p, const char *inside, struct buf *out);
/* Reads a text. 0; -EBADMSG: it is none, *err names the line; -ESTALE: it was written with other domains inside. *ret is empty
 * then. */
int wall_points_read(const char *text, size_t size, const char *inside, struct wall_points *ret, struct err *err);

#endif
