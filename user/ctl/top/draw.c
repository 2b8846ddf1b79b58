/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of top, and what stands above and below them. */
#include <string.h>
#include "../encode/table.h"
#include "top.h"

#define NARROW 64 /* below: no history, no network */
#define SPARK_MIN 10
#define SPARK_MAX 40
#define NAME_MIN 24
#define PATH_MIN 8 /* less of a path behind a name says nothing */
#define COLUMNS_TO_SPARK 43 /* what watts to network take */

static bool wide(const struct top_paint *p)
{
	return !p->width || p->width >= NARROW;
}

/* Twice as much for names as for histories; none in plain lines, where an interval stands alone. */
static unsigned spark_columns(const struct top_paint *p)
{
	unsigned n;

	if (p->width < COLUMNS_TO_SPARK + 1 + SPARK_MIN + NAME_MIN)
		return 0;
	n = (p->width - COLUMNS_TO_SPARK) / 3;
	return n < SPARK_MIN ? SPARK_MIN : n > SPARK_MAX ? SPARK_MAX : n;
}

static void put_heading(const struct top_view *v, struct top_paint *p, int sort, int columns, const char *text)
{
	bool chosen = sort == (int)v->sort && p->width;

	top_put(p, chosen ? TOP_CURSOR : TOP_HEAD, "%*s", columns, text);
}

void top_draw_columns(const struct top_view *v, struct top_paint *p)
{
	char label[32];

	snprintf(label, sizeof(label), "%.5s W", v->domain < 0 ? "" : domain_kind_name((enum domain_kind)v->domain));
	put_heading(v, p, TOP_BY_WATTS, 8, v->domain < 0 ? "WATTS" : label);
	put_heading(v, p, -1, 1, "");
	put_heading(v, p, TOP_BY_JOULES, 8, "JOULES");
	put_heading(v, p, TOP_BY_CPU, 7, "CPU%");
	put_heading(v, p, -1, 1, "");
	put_heading(v, p, TOP_BY_IPC, 6, v->machine.counters ? "IPC" : "TIME");
	if (wide(p)) {
		put_heading(v, p, TOP_BY_NETWORK, 6, "RX/s");
		put_heading(v, p, TOP_BY_NETWORK, 6, "TX/s");
	}
	if (wide(p) && spark_columns(p))
		put_heading(v, p, -1, -(int)spark_columns(p) - 1, v->machine.split ? " POWER" : " CPU");
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

/* How much of the machine's energy that any row has: what a person should look at first. */
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

static void put_work(struct top_view *v, const struct top_row *r, struct top_paint *p)
{
	const struct top_values *t = &r->shown[top_scope(v)];
	double s = v->machine.interval_ns ? (double)v->machine.interval_ns / 1e9 : 1;
	char text[16] = "-";

	top_put(p, t->time_ns ? TOP_PLAIN : TOP_DIM, "%7.1f", (double)t->time_ns / 1e7 / s);
	top_put(p, TOP_DIM, "%c", mark(v, t->quality));
	if (!v->machine.counters)
		top_seconds(text, r->shown_total[top_scope(v)].time_ns);
	else if (t->cycles)
		snprintf(text, sizeof(text), "%.2f", (double)t->instructions / (double)t->cycles);
	top_put(p, TOP_PLAIN, "%6s", text);
	if (!wide(p))
		return;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t bytes = i ? t->tx_bytes : t->rx_bytes;

		table_rate(text, (double)bytes / s);
		top_put(p, bytes ? TOP_PLAIN : TOP_DIM, "%6s", v->network_seen ? text : "-");
	}
}

static void put_spark(const struct top_view *v, const struct top_row *r, struct top_paint *p)
{
	const float *ring = r->history[top_scope(v)];
	unsigned n = spark_columns(p);
	char text[SPARK_MAX * 4 + 1];
	double max = 0;

	if (!wide(p) || !n)
		return;
	for (unsigned i = 0; i < TOP_HISTORY; i++)
		max = (double)ring[i] > max ? (double)ring[i] : max;
	top_spark(text, sizeof(text), ring, v->samples, n, max);
	top_put(p, TOP_GOOD, " %s", text);
}

static void put_branches(const struct top_row *r, struct top_paint *p)
{
	bool nice = top_text_unicode();

	for (unsigned d = 1; d <= r->depth; d++) {
		bool last = d < 64 && r->last_branches >> d & 1;

		if (d < r->depth)
			top_put(p, TOP_DIM, "%s", last ? "  " : nice ? "│ " : "| ");
		else
			top_put(p, TOP_DIM, "%s", last ? nice ? "└─" : "`-" : nice ? "├─" : "|-");
	}
}

/* The name people gave it, and behind it the path as far as there is room. */
static void put_name(const struct top_view *v, const struct top_row *r, struct top_paint *p, unsigned room,
		     enum top_style style)
{
	const char *path = v->tree ? r->leaf : r->name, *first = r->label ? r->label : path;
	char text[2048];
	unsigned used;

	if (p->width)
		top_fit(text, sizeof(text), first, room);
	top_put_text(p, style, p->width ? text : first);
	used = p->width ? top_columns(text) + 2 : 0;
	if (!r->label || (p->width && used + PATH_MIN > room))
		return;
	if (p->width)
		top_fit(text, sizeof(text), path, room - used);
	top_put(p, TOP_DIM, "  ");
	top_put_text(p, TOP_DIM, p->width ? text : path);
}

void top_draw_row(struct top_view *v, const struct top_row *r, struct top_paint *p, bool cursor)
{
	const char *behind = r->ended ? " (ended)" : r->folded && v->tree ? " [+]" : "";
	bool dim = r->kind != ROW_CGROUP || !r->match || r->ended;
	unsigned left;

	p->row = cursor ? TOP_CURSOR : TOP_PLAIN;
	put_energy(v, r, p);
	put_work(v, r, p);
	put_spark(v, r, p);
	top_put(p, TOP_PLAIN, "  ");
	if (v->tree)
		put_branches(r, p);
	left = p->width > p->column + strlen(behind) ? p->width - p->column - (unsigned)strlen(behind) : 0;
	put_name(v, r, p, left < 2 ? 2 : left, dim ? TOP_DIM : TOP_PLAIN);
	top_put(p, TOP_DIM, "%s", behind);
	top_end(p);
}

void top_draw_legend(const struct top_view *v, struct top_paint *p)
{
	static const struct {
		unsigned quality;
		const char *text;
	} legend[] = {
		{ QUALITY_ESTIMATED, "~ estimated" }, { QUALITY_MULTIPLEXED, "% multiplexed" },
		{ QUALITY_PARTIAL, "? partial" },     { QUALITY_STALE, "= stale" },
		{ QUALITY_LOST, "! lost" },
	};
	const char *between = "";

	for (unsigned i = 0; i < sizeof(legend) / sizeof(legend[0]); i++) {
		if (!(v->marks & legend[i].quality))
			continue;
		top_put(p, TOP_DIM, "%s%s", between, legend[i].text);
		between = "   ";
	}
}
