/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the machine's lines of top, the legend of marks and the key of the bars. */
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "encode/table.h"
#include "top.h"

void top_draw_legend(const struct top_view *v, struct top_paint *p)
{
	const char *between = "";

	for (unsigned i = 0; i < TABLE_MARKS; i++) {
		if (!(v->marks & table_marks[i].quality))
			continue;
		top_put(p, TOP_DIM, "%s%c %s", between, table_marks[i].mark, quality_name(table_marks[i].quality));
		between = "   ";
	}
}

/* The machine's lines: its power, then for each domain the power of rows, of idle CPUs and the residual, which belongs
 * to no row. */

#define CLOCK_COLUMNS 13 /* time of day and zone */
#define DATE_COLUMNS 100 /* from this width on the date stands before the time */
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

/* When the interval ended, in local time with its zone; before it the length of the interval where there is room. */
static void put_clock(const struct top_machine *m, struct top_paint *p)
{
	bool date = !p->width || p->width >= DATE_COLUMNS;
	time_t seconds = (time_t)(m->time_ns / 1000000000);
	char clock[64] = "", length[32];
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(clock, sizeof(clock), date ? "%Y-%m-%d %H:%M:%S %Z" : "%H:%M:%S %Z", &tm);
	snprintf(length, sizeof(length), " %.3f s  ", (double)m->interval_ns / 1e9);
	if (p->width && p->column + strlen(length) + strlen(clock) > p->width)
		snprintf(length, sizeof(length), " ");
	if (p->width > p->column + strlen(length) + strlen(clock))
		top_pad(p, p->width - (unsigned)(strlen(length) + strlen(clock)));
	top_put(p, TOP_DIM, "%s%s", p->width ? "" : "  ", length);
	top_put(p, TOP_PLAIN, "%s", clock);
}

static void put_title(struct top_view *v, struct top_paint *p)
{
	const struct top_machine *m = &v->machine;
	char sensor[64], text[16], cgroups[32];
	unsigned quality = 0;
	double watts = 0;

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
	if (!m->past)
		top_put(p, TOP_PLAIN, "   %u CPU%s %.1f %% busy", m->cpus, m->cpus == 1 ? "" : "s", 100 * m->busy);
	snprintf(cgroups, sizeof(cgroups), "   %u cgroup%s", m->cgroups, m->cgroups == 1 ? "" : "s");
	if (!p->width || p->column + strlen(cgroups) + CLOCK_COLUMNS <= p->width)
		top_put(p, TOP_PLAIN, "%s", cgroups);
	put_clock(m, p);
	top_end(p);
}

/* The parts of a bar: rows, idle, residual, and what is left up to the peak. */
#define BAR_PARTS 4
static const enum top_style bar_styles[BAR_PARTS] = { TOP_GOOD, TOP_DIM, TOP_ALERT, TOP_DIM };

static const char *bar_glyph(unsigned part)
{
	static const char *const unicode[BAR_PARTS] = { "█", "▒", "░", "·" }, *const ascii[BAR_PARTS] = { "#", "-", "?",
													  "." };

	return (top_text_unicode() ? unicode : ascii)[part];
}

void top_draw_bar_key(struct top_paint *p)
{
	static const char *const words[BAR_PARTS] = { "rows", "idle", "residual: nobody's", "up to the peak" };

	for (unsigned i = 0; i < BAR_PARTS; i++) {
		top_put(p, bar_styles[i], "%s%s", i ? "   " : "", bar_glyph(i));
		top_put(p, TOP_PLAIN, " %s", words[i]);
	}
}

/* Every cell of the bar stands for the same power. */
static void put_bar(const struct top_domain *d, double peak, unsigned columns, struct top_paint *p)
{
	double ends[3] = { d->watts - d->idle_watts - d->residual_watts, d->watts - d->residual_watts, d->watts };

	for (unsigned i = 0; i < columns; i++) {
		double at = ((double)i + 0.5) / columns * peak;
		unsigned part = 0;

		while (part < BAR_PARTS - 1 && (peak <= 0 || at >= ends[part]))
			part++;
		top_put(p, bar_styles[part], "%s", bar_glyph(part));
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
