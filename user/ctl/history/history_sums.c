/* SPDX-License-Identifier: Apache-2.0 */
/* The text of sums, and what both tables share: units, marks, times, costs. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/format/csv.h"
#include "base/text.h"
#include "ctl/core/ask.h"
#include "history_text.h"

const struct history_unit *history_unit(double total_uj)
{
	static const struct history_unit joules = { "J", 1e6, 3 }, kwh = { "kWh", UJ_PER_KWH, 6 };

	return total_uj >= UJ_PER_KWH ? &kwh : &joules;
}

char history_mark(unsigned quality)
{
	if (quality & ~(unsigned)(QUALITY_WRAPPED | QUALITY_ESTIMATED | QUALITY_MULTIPLEXED))
		return '?';
	return quality & (QUALITY_ESTIMATED | QUALITY_MULTIPLEXED) ? '~' : ' ';
}

void history_time(char dst[CLOCK_LOCAL_BYTES], long long unix_ns, bool utc)
{
	time_t t = (time_t)(unix_ns / 1000000000);
	struct tm tm = { 0 };

	if (!utc) {
		clock_local(unix_ns, dst);
		return;
	}
	gmtime_r(&t, &tm);
	strftime(dst, CLOCK_LOCAL_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void history_cost_heads(const struct history_text *t)
{
	if (cost_has_price(t->cost))
		printf(t->csv ? ",cost" : " %12s ", "cost");
	if (cost_has_carbon(t->cost))
		printf(t->csv ? ",co2_g" : " %12s ", "CO2 g");
}

void history_costs(const struct history_text *t, double uj, double g, bool some)
{
	if (cost_has_price(t->cost))
		printf(t->csv ? ",%.*f" : " %12.*f ", t->csv ? 9 : 6, cost_money(t->cost, uj));
	if (!cost_has_carbon(t->cost))
		return;
	if (t->csv && (isnan(g) || some))
		printf(",");
	else if (t->csv)
		printf(",%.6f", g);
	else if (isnan(g))
		printf(" %12s ", "-");
	else
		printf(" %12.3f%c", g, some ? '?' : ' ');
}

static void put_name(const char *name, bool csv)
{
	struct buf cell = { 0 };
	char safe[1024];

	text_escape(safe, sizeof(safe), name);
	if (!csv) {
		printf("  %s\n", safe);
		return;
	}
	csv_add_cell(&cell, safe);
	printf("%.*s", (int)cell.len, cell.len ? (const char *)cell.data : "");
	buf_free(&cell);
}

static void put_line(const struct history_text *t, const struct sums *s, const struct sums_line *l, enum sums_by by)
{
	const struct history_unit *u = history_unit(s->all.uj);
	bool known = l->unknown_uj < l->uj || l->uj <= 0;
	char utc[CLOCK_LOCAL_BYTES];
	double seconds = (double)(l->ns ? l->ns : s->all.ns) / 1e9;
	double watts = seconds > 0 ? l->uj / 1e6 / seconds : 0;

	if (t->csv && by == SUMS_HOUR) {
		history_time(utc, l->order * 1000000000, true);
		printf("%s", utc);
	} else if (t->csv) {
		put_name(l->name, true);
	}
	if (t->csv) {
		printf(",%.0f,%s,%.9f,%.6f", l->uj, quality_name(l->quality), seconds, watts);
	} else {
		printf("%14.*f%c %7.2f %10.3f%c", u->decimals, l->uj / u->uj, history_mark(l->quality),
		       s->all.uj > 0 ? 100 * l->uj / s->all.uj : 0, watts, history_mark(l->quality));
		if (by == SUMS_DAY || by == SUMS_HOUR)
			printf(" %10.0f", seconds);
	}
	history_costs(t, l->uj, known ? l->g : NAN, known && l->unknown_uj > 0);
	if (t->csv)
		putchar('\n');
	else
		put_name(l->name ? l->name : "= total", false);
}

static void put_lost(const struct history_text *t)
{
	const long long since = ask_number(t->doc, "since_unix_ns"), until = ask_number(t->doc, "until_unix_ns");
	const json_t *e;
	double ns = 0;
	size_t i;

	json_array_foreach(json_object_get(t->doc, "lost"), i, e) {
		long long from = ask_number(e, "from_unix_ns"), to = ask_number(e, "until_unix_ns");

		from = from > since ? from : since;
		to = to < until ? to : until;
		ns += to > from ? (double)(to - from) : 0;
	}
	if (ns > 0)
		printf("nothing is known for %.1f s of this time; without --by joulectl history says when and why\n",
		       ns / 1e9);
}

int history_sums(const struct history_text *t, enum sums_by by)
{
	bool timed = by == SUMS_DAY || by == SUMS_HOUR;
	struct sums s;
	int rc = sums_make(t->doc, by, t->cost, &s);

	if (rc)
		return rc;
	if (t->csv)
		printf("%s,energy_uj,quality,seconds,power_w", sums_words[by]);
	else
		printf("%14s  %7s %10s ", history_unit(s.all.uj)->word, "%", "W");
	if (timed && !t->csv)
		printf(" %10s", "measured s");
	history_cost_heads(t);
	printf(t->csv ? "\n" : "  %s\n", sums_words[by]);
	for (size_t i = 0; i < s.n; i++)
		if (t->csv || timed || s.v[i].uj > 0)
			put_line(t, &s, &s.v[i], by);
	if (!t->csv) {
		put_line(t, &s, &s.all, by);
		put_lost(t);
	}
	sums_free(&s);
	return 0;
}
