/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic_hot.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdlib.h>
#include <block.h> /* include/ */
#include "source/bpf_load.h"

#define PLACES JD_BLOCK_HOT
#define WORDS (sizeof(struct jd_block_row) / sizeof(uint64_t))
#define IDLE_READS 60 /* readings without work after which a row is taken back */
#define REST_READS 60 /* readings that a row rests before it is another cgroup's */

_Static_assert((PLACES & (PLACES - 1)) == 0, "the low bits of an id are a place");

/* A place is of one cgroup on all CPUs. One that was taken back rests and is still read: a program that found the id there
 * just before adds in the same microsecond, or when the virtual CPU that was held up there has come on. */
struct place {
	uint64_t id; /* JD_BLOCK_NO_ID: free */
	uint16_t idle; /* readings without work */
	uint16_t rest; /* readings until it is free; 0 = the cgroup has it */
	struct traffic seen;
};

struct traffic_hot {
	struct bpf_map *map;
	uint64_t *rows; /* n_cpus * PLACES * WORDS */
	unsigned n_cpus, first, n_values;
	unsigned at; /* of this reading */
	struct place places[PLACES];
};

static uint64_t *row_at(const struct traffic_hot *h, unsigned cpu, unsigned place)
{
	return h->rows + ((size_t)cpu * PLACES + place) * WORDS;
}

/* What the kernel's programs find there. */
static void show_id(struct traffic_hot *h, unsigned place, uint64_t id)
{
	for (unsigned cpu = 0; cpu < h->n_cpus; cpu++)
		__atomic_store_n(row_at(h, cpu, place), id, __ATOMIC_RELAXED);
}

static struct traffic sum(const struct traffic_hot *h, unsigned place)
{
	struct traffic t = { 0 };

	for (unsigned cpu = 0; cpu < h->n_cpus; cpu++)
		for (unsigned i = 0; i < h->n_values; i++)
			traffic_values(&t)[h->first + i] += __atomic_load_n(row_at(h, cpu, place) + 1 + i,
									    __ATOMIC_RELAXED);
	return t;
}

/* What came since the last call. */
static struct traffic take(struct traffic_hot *h, unsigned place)
{
	struct traffic now = sum(h, place), d = now;

	traffic_take_off(&d, &h->places[place].seen);
	h->places[place].seen = now;
	return d;
}

static void take_back(struct traffic_hot *h, unsigned place)
{
	show_id(h, place, JD_BLOCK_NO_ID);
	h->places[place].rest = REST_READS;
}

static void give(struct traffic_hot *h, unsigned place, uint64_t id)
{
	h->places[place].id = id;
	h->places[place].idle = h->places[place].rest = 0;
	show_id(h, place, id);
}

/* Counts a reading without work. */
static void grow_older(struct traffic_hot *h, unsigned place)
{
	struct place *p = &h->places[place];

	if (p->rest) {
		if (!--p->rest)
			p->id = JD_BLOCK_NO_ID;
	} else if (++p->idle >= IDLE_READS) {
		take_back(h, place);
	}
}

void traffic_hot_begin(struct traffic_hot *h)
{
	h->at = 0;
}

bool traffic_hot_next(struct traffic_hot *h, uint64_t *ret_id, struct traffic *ret_d)
{
	while (h->at < PLACES) {
		unsigned place = h->at++;
		struct place *p = &h->places[place];
		struct traffic d;

		if (p->id == JD_BLOCK_NO_ID)
			continue;
		d = take(h, place);
		if (traffic_any(&d, h->first, h->n_values)) {
			p->idle = 0;
			*ret_id = p->id;
			*ret_d = d;
			return true;
		}
		grow_older(h, place);
	}
	return false;
}

void traffic_hot_offer(struct traffic_hot *h, uint64_t id)
{
	unsigned own = id & (PLACES - 1);

	for (unsigned i = 0; i < 2; i++)
		if (h->places[own ^ i].id == id) {
			if (h->places[own ^ i].rest)
				give(h, own ^ i, id);
			return;
		}
	for (unsigned i = 0; i < 2; i++)
		if (h->places[own ^ i].id == JD_BLOCK_NO_ID) {
			give(h, own ^ i, id);
			return;
		}
}

void traffic_hot_forget(struct traffic_hot *h, uint64_t id, struct traffic *ret_d)
{
	unsigned own = id & (PLACES - 1);

	*ret_d = (struct traffic){ 0 };
	for (unsigned i = 0; i < 2; i++)
		if (h->places[own ^ i].id == id && !h->places[own ^ i].rest) {
			*ret_d = take(h, own ^ i);
			take_back(h, own ^ i);
		}
}

int traffic_hot_open(struct bpf_map *map, unsigned n_cpus, unsigned first, unsigned n, struct traffic_hot **ret)
{
	struct traffic_hot *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -ENOMEM;
	*h = (struct traffic_hot){ .map = map, .n_cpus = n_cpus, .first = first, .n_values = n };
	for (unsigned i = 0; i < PLACES; i++)
		h->places[i].id = JD_BLOCK_NO_ID;
	rc = bpf_map__set_max_entries(map, n_cpus);
	if (rc) {
		free(h);
		return rc;
	}
	*ret = h;
	return 0;
}

int traffic_hot_loaded(struct traffic_hot *h)
{
	int rc = 0;

	h->rows = bpf_map_memory(h->map, true, &rc);
	for (unsigned i = 0; h->rows && i < PLACES; i++)
		show_id(h, i, JD_BLOCK_NO_ID);
	return rc;
}

void traffic_hot_close(struct traffic_hot *h)
{
	if (!h)
		return;
	bpf_map_release(h->rows, h->map);
	free(h);
}
