/* SPDX-License-Identifier: Apache-2.0 */
/* The hottest functions of one cgroup, with those below it, for top's pane: asked of the agent's continuous profile again
 * and again, without ever waiting long. */
#ifndef JD_CTL_TOP_FUNCTIONS_H
#define JD_CTL_TOP_FUNCTIONS_H
#include "top.h"

struct top_functions;
/* socket must outlive it. Nothing is asked yet. key_fd: the keyboard; its input ends waiting. NULL = out of memory. */
struct top_functions *top_functions_new(const char *socket, const char *cgroup, int key_fd);
const char *top_functions_cgroup(const struct top_functions *t);
/* Asks when it is time, or reads on, for at most a tenth of a second. true = there is something new to draw. */
bool top_functions_turn(struct top_functions *t);
/* Draws at most so many functions, below a heading; or why there are none. Returns the number of lines. */
unsigned top_functions_draw(const struct top_functions *t, struct top_view *v, struct top_paint *p, unsigned most);
void top_functions_free(struct top_functions *t); /* NULL accepted; gives up a question on its way */

#endif
