/* SPDX-License-Identifier: Apache-2.0 */
/* The directories in which a configuration makes, writes or removes files. */
#ifndef JD_WRITES_H
#define JD_WRITES_H
#include "base/err.h"
#include "model/config/config.h"

struct writes {
	char **tree; /* resolved; the nearest existing parent of a missing one */
	unsigned n;
};

/* 0 or -ENOMEM. On failure there is nothing to free. */
int writes_list(const struct config *c, struct writes *ret, struct err *err);
void writes_free(struct writes *w);

#endif
