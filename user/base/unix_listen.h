/* SPDX-License-Identifier: Apache-2.0 */
/* A listening Unix socket with a file. A socket left behind by a crash is replaced. A file that is no socket, and a
 * socket on which a process listens, are never touched. */
#ifndef JD_UNIX_LISTEN_H
#define JD_UNIX_LISTEN_H
#include <sys/types.h>

struct unix_file { /* identity of the file that was made: it is removed only while the name is still ours */
	dev_t dev;
	ino_t ino;
	char path[108]; /* sun_path, unix(7) */
};

/* Makes a listening socket. mode: of the file, never more open than that; group: -1 = the process's own. Returns the
 * descriptor (non-blocking), or -EEXIST: no socket, -EADDRINUSE: in use, -ENAMETOOLONG, or another negative errno. */
int unix_listen_file(const char *path, mode_t mode, gid_t group, struct unix_file *ret);
/* Removes the file unless another process has taken the name over. */
void unix_listen_remove(const struct unix_file *f);
/* The remedy for an error of unix_listen_file, as words of a message. */
const char *unix_listen_remedy(int rc);

#endif
