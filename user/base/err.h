/* SPDX-License-Identifier: Apache-2.0 */
/* One failure: a negative errno and one line "subject: cause; remedy". Lower layers fill it, agent/ and ctl/ print it
 * once. Strings from outside are escaped when the line is made (text.h). */
#ifndef JD_ERR_H
#define JD_ERR_H

struct err {
	int code; /* 0 or a negative errno */
	char text[512];
};

/* Formats the line into err (it may be NULL) and returns rc, so that callers can write
 * `return err_set(err, -EINVAL, "...")`. Control and non-UTF-8 bytes in the result are escaped. */
int err_set(struct err *err, int rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* What helps after a write or an open for writing that failed with rc: "make room there, or write elsewhere". rc is a
 * negative errno, or 0 where it is not known. */
const char *err_write_remedy(int rc);
/* The one line for such a failure, "subject: cause: what; remedy". what says which data are lost; NULL = nothing to add.
 * Returns rc. err may be NULL. */
int err_write(struct err *err, int rc, const char *subject, const char *what);

#endif
