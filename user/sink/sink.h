/* SPDX-License-Identifier: Apache-2.0 */
/* A sink takes documents to one destination. It does not know what the bytes mean. Each sink has a bounded
 * queue and its own pace: a slow or dead peer never delays the caller or another sink. A document that does not
 * fit is dropped whole and counted. A document that was cut by a broken connection is never continued on
 * another. */
#ifndef JD_SINK_H
#define JD_SINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/err.h"

struct sink;
struct loop; /* base/loop.h: the I/O thread's event loop */

struct sink_stats {
	uint64_t documents, bytes; /* delivered to the kernel */
	uint64_t dropped_documents, dropped_bytes;
	uint64_t dropped_series; /* refused by a server that took the rest of their documents */
	uint64_t dropped_energy_uj; /* measured in the intervals of documents that a server did not get */
	uint64_t left_documents; /* of these: the reader left on its own (pipes, clients of a listener) */
	uint64_t early_documents; /* listening: came before the first client, so no client got them */
	uint64_t arrivals; /* connections so far, incoming or outgoing */
	uint64_t reconnects;
	uint32_t queued, clients;
	bool up;
	char state[160]; /* "connected to 127.0.0.1:9080", "refused, next try in 4 s" */
	char why[64]; /* the last failure: "No space left on device"; "" = none so far */
	int error; /* its negative errno; 0 = it has none */
};

struct sink_options {
	size_t queue_bytes; /* default 4 MiB; one document alone may be larger */
	const char *port_file; /* tcp-listen: file to which the chosen port is written */
	unsigned max_clients; /* listening: further clients are turned away, 0 = 512 */
	mode_t mode; /* unix-listen: socket file mode, 0 = 0660 */
	bool truncate; /* file: start empty instead of appending */
	/* vsock-listen: decides about a peer, on the loop's thread. 0 and a channel other than 0 admits it;
	 * negative turns it away. */
	int (*admit)(void *ctx, uint32_t cid, uint32_t *ret_channel);
	void *admit_ctx;
};

/* Checks that sink_open takes the URL. Opens nothing. 0, or -EINVAL with err. */
int sink_check_url(const char *url, struct err *err);
/* Opens the sink of a URL: stdout: file:///path tcp://host:port unix:///path tcp-listen://addr:port
 * unix-listen:///path vsock-listen://any:port null:  The query part must be cut off already. loop is the I/O
 * loop; a disk thread of their own writes files. err says subject, cause and remedy. -EINVAL for a wrong URL,
 * another errno for a place that cannot be opened now. A tcp peer that is away is not an error: the sink
 * retries with back-off. */
int sink_open(const char *url, const struct sink_options *o, struct loop *loop, struct sink **ret, struct err *err);
/* Queues one document, copied into a recycled buffer. Call from one thread only; it never blocks. 0, or
 * -ENOBUFS when the document is dropped. */
int sink_submit(struct sink *s, const void *data, size_t len);
/* The same without the copy: b is empty afterwards, also when the document is dropped, and has other memory. */
int sink_submit_buf(struct sink *s, struct buf *b);
/* sink_submit for the clients of one channel only. sink_submit sends to all clients. */
int sink_submit_to(struct sink *s, uint32_t channel, const void *data, size_t len);
/* Sets the bytes that each new client or file gets before any document. They are copied; NULL, 0 clears them. A
 * file gets them only when it is empty. */
int sink_set_preamble(struct sink *s, const void *data, size_t len);
/* Sets a new preamble when later documents mean something else. For listening sinks only (others: -EOPNOTSUPP).
 * It ends the connections of readers that got the old preamble. No reader gets a document that its own preamble
 * does not explain. */
int sink_restart(struct sink *s, const void *preamble, size_t len);
void sink_get_stats(struct sink *s, struct sink_stats *ret); /* any thread */
/* The remedy against loss of documents, for the user: "start its reader first". A failure with an errno has a
 * better one (err_write_remedy). */
const char *sink_remedy(const struct sink *s);
/* Waits up to timeout_ns for the queue to drain, then closes. NULL accepted. Must not run on the loop's thread. */
void sink_close(struct sink *s, uint64_t timeout_ns);
/* The same, and returns the last figures; queued = documents given up. s is not NULL. */
void sink_end(struct sink *s, uint64_t timeout_ns, struct sink_stats *ret);

#endif
