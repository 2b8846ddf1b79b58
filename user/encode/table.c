/* SPDX-License-Identifier: Apache-2.0 */
/* The table for people: what the machine took, then the rows that took most of it, then the sum of
 * all others, so that the columns add up to the machine's own lines less idle and residual. A mark
 * stands behind every number that is not simply measured. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "../model/cgroup.h"
#include "table.h"

#define ROW_NAME_MAX (CGROUP_PATH_MAX + 1024)

#define BOLD "\033[1m"
#define REVERSE "\033[7m"
#define PLAIN "\033[0m"
#define DEFAULT_WIDTH 80
#define DEFAULT_HEIGHT 24
#define MIN_ROWS 3
#define MACHINE_LINES 4 /* with more domains than this, one line per kind */

/* Events count under many names (libpfm's, ours); the words they have in common tell enough for a
 * ratio on a screen. Reference cycles run at another clock. */
int table_find_words(const struct event_set *set, const char *a, const char *b, const char * not )
{
	for (unsigned i = 0; i < set->n; i++) {
		char name[SCHEMA_NAME_MAX] = "";

		for (unsigned k = 0; k + 1 < sizeof(name) && set->ev[i].name[k]; k++)
			name[k] = (char)toupper((unsigned char)set->ev[i].name[k]);
		if ((strstr(name, a) || strstr(name, b)) && !strstr(name, not ) && set->ev[i].kind == EVENT_PERF)
			return (int)i;
	}
	return -1;
}

static bool has_kind(const struct schema *s, enum domain_kind kind)
{
	for (unsigned i = 0; i < s->n_domains; i++)
		if (s->domains[i].kind == kind)
			return true;
	return false;
}

/* Package and dram where they are; else the first kind that there is. */
static void choose_columns(struct encoder *e, const struct schema *s)
{
	static const enum domain_kind order[] = { DOMAIN_PACKAGE, DOMAIN_DRAM };

	for (unsigned i = 0; i < TABLE_WATT_COLUMNS; i++)
		if (has_kind(s, order[i]))
			e->watt_kind[e->n_watt++] = order[i];
	if (!e->n_watt && s->n_domains)
		e->watt_kind[e->n_watt++] = s->domains[0].kind;
}

static int table_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return err_set(err, -ENOMEM, "table: out of memory");
	e->limit = o->limit;
	e->width = o->width ? o->width : DEFAULT_WIDTH;
	e->height = o->height ? o->height : DEFAULT_HEIGHT;
	e->colour = o->colour;
	e->clear = o->clear;
	e->cycles = table_find_words(&s->core, "CYCLES", "CPU_CLK", "REF");
	e->instructions = table_find_words(&s->core, "INSTRUCTIONS", "INST_RETIRED", "INSTRUCTION_");
	choose_columns(e, s);
	*ret = e;
	return 0;
}

static const struct {
	unsigned quality;
	const char *text;
} legend[] = {
	{ QUALITY_ESTIMATED, "~ estimated" }, { QUALITY_MULTIPLEXED, "% multiplexed" },
	{ QUALITY_PARTIAL, "? partial" },     { QUALITY_STALE, "= stale" },
	{ QUALITY_LOST, "! lost" },
};

static void add_legend(const struct encoder *e, struct buf *out)
{
	const char *between = "";
	size_t start = out->len;

	for (unsigned i = 0; i < sizeof(legend) / sizeof(legend[0]); i++) {
		if (!(e->marks & legend[i].quality))
			continue;
		buf_printf(out, "%s%s", between, legend[i].text);
		between = "   ";
	}
	if (*between)
		table_end_line(e, start, out);
}

static void add_title(struct encoder *e, struct buf *out)
{
	const struct snapshot *s = e->snap;
	uint64_t busy = 0, elapsed = 0;
	unsigned cpus = 0, cgroups = 0;
	size_t start;
	char time[24];

	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		busy += s->cpus[i].busy_ns;
		elapsed += s->cpus[i].elapsed_ns;
		cpus += s->cpus[i].online;
	}
	for (unsigned i = 0; i < s->n_rows; i++)
		cgroups += s->rows[i].kind == ROW_CGROUP;
	clock_iso_ms(s->end_real_ns, time);
	buf_add_str(out, e->colour ? BOLD : "");
	start = out->len;
	buf_printf(out, "%.10s %.8s UTC   %.3f s   %u CPU%s %.1f %% busy   %u cgroup%s", time, time + 11,
		   (double)(s->end_ns - s->start_ns) / 1e9, cpus, cpus == 1 ? "" : "s",
		   elapsed ? 100.0 * (double)busy / (double)elapsed : 0.0, cgroups, cgroups == 1 ? "" : "s");
	table_end_line(e, start, out);
	buf_add_str(out, e->colour ? PLAIN : "");
}

/* Number of domains of the kind of domain i, and whether i is the first of them. */
static unsigned of_kind(const struct schema *s, unsigned i, bool *ret_first)
{
	unsigned n = 0;

	*ret_first = true;
	for (unsigned d = 0; d < s->n_domains; d++) {
		n += s->domains[d].kind == s->domains[i].kind;
		if (d < i && s->domains[d].kind == s->domains[i].kind)
			*ret_first = false;
	}
	return n;
}

static void add_machine(struct encoder *e, struct buf *out)
{
	const struct schema *s = e->snap->schema;
	bool whole_kinds = s->n_domains > MACHINE_LINES, first;
	char name[64];

	if (!s->n_domains)
		buf_add_str(out, "no energy source: counters only\n");
	for (unsigned i = 0; i < s->n_domains; i++) {
		unsigned n = of_kind(s, i, &first);

		snprintf(name, sizeof(name), "%.40s x %u", domain_kind_name(s->domains[i].kind), n);
		if (!whole_kinds || n == 1)
			table_add_machine(e, s->domains[i].name, i, false, out);
		else if (first)
			table_add_machine(e, name, i, true, out);
	}
	if (s->n_domains && !e->row_energy)
		buf_add_str(out, "formula none: energy of the machine only, not split\n");
}

/* What makes this interval less than it seems. */
static void add_notes(const struct encoder *e, struct buf *out)
{
	const struct snapshot *s = e->snap;
	const struct {
		uint64_t n;
		const char *text;
	} notes[] = {
		{ s->suspended_ns / NS_PER_MS, "ms suspended" }, { s->missed, "deadlines missed" },
		{ s->losses.folded, "charges folded" },          { s->losses.lost_reads, "counter reads lost" },
		{ s->losses.lost_events, "cgroup events lost" },
	};
	const char *between = "note: ";
	size_t start = out->len;

	for (unsigned i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (!notes[i].n)
			continue;
		buf_printf(out, "%s%llu %s", between, (unsigned long long)notes[i].n, notes[i].text);
		between = ", ";
	}
	if (s->schema->idle_merged)
		buf_printf(out, "%sidle time is in the root's row", between);
	if (between[0] == ',' || s->schema->idle_merged)
		table_end_line(e, start, out);
}

static int take_keys(struct encoder *e)
{
	const struct snapshot *s = e->snap;

	if (s->n_rows > e->cap_key) {
		double *p = realloc(e->key, (size_t)(s->n_rows + s->n_rows / 2) * sizeof(*p));

		if (!p)
			return -ENOMEM;
		e->key = p;
		e->cap_key = s->n_rows + s->n_rows / 2;
	}
	for (unsigned i = 0; i < s->n_rows; i++) {
		struct table_line l = { 0 };

		table_sum(e, i, &l);
		e->key[i] = l.watts[0] + l.watts[1];
		e->network_seen |= l.traffic.rx_bytes || l.traffic.tx_bytes;
	}
	return 0;
}

/* What people call it, before the path; of a unit the path says it already. */
static const char *row_name(const struct snap_row *r, char dst[ROW_NAME_MAX])
{
	char title[3 * (NAMING_TEXT_MAX + 1)];

	if (!r->names || strcmp(names_text(r->names, NAME_RUNTIME), "systemd") == 0 ||
	    names_title(r->names, title, sizeof(title)) <= 0)
		return r->path;
	snprintf(dst, ROW_NAME_MAX, "%s  %s", title, r->path);
	return dst;
}

static void add_rows(struct encoder *e, struct buf *out)
{
	const struct snapshot *s = e->snap;
	struct table_line rest = { 0 };
	char name[64], shown[ROW_NAME_MAX];
	unsigned at = 0, hidden = 0;

	for (unsigned i = 0; i < e->n_top; i++) {
		struct table_line l = { 0 };

		table_sum(e, e->top[i], &l);
		table_add_line(e, &l, row_name(&s->rows[e->top[i]], shown), out);
		e->key[e->top[i]] = -1; /* shown */
	}
	for (at = 0; at < s->n_rows; at++) {
		if (s->rows[at].kind == ROW_IDLE || e->key[at] < 0)
			continue;
		if (s->rows[at].kind != ROW_CGROUP && !table_active(&s->rows[at], e->key[at]))
			continue;
		table_sum(e, at, &rest);
		hidden++;
	}
	if (!hidden)
		return;
	snprintf(name, sizeof(name), "(%u more)", hidden);
	table_add_line(e, &rest, name, out);
}

/* Rows that fit between what stands above (lines already written) and the rest, legend, end. */
static unsigned rows_that_fit(const struct encoder *e, const struct buf *out, size_t start)
{
	unsigned lines = e->clear ? 4 : 5; /* heading, rest, legend, the empty line between tables, the cursor's */

	for (size_t i = start; i < out->len; i++)
		lines += out->data[i] == '\n';
	return e->height > lines + MIN_ROWS ? e->height - lines : MIN_ROWS;
}

static int write_table(struct encoder *e, struct buf *out)
{
	size_t start = out->len;
	int err = take_keys(e);

	if (err)
		return err;
	if (e->clear)
		buf_add_str(out, "\033[H\033[J");
	add_title(e, out);
	add_machine(e, out);
	add_notes(e, out);
	err = table_choose(e, e->limit ? e->limit : rows_that_fit(e, out, start));
	if (err)
		return err;
	buf_add_str(out, e->colour ? REVERSE : "");
	table_add_heading(e, out);
	buf_add_str(out, e->colour ? PLAIN "\n" : "\n");
	add_rows(e, out);
	add_legend(e, out);
	if (!e->clear)
		buf_add_char(out, '\n');
	return out->failed ? -ENOMEM : 0;
}

static int table_encode(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	size_t start = out->len;
	int err;

	e->snap = s;
	e->marks = 0;
	e->row_energy = s->schema->n_domains && s->formula[0] && strcmp(s->formula, "none") != 0;
	err = write_table(e, out);
	if (err)
		out->len = start;
	return err;
}

static const struct encoder_stats *table_stats(const struct encoder *e)
{
	return &e->stats;
}

static void table_destroy(struct encoder *e)
{
	if (!e)
		return;
	free(e->top);
	free(e->key);
	free(e);
}

const struct encoder_ops encode_table = {
	.name = "table",
	.help = "a table for people, largest first",
	.create = table_create,
	.encode = table_encode,
	.stats = table_stats,
	.destroy = table_destroy,
};
