/* SPDX-License-Identifier: Apache-2.0 */
/* Every path of /proc, /sys and /dev goes through a root prefix, so that a captured machine is
 * a test and a bug report (--root DIR). The root is opened once; names cannot leave it
 * (openat2 RESOLVE_IN_ROOT; where absent, paths with ".." are refused). Root "/" is plain openat.
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
/* The file dir/below for reading: dir like any other path, below it no symbolic link, no mount and no ".." is
 * followed, for that part is written by those the file is about. Plain files only: a FIFO or device is
 * not even opened. fd, -EINVAL for what is no plain file, or -errno. */
int fsroot_open_below(const struct fsroot *r, const char *dir, const char *below);
/* Whole small file into text, NUL-terminated, trailing newline cut. Length or -errno; -EFBIG. */
int fsroot_read(const struct fsroot *r, const char *path, char *text, size_t size);
int fsroot_read_u64(const struct fsroot *r, const char *path, uint64_t *ret);
DIR *fsroot_opendir(const struct fsroot *r, const char *path); /* NULL + errno */
bool fsroot_exists(const struct fsroot *r, const char *path);

#endif
