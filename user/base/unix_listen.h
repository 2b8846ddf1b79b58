/* SPDX-License-Identifier: Apache-2.0 */
/* A listening Unix socket with a file. One left behind by a crash is replaced; one that somebody
 * listens on, or that is no socket, is never touched. */
#ifndef JD_UNIX_LISTEN_H
#define JD_UNIX_LISTEN_H
#include <sys/types.h>

struct unix_file { /* what was made, to remove it while the name is still ours */
	dev_t dev;
	ino_t ino;
	char path[108]; /* sun_path, unix(7) */
};

/* mode: of the file, never more open than that; group: -1 = as it comes. The descriptor (non-blocking),
 * or -EEXIST: no socket, -EADDRINUSE: in use, -ENAMETOOLONG, or another negative errno. */
int unix_listen_file(const char *path, mode_t mode, gid_t group, struct unix_file *ret);
/* Removes the file unless a successor has taken the name over. */
void unix_listen_remove(const struct unix_file *f);
/* What to do about an error of unix_listen_file. */
const char *unix_listen_remedy(int code);

#endif
