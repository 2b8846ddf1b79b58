/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that writes to a descriptor that may block: file and stdout. Each sink has a small thread of its own. A
 * stopped terminal or a hung network file system can block write() for good, and that must not delay other sinks. */
#ifndef JD_SINK_DISK_H
#define JD_SINK_DISK_H
#include "impl.h"

/* Starts the writer for fd, which it takes over on success only. path: the file's name, by which the writer
 * notices that the file was moved away; NULL for none. 0 or negative errno. */
int disk_start(const struct sink_ops *ops, int fd, const char *path, const struct sink_options *o, struct sink **ret);
void disk_wake(struct sink *s);
void disk_close(struct sink *s, uint64_t deadline_ns);

/* Opens the file for appending; FIFOs and terminals are accepted. fd or negative errno. */
int disk_open_file(const char *path, bool truncate);

#endif
