/* SPDX-License-Identifier: Apache-2.0 */
#include "doc.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Documents kept for reuse: enough for an output that is a few documents behind, without keeping the memory of
 * a burst. */
#define POOL_DOCS 32
#define POOL_BYTES (2u << 20)
#define ROOMY 2048 /* a document may have memory for twice its bytes and twice these */

struct doc_pool {
	pthread_mutex_t lock;
	struct doc *free;
	unsigned n_free;
	size_t free_bytes;
	unsigned out; /* documents in use */
	bool closed;
};

struct doc_pool *doc_pool_new(void)
{
	struct doc_pool *p = calloc(1, sizeof(*p));

	if (p)
		pthread_mutex_init(&p->lock, NULL);
	return p;
}

static void doc_free(struct doc *d)
{
	free(d->data);
	free(d);
}

static void pool_destroy(struct doc_pool *p)
{
	while (p->free) {
		struct doc *d = p->free;

		p->free = d->next;
		doc_free(d);
	}
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void doc_pool_close(struct doc_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->closed = true;
	bool last = p->out == 0;
	pthread_mutex_unlock(&p->lock);
	if (last)
		pool_destroy(p);
}

/* Takes the first free document that is large enough; else the first of all, which is then replaced by a larger
 * one. */
static struct doc *pool_pick(struct doc_pool *p, size_t len)
{
	struct doc **best = &p->free;

	for (struct doc **at = &p->free; *at; at = &(*at)->next)
		if ((*at)->cap >= len) {
			best = at;
			break;
		}
	struct doc *d = *best;
	if (d) {
		*best = d->next;
		p->n_free--;
		p->free_bytes -= d->cap;
	}
	return d;
}

/* Room for len bytes, and a quarter more, because the next documents have about the same length. False = no memory. */
static bool doc_grow(struct doc *d, size_t len)
{
	size_t cap = len + len / 4 + 256;

	free(d->data);
	d->data = cap < len ? NULL : malloc(cap);
	d->cap = d->data ? cap : 0;
	return d->data;
}

/* A document with room for len bytes and one reference. */
static struct doc *doc_get(struct doc_pool *p, size_t len)
{
	pthread_mutex_lock(&p->lock);
	struct doc *d = pool_pick(p, len);
	p->out++;
	pthread_mutex_unlock(&p->lock);

	if (!d)
		d = calloc(1, sizeof(*d));
	if (!d || (d->cap < len && !doc_grow(d, len))) {
		free(d);
		pthread_mutex_lock(&p->lock);
		p->out--;
		pthread_mutex_unlock(&p->lock);
		return NULL;
	}
	d->next = NULL;
	d->pool = p;
	atomic_init(&d->refs, 1);
	d->epoch = 0;
	d->channel = d->energy_mj = 0;
	d->real_ns = 0;
	d->len = len;
	return d;
}

struct doc *doc_new(struct doc_pool *p, const void *data, size_t len)
{
	struct doc *d = doc_get(p, len);

	if (d)
		memcpy(d->data, data, len);
	return d;
}

/* A document without a pool takes the memory with it. */
static struct doc *doc_take_all(struct buf *b)
{
	struct doc *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	atomic_init(&d->refs, 1);
	d->len = b->len;
	d->cap = b->cap;
	d->data = b->data;
	b->data = NULL;
	b->cap = 0;
	buf_reset(b);
	return d;
}

/* The document gets the memory of b, and b that of the document. */
static struct doc *doc_swap(struct doc_pool *p, struct buf *b)
{
	struct doc *d = doc_get(p, b->len);
	uint8_t *data;
	size_t cap;

	if (!d)
		return NULL;
	data = d->data;
	cap = d->cap;
	d->data = b->data;
	d->cap = b->cap;
	b->data = data;
	b->cap = cap;
	buf_reset(b);
	return d;
}

struct doc *doc_take(struct doc_pool *p, struct buf *b)
{
	struct doc *d;

	if (!p)
		return doc_take_all(b);
	if (b->cap / 2 <= b->len + ROOMY)
		return doc_swap(p, b);
	d = doc_new(p, b->data, b->len);
	if (d)
		buf_reset(b);
	return d;
}

struct doc *doc_ref(struct doc *d)
{
	atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
	return d;
}

void doc_unref(struct doc *d)
{
	if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
		return;

	struct doc_pool *p = d->pool;
	if (!p) {
		doc_free(d);
		return;
	}
	pthread_mutex_lock(&p->lock);
	bool keep = !p->closed && p->n_free < POOL_DOCS && (p->n_free < 2 || p->free_bytes + d->cap <= POOL_BYTES);
	if (keep) {
		d->next = p->free;
		p->free = d;
		p->n_free++;
		p->free_bytes += d->cap;
	}
	bool last = --p->out == 0 && p->closed;
	pthread_mutex_unlock(&p->lock);
	if (!keep)
		doc_free(d);
	if (last)
		pool_destroy(p);
}

void doc_list_add(struct doc_list *l, struct doc *d)
{
	d->next = NULL;
	if (l->last)
		l->last->next = d;
	else
		l->first = d;
	l->last = d;
	l->n++;
}

struct doc *doc_list_take(struct doc_list *l)
{
	struct doc *d = l->first;

	if (!d)
		return NULL;
	l->first = d->next;
	if (!l->first)
		l->last = NULL;
	l->n--;
	d->next = NULL;
	return d;
}

int doc_ring_add(struct doc_ring *r, struct doc *d)
{
	if (r->n == r->cap) {
		unsigned cap = r->cap ? r->cap * 2 : 8;
		struct doc **v = malloc(cap * sizeof(struct doc *));

		if (!v)
			return -ENOMEM;
		for (unsigned i = 0; i < r->n; i++)
			v[i] = r->v[(r->head + i) % r->cap];
		free(r->v);
		r->v = v;
		r->head = 0;
		r->cap = cap;
	}
	r->v[(r->head + r->n++) % r->cap] = d;
	r->bytes += doc_charge(d->len);
	return 0;
}

struct doc *doc_ring_first(const struct doc_ring *r)
{
	return r->n ? r->v[r->head] : NULL;
}

struct doc *doc_ring_take(struct doc_ring *r)
{
	struct doc *d = doc_ring_first(r);

	if (d) {
		r->head = (r->head + 1) % r->cap;
		r->n--;
		r->bytes -= doc_charge(d->len);
	}
	return d;
}

void doc_ring_free(struct doc_ring *r)
{
	free(r->v);
	memset(r, 0, sizeof(*r));
}
