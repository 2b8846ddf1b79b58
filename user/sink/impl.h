/* SPDX-License-Identifier: Apache-2.0 */
/* Inside user/sink only. A sink is this struct as the first member of its own: sink.c keeps the
 * inbox and the figures, a kind (one sink_ops, one file) takes documents out of the inbox on a
 * thread of its own choice (the disk writer's or the loop's) and says what became of each.
 * Every document that was accepted ends as exactly one of delivered or dropped. */
#ifndef JD_SINK_IMPL_H
#define JD_SINK_IMPL_H
#include <pthread.h>
#include "doc.h"
#include "sink.h"
#include "url.h"

#define SINK_QUEUE_BYTES (4u << 20) /* default bound */

struct sink_ops {
	const char *scheme;
	/* Makes the sink; sink.c has filled nothing yet: call sink_init(). */
	int (*open)(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
		    struct err *err);
	/* The inbox has become non-empty. Called by the submitting thread without the lock; must not
	 * block. NULL: documents are counted and thrown away. */
	void (*wake)(struct sink *s);
	/* The epoch has moved: ends the connections of the old one. NULL: it cannot. */
	void (*restart)(struct sink *s);
	/* Delivers what it can until deadline_ns (CLOCK_MONOTONIC), releases and frees everything. */
	void (*close)(struct sink *s, uint64_t deadline_ns);
};

extern const struct sink_ops sink_null, sink_stdout, sink_file, sink_tcp, sink_unix, sink_tcp_listen, sink_unix_listen,
	sink_vsock_listen;

struct sink {
	const struct sink_ops *ops;
	pthread_mutex_t lock; /* everything below */
	pthread_cond_t changed; /* a document was taken out of the inbox or ended, or the state moved */
	size_t bound; /* bytes that may wait, overhead included */
	size_t held; /* bytes that wait: inbox, and for single peers what is being sent */
	struct doc_list inbox;
	struct doc_pool *pool;
	struct doc *preamble; /* NULL = none */
	uint32_t epoch; /* +1 with each sink_restart */
	struct sink_stats stats;
};

/* bound 0 = the default. 0 or -ENOMEM. */
int sink_init(struct sink *s, const struct sink_ops *ops, size_t bound);
/* Releases what sink_init and submit took: the last step of ops->close. */
void sink_fini(struct sink *s);

/* Takes the whole inbox; its documents still count as waiting. */
struct doc_list sink_take(struct sink *s);
/* A reference to the preamble, or NULL, and its epoch. */
struct doc *sink_preamble(struct sink *s, uint32_t *ret_epoch);
/* End of a document of a single-peer sink: gives its room back, counts it, drops the reference. */
void sink_done(struct sink *s, struct doc *d, bool delivered);
/* Sets up and the state line. */
void sink_state(struct sink *s, bool up, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Waits on `changed` with the lock held. false when the deadline has passed. */
bool sink_wait(struct sink *s, uint64_t deadline_ns);

#endif
