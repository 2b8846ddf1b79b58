/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's lines: its power, then per domain how much of it went to rows, to idle and to nobody. */
#include <string.h>
#include <time.h>
#include "../base/clock.h"
#include "../encode/table.h"
#include "top.h"

#define CLOCK_COLUMNS 22 /* length of the interval, time of day */
#define NAME_COLUMNS 11
#define BAR_MIN 10
#define BAR_MAX 40
#define TEXT_COLUMNS 36 /* idle and residual, words and watts */
#define SPARK_COLUMNS 30

static char mark(struct top_view *v, unsigned quality)
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
		watts += m->counted[m->domains[d].kind] ? m->domains[d].watts : 0;
		quality |= m->counted[m->domains[d].kind] ? m->domains[d].quality : 0;
	}
	top_fit(sensor, sizeof(sensor), m->sensor, 15);
	top_put(p, TOP_BOLD, "jouled");
	top_put(p, TOP_PLAIN, " %s   ", sensor);
	table_watts(text, watts);
	if (m->n_domains)
		top_put(p, TOP_BOLD, "%s W%c", text, mark(v, quality));
	top_put(p, TOP_PLAIN, "   %u CPU%s %.1f %% busy   %u cgroup%s", m->cpus, m->cpus == 1 ? "" : "s", 100 * m->busy,
		m->cgroups, m->cgroups == 1 ? "" : "s");
	if (p->width > p->column + CLOCK_COLUMNS)
		top_pad(p, p->width - CLOCK_COLUMNS);
	top_put(p, TOP_DIM, "%10.3f s  ", (double)m->interval_ns / 1e9);
	top_put(p, TOP_PLAIN, "%s", clock);
	top_end(p);
}

/* One cell in the bar is the same power in each of its parts. */
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
	bool lost = d->quality & QUALITY_LOST;

	table_watts(text, d->watts);
	table_watts(idle, d->idle_watts);
	table_watts(residual, d->residual_watts);
	top_joules(joules, d->total_uj);
	top_fit(name, sizeof(name), d->name, NAME_COLUMNS);
	top_put(p, TOP_PLAIN, "%s", name);
	top_pad(p, NAME_COLUMNS);
	top_put(p, TOP_BOLD, "%8s W%c ", lost ? "-" : text, mark(v, d->quality));
	if (left >= BAR_MIN)
		put_bar(d, peak, left < BAR_MAX ? left : BAR_MAX, p);
	if (v->machine.split)
		top_put(p, TOP_PLAIN, "  idle %7s W%c", idle, mark(v, d->idle_quality));
	if (v->machine.split)
		top_put(p, d->residual_uj ? TOP_ALERT : TOP_DIM, " residual %5s W", residual);
	if (!p->width || left > BAR_MAX + 12)
		top_put(p, TOP_PLAIN, "  %8s J", joules);
	if (left > BAR_MAX + 12 + SPARK_COLUMNS) {
		top_spark(spark, sizeof(spark), v->history[d->kind], v->samples, SPARK_COLUMNS, v->peak[d->kind]);
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

/* One line per kind, where there are many domains. */
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

/* What makes this interval less than it seems. */
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
