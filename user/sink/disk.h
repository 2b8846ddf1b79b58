/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that writes to a descriptor which may block: file and stdout. Each has a small thread of
 * its own, because a stopped terminal or a hung network file system blocks write() for good and
 * must not hold up the others. */
#ifndef JD_SINK_DISK_H
#define JD_SINK_DISK_H
#include "impl.h"

/* Starts the writer for fd, which is taken over on success only. path: the file's name, to notice
 * that it was moved away; NULL for none. */
int disk_start(const struct sink_ops *ops, int fd, const char *path, const struct sink_options *o, struct sink **ret);
void disk_wake(struct sink *s);
void disk_close(struct sink *s, uint64_t deadline_ns);

/* Opens the file for appending (FIFOs and terminals too). fd or negative errno. */
int disk_open_file(const char *path, bool truncate);

#endif
