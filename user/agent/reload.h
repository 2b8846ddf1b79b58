/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_RELOAD_H
#define JD_RELOAD_H
#include "model/config/config.h"

/* Returns the first key that differs but cannot change while the sources are open; NULL = none. */
const char *reload_refused(const struct config *old, const struct config *new);

/* The programs of traces stay loaded when the last output of traces goes: the new configuration takes note of it, so that one may come
 * back. */
void reload_inherit(const struct config *old, struct config *new);

#endif
