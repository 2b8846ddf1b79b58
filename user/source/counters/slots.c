// SPDX-License-Identifier: Apache-2.0
/* Slots of the kernel's table to rows of the reading, and back to the free list. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include "counters.h"
#include "rows.h"

#define QUIET_READINGS 2 /* complete readings without a count before a slot is retired */

static struct cgroup *find_cgroup(struct read_context *x, uint64_t id)
{
	struct cgroup *cg = cgroup_find(x->table, id);
	char name[32];

	if (cg)
		return cg;
	if (x->lifecycle)
		return lifecycle_resolve(x->lifecycle, id);
	snprintf(name, sizeof(name), "/?%llu", (unsigned long long)id);
	return cgroup_add(x->table, id, name, 1, 0);
}

int64_t counters_row(struct read_context *x, uint32_t slot)
{
	struct counters *c = x->c;
	struct cgroup *cg;
	int64_t row;

	switch (slot) {
	case JD_SLOT_IDLE:
		return ROW_IDLE;
	case JD_SLOT_KERNEL:
		return ROW_KERNEL;
	case JD_SLOT_OTHER:
		return ROW_OTHER;
	}
	if (c->slot_row[slot] != UINT32_MAX)
		return c->slot_row[slot];
	cg = find_cgroup(x, c->info[slot].key);
	row = cg ? reading_add_row(x->r, cg) : -ENOMEM;
	if (row < 0)
		return row;
	c->slot_row[slot] = (uint32_t)row;
	if (slot >= c->top_slot)
		c->top_slot = slot + 1;
	return row;
}

static bool running_somewhere(const struct counters *c, uint32_t slot)
{
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		const struct jd_cpu_state *st = &c->states[cpu];
		uint32_t row = READ_ONCE(st->row);

		if (row < c->bank_rows && slot_at(c, cpu, st->bank & 1, row) == slot)
			return true;
	}
	return false;
}

struct retiring {
	__u64 slots[JD_RETIRE_MAX];
	unsigned n;
};

static void forget(struct read_context *x, uint32_t slot)
{
	struct counters *c = x->c;

	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		c->slot_cells[(size_t)cpu * c->max_slots + slot] = 0; /* the next owner has cells of its own */
	reading_drop_row(x->r, c->slot_row[slot]);
	c->slot_row[slot] = UINT32_MAX;
}

/* Gives the slots back, all in one call. */
static void retire(struct read_context *x, struct retiring *some)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = some->slots, .ctx_size_in = sizeof(some->slots));

	if (some->n && !bpf_prog_test_run_opts(x->c->retire_fd, &opts))
		for (unsigned i = 0; i < some->n; i++)
			forget(x, (uint32_t)some->slots[i]);
	*some = (struct retiring){ 0 };
}

/* Dead tasks still switch out after their cgroup's rmdir event, so an ended cgroup keeps its slot
 * until complete readings brought nothing more and no CPU is charging it. */
void counters_retire(struct read_context *x)
{
	struct counters *c = x->c;
	struct retiring some = { 0 };

	if (!cgroup_table_ended(x->table))
		return;
	for (uint32_t slot = JD_FIRST_SLOT; slot < c->top_slot; slot++) {
		uint32_t row = c->slot_row[slot];

		if (row == UINT32_MAX || x->r->number - x->r->row_changed[row] < QUIET_READINGS)
			continue; /* before its cgroup is read, which is seldom in the cache */
		if (!x->r->rows[row].cgroup->ended || running_somewhere(c, slot))
			continue;
		some.slots[some.n++] = slot;
		if (some.n == JD_RETIRE_MAX)
			retire(x, &some);
	}
	retire(x, &some);
}
