/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "table.h"

#define MIN_NAME 12
#define NAME_COLUMNS 16

double table_domain_watts(const struct snap_domain *d, uint64_t uj)
{
	return d->end_ns > d->start_ns ? (double)uj * 1000 / (double)(d->end_ns - d->start_ns) : 0;
}

void table_sum(const struct encoder *e, unsigned row, struct table_line *l)
{
	const struct snapshot *s = e->snap;
	const struct snap_row *r = &s->rows[row];

	for (unsigned d = 0; e->row_energy && d < s->schema->n_domains; d++) {
		for (unsigned k = 0; k < e->n_watt; k++) {
			if (s->schema->domains[d].kind != e->watt_kind[k])
				continue;
			l->watts[k] += table_domain_watts(&s->domains[d], *snapshot_energy(s, row, d));
			l->watt_quality[k] |= snapshot_energy_quality(s, row, d);
		}
	}
	l->time_ns += r->time_ns;
	l->cycles += e->cycles >= 0 ? r->counters[e->cycles] : 0;
	l->instructions += e->instructions >= 0 ? r->counters[e->instructions] : 0;
	l->traffic.rx_bytes += r->traffic.rx_bytes;
	l->traffic.tx_bytes += r->traffic.tx_bytes;
	l->quality |= r->quality;
}

char table_take_mark(struct encoder *e, unsigned quality)
{
	e->marks |= quality;
	return table_mark(quality);
}

static void add_watts(struct encoder *e, const struct table_line *l, struct buf *out)
{
	for (unsigned k = 0; k < e->n_watt; k++) {
		char text[16] = "-";

		if (e->row_energy && !(l->watt_quality[k] & QUALITY_LOST))
			table_watts(text, l->watts[k]);
		buf_printf(out, "%8s%c", text, e->row_energy ? table_take_mark(e, l->watt_quality[k]) : ' ');
	}
}

static void add_ratio(const struct encoder *e, const struct table_line *l, struct buf *out)
{
	if (e->cycles < 0 || e->instructions < 0)
		buf_printf(out, "%10.1f", (double)l->time_ns / 1e6);
	else if (l->cycles)
		buf_printf(out, "%6.2f", (double)l->instructions / (double)l->cycles);
	else
		buf_printf(out, "%6s", "-");
}

void table_add_line(struct encoder *e, const struct table_line *l, const char *name, struct buf *out)
{
	double seconds = (double)(e->snap->end_ns - e->snap->start_ns) / 1e9;
	size_t start = out->len, used;
	char text[4 * CGROUP_SHOWN_MAX + 8], rx[16], tx[16];

	if (seconds <= 0)
		seconds = 1;
	add_watts(e, l, out);
	buf_printf(out, "%7.1f%c", (double)l->time_ns / 1e7 / seconds, table_take_mark(e, l->quality));
	add_ratio(e, l, out);
	if (e->network_seen) {
		table_rate(rx, (double)l->traffic.rx_bytes / seconds);
		table_rate(tx, (double)l->traffic.tx_bytes / seconds);
		buf_printf(out, "%6s%6s", rx, tx);
	}
	used = out->len - start + 2;
	table_name(text, sizeof(text), name, e->width > used + MIN_NAME ? e->width - (unsigned)used : MIN_NAME);
	buf_printf(out, "  %s\n", text);
}

void table_add_heading(const struct encoder *e, struct buf *out)
{
	bool ratio = e->cycles >= 0 && e->instructions >= 0;
	size_t start = out->len, used;

	for (unsigned k = 0; k < e->n_watt; k++) {
		char text[24];

		snprintf(text, sizeof(text), "%.6s W",
			 e->watt_kind[k] == DOMAIN_PACKAGE ? "pkg" : domain_kind_name(e->watt_kind[k]));
		buf_printf(out, "%8s ", text);
	}
	buf_printf(out, "%7s %*s", "CPU %", ratio ? 6 : 10, ratio ? "IPC" : "task ms");
	if (e->network_seen)
		buf_printf(out, "%6s%6s", "rx/s", "tx/s");
	buf_add_str(out, "  cgroup");
	used = out->len - start;
	if (e->colour && e->width > used)
		buf_printf(out, "%*s", (int)(e->width - used), "");
}

/* Lines of plain ASCII end at the width. */
void table_end_line(const struct encoder *e, size_t start, struct buf *out)
{
	if (out->len - start > e->width)
		out->len = start + e->width;
	buf_add_char(out, '\n');
}

/* Names of domains come from the machine, or from a recording: anything. */
static void plain_name(char dst[NAME_COLUMNS + 1], const char *name)
{
	unsigned i = 0;

	for (; i < NAME_COLUMNS && name[i]; i++)
		dst[i] = name[i] >= ' ' && name[i] < 0x7f ? name[i] : '?';
	dst[i] = '\0';
}

static void watts_or_none(char dst[16], double watts, bool known)
{
	if (known)
		table_watts(dst, watts);
	else
		snprintf(dst, 16, "-");
}

void table_add_machine(struct encoder *e, const char *name, unsigned first, bool whole_kind, struct buf *out)
{
	const struct snapshot *s = e->snap;
	double watts = 0, joules = 0, idle = 0, residual = 0;
	char w[16], i[16], r[16], j[16], text[NAME_COLUMNS + 1];
	unsigned quality = 0, idle_quality = 0;
	size_t start = out->len;
	bool known = true;

	for (unsigned d = first; d < s->schema->n_domains; d++) {
		const struct snap_domain *dom = &s->domains[d];
		uint64_t idle_row = e->row_energy ? *snapshot_energy(s, ROW_IDLE, d) : 0;

		if (d != first && (!whole_kind || s->schema->domains[d].kind != s->schema->domains[first].kind))
			continue;
		watts += table_domain_watts(dom, dom->energy_uj);
		joules += (double)dom->energy_uj / 1e6;
		idle += table_domain_watts(dom, dom->idle_uj + idle_row);
		residual += table_domain_watts(dom, dom->residual_uj);
		quality |= dom->quality;
		idle_quality |= dom->idle_quality | dom->quality;
		known &= !(dom->quality & QUALITY_LOST) && dom->end_ns > dom->start_ns;
	}
	watts_or_none(w, watts, known);
	watts_or_none(j, joules, known);
	watts_or_none(i, idle, known);
	watts_or_none(r, residual, known);
	plain_name(text, name);
	buf_printf(out, "%-*s %7s W%c %8s J%c", NAME_COLUMNS, text, w, table_take_mark(e, quality), j,
		   table_mark(quality));
	if (e->row_energy)
		buf_printf(out, "  idle %7s W%c  residual %7s W", i, table_take_mark(e, idle_quality), r);
	table_end_line(e, start, out);
}
