/* SPDX-License-Identifier: Apache-2.0 */
#include "row_shares.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "formula/split.h"

struct share_row *row_shares_row(struct row_shares *r, const char *name, uint64_t id)
{
	const uint64_t key = hash_text(name);
	struct share_row row = { .id = id };

	for (struct hash_walk w = hash_walk(&r->by_name, key); hash_step(&w);)
		if (strcmp(r->rows[w.at].name, name) == 0) {
			r->rows[w.at].id = id; /* a new cgroup may have the name of one that ended */
			return &r->rows[w.at];
		}
	if (r->n_rows >= ROW_SHARES_MAX ||
	    !room_add(r->room, ROOM_ROWS,
		      sizeof(row) + 2 * sizeof(struct hash_place) + room_block(strlen(name) + 1) +
			      room_block((4 * (size_t)r->n_domains + 1) * sizeof(uint64_t))) ||
	    ARRAY_ROOM(r->rows, r->rows_cap, r->n_rows + 1) || hash_reserve(&r->by_name, r->n_rows + 1))
		return NULL;
	row.kind = name[0] == '/' ? SHARE_CGROUP : strcmp(name, "kernel") == 0 ? SHARE_KERNEL : SHARE_OTHER;
	row.name = strdup(name);
	row.sum_uj = calloc(4 * (size_t)r->n_domains + 1, sizeof(uint64_t));
	if (!row.name || !row.sum_uj) {
		free(row.name);
		free(row.sum_uj);
		return NULL;
	}
	row.none_uj = row.sum_uj + r->n_domains;
	row.step_uj = row.none_uj + r->n_domains;
	row.last_uj = row.step_uj + r->n_domains;
	hash_add(&r->by_name, key, r->n_rows);
	r->rows[r->n_rows] = row;
	return &r->rows[r->n_rows++];
}

void row_shares_total(struct share_row *row, unsigned domain, uint64_t total_uj, bool count)
{
	if (count)
		row->step_uj[domain] += total_uj >= row->last_uj[domain] ? total_uj - row->last_uj[domain] : total_uj;
	row->last_uj[domain] = total_uj;
}

/* Room for the values of all stacks, zeroed. */
static int reserve(struct row_shares *r, uint32_t n)
{
	const size_t had = (size_t)r->stacks_cap * r->n_domains, values = (size_t)n * r->n_domains;

	if (n <= r->stacks_cap)
		return 0;
	if (ARRAY_RESIZE(r->uj, values) || ARRAY_RESIZE(r->carry, values) || ARRAY_RESIZE(r->row_of, n))
		return -ENOMEM;
	if (values > had) {
		memset(r->uj + had, 0, (values - had) * sizeof(*r->uj));
		memset(r->carry + had, 0, (values - had) * sizeof(*r->carry));
	}
	r->stacks_cap = n;
	return 0;
}

/* Kernel threads of the root are in a row of their own. */
static uint32_t find_row(const struct row_shares *r, const struct hash *by_id, const struct stack *s, uint32_t kernel)
{
	const uint32_t at = hash_find(by_id, s->cgroup);

	if (at != HASH_NONE && s->kernel_thread && kernel != HASH_NONE && strcmp(r->rows[at].name, "/") == 0)
		return kernel;
	return at;
}

#define WEIGHT_MOST 0x1p40 /* that of the heaviest stack of a row: what weighs less than 2^-40 of it gets nothing */

struct work {
	struct hash by_id;
	uint32_t *head, *next, *member; /* stacks by row */
	double *joules;
	uint64_t *weight, *part;
	int64_t *carry;
};

static void work_free(struct work *w)
{
	hash_free(&w->by_id);
	free(w->head);
	free(w->next);
	free(w->member);
	free(w->joules);
	free(w->weight);
	free(w->part);
	free(w->carry);
}

static int work_begin(struct work *w, const struct row_shares *r, uint32_t n)
{
	*w = (struct work){ .head = malloc((r->n_rows + 1) * sizeof(uint32_t)),
			    .next = malloc((n + 1) * sizeof(uint32_t)),
			    .member = malloc((n + 1) * sizeof(uint32_t)),
			    .joules = malloc((n + 1) * sizeof(double)),
			    .weight = malloc((n + 1) * sizeof(uint64_t)),
			    .part = malloc((n + 1) * sizeof(uint64_t)),
			    .carry = malloc((n + 1) * sizeof(int64_t)) };
	if (w->head && w->next && w->member && w->joules && w->weight && w->part && w->carry &&
	    hash_reserve(&w->by_id, r->n_rows + 1) == 0)
		return 0;
	work_free(w);
	return -ENOMEM;
}

static void sort_by_row(struct row_shares *r, struct stacks *stacks, struct work *w)
{
	uint32_t kernel = HASH_NONE;

	for (uint32_t i = 0; i < r->n_rows; i++) {
		w->head[i] = HASH_NONE;
		kernel = r->rows[i].kind == SHARE_KERNEL ? i : kernel;
		if (r->rows[i].kind == SHARE_CGROUP)
			hash_add(&w->by_id, r->rows[i].id, i);
	}
	for (uint32_t i = 0; i < stacks->n; i++) {
		const uint32_t at = find_row(r, &w->by_id, &stacks->v[i], kernel);

		if (!stacks->v[i].fresh_samples)
			continue;
		r->row_of[i] = at;
		if (at == HASH_NONE) {
			r->without_row += stacks->v[i].fresh_samples;
			continue;
		}
		w->next[i] = w->head[at];
		w->head[at] = i;
	}
}

int row_shares_price(struct row_shares *r, unsigned domain, const double joules[STACK_COLUMNS])
{
	if (!r->price)
		r->price = calloc(r->n_domains + 1, sizeof(*r->price));
	if (!r->price)
		return -ENOMEM;
	for (unsigned c = 0; c < STACK_COLUMNS; c++)
		r->price[domain][c] = isfinite(joules[c]) && joules[c] > 0 ? joules[c] : 0;
	return 0;
}

/* The weights of n members in a domain. */
static void weigh(const struct row_shares *r, const struct stacks *stacks, struct work *w, unsigned n, unsigned domain)
{
	static const double by_time[STACK_COLUMNS] = { [STACK_TIME] = 1 };
	const double *price = by_time;
	double most = 0;

	for (unsigned c = 0; c < STACK_COLUMNS && r->price; c++)
		price = r->price[domain][c] > 0 ? r->price[domain] : price;
	for (unsigned k = 0; k < n; k++) {
		w->joules[k] = 0;
		for (unsigned c = 0; c < STACK_COLUMNS; c++)
			w->joules[k] += price[c] * (double)stacks->v[w->member[k]].fresh[c];
		most = fmax(most, w->joules[k]);
	}
	for (unsigned k = 0; k < n; k++) /* a sum that is no number weighs nothing */
		w->weight[k] = isfinite(most) && most > 0 ? (uint64_t)(w->joules[k] / most * WEIGHT_MOST) : 0;
}

static void split_row(struct row_shares *r, const struct stacks *stacks, struct work *w, uint32_t at)
{
	struct share_row *row = &r->rows[at];
	unsigned n = 0;

	for (uint32_t i = w->head[at]; i != HASH_NONE; i = w->next[i])
		w->member[n++] = i;
	for (unsigned d = 0; d < r->n_domains; d++) {
		const uint64_t amount = row->step_uj[d];

		row->sum_uj[d] += amount;
		row->step_uj[d] = 0;
		weigh(r, stacks, w, n, d);
		for (unsigned k = 0; k < n; k++)
			w->carry[k] = r->carry[(size_t)w->member[k] * r->n_domains + d];
		if (!split(amount, w->weight, w->carry, w->part, n)) {
			row->none_uj[d] += amount;
			continue;
		}
		for (unsigned k = 0; k < n; k++) {
			r->uj[(size_t)w->member[k] * r->n_domains + d] += w->part[k];
			r->carry[(size_t)w->member[k] * r->n_domains + d] = w->carry[k];
		}
	}
}

int row_shares_split(struct row_shares *r, struct stacks *stacks)
{
	const uint32_t had = r->stacks_cap;
	struct work w;

	if (reserve(r, stacks->n) || work_begin(&w, r, stacks->n))
		return -ENOMEM;
	for (uint32_t i = had; i < stacks->n; i++)
		r->row_of[i] = HASH_NONE;
	sort_by_row(r, stacks, &w);
	for (uint32_t i = 0; i < r->n_rows; i++)
		split_row(r, stacks, &w, i);
	for (uint32_t i = 0; i < stacks->n; i++) {
		stacks->v[i].fresh_samples = 0;
		memset(stacks->v[i].fresh, 0, sizeof(stacks->v[i].fresh));
	}
	work_free(&w);
	return 0;
}

void row_shares_free(struct row_shares *r)
{
	for (uint32_t i = 0; i < r->n_rows; i++) {
		free(r->rows[i].name);
		free(r->rows[i].sum_uj);
	}
	free(r->rows);
	free(r->uj);
	free(r->carry);
	free(r->row_of);
	free(r->price);
	hash_free(&r->by_name);
	room_set(r->room, ROOM_ROWS, 0);
	*r = (struct row_shares){ .n_domains = r->n_domains, .room = r->room };
}
