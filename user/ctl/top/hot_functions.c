/* SPDX-License-Identifier: Apache-2.0 */
#include "hot_functions.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/hash.h"
#include "model/schema.h"

#define KEPT 8 /* answers */

struct function {
	size_t name; /* offset in text */
	uint64_t uj, samples;
	unsigned quality;
};

struct answer {
	int64_t begin_ns; /* CLOCK_REALTIME */
	uint64_t duration_ns;
	struct function *v;
	uint32_t n, cap;
	struct buf text;
	struct hash by_name;
};

struct hot_functions {
	struct answer kept[KEPT]; /* the newest last */
	unsigned n;
	struct hot_function *list;
	unsigned n_list;
	uint64_t uj, samples, span_ns;
};

static void answer_free(struct answer *a)
{
	free(a->v);
	buf_free(&a->text);
	hash_free(&a->by_name);
	*a = (struct answer){ 0 };
}

static const char *name_of(const struct answer *a, const struct function *f)
{
	return (const char *)a->text.data + f->name;
}

static struct function *find(const struct answer *a, const char *name)
{
	for (struct hash_walk w = hash_walk(&a->by_name, hash_text(name)); hash_step(&w);)
		if (strcmp(name_of(a, &a->v[w.at]), name) == 0)
			return &a->v[w.at];
	return NULL;
}

static struct function *find_or_add(struct answer *a, const char *name)
{
	struct function *f = find(a, name);

	if (f)
		return f;
	if (ARRAY_ROOM(a->v, a->cap, a->n + 1) || hash_reserve(&a->by_name, a->n + 1))
		return NULL;
	a->v[a->n] = (struct function){ .name = a->text.len };
	buf_add(&a->text, name, strlen(name) + 1);
	if (a->text.failed)
		return NULL;
	hash_add(&a->by_name, hash_text(name), a->n);
	return &a->v[a->n++];
}

static int take_sample(void *arg, const struct pprof_sample *s)
{
	struct function *f = find_or_add(arg, s->n ? s->frame[0] : "[unknown]");

	if (!f)
		return -ENOMEM;
	f->uj += s->energy_uj;
	f->samples += s->samples;
	f->quality |= quality_named(s->quality);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct hot_function *x = a, *y = b;

	if (x->uj != y->uj)
		return x->uj < y->uj ? 1 : -1;
	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* What the answer is compared with. NULL = all of it counts. */
static const struct answer *base_of(const struct hot_functions *h, const struct answer *now)
{
	for (unsigned i = h->n; i-- > 0;)
		if (h->kept[i].begin_ns == now->begin_ns && h->kept[i].duration_ns + HOT_SPAN_NS <= now->duration_ns)
			return &h->kept[i];
	return NULL;
}

static int make_list(struct hot_functions *h, const struct answer *now)
{
	const struct answer *base = base_of(h, now);
	struct hot_function *list = malloc((now->n + 1) * sizeof(*list));

	if (!list)
		return -ENOMEM;
	free(h->list);
	h->list = list;
	h->n_list = 0;
	h->uj = h->samples = 0;
	h->span_ns = now->duration_ns - (base ? base->duration_ns : 0);
	for (uint32_t i = 0; i < now->n; i++) {
		const struct function *f = &now->v[i], *was = base ? find(base, name_of(now, f)) : NULL;
		struct hot_function *to = &list[h->n_list];

		*to = (struct hot_function){ name_of(now, f), f->uj, f->samples, f->quality };
		if (was) { /* a remainder may have gone to another function meanwhile */
			to->uj -= was->uj < to->uj ? was->uj : to->uj;
			to->samples -= was->samples < to->samples ? was->samples : to->samples;
		}
		h->uj += to->uj;
		h->samples += to->samples;
		h->n_list += to->uj || to->samples;
	}
	qsort(list, h->n_list, sizeof(*list), compare);
	return 0;
}

int hot_functions_take(struct hot_functions *h, const struct pprof_sum *answer)
{
	struct answer now = { .begin_ns = pprof_sum_time_ns(answer), .duration_ns = pprof_sum_duration_ns(answer) };
	int rc = pprof_sum_each(answer, take_sample, &now);

	if (!rc)
		rc = make_list(h, &now);
	if (rc) {
		answer_free(&now);
		return rc;
	}
	if (h->n == KEPT) {
		answer_free(&h->kept[0]);
		memmove(h->kept, h->kept + 1, --h->n * sizeof(h->kept[0]));
	}
	h->kept[h->n++] = now;
	return 0;
}

struct hot_list hot_functions_list(const struct hot_functions *h)
{
	return (struct hot_list){ h->list, h->n_list, h->uj, h->samples, h->span_ns };
}

struct hot_functions *hot_functions_new(void)
{
	return calloc(1, sizeof(struct hot_functions));
}

void hot_functions_free(struct hot_functions *h)
{
	if (!h)
		return;
	for (unsigned i = 0; i < h->n; i++)
		answer_free(&h->kept[i]);
	free(h->list);
	free(h);
}
