/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_FILE_REPLACE_H
#define JD_FILE_REPLACE_H
#include <stddef.h>
#include <sys/types.h>

#define FILE_REPLACE_MAX 4096 /* of a path */

/* Makes the file, mode 0600, in place of one that may be there: readers see the old text or the new one, after a power failure
 * too, and a full disk leaves the old one. 0 or -errno. Writes PATH.new, and follows no link there. */
int file_replace(const char *path, const void *data, size_t n);
/* Reads a file that file_replace has made: its length, at most size, or -errno. No link is followed. */
ssize_t file_load(const char *path, void *ret, size_t size);

#endif
