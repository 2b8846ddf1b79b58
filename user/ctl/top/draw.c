/* SPDX-License-Identifier: Apache-2.0 */
/* Draws top: the machine's lines, the headings of the columns, the rows and the legend of marks. */
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "encode/table.h"
#include "top.h"

#define NARROW 64 /* columns; a narrower terminal shows neither history nor network */
#define SPARK_MIN 10
#define SPARK_MAX 40
#define NAME_MIN 24
#define PATH_MIN 8 /* columns; a path with less room is left out */
#define COLUMNS_TO_SPARK 43 /* width of the columns from watts to network */

static bool wide(const struct top_paint *p)
{
	return !p->width || p->width >= NARROW;
}

/* The history gets a third of the room and the name two thirds. Output of unlimited width has no history. */
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
	struct top_curve curve = { .ring = r->history[top_scope(v)], .samples = v->samples };
	unsigned n = spark_columns(p);
	char text[SPARK_MAX * 4 + 1];

	if (!wide(p) || !n)
		return;
	for (unsigned i = 0; i < TOP_HISTORY; i++)
		curve.max = (double)curve.ring[i] > curve.max ? (double)curve.ring[i] : curve.max;
	top_spark(text, sizeof(text), &curve, n);
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

/* A container's or pod's name comes first. Its path follows as far as there is room. */
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

/* The machine's lines: its power, then for each domain the power of rows, of idle CPUs and the residual, which belongs
 * to no row. */

#define CLOCK_COLUMNS 22 /* length of the interval, time of day */
#define NAME_COLUMNS 11
#define BAR_MIN 10
#define BAR_MAX 40
#define TEXT_COLUMNS 36 /* idle and residual, words and watts */
#define SPARK_COLUMNS 30

static char head_mark(struct top_view *v, unsigned quality)
{
	v->marks |= quality;
	return table_mark(quality);
}

static void put_title(struct top_view *v, struct top_paint *p)
{
	const struct top_machine *m = &v->machine;
	time_t seconds = (time_t)(m->time_ns / 1000000000);
	char clock[16] = "", sensor[64], text[16];
	unsigned quality = 0;
	struct tm tm;
	double watts = 0;

	if (localtime_r(&seconds, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	for (unsigned d = 0; d < m->n_domains; d++) {
		if (!(m->summed & DOMAIN_BIT(m->domains[d].kind)))
			continue;
		watts += m->domains[d].watts;
		quality |= m->domains[d].quality;
	}
	top_fit(sensor, sizeof(sensor), m->sensor, 15);
	top_put(p, TOP_BOLD, "jouled");
	top_put(p, TOP_PLAIN, " %s   ", sensor);
	table_watts(text, watts);
	if (m->n_domains)
		top_put(p, TOP_BOLD, "%s W%c", text, head_mark(v, quality));
	top_put(p, TOP_PLAIN, "   %u CPU%s %.1f %% busy   %u cgroup%s", m->cpus, m->cpus == 1 ? "" : "s", 100 * m->busy,
		m->cgroups, m->cgroups == 1 ? "" : "s");
	if (p->width > p->column + CLOCK_COLUMNS)
		top_pad(p, p->width - CLOCK_COLUMNS);
	top_put(p, TOP_DIM, "%10.3f s  ", (double)m->interval_ns / 1e9);
	top_put(p, TOP_PLAIN, "%s", clock);
	top_end(p);
}

/* Every cell of the bar stands for the same power. */
static void put_bar(const struct top_domain *d, double peak, unsigned columns, struct top_paint *p)
{
	static const char *const unicode[] = { "█", "▒", "░", "·" }, *const ascii[] = { "#", "-", "?", "." };
	const char *const *glyph = top_text_unicode() ? unicode : ascii;
	double ends[3] = { d->watts - d->idle_watts - d->residual_watts, d->watts - d->residual_watts, d->watts };
	static const enum top_style styles[] = { TOP_GOOD, TOP_DIM, TOP_ALERT, TOP_DIM };

	for (unsigned i = 0; i < columns; i++) {
		double at = ((double)i + 0.5) / columns * peak;
		unsigned part = 0;

		while (part < 3 && (peak <= 0 || at >= ends[part]))
			part++;
		top_put(p, styles[part], "%s", glyph[part]);
	}
}

static void put_domain(struct top_view *v, const struct top_domain *d, double peak, struct top_paint *p)
{
	char text[16], idle[16], residual[16], joules[16], spark[SPARK_COLUMNS * 4 + 1], name[64];
	unsigned left = p->width > NAME_COLUMNS + 12 + TEXT_COLUMNS ? p->width - NAME_COLUMNS - 12 - TEXT_COLUMNS : 0;
	const struct top_curve curve = { v->history[d->kind], v->samples, v->peak[d->kind] };
	bool lost = d->quality & QUALITY_LOST;

	table_watts(text, d->watts);
	table_watts(idle, d->idle_watts);
	table_watts(residual, d->residual_watts);
	top_joules(joules, d->total_uj);
	top_fit(name, sizeof(name), d->name, NAME_COLUMNS);
	top_put(p, TOP_PLAIN, "%s", name);
	top_pad(p, NAME_COLUMNS);
	top_put(p, TOP_BOLD, "%8s W%c ", lost ? "-" : text, head_mark(v, d->quality));
	if (left >= BAR_MIN)
		put_bar(d, peak, left < BAR_MAX ? left : BAR_MAX, p);
	if (v->machine.split)
		top_put(p, TOP_PLAIN, "  idle %7s W%c", idle, head_mark(v, d->idle_quality));
	if (v->machine.split)
		top_put(p, d->residual_uj ? TOP_ALERT : TOP_DIM, " residual %5s W", residual);
	if (!p->width || left > BAR_MAX + 12)
		top_put(p, TOP_PLAIN, "  %8s J", joules);
	if (left > BAR_MAX + 12 + SPARK_COLUMNS) {
		top_spark(spark, sizeof(spark), &curve, SPARK_COLUMNS);
		top_put(p, TOP_GOOD, "  %s", spark);
	}
	top_end(p);
}

static void add_domain(struct top_domain *to, const struct top_domain *d)
{
	to->uj += d->uj;
	to->idle_uj += d->idle_uj;
	to->residual_uj += d->residual_uj;
	to->total_uj += d->total_uj;
	to->watts += d->watts;
	to->idle_watts += d->idle_watts;
	to->residual_watts += d->residual_watts;
	to->quality |= d->quality;
	to->idle_quality |= d->idle_quality;
}

/* A machine with many domains gets one line per kind. Returns the number of lines. */
static unsigned put_kinds(struct top_view *v, struct top_paint *p)
{
	unsigned lines = 0;

	for (unsigned k = 0; k < DOMAIN_KINDS; k++) {
		struct top_domain sum = { .kind = k };
		unsigned n = 0;

		for (unsigned d = 0; d < v->machine.n_domains; d++)
			if (v->machine.domains[d].kind == k) {
				add_domain(&sum, &v->machine.domains[d]);
				n++;
			}
		if (!n)
			continue;
		snprintf(sum.name, sizeof(sum.name), "%s x %u", domain_kind_name(k), n);
		put_domain(v, &sum, v->peak[k], p);
		lines++;
	}
	return lines;
}

/* A line of warnings about this interval, if there are any. Returns the number of lines. */
static unsigned put_notes(const struct top_view *v, struct top_paint *p)
{
	const struct top_machine *m = &v->machine;
	const char *between = "note: ";

	if (m->n_domains && !m->split) {
		top_put(p, TOP_ALERT, "%senergy is of the machine only, not split (formula none)", between);
		between = ", ";
	}
	if (m->suspended_ns >= NS_PER_MS) {
		top_put(p, TOP_ALERT, "%s%.1f s suspended", between, (double)m->suspended_ns / 1e9);
		between = ", ";
	}
	if (m->missed || m->lost) {
		top_put(p, TOP_ALERT, "%s%llu deadlines missed, %llu counts lost or folded", between,
			(unsigned long long)m->missed, (unsigned long long)m->lost);
		between = ", ";
	}
	if (m->idle_merged) {
		top_put(p, TOP_ALERT, "%sidle time is in the root's row", between);
		between = ", ";
	}
	if (*between == 'n')
		return 0;
	top_end(p);
	return 1;
}

unsigned top_draw_head(struct top_view *v, struct top_paint *p, unsigned max_domains)
{
	const struct top_machine *m = &v->machine;
	unsigned lines = 1;

	v->marks = 0;
	put_title(v, p);
	if (!m->n_domains) {
		top_put(p, TOP_ALERT, "no energy source: counters only; joulectl doctor says why");
		top_end(p);
		lines++;
	} else if (m->n_domains > max_domains) {
		lines += put_kinds(v, p);
	} else {
		unsigned of_kind[DOMAIN_KINDS] = { 0 };

		for (unsigned d = 0; d < m->n_domains; d++)
			of_kind[m->domains[d].kind]++;
		for (unsigned d = 0; d < m->n_domains; d++)
			put_domain(v, &m->domains[d], v->peak[m->domains[d].kind] / of_kind[m->domains[d].kind], p);
		lines += m->n_domains;
	}
	return lines + put_notes(v, p);
}
