/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and cells are dense vectors with free lists, so that a consumer can keep its copies by plain index. cell_of
 * finds a cell in one step and keeps each row's list in CPU order: the snapshot needs no sorting. Dropped rows wait in
 * a list until the slowest consumer has seen them. */
#include "base/array.h"
#include "base/heap.h"
#include "reading.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cgroup.h"
#include "fair.h"

#define NONE UINT32_MAX
#define DROPPED_ROOM (READING_MAX_DROPPED - READING_MAX_DROPPED / 8) /* left by a choice */
#define MAX_VECTOR (1u << 28)

const char *row_kind_name(enum row_kind k)
{
	static const char *const names[] = {
		[ROW_IDLE] = "idle",   [ROW_KERNEL] = "kernel", [ROW_IRQ_STEAL] = "irq+steal",
		[ROW_OTHER] = "other", [ROW_CGROUP] = "cgroup", [ROW_SUPPLY] = "supply",
		[ROW_FANS] = "fans",   [ROW_DISK] = "disk",     [ROW_NETWORK] = "network",
	};

	return (unsigned)k < sizeof(names) / sizeof(names[0]) ? names[k] : "unknown";
}

uint64_t reading_domain_uj(const struct reading_domain *d)
{
	if (!d->uj_den)
		return 0;
	return (uint64_t)((unsigned __int128)d->units * d->uj_num / d->uj_den);
}

uint64_t reading_domain_q32(const struct reading_domain *d)
{
	unsigned __int128 uj = (unsigned __int128)d->units * d->uj_num;
	unsigned __int128 den = (unsigned __int128)d->uj_den * 1000000u;

	if (!den)
		return 0;
	/* Whole joules and the remainder are shifted apart: the remainder is below 2^84 and still has room for 32 bits. */
	return ((uint64_t)(uj / den) << 32) + (uint64_t)(((uj % den) << 32) / den);
}

/* Grows the rows and their index together; new entries are zeroed. */
static int grow_rows(struct reading *r)
{
	uint32_t cap = array_step(r->cap_rows + 1);
	size_t cpus = r->schema->n_cpus;

	if (cap > MAX_VECTOR || ARRAY_RESIZE(r->rows, cap) || ARRAY_RESIZE(r->row_changed, cap) ||
	    ARRAY_RESIZE(r->cell_of, cap * cpus + 1))
		return -ENOMEM;
	memset(r->rows + r->cap_rows, 0, (cap - r->cap_rows) * sizeof(*r->rows));
	memset(r->row_changed + r->cap_rows, 0, (cap - r->cap_rows) * sizeof(*r->row_changed));
	memset(r->cell_of + r->cap_rows * cpus, 0, ((cap - r->cap_rows) * cpus + 1) * sizeof(*r->cell_of));
	r->cap_rows = cap;
	return 0;
}

/* One of the vectors of cells. *vector: its address. */
static bool grow_vector(const struct reading *r, void *vector, uint32_t to, size_t size)
{
	void *p = heap_grow_lines(*(void **)vector, r->cap_cells * size, to * size);

	if (p)
		*(void **)vector = p;
	return p != NULL;
}

static int grow_cells(struct reading *r)
{
	const uint32_t to = r->cap_cells < MAX_VECTOR ? array_step(r->cap_cells + 1) : 0;

	if (!to || !grow_vector(r, &r->heads, to, sizeof(*r->heads)) ||
	    !grow_vector(r, &r->ahead_ns, to, sizeof(*r->ahead_ns)) ||
	    (r->rests && !grow_vector(r, &r->rests, to, sizeof(*r->rests))) ||
	    !grow_vector(r, &r->cells, to, sizeof(*r->cells)))
		return -ENOMEM;
	r->cap_cells = to;
	return 0;
}

struct reading_instants reading_instants(const struct reading *r)
{
	uint64_t first = UINT64_MAX, last = r->mono_ns;

	for (unsigned i = 0; i < r->schema->n_cpus; i++) {
		const struct reading_cpu *c = &r->cpus[i];

		if (!c->online || c->read_mono_ns < r->mono_ns)
			continue; /* it was read before, or never */
		first = c->read_mono_ns < first ? c->read_mono_ns : first;
		last = c->read_mono_ns > last ? c->read_mono_ns : last;
	}
	if (first == UINT64_MAX)
		return (struct reading_instants){ 0 };
	return (struct reading_instants){ last - r->mono_ns, last - first };
}

int reading_init(struct reading *r, struct schema *schema)
{
	memset(r, 0, sizeof(*r));
	r->schema = schema;
	r->free_row = r->free_cell = r->dropped_first = r->dropped_last = NONE;
	r->cpus = calloc(schema->n_cpus + 1, sizeof(*r->cpus));
	r->viewers = calloc(1, sizeof(*r->viewers));
	if (!r->cpus || !r->viewers || grow_rows(r) || grow_cells(r)) {
		reading_free(r);
		return -ENOMEM;
	}
	for (unsigned k = 0; k < READING_SPECIAL_ROWS; k++) {
		r->rows[k].kind = (enum row_kind)k;
		r->rows[k].used = true;
		r->rows[k].first_cell = NONE;
	}
	r->n_rows = READING_SPECIAL_ROWS;
	return 0;
}

void reading_free(struct reading *r)
{
	if (!r)
		return;
	while (r->viewers && *r->viewers)
		reading_unview(*r->viewers);
	free(r->viewers);
	free(r->rows);
	free(r->row_changed);
	free(r->cell_of);
	free(r->cells);
	free(r->heads);
	free(r->ahead_ns);
	free(r->rests);
	free(r->cpus);
	free(r->uses);
	memset(r, 0, sizeof(*r));
}

void reading_view(const struct reading *r, struct reading_viewer *v)
{
	v->seen = r->number;
	if (v->prev || !r->viewers)
		return;
	v->next = *r->viewers;
	v->prev = r->viewers;
	if (v->next)
		v->next->prev = &v->next;
	*r->viewers = v;
}

void reading_unview(struct reading_viewer *v)
{
	if (!v->prev)
		return;
	*v->prev = v->next;
	if (v->next)
		v->next->prev = v->prev;
	v->next = NULL;
	v->prev = NULL;
}

static void free_row(struct reading *r, uint32_t row)
{
	struct reading_row *rr = &r->rows[row];

	for (uint32_t i = rr->first_cell, next; i != NONE; i = next) {
		struct cell_head *h = &r->heads[i];

		next = h->next_in_row;
		r->cell_of[(size_t)row * r->schema->n_cpus + h->cpu] = 0;
		h->used = false;
		h->next_in_row = r->free_cell;
		r->free_cell = i;
	}
	if (rr->cgroup)
		rr->cgroup->in_use = false;
	rr->cgroup = NULL;
	rr->used = rr->dropped = false;
	rr->first_cell = NONE;
	rr->next_dropped = r->free_row;
	r->free_row = row;
}

/* True when every consumer has taken a reading that includes the change of reading number `changed`. */
static bool seen_by_all(const struct reading *r, uint32_t changed)
{
	for (const struct reading_viewer *v = r->viewers ? *r->viewers : NULL; v; v = v->next)
		if ((int32_t)(v->seen - changed) < 0)
			return false;
	return true;
}

static void free_oldest(struct reading *r)
{
	uint32_t row = r->dropped_first;

	r->dropped_first = r->rows[row].next_dropped;
	if (r->dropped_first == NONE)
		r->dropped_last = NONE;
	r->n_dropped--;
	free_row(r, row);
}

unsigned reading_reap(struct reading *r)
{
	unsigned n = 0;

	while (r->dropped_first != NONE && seen_by_all(r, r->row_changed[r->dropped_first])) {
		free_oldest(r);
		n++;
	}
	return n;
}

/* Frees a dropped row. Consumers that have not seen its last counts get them with `other`. */
static void fold(struct reading *r, uint32_t row)
{
	for (struct reading_viewer *v = *r->viewers; v; v = v->next)
		v->absorb(v, r, row);
	r->losses.folded++;
	free_row(r, row);
}

/* Chooses the dropped rows that stay, and clears `dropped` of the others. */
static int choose_dropped(struct reading *r, struct fair *f)
{
	uint32_t age = 0;

	if (fair_reserve(f, r->n_dropped) != 0)
		return -ENOMEM;
	for (uint32_t i = r->dropped_first; i != NONE; i = r->rows[i].next_dropped)
		fair_add(f, r->rows[i].cgroup->path, ++age, i);
	fair_choose(f, DROPPED_ROOM);
	for (uint32_t i = 0; i < f->n; i++)
		r->rows[f->items[i].index].dropped = f->items[i].kept;
	return 0;
}

/* Folds dropped rows when too many wait for a slow consumer. Rows of the subtrees that have most go, many at once,
 * because choosing takes milliseconds. Without memory for the choice the oldest goes. */
static void fold_excess(struct reading *r)
{
	struct fair f = { 0 };
	uint32_t *at = &r->dropped_first;

	if (choose_dropped(r, &f) != 0)
		r->rows[r->dropped_first].dropped = false;
	fair_free(&f);
	r->dropped_last = NONE;
	while (*at != NONE) {
		uint32_t row = *at, next = r->rows[row].next_dropped;

		if (r->rows[row].dropped) {
			r->dropped_last = row;
			at = &r->rows[row].next_dropped;
			continue;
		}
		*at = next;
		r->n_dropped--;
		fold(r, row);
	}
}

void reading_drop_row(struct reading *r, uint32_t row)
{
	struct reading_row *rr = &r->rows[row];

	if (row < READING_SPECIAL_ROWS || row >= r->n_rows || !rr->used || rr->dropped)
		return;
	rr->dropped = true;
	r->row_changed[row] = r->number; /* in drop order the list is in order of row_changed, too */
	rr->next_dropped = NONE;
	if (r->dropped_last == NONE)
		r->dropped_first = row;
	else
		r->rows[r->dropped_last].next_dropped = row;
	r->dropped_last = row;
	r->n_dropped++;
	reading_reap(r);
	if (r->n_dropped > READING_MAX_DROPPED)
		fold_excess(r);
}

/* Takes a dropped row of the same cgroup out of the list; -1 when there is none. */
static int64_t revive(struct reading *r, const struct cgroup *cg)
{
	uint32_t before = NONE;

	for (uint32_t i = r->dropped_first; i != NONE; before = i, i = r->rows[i].next_dropped) {
		if (r->rows[i].cgroup != cg)
			continue;
		if (before == NONE)
			r->dropped_first = r->rows[i].next_dropped;
		else
			r->rows[before].next_dropped = r->rows[i].next_dropped;
		if (r->dropped_last == i)
			r->dropped_last = before;
		r->n_dropped--;
		r->rows[i].dropped = false;
		return i;
	}
	return -1;
}

/* Takes an unused entry for a new row. */
static int64_t take_row(struct reading *r, enum row_kind kind, struct cgroup *cg)
{
	struct reading_row *rr;
	uint32_t row, generation;

	if (r->free_row == NONE && r->n_rows == r->cap_rows && grow_rows(r))
		return -ENOMEM;
	row = r->free_row != NONE ? r->free_row : r->n_rows++;
	rr = &r->rows[row];
	if (row == r->free_row)
		r->free_row = rr->next_dropped;
	generation = rr->generation + 1;
	*rr = (struct reading_row){ .kind = kind,
				    .used = true,
				    .generation = generation,
				    .id = cg ? cg->id : 0,
				    .cgroup = cg,
				    .first_cell = NONE };
	r->row_changed[row] = r->number;
	return row;
}

int64_t reading_add_row(struct reading *r, struct cgroup *cg)
{
	int64_t row = cg->in_use ? revive(r, cg) : -1;

	if (row >= 0)
		return row;
	reading_reap(r);
	row = take_row(r, ROW_CGROUP, cg);
	cg->in_use |= row >= 0;
	return row;
}

int64_t reading_add_cause(struct reading *r, enum row_kind cause)
{
	for (uint32_t i = READING_SPECIAL_ROWS; i < r->n_rows; i++)
		if (r->rows[i].used && r->rows[i].kind == cause)
			return i;
	return take_row(r, cause, NULL);
}

/* Links cell i of (row, cpu) after the cell of the nearest lower CPU. */
static void link_cell(struct reading *r, uint32_t i)
{
	struct cell_head *h = &r->heads[i];
	uint32_t *of = r->cell_of + (size_t)h->row * r->schema->n_cpus;
	uint32_t *place = &r->rows[h->row].first_cell;

	of[h->cpu] = i + 1;
	for (unsigned cpu = h->cpu; cpu-- > 0;) {
		if (of[cpu]) {
			place = &r->heads[of[cpu] - 1].next_in_row;
			break;
		}
	}
	h->next_in_row = *place;
	*place = i;
}

int64_t reading_cell_number(struct reading *r, uint32_t row, uint16_t cpu)
{
	uint32_t i, generation;

	if (row >= r->n_rows || cpu >= r->schema->n_cpus || !r->rows[row].used)
		return -EINVAL;
	i = r->cell_of[(size_t)row * r->schema->n_cpus + cpu];
	if (i)
		return i - 1;
	if (r->free_cell == NONE && r->n_cells == r->cap_cells && grow_cells(r))
		return -ENOMEM;
	i = r->free_cell != NONE ? r->free_cell : r->n_cells++;
	if (i == r->free_cell)
		r->free_cell = r->heads[i].next_in_row;
	r->cells[i] = (struct cell){ 0 };
	r->ahead_ns[i] = 0;
	if (r->rests)
		r->rests[i] = (struct cell_rest){ 0 };
	generation = r->heads[i].generation + 1;
	r->heads[i] = (struct cell_head){
		.row = row, .cpu = cpu, .used = true, .generation = generation ? generation : 1
	};
	link_cell(r, i);
	return i;
}

struct cell *reading_cell(struct reading *r, uint32_t row, uint16_t cpu)
{
	int64_t cell = reading_cell_number(r, row, cpu);

	return cell < 0 ? NULL : reading_touch(r, (uint32_t)cell);
}

struct cell_rest *reading_rest(struct reading *r, uint32_t cell)
{
	if (!r->rests)
		r->rests = heap_grow_lines(NULL, 0, r->cap_cells * sizeof(*r->rests));
	if (!r->rests)
		return NULL;
	r->heads[cell].has_rest = true;
	return &r->rests[cell];
}

int reading_add_time(struct reading *r, uint32_t cell, uint64_t time_ns)
{
	struct cell_rest *rest = r->schema->multiplexed ? reading_rest(r, cell) : NULL;

	if (r->schema->multiplexed && !rest)
		return -ENOMEM;
	if (rest) {
		rest->enabled_ns += time_ns;
		rest->running_ns += time_ns;
	}
	reading_touch(r, cell)->time_ns += time_ns;
	return 0;
}
