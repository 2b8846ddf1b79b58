/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_RELOAD_H
#define JD_RELOAD_H
#include "model/config/config.h"

/* Returns the first key that differs but cannot change while the sources are open; NULL = none. */
const char *reload_refused(const struct config *old, const struct config *new);

#endif
