/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the rows: what they add up to, which are sent, and how long the record gets. Paths
 * are looked at when they are new only; two rows can share one only when one of them is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "vjoule.h"

/* As many of these as there can be rows do not run over. */
#define SUM_SAFE (INT64_MAX >> 21)

static int reserve_send(struct encoder *e, unsigned rows)
{
	unsigned cap = rows + rows / 2;
	uint32_t *p;

	if (rows <= e->cap_send)
		return 0;
	p = realloc(e->send, cap * sizeof(*p));
	if (!p)
		return -ENOMEM;
	e->send = p;
	p = realloc(e->ranked, cap * sizeof(*p));
	if (!p)
		return -ENOMEM;
	e->ranked = p;
	e->cap_send = cap;
	return 0;
}

static int reserve_names(struct encoder *e, uint32_t key)
{
	unsigned cap = key + key / 2 + 64;
	struct vjoule_name *p = realloc(e->names, cap * sizeof(*p));

	if (!p)
		return -ENOMEM;
	memset(p + e->cap_names, 0, (cap - e->cap_names) * sizeof(*p));
	e->names = p;
	e->cap_names = cap;
	return 0;
}

/* 1 = the row's path was not known, 0 = it was, or -ENOMEM. */
static int look_up(struct encoder *e, const struct snap_row *row, const struct vjoule_name **ret)
{
	struct vjoule_name *n;

	if (row->key >= e->cap_names && reserve_names(e, row->key))
		return -ENOMEM;
	n = &e->names[row->key];
	*ret = n;
	if (n->len && n->generation == row->generation && n->renamed == row->renamed)
		return 0;
	n->generation = row->generation;
	n->renamed = row->renamed;
	n->len = (uint32_t)strnlen(row->path, VJOULE_NAME_MAX + 1);
	n->kind = vjoule_name_kind(e->dialect, row->path, n->len);
	return 1;
}

static void leave_out(struct encoder *e, const struct snap_row *row, const char *why)
{
	e->withheld++;
	snprintf(e->stats.reason, sizeof(e->stats.reason), "cgroup %llu: %s", (unsigned long long)row->id, why);
}

/* None of its counters could be read: zeros would be a lie. */
static bool all_lost(const struct encoder *e, const struct snap_row *row)
{
	bool core = false;

	if (!(row->quality & (QUALITY_LOST | QUALITY_PARTIAL)) || !row->time_ns)
		return false;
	for (unsigned i = e->n_machine; i < e->n_columns; i++) {
		if (vjoule_value(&e->columns[i], row))
			return false;
		core |= e->columns[i].kind == VJOULE_CORE;
	}
	return core;
}

static void add_values(const struct encoder *e, const struct snap_row *row, uint64_t *values)
{
	for (unsigned i = e->n_machine; i < e->n_columns; i++)
		values[i - e->n_machine] = vjoule_add(values[i - e->n_machine], vjoule_value(&e->columns[i], row));
}

void vjoule_add_row(const struct encoder *e, const struct snapshot *s, uint32_t row, uint64_t *values)
{
	add_values(e, &s->rows[row], values);
	for (uint32_t i = e->joined ? e->targets.rows[row].next : TARGET_NONE; i != TARGET_NONE;
	     i = e->targets.rows[i].next)
		add_values(e, &s->rows[i], values);
}

static void add_extra(struct encoder *e, unsigned extra, const struct snap_row *row)
{
	if (!row->selected)
		return;
	e->extras[extra].sent = true;
	add_values(e, row, e->extras[extra].values);
}

/* Idle and interrupt time are no task's: TASK_CLOCK is without them, counters are with them. */
static inline bool counts(const struct snap_row *row, const struct vjoule_column *c)
{
	return c->kind == VJOULE_CORE || (row->kind != ROW_IDLE && row->kind != ROW_IRQ_STEAL);
}

static inline void add_sums(struct encoder *e, const struct snap_row *row)
{
	for (unsigned i = e->n_machine; i < e->n_columns; i++) {
		uint64_t v = counts(row, &e->columns[i]) ? vjoule_value(&e->columns[i], row) : 0;

		e->sums[i] += v;
		e->high |= v;
	}
}

static void add_special(struct encoder *e, const struct snap_row *row)
{
	e->other_seen |= row->kind == ROW_OTHER && (row->time_ns || row->n_cells);
	if (row->kind == ROW_KERNEL)
		add_extra(e, VJOULE_KERNEL, row);
	if (row->kind == ROW_OTHER && e->other_seen)
		add_extra(e, VJOULE_OTHER, row);
}

/* 1 = a path that was not known, 0, or -ENOMEM. */
static int add_cgroup(struct encoder *e, const struct snap_row *row, uint32_t i)
{
	const struct vjoule_name *name;
	int new = look_up(e, row, &name);

	if (new < 0 || !row->selected)
		return new;
	if (name->kind == NAME_REFUSED)
		leave_out(e, row, "its path cannot be a name (docs/formats/vjoule.md)");
	else if (name->kind != NAME_OK)
		add_extra(e, name->kind == NAME_KERNEL ? VJOULE_KERNEL : VJOULE_OTHER, row);
	else
		e->send[e->n_send++] = i;
	e->any_lost |= row->quality && all_lost(e, row);
	return new;
}

static bool target_lost(const struct encoder *e, const struct snapshot *s, uint32_t row)
{
	bool lost = all_lost(e, &s->rows[row]);

	for (uint32_t i = e->joined ? e->targets.rows[row].next : TARGET_NONE; i != TARGET_NONE && lost;
	     i = e->targets.rows[i].next)
		lost = all_lost(e, &s->rows[i]);
	return lost;
}

static void drop_lost(struct encoder *e, const struct snapshot *s)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < e->n_send; i++) {
		if (target_lost(e, s, e->send[i]))
			leave_out(e, &s->rows[e->send[i]], "none of its counters could be read");
		else
			e->send[kept++] = e->send[i];
	}
	e->n_send = kept;
}

/* Removed and made again within the interval: readers know cgroups by name alone. Rows of one path
 * are all in `send` or none, so the first of them is there. */
static int join(struct encoder *e, const struct snapshot *s)
{
	unsigned kept = 0;
	int err = targets_update(&e->targets, s, false);

	if (err)
		return err;
	for (unsigned i = 0; i < e->n_send; i++)
		if (!(e->targets.rows[e->send[i]].flags & TARGET_JOINED))
			e->send[kept++] = e->send[i];
	e->joined = kept < e->n_send;
	e->n_send = kept;
	return 0;
}

static void measure(struct encoder *e, const struct snapshot *s)
{
	static const size_t extra_len[VJOULE_EXTRAS] = { sizeof("/kernel") - 1, sizeof("/other") - 1 };
	size_t each = vjoule_cgroup_size(e->dialect, 0, vjoule_metrics(e));

	e->n_cgroups = e->n_send;
	e->size = each * e->n_send;
	for (unsigned i = 0; i < e->n_send; i++)
		e->size += e->names[s->rows[e->send[i]].key].len;
	for (unsigned i = 0; i < VJOULE_EXTRAS; i++) {
		e->size += e->extras[i].sent ? each + extra_len[i] : 0;
		e->n_cgroups += e->extras[i].sent;
	}
}

/* The sums once more, number by number, because one of them may have run over. */
static void sum_carefully(struct encoder *e, const struct snapshot *s)
{
	memset(e->sums, 0, sizeof(e->sums));
	for (unsigned i = 0; i < s->n_rows; i++)
		for (unsigned k = e->n_machine; k < e->n_columns; k++)
			if (counts(&s->rows[i], &e->columns[k]))
				e->sums[k] = vjoule_add(e->sums[k], vjoule_value(&e->columns[k], &s->rows[i]));
}

int vjoule_plan(struct encoder *e, const struct snapshot *s)
{
	int news = 0, err = reserve_send(e, s->n_rows);

	e->n_send = e->withheld = 0;
	e->any_lost = false;
	e->high = 0;
	memset(e->sums, 0, sizeof(e->sums));
	memset(e->extras, 0, sizeof(e->extras));
	e->extras[VJOULE_OTHER].sent = e->other_stays;
	for (uint32_t i = 0; i < s->n_rows && !err; i++) {
		int new = 0;

		add_sums(e, &s->rows[i]);
		if (s->rows[i].kind == ROW_CGROUP)
			new = add_cgroup(e, &s->rows[i], i);
		else
			add_special(e, &s->rows[i]);
		news |= new;
		err = new < 0 ? new : 0;
	}
	if (!err && (news || e->joined))
		err = join(e, s);
	if (err)
		return err;
	if (e->high > SUM_SAFE)
		sum_carefully(e, s);
	if (e->any_lost)
		drop_lost(e, s);
	measure(e, s);
	return 0;
}
