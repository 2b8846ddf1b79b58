// SPDX-License-Identifier: Apache-2.0
/* Use of a GPU by cgroups. The driver tells the share of time that each process kept it busy since it was asked before.
 * The share counts for that time, and holds until the driver is asked again, so that every interval of a consumer has its
 * part. The use of a process that ended before its cgroup was read is not charged, unless the process was seen before. */
#include <errno.h>
#include <string.h>
#include "base/clock.h"
#include "gpu_ops.h"
#include "source/cgroup/process_cgroup.h"

#define TOO_OLD_NS (5 * NS_PER_S) /* shares older than this are not used */

static struct pid_entry *find(struct gpus *g, uint32_t pid)
{
	for (unsigned i = 0; i < g->n_pids && i < GPU_MAX_PROCESSES; i++)
		if (g->pids[i].pid == pid)
			return &g->pids[i];
	return NULL;
}

/* Cgroup of a process, 0 = not known. The list is a ring: the entry that was added first is replaced first. */
static uint64_t cgroup_of(struct gpus *g, uint32_t pid, uint64_t now_ns)
{
	struct pid_entry *e = find(g, pid);
	uint64_t id = 0;

	if (!g->hierarchy)
		return 0;
	if (process_cgroup(g->root, g->hierarchy, pid, &id) != 0)
		return e && now_ns < e->seen_ns + TOO_OLD_NS ? e->cgroup : 0; /* later the pid may be reused */
	if (!e)
		e = &g->pids[g->n_pids++ % GPU_MAX_PROCESSES];
	*e = (struct pid_entry){ pid, id, now_ns };
	return id;
}

static void add_share(struct gpu_share *list, unsigned *n, uint64_t cgroup, uint32_t ppm)
{
	unsigned i = 0;

	if (*n == GPU_MAX_SHARES && list[0].cgroup)
		cgroup = 0;
	while (i < *n && list[i].cgroup != cgroup)
		i++;
	if (i == GPU_MAX_SHARES)
		i = 0; /* no room for another cgroup: the first entry gets its use */
	if (i == *n)
		list[(*n)++] = (struct gpu_share){ .cgroup = cgroup, .row = UINT32_MAX };
	list[i].ppm += ppm;
}

/* Adds up use to the newest energy, by the shares of now. Lock held. */
static void add_use(struct gpu_unit *u)
{
	uint64_t until = u->energy.time_ns, from = u->used_ns;

	u->used_ns = until;
	if (!from || until <= from || !u->shares_ns || until > u->shares_ns + TOO_OLD_NS)
		return;
	for (unsigned i = 0; i < u->n_shares; i++)
		u->shares[i].use_ns += (uint64_t)((unsigned __int128)(until - from) * u->shares[i].ppm / 1000000);
}

/* What cgroups used and was not charged yet stays theirs beside new shares. Without room it is nobody's. */
static void keep_use(const struct gpu_unit *u, struct gpu_share *list, unsigned *n)
{
	for (unsigned i = 0; i < u->n_shares; i++) {
		const struct gpu_share *old = &u->shares[i];
		unsigned at = 0;

		while (at < *n && list[at].cgroup != old->cgroup)
			at++;
		if (at == *n && (!old->use_ns || *n == GPU_MAX_SHARES))
			at = 0;
		else if (at == *n)
			list[(*n)++] = (struct gpu_share){ .cgroup = old->cgroup };
		if (list[at].cgroup == old->cgroup)
			list[at].row = old->row;
		list[at].use_ns += old->use_ns;
	}
}

void gpu_ask_processes(struct gpu_unit *u, uint64_t now_ns)
{
	struct gpu_process processes[GPU_MAX_PROCESSES];
	struct gpu_share shares[GPU_MAX_SHARES];
	unsigned n_shares = 1;
	int n = u->ops->processes(u, processes, GPU_MAX_PROCESSES);

	if (n < 0)
		return; /* the last ones hold until they are too old */
	shares[0] = (struct gpu_share){ .row = UINT32_MAX }; /* first entry: use that is not charged */
	for (int i = 0; i < n; i++)
		add_share(shares, &n_shares, processes[i].ppm ? cgroup_of(u->g, processes[i].pid, now_ns) : 0,
			  processes[i].ppm);
	pthread_mutex_lock(&u->g->lock);
	keep_use(u, shares, &n_shares);
	memcpy(u->shares, shares, n_shares * sizeof(*shares));
	u->n_shares = n_shares;
	u->shares_ns = now_ns;
	add_use(u);
	pthread_mutex_unlock(&u->g->lock);
}

static bool is_row_of(const struct reading *r, uint32_t row, uint64_t id)
{
	return row < r->n_rows && r->rows[row].used && r->rows[row].kind == ROW_CGROUP && r->rows[row].id == id;
}

/* A cgroup without a row counts with the others that have none. */
static uint32_t row_of(const struct reading *r, struct gpu_share *s)
{
	if (!s->cgroup)
		return USE_NOBODY;
	for (uint32_t i = READING_SPECIAL_ROWS; !is_row_of(r, s->row, s->cgroup) && i < r->n_rows; i++)
		if (is_row_of(r, i, s->cgroup))
			s->row = i;
	return is_row_of(r, s->row, s->cgroup) ? s->row : ROW_OTHER;
}

void gpu_charge_use(struct gpu_unit *u, struct reading *r)
{
	add_use(u);
	for (unsigned i = 0; i < u->n_shares; i++) {
		struct gpu_share *s = &u->shares[i];

		/* without memory it is not charged, as use that is not told */
		if (s->use_ns)
			reading_use(r, row_of(r, s), u->desc.domain, s->use_ns);
		s->use_ns = 0;
	}
}
