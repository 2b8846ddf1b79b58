/* SPDX-License-Identifier: Apache-2.0 */
/* Every path of /proc, /sys and /dev goes through a root prefix, so that a captured machine is
 * a test and a bug report (--root DIR). The root is opened once; names cannot leave it
 * (openat2 RESOLVE_IN_ROOT, or the same by steps where it is refused). Root "/" is plain openat.
 * Paths that DIR/denied lists (one a line, globs as in text.h) answer EACCES. */
#ifndef JD_FSROOT_H
#define JD_FSROOT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>

struct fsroot;

int fsroot_open(const char *dir, struct fsroot **ret);
void fsroot_close(struct fsroot *r);
bool fsroot_is_live(const struct fsroot *r); /* true for "/" */
const char *fsroot_dir(const struct fsroot *r);

int fsroot_openat(const struct fsroot *r, const char *path, int flags); /* fd or -errno, CLOEXEC */
/* Opens the file dir/below for reading. dir is a path like any other. Below it no symbolic link, mount or ".." is
 * followed, because the processes that the file is about can write there. Only a plain file is opened, no FIFO or
 * device. Returns fd, -EINVAL when it is no plain file, or -errno. */
int fsroot_open_below(const struct fsroot *r, const char *dir, const char *below);
/* Finds path as a process does whose root directory is dir (/proc/PID/root). Absolute links and ".." stay inside, and
 * no link of /proc is followed, because that process controls all of path. Returns an O_PATH descriptor, so nothing is
 * opened for reading, or -errno. */
int fsroot_find_inside(const struct fsroot *r, const char *dir, const char *path);
/* Opens for reading the file that an O_PATH descriptor stands for. Only plain files, because opening a FIFO or a device
 * may have effects. Returns fd, -EINVAL when it is no plain file, or -errno. */
int fsroot_open_plain(int found);
/* Reads a whole small file into text, NUL-terminated and without a trailing newline. Returns the length or -errno;
 * -EFBIG = it is too large. */
int fsroot_read(const struct fsroot *r, const char *path, char *text, size_t size);
/* The same with a path formatted as by printf; -ENAMETOOLONG. */
int fsroot_readf(const struct fsroot *r, char *text, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int fsroot_read_u64(const struct fsroot *r, const char *path, uint64_t *ret);
DIR *fsroot_opendir(const struct fsroot *r, const char *path); /* NULL + errno */
bool fsroot_exists(const struct fsroot *r, const char *path);

#endif
