/* SPDX-License-Identifier: Apache-2.0 */
/* Names the code of a profile that was taken without names. */
#ifndef JD_PROFILE_SYMBOLIZE_H
#define JD_PROFILE_SYMBOLIZE_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"

struct symbolize_question {
	const char *path; /* a .pb.gz file */
	const char *debug_dirs; /* parted by ':'; NULL = /usr/lib/debug */
	const char *servers; /* of debuginfod, parted by ','; NULL = none is asked */
	bool folded; /* else in pprof's form, packed */
};

/* Reads a profile and writes it with the names that this machine has, and the servers. A file of code that lacks names is
 * told in a line of the log. 0, or negative errno with err. */
int profile_symbolize(const struct symbolize_question *q, struct buf *out, struct err *err);

#endif
