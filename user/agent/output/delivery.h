/* SPDX-License-Identifier: Apache-2.0 */
/* Documents for a server that may be away: a queue in memory, a spool on disk, and two threads. One thread writes new
 * documents to the spool, the other delivers them in order, until each succeeds or is given up. All outputs over HTTP
 * are made of it. One thread submits; the main thread opens, closes and inspects. */
#ifndef JD_DELIVERY_H
#define JD_DELIVERY_H
#include <pthread.h>
#include <stdatomic.h>
#include "base/buf.h"
#include "base/err.h"
#include "sink/doc.h"
#include "sink/sink.h"
#include "store/spool/spool.h"

#define DELIVERY_PATH_MAX 1024

struct delivery_figures {
	uint64_t delivered, delivered_bytes;
	uint64_t dropped_queue; /* no room in memory: the disk is too slow */
	uint64_t dropped_mj; /* energy of the documents dropped here; the spool counts its own */
	uint64_t refused; /* by the server */
	uint64_t withheld; /* in the spool, of cgroups no longer selected */
	uint64_t unfit; /* could not be encoded, or unreadable in the spool */
	uint64_t refused_items; /* parts of documents that were taken without them */
	char refused_item[420]; /* the last one, and why */
	uint64_t rejected; /* items that the server did not take of documents that it took */
	char answer[320]; /* what it said last of a document that it took; "" = nothing */
	uint64_t failures; /* failed tries in a row */
	char state[512];
};

struct delivery {
	char to[128]; /* the place, for messages */
	const char *what; /* literal, plural: what is delivered */
	const char *items; /* literal, plural: what a document has many of, where a server may refuse one */
	const char *server; /* literal: who takes it: "the collector" */
	size_t queue_bytes;
	bool rare; /* documents are large and far apart: no memory is kept for the next one */
	/* Tries to deliver one record. True: it needs no further try. False: it has paused (delivery_back_off), and gets
	 * the record again. On the sender's thread. */
	bool (*deliver)(void *arg, const struct buf *record, const struct spool_mark *mark);
	void *arg;
	/* Appends what is kept of a document, on the writer's thread. 0, or a negative errno: the document is kept as it
	 * is. NULL = it always is. */
	int (*keep)(void *arg, const void *document, size_t n, struct buf *out);
	struct spool *spool;
	pthread_t writer, sender;
	bool writing, sending; /* the threads run */
	atomic_bool stop;
	uint64_t began_ns; /* CLOCK_MONOTONIC, of delivery_begin */
	uint64_t pause_ns; /* sender's thread: the last pause between two tries, 0 = the last one succeeded */
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t queued, arrived; /* queued: for the writer; arrived: for the sender */
	struct doc_pool *pool; /* NULL: rare, or there was no memory for it */
	struct doc_list waiting;
	size_t held;
	uint64_t spooled; /* appended since the start; the sender watches it */
	struct delivery_figures figures;
	struct delivery_figures said; /* main thread */
	struct spool_stats said_spool;
	uint64_t said_mj;
};

/* Fills the members that stay: to, what, server, queue_bytes (0 = 4 MiB), rare, deliver and arg are the caller's to set
 * before. Documents may be submitted from then on. */
void delivery_init(struct delivery *d);
/* Opens the spool and starts the threads. thread: name of the sender. 0 or negative errno with err. */
int delivery_begin(struct delivery *d, const struct spool_options *o, const char *thread, struct err *err);
/* The path of something that is kept for one place: STATE-DIR/FORMAT-NUMBER.SUFFIX, where the number stands for to and
 * name. state_dir NULL = the working directory. */
void delivery_path(char ret[DELIVERY_PATH_MAX], const char *state_dir, const char *format, const char *to,
		   const char *name, const char *suffix);
/* Queues what the buffer holds, which is empty afterwards (doc_take). energy_uj: what was measured in its interval, which is said when
 * it is dropped; 0 = unknown. 0; -ENOBUFS: dropped and counted; -ENOMEM: counted as unfit, and still in the buffer. */
int delivery_submit(struct delivery *d, struct buf *document, uint64_t energy_uj);
/* Ends the threads. All that waited is then on disk, or stays in memory and is lost. */
void delivery_end(struct delivery *d);
/* After delivery_end. */
void delivery_free(struct delivery *d);

/* Documents that wait in memory only. Those on disk outlive the program and do not count. */
uint32_t delivery_waiting(struct delivery *d);
/* Statistics as of any output; queued = as delivery_waiting. *ret_spooled = documents that wait on disk. */
void delivery_stats(struct delivery *d, struct sink_stats *ret, uint64_t *ret_spooled);
/* Logs what has changed since the last call: the state, and documents dropped. */
void delivery_say(struct delivery *d);

/* For deliver, on the sender's thread. */

/* The next pause between two tries: twice as long as the last and between these two, with jitter. */
uint64_t delivery_next_pause(struct delivery *d, uint64_t at_least_ns, uint64_t at_most_ns);
/* Makes that pause, or waits until the program ends. */
void delivery_back_off(struct delivery *d, uint64_t at_least_ns, uint64_t at_most_ns);
/* Pauses for that time, or until the program ends. */
void delivery_pause(struct delivery *d, uint64_t ns);
/* The mean time between two documents since delivery_begin. */
uint64_t delivery_period_ns(struct delivery *d);
void delivery_set_state(struct delivery *d, bool failed, const char *text);
void delivery_count(struct delivery *d, uint64_t *figure, uint64_t n);

#endif
