/* SPDX-License-Identifier: Apache-2.0 */
/* The pane of one row: its names, its energy domain by domain with quality and uncertainty, its hottest functions, its
 * counters, its history. */
#include <stdlib.h>
#include <string.h>
#include "encode/table.h"
#include "top.h"
#include "top_functions.h"

#define CHART_MIN 3
#define CHART_MAX 10
#define FUNCTIONS_MIN 3
#define FUNCTIONS_MAX 10

/* Text of any length, over as many lines as it needs. Returns their number. */
static unsigned put_wrapped(struct top_paint *p, const char *text)
{
	unsigned lines = 0;

	do {
		size_t n = p->width > 2 ? top_head(text, p->width - 2) : strlen(text);
		char part[4 * 512 + 1];

		n = n ? n : strlen(text);
		n = n < sizeof(part) ? n : sizeof(part) - 1;
		memcpy(part, text, n);
		part[n] = 0;
		top_put(p, TOP_PLAIN, "  ");
		top_put_text(p, TOP_PLAIN, part);
		top_end(p);
		text += n;
		lines++;
	} while (*text && lines < 8);
	return lines;
}

static unsigned put_names(const struct top_row *r, struct top_paint *p)
{
	char text[NAME_FIELDS * (NAMING_TEXT_MAX + 24)] = "";
	unsigned lines = 1;
	char *safe;

	for (enum name_field f = 0; f < NAME_FIELDS; f++)
		if (*names_text(r->names, f))
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %s", *text ? ", " : "",
				 name_field_key(f), names_text(r->names, f));
	top_put(p, TOP_HEAD, "NAMES");
	top_end(p);
	lines += put_wrapped(p, r->name);
	safe = *text ? top_clean(text) : NULL;
	if (safe)
		lines += put_wrapped(p, safe);
	free(safe);
	return lines;
}

static void put_domain(struct top_view *v, const struct top_row *r, unsigned d, struct top_paint *p)
{
	const struct top_cell *c = &v->cells[r->cells + d];
	const struct top_domain *machine = &v->machine.domains[d];
	char name[80], watts[16], joules[24], share[16] = "-", range[24] = "not known";

	top_fit(name, sizeof(name), machine->name, 16);
	table_watts(watts, c->watts);
	snprintf(joules, sizeof(joules), "%llu.%06llu", (unsigned long long)(c->uj / 1000000),
		 (unsigned long long)(c->uj % 1000000));
	if (machine->uj)
		snprintf(share, sizeof(share), "%.1f", 100 * (double)c->uj / (double)machine->uj);
	if (c->uncertainty_ppm != SNAPSHOT_UNKNOWN)
		snprintf(range, sizeof(range), "+- %.1f %%", (double)c->uncertainty_ppm / 1e4);
	v->marks |= c->quality;
	top_put(p, TOP_PLAIN, "  %s", name);
	top_pad(p, 18);
	top_put(p, TOP_PLAIN, "%9s%c %15s %7s  %-12s %s", c->quality & QUALITY_LOST ? "-" : watts,
		table_mark(c->quality), joules, share, quality_name(c->quality), range);
	top_end(p);
}

static unsigned put_domains(struct top_view *v, const struct top_row *r, struct top_paint *p)
{
	if (!v->machine.split) {
		top_put(p, TOP_ALERT, "  no energy: %s",
			v->machine.n_domains ? "no formula splits it" : "joulectl doctor says why");
		top_end(p);
		return 1;
	}
	top_put(p, TOP_HEAD, "  %-16s%9s  %15s %7s  %-12s %s", "DOMAIN", "WATTS", "JOULES", "SHARE%", "QUALITY",
		"UNCERTAINTY");
	top_end(p);
	for (unsigned d = 0; d < v->machine.n_domains; d++)
		put_domain(v, r, d, p);
	return 1 + v->machine.n_domains;
}

static void put_rate(struct top_paint *p, const char *what, uint64_t n, double seconds, const char *unit)
{
	char rate[16];

	table_rate(rate, (double)n / seconds);
	top_put(p, TOP_PLAIN, "  %-28.28s %20llu  %8s/s%s", what, (unsigned long long)n, rate, unit);
	top_end(p);
}

static unsigned put_counters(const struct top_view *v, const struct top_row *r, struct top_paint *p)
{
	double seconds = v->machine.interval_ns ? (double)v->machine.interval_ns / 1e9 : 1;
	const struct top_values *own = &r->shown[TOP_OWN];

	if (v->machine.past) {
		top_put(p, TOP_DIM, "The history has no counters and no CPU time.");
		top_end(p);
		return 1;
	}
	top_put(p, TOP_HEAD, "COUNTERS of the interval, quality: %s", quality_name(own->quality));
	top_end(p);
	for (unsigned e = 0; e < v->machine.n_events; e++)
		put_rate(p, v->machine.events[e], r->counters[e], seconds, "");
	put_rate(p, "switches", r->switches, seconds, "");
	put_rate(p, "bytes received", own->traffic.rx_bytes, seconds, "");
	put_rate(p, "bytes sent", own->traffic.tx_bytes, seconds, "");
	put_rate(p, "bytes read", own->traffic.read_bytes, seconds, "");
	put_rate(p, "bytes written", own->traffic.write_bytes, seconds, "");
	return 6 + v->machine.n_events;
}

static void put_sums(struct top_view *v, const struct top_row *r, struct top_paint *p)
{
	static const char *const words[TOP_SCOPES] = { "own", "with all below" };
	char watts[16], joules[16], seconds[16];

	for (int scope = TOP_OWN; scope < TOP_SCOPES; scope++) {
		unsigned quality = top_energy_quality(v, &r->shown[scope]);

		if (v->machine.split) {
			v->marks |= quality;
			table_watts(watts, top_watts(v, r->shown[scope].watts));
			top_joules(joules, top_uj(v, r->shown_total[scope].uj));
			top_put(p, TOP_BOLD, "  %s W%c", watts, table_mark(quality));
			top_put(p, TOP_PLAIN, " %s J", joules);
		}
		if (v->machine.past)
			snprintf(seconds, sizeof(seconds), "-");
		else
			top_seconds(seconds, r->shown_total[scope].time_ns);
		top_put(p, TOP_PLAIN, "  %.1f CPU%%  CPU time %s  ",
			v->machine.interval_ns ?
				100 * (double)r->shown[scope].time_ns / (double)v->machine.interval_ns :
				0,
			seconds);
		top_put(p, TOP_DIM, "%s", words[scope]);
		top_end(p);
	}
}

static void put_history(const struct top_view *v, const struct top_row *r, struct top_paint *p, unsigned lines)
{
	struct top_curve c = { .ring = r->history[top_scope(v)], .samples = v->samples };
	unsigned n = v->samples < TOP_HISTORY ? (unsigned)v->samples : TOP_HISTORY;
	double scale = v->machine.split ? 1 : 100, sum = 0;
	char text[TOP_HISTORY * 4 + 1], max[16], mean[16];

	for (unsigned i = 0; i < n; i++) {
		double f = (double)c.ring[(v->samples - 1 - i) % TOP_HISTORY];

		sum += f;
		c.max = f > c.max ? f : c.max;
	}
	table_watts(max, c.max * scale);
	table_watts(mean, n ? sum / n * scale : 0);
	top_put(p, TOP_HEAD, "HISTORY of %u interval%s%s: mean %s, greatest %s %s", n, n == 1 ? "" : "s",
		v->tree ? " with all below" : "", mean, max, v->machine.split ? "W" : "CPU%");
	top_end(p);
	lines = lines > CHART_MAX ? CHART_MAX : lines;
	for (unsigned i = lines; i-- > 0;) {
		top_chart(text, &c, lines, i);
		top_put(p, TOP_DIM, "%9s ", i == lines - 1 ? max : i ? "" : "0");
		top_put(p, TOP_GOOD, "%s", text);
		top_end(p);
	}
}

/* Functions go before counters and history, which begin below the screen where there is no room for all. */
static unsigned put_functions(struct top_view *v, const struct top_functions *functions, struct top_paint *p,
			      unsigned room)
{
	unsigned most = room > FUNCTIONS_MIN + 1 ? room - 1 : FUNCTIONS_MIN;

	return functions ? top_functions_draw(functions, v, p, most < FUNCTIONS_MAX ? most : FUNCTIONS_MAX) : 0;
}

void top_draw_pane(struct top_view *v, const struct top_row *r, const struct top_functions *functions,
		   struct top_paint *p, unsigned lines)
{
	const struct top_values *own = &r->shown[TOP_OWN];
	unsigned used = 3;

	v->marks = own->quality;
	top_put(p, TOP_BOLD, "%s", r->label ? r->label : r->leaf);
	top_put(p, TOP_DIM, "   %s", r->kind != ROW_CGROUP ? "a row of the machine" : r->ended ? "ended" : "");
	top_end(p);
	put_sums(v, r, p);
	used += put_names(r, p);
	if (r->cells_tick == v->cells_tick) {
		used += put_domains(v, r, p);
		used += put_functions(v, functions, p, lines > used ? lines - used : 0);
		used += put_counters(v, r, p);
	} else {
		used += put_functions(v, functions, p, lines > used ? lines - used : 0);
		top_put(p, TOP_DIM, "It has no processes of its own in this interval: no domains, no counters.");
		top_end(p);
		used++;
	}
	put_history(v, r, p, lines > used + 1 + CHART_MIN ? lines - used - 1 : CHART_MIN);
}
