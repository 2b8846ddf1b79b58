/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that wait to be sent. They are reference-counted, so that many clients share one copy of the bytes,
 * and come from a pool, so that steady state allocates nothing. */
#ifndef JD_SINK_DOC_H
#define JD_SINK_DOC_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"

struct doc {
	struct doc *next; /* next in a doc_list or in the pool: one owner at a time */
	struct doc_pool *pool;
	atomic_uint refs;
	uint32_t epoch; /* epoch of the preamble that explains it */
	uint32_t channel; /* channel of the clients it is for, 0 = all */
	uint32_t energy_mj; /* measured in its interval, 0 = not known */
	int64_t real_ns; /* when it was made, 0 = not known */
	size_t len, cap;
	uint8_t *data;
};

/* Bytes that a waiting document counts for. The struct counts too, so that many empty documents stay within the
 * bound. */
static inline size_t doc_charge(size_t len)
{
	return len + sizeof(struct doc);
}

struct doc_pool;

struct doc_pool *doc_pool_new(void);
/* Documents still in use keep the pool alive until they are released. NULL accepted. */
void doc_pool_close(struct doc_pool *p);
/* Copies data into a document with one reference. NULL when out of memory. Any thread. */
struct doc *doc_new(struct doc_pool *p, const void *data, size_t len);
/* Makes a document of the bytes of b without a copy; of a buffer that is mostly empty with one, so that what waits takes about as much
 * memory as it is charged for. b is empty afterwards, with memory for as many bytes. p NULL: b is without memory, and the document is
 * not kept for reuse. NULL when out of memory: b is as it was. */
struct doc *doc_take(struct doc_pool *p, struct buf *b);
struct doc *doc_ref(struct doc *d);
void doc_unref(struct doc *d); /* any thread; NULL accepted */

/* A first-in, first-out list, linked by doc.next. */
struct doc_list {
	struct doc *first, *last;
	uint32_t n;
};

void doc_list_add(struct doc_list *l, struct doc *d);
struct doc *doc_list_take(struct doc_list *l); /* NULL when empty */

/* The same for documents that are in several queues at once: a ring of references. */
struct doc_ring {
	struct doc **v;
	unsigned head, n, cap;
	size_t bytes; /* sum of doc_charge */
};

int doc_ring_add(struct doc_ring *r, struct doc *d); /* takes the reference; 0 or -ENOMEM */
struct doc *doc_ring_first(const struct doc_ring *r); /* NULL when empty */
struct doc *doc_ring_take(struct doc_ring *r);
void doc_ring_free(struct doc_ring *r); /* take all references out before */

#endif
