/* SPDX-License-Identifier: Apache-2.0 */
/* The note of the limits before a recording, on disk: ROOT/_limits-PID-N/limits, which readers of the tree skip. The
 * directory is locked as long as joulectl or its guard lives. A note that no process holds is for
 * record_limits_recover. */
#ifndef JD_CTL_RECORD_NOTE_H
#define JD_CTL_RECORD_NOTE_H
#include <limits.h>
#include "guard.h"

struct record_note {
	int fd; /* of the directory; -1 = none */
	char path[PATH_MAX];
};

/* Makes root where it is missing, and locks it until *ret_fd is closed. The lock makes looking at the notes of others
 * and adding an own one a single step. *ret_fd is -1 where the file system has no locks. */
int record_note_lock_root(const char *root, int *ret_fd, struct err *err);
/* Makes an empty note. */
int record_note_make(const char *root, struct record_note *ret, struct err *err);
/* Replaces the contents of the note; they are on the disk when this returns. */
int record_note_write(const struct record_note *n, const struct guard_state *s, struct err *err);
/* Reads UUIDs, limits before and limits set. -EBADMSG: the file is no note. */
int record_note_read(const struct record_note *n, struct guard_state *ret, struct err *err);
void record_note_remove(const struct record_note *n);
void record_note_close(struct record_note *n);

/* Finds and locks the next note below root that no process holds. `after` is the name of the note before, "" to begin
 * with, and becomes the name of this one. 0; -ENOENT: there is none, or no further one; or another negative errno:
 * this note cannot be used. */
int record_note_next(const char *root, char after[NAME_MAX + 1], struct record_note *ret, struct err *err);
/* Returns the UUID of a GPU of s whose limits a running recording sets; NULL = none. */
const char *record_note_in_use(const char *root, const struct guard_state *s);
/* Parses the lines of a note; the fuzzer calls it too. 0 or -EBADMSG. */
int record_note_parse(const char *text, struct guard_state *ret);

#endif
