/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of one (group, socket, cpu), the same for both forms. */
#include <string.h>
#include "hwpc.h"

const char *const hwpc_rapl_names[HWPC_RAPL_KINDS] = {
	[HWPC_PKG] = "RAPL_ENERGY_PKG", [HWPC_DRAM] = "RAPL_ENERGY_DRAM", [HWPC_CORES] = "RAPL_ENERGY_CORES",
	[HWPC_GPU] = "RAPL_ENERGY_GPU", [HWPC_PSYS] = "RAPL_ENERGY_PSYS",
};

int hwpc_rapl_kind(enum domain_kind kind)
{
	switch (kind) {
	case DOMAIN_PACKAGE:
		return HWPC_PKG;
	case DOMAIN_DRAM:
		return HWPC_DRAM;
	case DOMAIN_CORE:
		return HWPC_CORES;
	case DOMAIN_UNCORE:
		return HWPC_GPU;
	case DOMAIN_PSYS:
		return HWPC_PSYS;
	default:
		return -1; /* not RAPL */
	}
}

void hwpc_core_values(const struct encoder *e, const struct snap_cell *c, uint64_t v[HWPC_VALUES])
{
	for (unsigned i = 0; i < e->core.n; i++)
		v[i] = e->core.source[i] >= 0 ? c->counters[e->core.source[i]] : c->time_ns;
	v[HWPC_ENABLED] = c->enabled_ns;
	v[HWPC_RUNNING] = c->running_ns;
	v[HWPC_STAND_IN] = 0;
}

void hwpc_msr_values(const struct encoder *e, const struct snap_cpu *c, uint64_t v[HWPC_VALUES])
{
	/* a CPU that slept through has no new TSC reading: its elapsed time serves as well, since only
	 * the ratio of two equal numbers is used */
	uint64_t clock = e->tsc >= 0 && c->msr[e->tsc] ? c->msr[e->tsc] : c->elapsed_ns;

	for (unsigned i = 0; i < e->msr.n; i++)
		v[i] = e->msr.source[i] >= 0 ? c->msr[e->msr.source[i]] : clock;
	v[HWPC_ENABLED] = e->schema->msr.n ? c->msr_enabled_ns : c->elapsed_ns;
	v[HWPC_RUNNING] = e->schema->msr.n ? c->msr_running_ns : c->elapsed_ns;
	v[HWPC_STAND_IN] = e->aperf < 0;
}

void hwpc_rapl_values(const struct encoder *e, const struct hwpc_socket *socket, uint64_t v[HWPC_VALUES])
{
	memcpy(v, socket->energy_q32, sizeof(socket->energy_q32));
	v[HWPC_ENABLED] = v[HWPC_RUNNING] = socket->time_ns;
	v[HWPC_STAND_IN] = e->rapl_stand_in;
}

static void join_cell(struct encoder *e, const struct snap_cell *c, unsigned *n)
{
	struct snap_cell *to;

	if (c->cpu >= e->schema->n_cpus)
		return;
	if (!e->joined_at[c->cpu]) {
		e->joined[*n] = *c;
		e->joined_at[c->cpu] = ++*n;
		return;
	}
	to = &e->joined[e->joined_at[c->cpu] - 1];
	to->time_ns += c->time_ns;
	to->enabled_ns += c->enabled_ns;
	to->running_ns += c->running_ns;
	to->quality |= c->quality;
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		to->counters[i] += c->counters[i];
}

/* A lost cell beside good ones makes the target partial: something of it was counted. */
static unsigned together(unsigned quality)
{
	return quality & QUALITY_LOST ? (quality & ~(unsigned)QUALITY_LOST) | QUALITY_PARTIAL : quality;
}

const struct snap_cell *hwpc_cells(struct encoder *e, const struct snapshot *s, uint32_t row, unsigned *ret_n,
				   unsigned *ret_quality)
{
	const struct snap_row *r = &s->rows[row];
	unsigned n = 0, quality = 0;

	if (e->targets.rows[row].next == TARGET_NONE) {
		*ret_n = r->n_cells;
		*ret_quality = together(r->quality);
		return s->cells + r->first_cell;
	}
	memset(e->joined_at, 0, e->schema->n_cpus * sizeof(*e->joined_at));
	for (; row != TARGET_NONE; row = e->targets.rows[row].next) {
		r = &s->rows[row];
		quality |= r->quality;
		for (unsigned i = 0; i < r->n_cells; i++)
			join_cell(e, &s->cells[r->first_cell + i], &n);
	}
	*ret_n = n;
	*ret_quality = together(quality);
	return e->joined;
}
