/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to user/sink. Each kind of sink has struct sink as the first member of its own struct. sink.c keeps the
 * inbox and the figures. A kind (one sink_ops, one file) takes documents out of the inbox on a thread of its choice
 * (the disk writer's or the loop's) and reports how each of them ended. Every accepted document ends as exactly one
 * of delivered or dropped. */
#ifndef JD_SINK_IMPL_H
#define JD_SINK_IMPL_H
#include <pthread.h>
#include "doc.h"
#include "sink.h"
#include "url.h"

#define SINK_QUEUE_BYTES (4u << 20) /* default of sink.bound */

struct sink_ops {
	const char *scheme;
	/* Makes the sink. sink.c has filled nothing: call sink_init() first. */
	int (*open)(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
		    struct err *err);
	/* Called when the inbox becomes non-empty, by the submitting thread, without the lock. Must not block.
	 * NULL: documents are counted and thrown away. */
	void (*wake)(struct sink *s);
	/* Called when the epoch has changed: ends the connections of the old epoch. NULL: not supported. */
	void (*restart)(struct sink *s);
	/* Delivers documents until deadline_ns (CLOCK_MONOTONIC), then releases and frees everything. */
	void (*close)(struct sink *s, uint64_t deadline_ns);
	const char *remedy; /* remedy against loss, for the user */
};

extern const struct sink_ops sink_null, sink_stdout, sink_file, sink_tcp, sink_unix, sink_tcp_listen, sink_unix_listen,
	sink_vsock_listen;

struct sink {
	const struct sink_ops *ops;
	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t changed; /* signalled when a document leaves the inbox or ends, or the state changes */
	size_t bound; /* bytes that may wait, with overhead */
	size_t held; /* bytes that wait: the inbox; for single peers also the document that is being sent */
	struct doc_list inbox;
	struct doc_pool *pool;
	struct doc *preamble; /* NULL = none */
	uint32_t epoch; /* +1 with each sink_restart */
	struct sink_stats stats;
	struct sink_stats *last; /* where sink_settle copies the final stats; NULL = nowhere */
};

/* bound 0 = the default. 0 or -ENOMEM. */
int sink_init(struct sink *s, const struct sink_ops *ops, size_t bound);
/* Copies the final figures for sink_end. Call it once, when they can no longer change; sink_fini calls it
 * otherwise. */
void sink_settle(struct sink *s);
/* Releases the memory of sink_init and sink_submit. The last step of ops->close. */
void sink_fini(struct sink *s);

/* Takes the whole inbox; its documents still count as waiting. */
struct doc_list sink_take(struct sink *s);
/* Returns a reference to the preamble, or NULL, and its epoch. */
struct doc *sink_preamble(struct sink *s, uint32_t *ret_epoch);
/* How a document ended. SINK_LEFT: its reader left on its own, which is no loss. */
enum sink_end_of { SINK_DELIVERED, SINK_DROPPED, SINK_LEFT };
/* Counts the end of a document. Call with the lock held. */
void sink_count(struct sink *s, const struct doc *d, enum sink_end_of end);
/* Ends a document of a single-peer sink: frees its room, counts it, drops the reference. */
void sink_done(struct sink *s, struct doc *d, enum sink_end_of end);
/* Records a failure that makes documents wait or be lost, as stats.why. */
void sink_failed(struct sink *s, int error, const char *why);
/* Sets stats.up and the state line. */
void sink_state(struct sink *s, bool up, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Waits on `changed`. Call with the lock held. False when the deadline has passed. */
bool sink_wait(struct sink *s, uint64_t deadline_ns);

#endif
