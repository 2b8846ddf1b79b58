/* SPDX-License-Identifier: Apache-2.0 */
/* The table for people. It shows the machine, then the rows that used most of it, then the sum of all other
 * rows. The columns add up to the machine's own lines less idle and residual. Each number that is not simply
 * measured has a mark after it. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/cgroup.h"
#include "table.h"

#define ROW_NAME_MAX (CGROUP_PATH_MAX + 1024)

#define BOLD "\033[1m"
#define REVERSE "\033[7m"
#define PLAIN "\033[0m"
#define DEFAULT_WIDTH 80
#define DEFAULT_HEIGHT 24
#define MIN_ROWS 3
#define MACHINE_LINES 4 /* with more domains than this: one line per kind */

/* The same event has many names (libpfm's, the agent's own). Words that all of them contain are enough for a
 * ratio on a screen. Reference cycles are excluded: they run at another clock. */
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

/* Chooses the first kinds of domains that add up to the machine: package and dram where present. */
static void choose_columns(struct encoder *e, const struct schema *s)
{
	unsigned summed = schema_kinds_summed(s);

	for (enum domain_kind k = 0; k < DOMAIN_KINDS && e->n_watt < TABLE_WATT_COLUMNS; k++)
		if (summed & DOMAIN_BIT(k))
			e->watt_kind[e->n_watt++] = k;
}

static int table_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return err_set(err, -ENOMEM, "table: out of memory; free some");
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

const struct table_mark_word table_marks[TABLE_MARKS] = {
	{ QUALITY_ESTIMATED, '~' }, { QUALITY_MULTIPLEXED, '%' }, { QUALITY_PARTIAL, '?' },
	{ QUALITY_STALE, '=' },     { QUALITY_LOST, '!' },
};

static void table_end_line(const struct encoder *e, size_t start, struct buf *out);

static void add_legend(const struct encoder *e, struct buf *out)
{
	const char *between = "";
	size_t start = out->len;

	for (unsigned i = 0; i < TABLE_MARKS; i++) {
		if (!(e->marks & table_marks[i].quality))
			continue;
		buf_printf(out, "%s%c %s", between, table_marks[i].mark, quality_name(table_marks[i].quality));
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

/* Returns the number of domains of the kind of domain i, and whether i is the first of them. */
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

static void table_add_machine(struct encoder *e, const char *name, unsigned first, bool whole_kind, struct buf *out);

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

/* Adds notes on data that are missing or uncertain in this interval. */
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

static void table_sum(const struct encoder *e, unsigned row, struct table_line *l);

static int take_keys(struct encoder *e)
{
	const struct snapshot *s = e->snap;

	if (ARRAY_ROOM(e->key, e->cap_key, s->n_rows) != 0)
		return -ENOMEM;
	for (unsigned i = 0; i < s->n_rows; i++) {
		struct table_line l = { 0 };

		table_sum(e, i, &l);
		e->key[i] = l.watts[0] + l.watts[1];
		e->network_seen |= l.traffic.rx_bytes || l.traffic.tx_bytes;
		e->block_seen |= l.traffic.read_bytes || l.traffic.write_bytes;
	}
	return 0;
}

/* The familiar name of a row, shown before the path. A unit needs none: its path says it. */
static const char *row_name(const struct snap_row *r, char dst[ROW_NAME_MAX])
{
	char title[3 * (NAMING_TEXT_MAX + 1)];

	if (!r->names || strcmp(names_text(r->names, NAME_RUNTIME), "systemd") == 0 ||
	    names_title(r->names, title, sizeof(title)) <= 0)
		return r->path;
	snprintf(dst, ROW_NAME_MAX, "%s  %s", title, r->path);
	return dst;
}

static bool table_active(const struct snap_row *row, double watts);

static void add_rates(uint64_t in, uint64_t out_bytes, double seconds, struct buf *out)
{
	char came[16], went[16];

	table_rate(came, (double)in / seconds);
	table_rate(went, (double)out_bytes / seconds);
	buf_printf(out, "%6s%6s", came, went);
}

static void table_add_line(struct encoder *e, const struct table_line *l, const char *name, struct buf *out);

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

/* The number of rows that fit between the lines already written and the lines of rest, legend and end. */
static unsigned rows_that_fit(const struct encoder *e, const struct buf *out, size_t start)
{
	unsigned lines = e->clear ? 4 : 5; /* heading, rest, legend, the empty line between tables, the cursor's */

	for (size_t i = start; i < out->len; i++)
		lines += out->data[i] == '\n';
	return e->height > lines + MIN_ROWS ? e->height - lines : MIN_ROWS;
}

static void table_add_heading(const struct encoder *e, struct buf *out);

static int table_choose(struct encoder *e, unsigned n);

static int write_table(struct encoder *e, struct buf *out)
{
	size_t start = out->len;
	int rc = take_keys(e);

	if (rc)
		return rc;
	if (e->clear)
		buf_add_str(out, "\033[H\033[J");
	add_title(e, out);
	add_machine(e, out);
	add_notes(e, out);
	rc = table_choose(e, e->limit ? e->limit : rows_that_fit(e, out, start));
	if (rc)
		return rc;
	buf_add_str(out, e->colour ? REVERSE : "");
	table_add_heading(e, out);
	buf_add_str(out, e->colour ? PLAIN "\n" : "\n");
	add_rows(e, out);
	add_legend(e, out);
	if (!e->clear)
		buf_add_char(out, '\n');
	return out->failed ? -ENOMEM : 0;
}

static int table_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	size_t start = out->len;
	int rc;

	e->snap = s;
	e->shown = shown;
	e->marks = 0;
	e->row_energy = s->schema->n_domains && s->formula[0] && strcmp(s->formula, "none") != 0;
	rc = write_table(e, out);
	if (rc)
		out->len = start;
	return rc;
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
	.create = table_create,
	.encode = table_encode,
	.stats = table_stats,
	.destroy = table_destroy,
};

#define MIN_NAME 12
#define NAME_COLUMNS 16

double table_domain_watts(const struct snap_domain *d, uint64_t uj)
{
	return d->end_ns > d->start_ns ? (double)uj * 1000 / (double)(d->end_ns - d->start_ns) : 0;
}

/* Adds a row to l. */
static void table_sum(const struct encoder *e, unsigned row, struct table_line *l)
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
	traffic_add(&l->traffic, &r->traffic);
	l->quality |= r->quality;
}

/* Returns the mark of a quality and remembers it for the legend. */
static char table_take_mark(struct encoder *e, unsigned quality)
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

static void table_name(char *dst, size_t size, const char *path, unsigned columns);

static void table_add_line(struct encoder *e, const struct table_line *l, const char *name, struct buf *out)
{
	double seconds = (double)(e->snap->end_ns - e->snap->start_ns) / 1e9;
	size_t start = out->len, used;
	char text[4 * CGROUP_SHOWN_MAX + 8];

	if (seconds <= 0)
		seconds = 1;
	add_watts(e, l, out);
	buf_printf(out, "%7.1f%c", (double)l->time_ns / 1e7 / seconds, table_take_mark(e, l->quality));
	add_ratio(e, l, out);
	if (e->network_seen)
		add_rates(l->traffic.rx_bytes, l->traffic.tx_bytes, seconds, out);
	if (e->block_seen)
		add_rates(l->traffic.read_bytes, l->traffic.write_bytes, seconds, out);
	used = out->len - start + 2;
	table_name(text, sizeof(text), name, e->width > used + MIN_NAME ? e->width - (unsigned)used : MIN_NAME);
	buf_printf(out, "  %s\n", text);
}

/* Adds the heading, without a newline. */
static void table_add_heading(const struct encoder *e, struct buf *out)
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
	if (e->block_seen)
		buf_printf(out, "%6s%6s", "rd/s", "wr/s");
	buf_add_str(out, "  cgroup");
	used = out->len - start;
	if (e->colour && e->width > used)
		buf_printf(out, "%*s", (int)(e->width - used), "");
}

/* Cuts a line of plain ASCII at the width and ends it. */
static void table_end_line(const struct encoder *e, size_t start, struct buf *out)
{
	if (out->len - start > e->width)
		out->len = start + e->width;
	buf_add_char(out, '\n');
}

/* Makes the name of a domain printable: it comes from the machine or a recording and can hold anything. */
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

/* Adds a line for domain `first`, or for it and all later domains of its kind together. */
static void table_add_machine(struct encoder *e, const char *name, unsigned first, bool whole_kind, struct buf *out)
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
		idle_quality |= dom->idle_quality;
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

char table_mark(unsigned quality)
{
	const char *worst = quality_name(quality);

	for (unsigned i = 0; i < TABLE_MARKS; i++)
		if (quality & table_marks[i].quality && quality_name(table_marks[i].quality) == worst)
			return table_marks[i].mark;
	return ' ';
}

void table_watts(char dst[16], double watts)
{
	int decimals = watts < 9.9995 ? 3 : watts < 99.995 ? 2 : watts < 999.95 ? 1 : 0;

	snprintf(dst, 16, "%.*f", decimals, watts);
}

void table_rate(char dst[16], double bytes_per_s)
{
	static const char units[] = " kMGT";
	unsigned u = 0;

	while (bytes_per_s >= 999.5 && u < 4) {
		bytes_per_s /= 1000;
		u++;
	}
	if (u == 0)
		snprintf(dst, 16, "%.0f", bytes_per_s);
	else
		snprintf(dst, 16, "%.*f%c", bytes_per_s < 9.95 ? 1 : 0, bytes_per_s, units[u]);
}

/* Terminal columns of a character. East Asian wide characters, emoji and everything beyond take two. Combining
 * marks count as one, so a line may be too short but never too long. */
static unsigned columns_of(const unsigned char *s, size_t len)
{
	uint32_t c = len > 1 ? s[0] & (0xffu >> (len + 1)) : s[0]; /* RFC 3629: payload of the first byte */

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	return (c >= 0x1100 && c < 0x2000) || c >= 0x2e80 ? 2 : 1;
}

static unsigned text_columns(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text);
	unsigned n = 0;

	while (left) {
		size_t len = text_utf8_len(s, left);

		if (!len)
			break;
		n += columns_of(s, len);
		s += len;
		left -= len;
	}
	return n;
}

/* Returns the bytes at the start of text that fill at most *columns. *columns becomes the columns left. */
static size_t head_bytes(const char *text, unsigned *columns)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text), at = 0;

	while (left > at) {
		size_t len = text_utf8_len(s + at, left - at);
		unsigned n = len ? columns_of(s + at, len) : 0;

		if (!len || n > *columns)
			break;
		*columns -= n;
		at += len;
	}
	return at;
}

/* Writes the path, made safe for a terminal and cut in the middle to `columns`. */
static void table_name(char *dst, size_t size, const char *path, unsigned columns)
{
	char text[4 * CGROUP_SHOWN_MAX + 1];
	unsigned all, head = columns / 3, tail;
	size_t at, skip = 0;

	text_escape(text, sizeof(text), path);
	all = text_columns(text);
	if (all <= columns) {
		snprintf(dst, size, "%s", text);
		return;
	}
	tail = columns - 1 - head;
	at = head_bytes(text, &head);
	/* the tail begins where at most `tail` columns remain */
	for (unsigned left = all; left > tail && text[skip];) {
		size_t len = text_utf8_len((const unsigned char *)text + skip, strlen(text + skip));

		left -= columns_of((const unsigned char *)text + skip, len);
		skip += len;
	}
	snprintf(dst, size, "%.*s\xe2\x80\xa6%s", (int)at, text, text + skip);
}

/* Chooses the n largest rows without sorting all, and without qsort, which allocates memory for larger arrays.
 * A heap has the smallest chosen row on top and is then drained in order. */

static bool less(const struct encoder *e, uint32_t a, uint32_t b)
{
	const struct snap_row *rows = e->snap->rows;

	if (e->key[a] < e->key[b] || e->key[a] > e->key[b])
		return e->key[a] < e->key[b];
	if (rows[a].time_ns != rows[b].time_ns)
		return rows[a].time_ns < rows[b].time_ns;
	return a > b; /* equal ones stay in row order */
}

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t t = *a;

	*a = *b;
	*b = t;
}

static void sift_down(struct encoder *e, unsigned i, unsigned n)
{
	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= n)
			return;
		if (child + 1 < n && less(e, e->top[child + 1], e->top[child]))
			child++;
		if (!less(e, e->top[child], e->top[i]))
			return;
		swap(&e->top[i], &e->top[child]);
		i = child;
	}
}

static void sift_up(struct encoder *e, unsigned i)
{
	for (; i && less(e, e->top[i], e->top[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&e->top[i], &e->top[(i - 1) / 2]);
}

static void offer(struct encoder *e, uint32_t row, unsigned n)
{
	if (e->n_top < n) {
		e->top[e->n_top] = row;
		sift_up(e, e->n_top++);
	} else if (n && less(e, e->top[0], row)) {
		e->top[0] = row;
		sift_down(e, 0, n);
	}
}

/* True when the row has something to show. */
static bool table_active(const struct snap_row *row, double watts)
{
	return row->time_ns || watts > 0 || traffic_any(&row->traffic, 0, TRAFFIC_VALUES);
}

/* Chooses at most n rows into e->top, by key and then time, largest first. */
static int table_choose(struct encoder *e, unsigned n)
{
	const struct snapshot *s = e->snap;

	if (n > s->n_rows)
		n = s->n_rows;
	if (ARRAY_ROOM(e->top, e->cap_top, n) != 0)
		return -ENOMEM;
	e->n_top = 0;
	for (uint32_t i = 0; i < s->n_rows; i++)
		if (s->rows[i].kind != ROW_IDLE && selection_shows(e->shown, s, i) &&
		    table_active(&s->rows[i], e->key[i]))
			offer(e, i, n);
	for (unsigned left = e->n_top; left > 1; left--) {
		swap(&e->top[0], &e->top[left - 1]);
		sift_down(e, 0, left - 1);
	}
	return 0;
}
