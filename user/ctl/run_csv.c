/* SPDX-License-Identifier: Apache-2.0 */
/* For tables: a head, then a line per run. A cell of what is not known is empty. Names of domains and
 * counters may hold commas (pmu/event=1,umask=2/): such a head is quoted (RFC 4180). */
#include <string.h>
#include "run_result.h"

static void add_head(struct buf *b, const char *prefix, const char *name)
{
	bool quote = name[strcspn(name, ",\"")] != '\0';

	buf_add_str(b, quote ? ",\"" : ",");
	buf_add_str(b, prefix);
	for (; *name; name++) {
		if (*name == '"')
			buf_add_char(b, '"');
		buf_add_char(b, *name);
	}
	if (quote)
		buf_add_char(b, '"');
}

static void add_cell(struct buf *b, bool known, uint64_t v)
{
	buf_add_char(b, ',');
	if (known)
		buf_add_u64(b, v);
}

static void add_heads(const struct run_facts *f, struct buf *b)
{
	buf_add_str(b, "run,exit_status,quality,wall_ns,cpu_ns,user_ns,system_ns,memory_peak_bytes");
	for (unsigned d = 0; d < f->n_domains; d++)
		add_head(b, "energy_uj:", f->domain[d].name);
	for (unsigned i = 0; i < f->n_counters; i++)
		add_head(b, "", f->counter[i]);
	buf_add_str(b, ",switches,rx_bytes,rx_packets,tx_bytes,tx_packets\n");
}

static void add_run(const struct run_facts *f, const struct run_result *r, struct buf *b)
{
	buf_printf(b, "%d,%s", r->exit_status, r->started ? quality_name(run_quality(f, r)) : "");
	add_cell(b, r->started, r->wall_ns);
	add_cell(b, r->started, run_cpu_ns(f, r));
	add_cell(b, r->started, r->user_ns);
	add_cell(b, r->started, r->system_ns);
	add_cell(b, r->started, r->memory_peak);
	for (unsigned d = 0; d < f->n_domains; d++)
		add_cell(b, r->measured && f->split, r->value[d]);
	for (unsigned i = 0; i < f->n_counters; i++)
		add_cell(b, run_counter_known(f, r, i), run_counter(f, r, i));
	add_cell(b, r->measured && f->switches, run_fixed(f, r, RUN_SWITCHES));
	for (unsigned i = RUN_RX_BYTES; i <= RUN_TX_PACKETS; i++)
		add_cell(b, r->measured && f->network, run_fixed(f, r, i));
	buf_add_char(b, '\n');
}

void run_write_csv(const struct run_report *r, struct buf *b)
{
	add_heads(r->facts, b);
	for (unsigned i = 0; i < r->n; i++) {
		buf_printf(b, "%u,", i + 1);
		add_run(r->facts, &r->runs[i], b);
	}
}
