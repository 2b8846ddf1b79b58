/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the headings of top's columns and its rows. */
#include <string.h>
#include "encode/table.h"
#include "top.h"

#define NARROW 64 /* columns; a narrower terminal shows neither history nor network */
#define SPARK_MIN 10
#define SPARK_MAX 40
#define NAME_MIN 24
#define PATH_MIN 8 /* columns; a path with less room is left out */
#define COLUMNS_TO_SPARK 43 /* width of the columns from watts to network */
#define BLOCK_COLUMNS 18 /* width of those of block devices */
#define BLOCK_WIDTH \
	(COLUMNS_TO_SPARK + BLOCK_COLUMNS + NAME_MIN) /* columns; a narrower terminal does not show block devices */

static bool wide(const struct top_paint *p)
{
	return !p->width || p->width >= NARROW;
}

/* Columns of block devices stand where there was work for them. */
static bool shows_block(const struct top_view *v, const struct top_paint *p)
{
	return v->block_seen && (!p->width || p->width >= BLOCK_WIDTH);
}

/* The history gets a third of the room and the name two thirds. Output of unlimited width has no history. */
static unsigned spark_columns(const struct top_view *v, const struct top_paint *p)
{
	unsigned before = COLUMNS_TO_SPARK + (shows_block(v, p) ? BLOCK_COLUMNS : 0), n;

	if (p->width < before + 1 + SPARK_MIN + NAME_MIN)
		return 0;
	n = (p->width - before) / 3;
	return n < SPARK_MIN ? SPARK_MIN : n > SPARK_MAX ? SPARK_MAX : n;
}

/* A heading of so many columns, negative = to the left. The one that sorts has an arrow: down where the largest is on top. */
static void put_heading(struct top_view *v, struct top_paint *p, int sort, int columns, const char *text)
{
	bool chosen = sort == (int)top_sorts_by(v) && p->width, up = v->reverse != (sort == TOP_BY_NAME);
	const char *arrow = top_text_unicode() ? up ? "▲" : "▼" : up ? "^" : "v";
	int used = (int)strlen(text) + (chosen && p->live), room = columns < 0 ? -columns : columns;
	unsigned from = p->column;

	if (columns > used)
		top_put(p, TOP_HEAD, "%*s", columns - used, "");
	top_put(p, chosen ? TOP_CURSOR : TOP_HEAD, "%s%s", chosen && p->live ? arrow : "", text);
	if (columns < 0 && room > used)
		top_put(p, TOP_HEAD, "%*s", room - used, "");
	if (sort >= 0 && v->n_headings < TOP_HEADINGS)
		v->headings[v->n_headings++] = (struct top_heading){ (enum top_sort)sort, from, p->column };
}

/* The greatest value that a shared scale has to hold, of all rows in their last n intervals. */
static void find_scale(struct top_view *v, unsigned n)
{
	uint64_t kept = v->samples < TOP_HISTORY ? v->samples : TOP_HISTORY;

	v->scale = 0;
	for (unsigned i = 0; i < v->n_order; i++)
		for (unsigned k = 0; k < n && k < kept; k++) {
			float f = v->order[i]->history[top_scope(v)][(v->samples - 1 - k) % TOP_HISTORY];

			v->scale = (double)f > v->scale ? (double)f : v->scale;
		}
}

/* Without energy the scale is in busy CPUs. */
static void put_spark_heading(struct top_view *v, struct top_paint *p, unsigned n)
{
	const char *what = n >= 16 ? v->machine.split ? "POWER " : "CPU " : "";
	char number[16], text[48];

	find_scale(v, n);
	table_watts(number, v->machine.split ? v->scale : v->scale * 100);
	if (v->own_scale)
		snprintf(text, sizeof(text), " %sown scale", what);
	else
		snprintf(text, sizeof(text), " %sto %s %s", what, number, v->machine.split ? "W" : "%");
	put_heading(v, p, -1, -(int)n - 1, text);
}

/* "dram W" where that fits, else the word alone: it also fills the column of the mark. */
static void put_watts_heading(struct top_view *v, struct top_paint *p)
{
	const char *kind = v->domain < 0 ? "WATTS" : domain_kind_name((enum domain_kind)v->domain);
	bool arrow = p->live && top_sorts_by(v) == TOP_BY_WATTS;
	char text[32];

	snprintf(text, sizeof(text), "%s%s", kind, v->domain < 0 || strlen(kind) + arrow > 7 ? "" : " W");
	if (strlen(text) + arrow > 8) {
		put_heading(v, p, TOP_BY_WATTS, 9, text);
	} else {
		put_heading(v, p, TOP_BY_WATTS, 8, text);
		put_heading(v, p, -1, 1, "");
	}
}

void top_draw_columns(struct top_view *v, struct top_paint *p)
{
	v->n_headings = 0;
	put_watts_heading(v, p);
	put_heading(v, p, TOP_BY_JOULES, 8, "JOULES");
	put_heading(v, p, TOP_BY_CPU, 7, "CPU%");
	put_heading(v, p, -1, 1, "");
	put_heading(v, p, TOP_BY_IPC, 6, v->machine.counters ? "IPC" : "TIME");
	if (wide(p)) {
		put_heading(v, p, TOP_BY_NETWORK, 6, "RX/s");
		put_heading(v, p, TOP_BY_NETWORK, 6, "TX/s");
		if (shows_block(v, p)) {
			put_heading(v, p, TOP_BY_BLOCK, 6, "RD/s");
			put_heading(v, p, TOP_BY_BLOCK, 6, "WR/s");
			put_heading(v, p, TOP_BY_BLOCK, 6, "IO/s");
		}
	}
	if (wide(p) && spark_columns(v, p))
		put_spark_heading(v, p, spark_columns(v, p));
	put_heading(v, p, -1, 2, "");
	put_heading(v, p, TOP_BY_NAME, 0, v->tree ? "CGROUP+SUBTREE" : "CGROUP");
	if (p->width) {
		p->row = TOP_HEAD;
		top_pad(p, p->width);
	}
	top_end(p);
}

static char mark(struct top_view *v, unsigned quality)
{
	v->marks |= quality;
	return table_mark(quality);
}

/* The style tells a row's share of the power of all rows, so that the largest consumers stand out. */
static enum top_style heat(const struct top_view *v, double watts)
{
	double all = 0;

	for (unsigned d = 0; d < v->machine.n_domains; d++)
		if (top_counts(v, v->machine.domains[d].kind))
			all += v->machine.domains[d].watts - v->machine.domains[d].idle_watts;
	if (watts <= 0 || all <= 0)
		return TOP_DIM;
	return watts > all / 2 ? TOP_HOT : watts > all / 8 ? TOP_WARM : watts > all / 100 ? TOP_COOL : TOP_PLAIN;
}

static void put_energy(struct top_view *v, const struct top_row *r, struct top_paint *p)
{
	const struct top_values *t = &r->shown[top_scope(v)];
	unsigned quality = top_energy_quality(v, t);
	double watts = top_watts(v, t->watts);
	char text[16] = "-", joules[16] = "-";

	if (v->machine.split) {
		if (!(quality & QUALITY_LOST))
			table_watts(text, watts);
		top_joules(joules, top_uj(v, r->shown_total[top_scope(v)].uj));
	}
	top_put(p, v->machine.split ? heat(v, watts) : TOP_DIM, "%8s", text);
	top_put(p, TOP_DIM, "%c", v->machine.split ? mark(v, quality) : ' ');
	top_put(p, TOP_PLAIN, "%8s", joules);
}

static void put_rate(struct top_paint *p, uint64_t n, double seconds, bool seen)
{
	char text[16];

	table_rate(text, (double)n / seconds);
	top_put(p, n ? TOP_PLAIN : TOP_DIM, "%6s", seen ? text : "-");
}

static void put_work(struct top_view *v, const struct top_row *r, struct top_paint *p)
{
	const struct top_values *t = &r->shown[top_scope(v)];
	double s = v->machine.interval_ns ? (double)v->machine.interval_ns / 1e9 : 1;
	char text[16] = "-";

	if (v->machine.past)
		top_put(p, TOP_DIM, "%7s", "-");
	else
		top_put(p, t->time_ns ? TOP_PLAIN : TOP_DIM, "%7.1f", (double)t->time_ns / 1e7 / s);
	top_put(p, TOP_DIM, "%c", mark(v, t->quality));
	if (!v->machine.counters && !v->machine.past)
		top_seconds(text, r->shown_total[top_scope(v)].time_ns);
	else if (v->machine.counters && t->cycles)
		snprintf(text, sizeof(text), "%.2f", (double)t->instructions / (double)t->cycles);
	top_put(p, TOP_PLAIN, "%6s", text);
	if (!wide(p))
		return;
	put_rate(p, t->traffic.rx_bytes, s, v->network_seen);
	put_rate(p, t->traffic.tx_bytes, s, v->network_seen);
	if (!shows_block(v, p))
		return;
	put_rate(p, t->traffic.read_bytes, s, true);
	put_rate(p, t->traffic.write_bytes, s, true);
	put_rate(p, t->traffic.read_requests + t->traffic.write_requests + t->traffic.discard_requests, s, true);
}

static void put_spark(const struct top_view *v, const struct top_row *r, struct top_paint *p)
{
	struct top_curve curve = { .ring = r->history[top_scope(v)], .samples = v->samples };
	unsigned n = spark_columns(v, p);
	char text[SPARK_MAX * 4 + 1];

	if (!wide(p) || !n)
		return;
	curve.max = v->own_scale ? 0 : v->scale;
	for (unsigned i = 0; v->own_scale && i < TOP_HISTORY; i++)
		curve.max = (double)curve.ring[i] > curve.max ? (double)curve.ring[i] : curve.max;
	top_spark(text, sizeof(text), &curve, n);
	top_put(p, TOP_GOOD, " %s", text);
}

/* The last `levels` branches before a name; dots stand for those that are left out. */
static void put_branches(const struct top_row *r, struct top_paint *p, unsigned levels)
{
	bool nice = top_text_unicode();

	if (levels < r->depth)
		top_put(p, TOP_DIM, "%s", nice ? "…" : "~");
	for (unsigned d = r->depth - levels + 1; d <= r->depth; d++) {
		bool last = d < 64 && r->last_branches >> d & 1;

		if (d < r->depth)
			top_put(p, TOP_DIM, "%s", last ? "  " : nice ? "│ " : "| ");
		else
			top_put(p, TOP_DIM, "%s", last ? nice ? "└─" : "`-" : nice ? "├─" : "|-");
	}
}

/* How many branches fit into `room` beside the name: the name keeps two thirds, and what it needs up to there. */
static unsigned branches_that_fit(const struct top_row *r, unsigned room)
{
	unsigned name = top_columns(r->label ? r->label : r->leaf), kept = room - room / 3;
	unsigned left = room - (name < kept ? name : kept);

	if (2 * r->depth <= left)
		return r->depth;
	return left > 1 ? (left - 1) / 2 : 0;
}

/* A container's or pod's name comes first. Its path follows as far as there is room. */
static void put_name(const struct top_view *v, const struct top_row *r, struct top_paint *p, unsigned room,
		     enum top_style style)
{
	const char *path = v->tree ? r->leaf : r->name, *first = r->label ? r->label : path;
	char text[2048];
	unsigned used;

	if (p->width)
		top_fit_path(text, sizeof(text), first, room);
	top_put_text(p, style, p->width ? text : first);
	used = p->width ? top_columns(text) + 2 : 0;
	if (!r->label || (p->width && used + PATH_MIN > room))
		return;
	if (p->width)
		top_fit_path(text, sizeof(text), path, room - used);
	top_put(p, TOP_DIM, "  ");
	top_put_text(p, TOP_DIM, p->width ? text : path);
}

void top_draw_row(struct top_view *v, const struct top_row *r, struct top_paint *p, bool cursor)
{
	const char *behind = r->ended ? " (ended)" : r->folded && r->child && v->tree ? " [+]" : "";
	bool dim = r->kind != ROW_CGROUP || !r->match || r->ended;
	unsigned left;

	p->row = cursor ? TOP_CURSOR : TOP_PLAIN;
	put_energy(v, r, p);
	put_work(v, r, p);
	put_spark(v, r, p);
	top_put(p, TOP_PLAIN, "  ");
	left = p->width > p->column + strlen(behind) ? p->width - p->column - (unsigned)strlen(behind) : 0;
	if (v->tree) {
		unsigned before = p->column;

		put_branches(r, p, p->width ? branches_that_fit(r, left) : r->depth);
		left -= left > p->column - before ? p->column - before : left;
	}
	put_name(v, r, p, left < 2 ? 2 : left, dim ? TOP_DIM : TOP_PLAIN);
	top_put(p, TOP_DIM, "%s", behind);
	top_end(p);
}
