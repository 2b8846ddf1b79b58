/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles against each other. */
#ifndef JD_PROFILE_DIFF_H
#define JD_PROFILE_DIFF_H
#include "base/buf.h"
#include "base/err.h"

enum profile_diff_form { PROFILE_DIFF_TABLE, PROFILE_DIFF_FOLDED, PROFILE_DIFF_FLAME };

struct profile_diff {
	const char *path[2]; /* files of folded stacks: before, after */
	double work[2]; /* done in each; 0 = energies are compared as they are */
	enum profile_diff_form form;
	unsigned top; /* rows of the table */
};

/* 0, or negative errno with err. */
int profile_diff(const struct profile_diff *d, struct buf *out, struct err *err);

#endif
