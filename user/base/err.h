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

#endif
