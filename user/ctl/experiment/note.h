/* SPDX-License-Identifier: Apache-2.0 */
/* What limits were before a recording, on disk: ROOT/_limits-PID-N/limits, which readers of the tree pass over. The
 * directory is locked as long as joulectl or its guard lives; one that nobody holds is for record_limits_recover. */
#ifndef JD_CTL_RECORD_NOTE_H
#define JD_CTL_RECORD_NOTE_H
#include <limits.h>
#include "record_guard.h"

struct record_note {
	int fd; /* of the directory; -1 = none */
	char path[PATH_MAX];
};

/* An empty note; root is made where it is missing. */
int record_note_make(const char *root, struct record_note *ret, struct err *err);
/* Replaces what is in it, and has it on the disk. */
int record_note_write(const struct record_note *n, const struct guard_state *s, struct err *err);
/* uuids, values before and values set. -EBADMSG: no note. */
int record_note_read(const struct record_note *n, struct guard_state *ret, struct err *err);
void record_note_remove(const struct record_note *n);
void record_note_close(struct record_note *n);

/* The next one below root that no process holds, locked; after: its name, "" to begin with. 0, -ENOENT: there is none
 * (any more), or another negative errno: this one cannot be used. */
int record_note_next(const char *root, char after[NAME_MAX + 1], struct record_note *ret, struct err *err);
/* The UUID of a GPU of s whose limits a recording that lives sets, NULL = none. */
const char *record_note_in_use(const char *root, const struct guard_state *s);
/* Of several lines, for the fuzzer too. 0 or -EBADMSG. */
int record_note_parse(const char *text, struct guard_state *ret);

#endif
