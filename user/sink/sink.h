/* SPDX-License-Identifier: Apache-2.0 */
/* A sink takes bytes to where they go and knows nothing of what they mean. Each has a bounded
 * queue and its own pace: a slow or dead peer never delays the caller or another sink; what does
 * not fit is dropped whole and counted. Documents are never sent in part and then continued. */
#ifndef JD_SINK_H
#define JD_SINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "../base/err.h"

struct sink;
struct loop; /* base/loop.h: the I/O thread's event loop */

struct sink_stats {
	uint64_t documents, bytes; /* delivered to the kernel */
	uint64_t dropped_documents, dropped_bytes;
	uint64_t reconnects;
	uint32_t queued, clients;
	bool up;
	char state[160]; /* "connected to 127.0.0.1:9080", "refused, next try in 4 s" */
};

struct sink_options {
	size_t queue_bytes; /* default 4 MiB */
	const char *port_file; /* tcp-listen: where the chosen port is written */
	unsigned max_clients; /* listening: more are turned away, 0 = 512 */
	mode_t mode; /* unix-listen: socket file mode, 0 = 0660 */
	bool truncate; /* file: start empty instead of appending */
	/* vsock-listen: may this peer come in, and which channel is its own? The loop's thread. 0 and a channel
	 * other than 0, or negative: it is turned away. */
	int (*admit)(void *ctx, uint32_t cid, uint32_t *ret_channel);
	void *admit_ctx;
};

/* Is the URL one that sink_open takes? Opens nothing. 0, or -EINVAL with err. */
int sink_check_url(const char *url, struct err *err);
/* Opens the sink of a URL: stdout: file:///path tcp://host:port unix:///path tcp-listen://addr:port
 * unix-listen:///path vsock-listen://any:port null:  The query part must be cut off already. loop is the I/O loop;
 * files are written by a disk thread of their own. err says subject, cause and remedy.
 * -EINVAL for a URL that is wrong, another errno for a place that cannot be opened now
 * (a tcp peer that is away is not an error: it is retried with back-off). */
int sink_open(const char *url, const struct sink_options *o, struct loop *loop, struct sink **ret, struct err *err);
/* Queues one document (copied into a recycled buffer). Any one thread; never blocks. 0, or
 * -ENOBUFS when dropped. */
int sink_submit(struct sink *s, const void *data, size_t len);
/* The same for the clients of one channel only; what is sent without is for all. */
int sink_submit_to(struct sink *s, uint32_t channel, const void *data, size_t len);
/* Bytes each new client or file gets before any document; copied; NULL, 0 clears. A file gets it
 * only when it is empty. */
int sink_set_preamble(struct sink *s, const void *data, size_t len);
/* The same where documents mean something else from now on. Sinks that listen only (-EOPNOTSUPP):
 * connections of readers that know the old preamble end, and no reader gets a document that its own
 * preamble does not explain. */
int sink_restart(struct sink *s, const void *preamble, size_t len);
void sink_get_stats(struct sink *s, struct sink_stats *ret); /* any thread */
/* Waits up to timeout_ns for the queue to drain, then closes. NULL accepted. Not on the loop's thread. */
void sink_close(struct sink *s, uint64_t timeout_ns);

#endif
