/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of this virtual machine as its host tells it (docs/formats/guest.md): domains named as there, interface
 * "host". A thread of its own reads the lines and comes back when the host was away. */
#ifndef JD_HOST_H
#define JD_HOST_H
#include <stddef.h>
#include "base/err.h"
#include "base/fsroot.h"
#include "model/reading.h"

struct host;

struct host_options {
	const struct fsroot *root; /* borrowed */
	const char *place; /* vsock://CID:PORT, unix:///PATH or a path such as /dev/virtio-ports/org.jouled.0 */
	uint64_t wait_ns; /* for the first line, at most */
};

/* Waits for the first line and adds its domains to the schema. 0; -ETIMEDOUT, -EINVAL for a place that is none, or
 * the errno of connecting; err says more. */
int host_open(const struct host_options *o, struct schema *s, struct host **ret, struct err *err);
int host_start(struct host *h); /* the thread; 0 or -errno; NULL accepted */
/* Totals as last told, each with the time of its arrival. NULL accepted. */
void host_read(struct host *h, struct reading *r);
/* A change since the last call; false = none. NULL accepted. */
bool host_next_warning(struct host *h, char *ret_text, size_t size);
void host_close(struct host *h); /* NULL accepted */

#endif
