/* SPDX-License-Identifier: Apache-2.0 */
/* CSV as hwpc-sensor writes it. There is one file per group. Columns are `timestamp,sensor,target,socket,cpu`
 * and then all value names in byte order, including the two times. Nothing is quoted, lines end in \n, and rows
 * of one target follow each other. CSV has no metadata, so a machine that needs stand-ins gets one more value,
 * `stand_in`, which is 1 in rows that hold one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hwpc.h"

#define LINE_MAX_BYTES 1023 /* the readers' models refuse longer lines */
#define COLUMNS (HWPC_EVENTS + 3)

struct column {
	const char *name;
	unsigned value; /* index in the values */
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct column *)a)->name, ((const struct column *)b)->name);
}

/* Kinds of domains that every package has. Readers treat an empty cell as an error and 0 would be false, so a
 * domain of one package only (psys) has no column. JSON has it. */
static unsigned common_kinds(const struct encoder *e, unsigned package, unsigned kinds)
{
	unsigned has = 0;

	for (unsigned i = 0; i < e->schema->n_domains; i++) {
		const struct domain_desc *d = &e->schema->domains[i];

		if (hwpc_of_package(d, package) && hwpc_rapl_kind(d->kind) >= 0)
			has |= 1u << hwpc_rapl_kind(d->kind);
	}
	return kinds & has;
}

static unsigned rapl_columns(const struct encoder *e, struct column *c)
{
	unsigned kinds = ~0u, n = 0;

	for (unsigned i = 0; i < e->schema->n_cpus; i++)
		if (e->schema->cpus[i].present)
			kinds = common_kinds(e, e->schema->cpus[i].package, kinds);
	for (unsigned k = 0; k < HWPC_RAPL_KINDS; k++)
		if (kinds & (1u << k))
			c[n++] = (struct column){ hwpc_rapl_names[k], k };
	return n;
}

static unsigned columns(const struct encoder *e, struct column c[COLUMNS])
{
	const struct hwpc_group *g = e->form == HWPC_CSV_MSR ? &e->msr : &e->core;
	unsigned n = 0;

	if (e->form == HWPC_CSV_RAPL)
		n = rapl_columns(e, c);
	else
		for (; n < g->n; n++)
			c[n] = (struct column){ g->names[n], n };
	if ((e->form == HWPC_CSV_MSR && e->aperf < 0) || (e->form == HWPC_CSV_RAPL && e->csv_stand_in))
		c[n++] = (struct column){ "stand_in", HWPC_STAND_IN };
	c[n++] = (struct column){ "time_enabled", HWPC_ENABLED };
	c[n++] = (struct column){ "time_running", HWPC_RUNNING };
	qsort(c, n, sizeof(*c), by_name);
	return n;
}

int hwpc_csv_header(struct encoder *e, struct buf *out)
{
	struct column c[COLUMNS];
	unsigned n = columns(e, c);

	buf_add_str(out, "timestamp,sensor,target,socket,cpu");
	for (unsigned i = 0; i < n; i++) {
		buf_add_char(out, ',');
		buf_add_str(out, c[i].name);
	}
	buf_add_char(out, '\n');
	return out->failed ? -ENOMEM : 0;
}

struct line {
	const struct column *columns;
	unsigned n;
	const char *target;
	const struct snap_cell *cells; /* core: of the target */
	unsigned n_cells;
	unsigned socket, cpu;
};

static void add_line(const struct encoder *e, const struct line *l, const uint64_t v[HWPC_VALUES], struct buf *out)
{
	buf_add_i64(out, e->ms);
	buf_add_char(out, ',');
	buf_add_str(out, e->sensor);
	buf_add_char(out, ',');
	buf_add_str(out, l->target);
	buf_add_char(out, ',');
	buf_add_u64(out, l->socket);
	buf_add_char(out, ',');
	buf_add_u64(out, l->cpu);
	for (unsigned i = 0; i < l->n; i++) {
		buf_add_char(out, ',');
		buf_add_u64(out, v[l->columns[i].value]);
	}
	buf_add_char(out, '\n');
}

static void add_all(struct encoder *e, const struct snapshot *s, struct line *l, struct buf *out)
{
	uint64_t v[HWPC_VALUES];

	for (unsigned n = 0; n < e->n_sockets; n++) {
		const struct hwpc_socket *socket = &e->sockets[n];

		l->socket = socket->package;
		l->cpu = socket->first_cpu;
		if (e->form == HWPC_CSV_RAPL) {
			hwpc_rapl_values(e, socket, v);
			add_line(e, l, v, out);
			continue;
		}
		for (unsigned i = 0; i < e->schema->n_cpus; i++) {
			if (!hwpc_cpu_used(&s->cpus[i]) || e->schema->cpus[i].package != socket->package)
				continue;
			hwpc_msr_values(e, &s->cpus[i], v);
			l->cpu = i;
			add_line(e, l, v, out);
		}
	}
}

static void add_socket(struct encoder *e, struct line *l, const struct hwpc_socket *socket, struct buf *out)
{
	static const struct snap_cell idle;
	uint64_t v[HWPC_VALUES];
	bool any = false;

	l->socket = socket->package;
	for (unsigned i = 0; i < l->n_cells; i++) {
		const struct snap_cell *c = &l->cells[i];

		if (c->cpu >= e->schema->n_cpus || e->schema->cpus[c->cpu].package != socket->package)
			continue;
		hwpc_core_values(e, c, v);
		l->cpu = c->cpu;
		add_line(e, l, v, out);
		any = true;
	}
	if (any)
		return;
	hwpc_core_values(e, &idle, v);
	l->cpu = socket->first_cpu;
	add_line(e, l, v, out);
}

/* Adds all lines of the target, or none when one would be too long. */
static bool add_target(struct encoder *e, const struct snapshot *s, uint32_t row, struct line *l, struct buf *out)
{
	size_t start = out->len, line = start;
	char name[TARGET_NAME_MAX];
	bool changed = false;
	unsigned quality;

	l->target = s->rows[row].path;
	if (e->targets.rows[row].flags & TARGET_CHECK) {
		changed = target_name(&s->rows[row], true, name);
		l->target = name;
	}
	l->cells = hwpc_cells(e, s, row, &l->n_cells, &quality);
	for (unsigned i = 0; i < e->n_sockets; i++)
		add_socket(e, l, &e->sockets[i], out);
	for (size_t at = start; at < out->len; at++) {
		if (out->data[at] != '\n')
			continue;
		if (at - line > LINE_MAX_BYTES) {
			out->len = start;
			return false;
		}
		line = at + 1;
	}
	e->renamed += changed;
	return true;
}

int hwpc_csv(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	struct column c[COLUMNS];
	struct line l = { .columns = c, .n = columns(e, c), .target = "all" };

	if (e->form != HWPC_CSV_CORE)
		add_all(e, s, &l, out);
	for (unsigned i = 0; e->form == HWPC_CSV_CORE && i < e->n_send; i++) {
		if (add_target(e, s, e->send[i], &l, out))
			continue;
		e->stats.withheld_rows++;
		snprintf(e->stats.reason, sizeof(e->stats.reason), "cgroup %llu: its CSV line would exceed %d bytes",
			 (unsigned long long)s->rows[e->send[i]].id, LINE_MAX_BYTES);
	}
	return 0;
}
