/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: a line per value, with numbers and units in columns. A value that is not known has no line. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "base/statistics.h"
#include "result.h"
#include "run_outliers.h"

#define COMMAND_MAX 100
#define OUTLIERS_SHOWN 5

struct text {
	const struct run_report *r;
	struct buf *b;
	double *v; /* a value per run */
	unsigned n; /* number of values in v */
};

/* The unit that leaves one to three digits before the point. */
struct scaled {
	double factor;
	const char *unit;
};

static struct scaled scale(double v, const char *const units[3])
{
	if (v >= 1)
		return (struct scaled){ 1, units[0] };
	return v >= 1e-3 ? (struct scaled){ 1e3, units[1] } : (struct scaled){ 1e6, units[2] };
}

static const char *const joules[3] = { "J", "mJ", "uJ" }, *const seconds[3] = { "s", "ms", "us" },
			 *const watts[3] = { "W", "mW", "uW" };

/* Writes 1234567 as 1,234,567. */
static void add_grouped(char *dst, size_t size, uint64_t v)
{
	char digits[24];
	size_t n = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, v), at = 0;

	for (size_t i = 0; i < n && at + 2 < size; i++) {
		if (i && (n - i) % 3 == 0)
			dst[at++] = ',';
		dst[at++] = digits[i];
	}
	dst[at] = '\0';
}

static void add_bytes(struct buf *b, double v)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	unsigned i = 0;

	for (; v >= 1024 && i < 4; i++)
		v /= 1024;
	buf_printf(b, i ? "%.1f %s" : "%.0f %s", v, units[i]);
}

/* Begins a line: "      12.345 J   package-0". A remark follows. */
static void begin(struct text *t, const char *number, const char *unit, const char *name)
{
	buf_printf(t->b, "%20s %-3s %-16s", number, unit, name);
}

static void end(struct text *t, unsigned quality, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void end(struct text *t, unsigned quality, const char *fmt, ...)
{
	char remark[100];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(remark, sizeof(remark), fmt, ap);
	va_end(ap);
	buf_printf(t->b, " %-23s", remark);
	if (t->n > 1) {
		struct statistics s = statistics_of(t->v, t->n);

		if (s.mean > 0)
			buf_printf(t->b, " +- %5.2f %%", 100 * s.ci95 / s.mean);
	}
	if (quality != QUALITY_MEASURED)
		buf_printf(t->b, "  %s", quality_name(quality));
	while (t->b->len && t->b->data[t->b->len - 1] == ' ')
		t->b->len--;
	buf_add_char(t->b, '\n');
}

/* Fills t->v with `get` of each run, and returns the mean. Runs where column i of run_result.value is not known are
 * left out. */
static double each(struct text *t, double (*get)(const struct run_facts *f, const struct run_result *r, unsigned i),
		   unsigned i)
{
	t->n = 0;
	for (unsigned k = 0; k < t->r->n; k++)
		if (t->r->runs[k].started && run_value_known(t->r->facts, &t->r->runs[k], i))
			t->v[t->n++] = get(t->r->facts, &t->r->runs[k], i);
	return statistics_of(t->v, t->n).mean;
}

static double get_value(const struct run_facts *f, const struct run_result *r, unsigned i)
{
	return (double)r->value[i];
}

static double get_total(const struct run_facts *f, const struct run_result *r, unsigned i)
{
	return (double)run_total_uj(f, r);
}

/* Fills t->v with a figure of each run, and returns the mean. */
static double figure(struct text *t, enum run_figure k)
{
	t->n = 0;
	for (unsigned i = 0; i < t->r->n; i++)
		if (t->r->runs[i].started)
			t->v[t->n++] = (double)run_figure(t->r->facts, &t->r->runs[i], k);
	return statistics_of(t->v, t->n).mean;
}

static void add_time(struct text *t, const char *name, double ns, const char *const remark)
{
	struct scaled s = scale(ns / 1e9, seconds);
	char number[32];

	snprintf(number, sizeof(number), "%.3f", ns / 1e9 * s.factor);
	begin(t, number, s.unit, name);
	end(t, QUALITY_MEASURED, "%s", remark);
}

static unsigned energy_quality(const struct text *t, unsigned d)
{
	unsigned q = 0;

	for (unsigned i = 0; i < t->r->n; i++)
		if (t->r->runs[i].measured)
			q |= t->r->runs[i].energy_quality[d];
	return q;
}

static void add_joules(struct text *t, const char *name, double uj, double wall_ns, unsigned quality)
{
	struct scaled s = scale(uj / 1e6, joules), w = scale(wall_ns > 0 ? uj * 1e3 / wall_ns : 0, watts);
	char number[32];

	snprintf(number, sizeof(number), "%.3f", uj / 1e6 * s.factor);
	begin(t, number, s.unit, name);
	if (wall_ns > 0)
		end(t, quality, "%9.3f %s", uj * 1e3 / wall_ns * w.factor, w.unit);
	else
		end(t, quality, "%s", "");
}

/* Adds what the energy costs, with as many digits as a small part of a cent needs. */
static void add_costs(struct text *t, unsigned quality)
{
	static const struct {
		double (*get)(const struct run_report *report, const struct run_result *r);
		const char *unit, *name;
	} list[] = { { run_money, "", "cost" }, { run_grams, "g", "CO2" } };
	char number[40];

	for (unsigned k = 0; k < 2; k++) {
		t->n = 0;
		for (unsigned i = 0; i < t->r->n; i++) {
			double v = list[k].get(t->r, &t->r->runs[i]);

			if (!isnan(v))
				t->v[t->n++] = v;
		}
		if (!t->n)
			continue;
		snprintf(number, sizeof(number), k ? "%.6f" : "%.9f", statistics_of(t->v, t->n).mean);
		begin(t, number, list[k].unit, list[k].name);
		end(t, quality, "%s", "");
	}
}

static void add_energy(struct text *t)
{
	const struct run_facts *f = t->r->facts;
	double wall_ns = figure(t, RUN_WALL_NS);
	unsigned parts = 0, quality = 0;

	for (unsigned d = 0; d < f->n_domains; d++) {
		double uj = each(t, get_value, d);

		add_joules(t, f->domain[d].name, uj, wall_ns, energy_quality(t, d));
		if (f->domain[d].summed) {
			parts++;
			quality |= energy_quality(t, d);
		}
	}
	if (parts > 1)
		add_joules(t, "in all", each(t, get_total, 0), wall_ns, quality);
	add_costs(t, quality);
	buf_add_char(t->b, '\n');
}

static unsigned count_quality(const struct text *t)
{
	unsigned q = 0;

	for (unsigned i = 0; i < t->r->n; i++)
		q |= t->r->runs[i].measured ? t->r->runs[i].quality : 0;
	return q;
}

static double mean_of(struct text *t, const char *counter)
{
	const struct run_facts *f = t->r->facts;

	for (unsigned i = 0; i < f->n_counters; i++)
		if (strcmp(f->counter[i], counter) == 0)
			return each(t, get_value, f->n_domains + RUN_FIXED + i);
	return NAN;
}

static void add_counters(struct text *t)
{
	const struct run_facts *f = t->r->facts;
	double cycles = mean_of(t, "CYCLES"), cpu_ns = figure(t, RUN_CPU_NS);
	char number[40], remark[60];

	for (unsigned i = 0; i < f->n_counters; i++) {
		double v = each(t, get_value, f->n_domains + RUN_FIXED + i);

		remark[0] = '\0';
		if (!t->n)
			continue;
		if (strcmp(f->counter[i], "CYCLES") == 0 && cpu_ns > 0 && v > 0)
			snprintf(remark, sizeof(remark), "%9.3f GHz", v / cpu_ns);
		if (strcmp(f->counter[i], "INSTRUCTIONS") == 0 && cycles > 0)
			snprintf(remark, sizeof(remark), "%9.3f per cycle", v / cycles);
		add_grouped(number, sizeof(number), (uint64_t)(v + 0.5));
		begin(t, number, "", f->counter[i]);
		end(t, count_quality(t), "%s", remark);
	}
	if (f->switches) {
		add_grouped(number, sizeof(number), (uint64_t)(each(t, get_value, f->n_domains + RUN_SWITCHES) + 0.5));
		begin(t, number, "", "switches");
		end(t, count_quality(t), "%s", "");
	}
}

static void add_memory(struct text *t)
{
	double peak = figure(t, RUN_MEMORY_PEAK);
	const char *unit = peak < 1 << 20 ? "KiB" : peak < 1 << 30 ? "MiB" : "GiB";
	char number[32];

	snprintf(number, sizeof(number), "%.1f",
		 peak / (peak < 1 << 20 ? 1 << 10 :
			 peak < 1 << 30 ? 1 << 20 :
					  1 << 30));
	begin(t, number, unit, "peak memory");
	end(t, QUALITY_MEASURED, "%s", t->r->runs[0].memory_of_cgroup ? "" : "of its largest process");
}

/* A line of the bytes in two columns, unless both are 0. */
static void add_moved(struct text *t, const char *what, unsigned in, const char *in_word, unsigned out,
		      const char *out_word)
{
	unsigned n = t->r->facts->n_domains;
	double came = each(t, get_value, n + in), went = each(t, get_value, n + out);

	if (came <= 0 && went <= 0)
		return;
	buf_printf(t->b, "%20s %-3s %-16s ", "", "", what);
	add_bytes(t->b, came);
	buf_printf(t->b, " %s, ", in_word);
	add_bytes(t->b, went);
	buf_printf(t->b, " %s\n", out_word);
}

static void add_traffic(struct text *t)
{
	if (t->r->facts->network)
		add_moved(t, "network", RUN_RX_BYTES, "received", RUN_TX_BYTES, "sent");
	if (t->r->facts->block)
		add_moved(t, "block devices", RUN_READ_BYTES, "read", RUN_WRITE_BYTES, "written");
}

static void add_attached_head(const struct run_attached *a, struct buf *b)
{
	char shown[4 * COMMAND_MAX];

	if (a->pid)
		buf_printf(b, "\n Energy of process %d (%s):\n\n", (int)a->pid,
			   text_escape(shown, sizeof(shown), a->comm));
	else
		buf_printf(b, "\n Energy of cgroup %s and those below it:\n\n",
			   text_escape(shown, sizeof(shown), a->cgroup));
}

static void add_head(struct text *t)
{
	char shown[4 * COMMAND_MAX];
	size_t start;

	if (t->r->attached) {
		add_attached_head(t->r->attached, t->b);
		return;
	}
	buf_add_str(t->b, "\n Energy of '");
	start = t->b->len;
	for (char *const *word = t->r->command; *word && t->b->len - start <= COMMAND_MAX; word++)
		buf_printf(t->b, "%s%s", word == t->r->command ? "" : " ", text_escape(shown, sizeof(shown), *word));
	if (t->b->len - start > COMMAND_MAX) {
		t->b->len = start + COMMAND_MAX;
		while ((t->b->data[t->b->len] & 0xc0) == 0x80) /* no cut within a character */
			t->b->len--;
		buf_add_str(t->b, "...");
	}
	buf_add_str(t->b, "':");
	if (t->r->n > 1)
		buf_printf(t->b, "   (mean of %u runs, +- half of the 95 %% interval)", t->r->n);
	buf_add_str(t->b, "\n\n");
}

static void add_times(struct text *t)
{
	double wall = figure(t, RUN_WALL_NS), cpu = figure(t, RUN_CPU_NS);
	char remark[60] = "";

	if (wall > 0)
		snprintf(remark, sizeof(remark), "%9.3f CPUs", cpu / wall);
	add_time(t, "CPU time", cpu, remark);
	if (run_figure_known(t->r, RUN_USER_NS)) {
		add_time(t, "user", figure(t, RUN_USER_NS), "");
		add_time(t, "system", figure(t, RUN_SYSTEM_NS), "");
	}
	add_time(t, "elapsed", figure(t, RUN_WALL_NS), "");
	buf_add_char(t->b, '\n');
}

static bool run_any_measured(const struct run_report *r);

void run_write_text(const struct run_report *r, struct buf *b)
{
	struct text t = { .r = r, .b = b, .v = calloc(r->n, sizeof(double)) };
	bool measured = run_any_measured(r);

	if (!t.v) {
		b->failed = true;
		return;
	}
	add_head(&t);
	if (measured && r->facts->n_domains && r->facts->split)
		add_energy(&t);
	add_times(&t);
	if (measured)
		add_counters(&t);
	if (run_figure_known(r, RUN_MEMORY_PEAK))
		add_memory(&t);
	if (measured)
		add_traffic(&t);
	buf_add_char(b, '\n');
	run_write_notes(r, true, b);
	buf_add_char(b, '\n');
	free(t.v);
}

/* Notes below the figures: energy that is not included, reasons for estimates and losses, and the ends of the runs. */

static void add_idle(const struct run_report *r, struct buf *b)
{
	const struct run_facts *f = r->facts;
	bool own = strcmp(f->idle, "own") == 0;
	double window_ns = 0, idle_uj;

	for (unsigned i = 0; i < r->n; i++)
		window_ns += (double)r->runs[i].window_ns;
	buf_printf(b, " Idle energy of the machine is %s (idle: %s",
		   own                             ? "not included" :
		   strcmp(f->idle, "by-time") == 0 ? "included by share of CPU time" :
						     "included by share of the rest",
		   f->idle);
	for (unsigned d = 0; d < f->n_domains; d++) {
		idle_uj = 0;
		for (unsigned i = 0; i < r->n; i++)
			idle_uj += (double)r->runs[i].idle_uj[d];
		if (!f->domain[d].summed || !own || window_ns <= 0)
			continue;
		buf_printf(b, ", %s %.3f W", f->domain[d].name, idle_uj * 1e3 / window_ns);
		if (f->domain[d].idle_quality != QUALITY_MEASURED)
			buf_printf(b, " %s", quality_name(f->domain[d].idle_quality));
	}
	buf_add_str(b, ").\n");
}

/* Adds how far the mean energy may be off: of all runs or not at all. */
static void add_range(const struct run_report *r, struct buf *b)
{
	double uj = 0, range_uj = 0;

	for (unsigned i = 0; i < r->n; i++) {
		double all = (double)run_total_uj(r->facts, &r->runs[i]);

		if (!r->runs[i].measured || !(all > 0))
			continue;
		uj += all;
		range_uj += run_total_range(r->facts, &r->runs[i]) * all;
	}
	if (uj > 0 && !isnan(range_uj))
		buf_printf(b, " The split says of itself: this energy is right within %.*f %%, nine times in ten.\n",
			   range_uj < 0.0995 * uj, 100 * range_uj / uj);
}

/* Adds the reasons why energy is estimated, each once, without the name of the source that all of them begin with. */
static void add_reasons(const struct run_report *r, struct buf *b)
{
	const struct run_facts *f = r->facts;

	for (unsigned d = 0; d < f->n_domains; d++) {
		bool said = !*f->domain[d].reason;

		for (unsigned k = 0; k < d && !said; k++)
			said = strcmp(f->domain[k].reason, f->domain[d].reason) == 0;
		if (!said)
			buf_printf(b, " Energy is estimated here, not measured: %s.\n",
				   f->domain[d].reason + (strncmp(f->domain[d].reason, "estimate: ", 10) ? 0 : 10));
	}
}

static void add_losses(const struct run_report *r, struct buf *b)
{
	unsigned lost = 0;

	for (unsigned i = 0; i < r->n; i++)
		lost += r->runs[i].measured && r->runs[i].quality & (QUALITY_LOST | QUALITY_PARTIAL);
	if (lost)
		buf_printf(b, " Counts were lost in %u of %u run%s: do other programs hold the machine's counters?\n",
			   lost, r->n, r->n == 1 ? "" : "s");
}

static void add_notes(const struct run_report *r, struct buf *b)
{
	const struct run_facts *f = r->facts;

	add_losses(r, b);
	if (f->n_domains && f->split) {
		add_idle(r, b);
		add_range(r, b);
		add_reasons(r, b);
	} else if (!f->n_domains) {
		buf_add_str(b, " No energy: this machine has no source of it; see jouled doctor.\n");
	} else {
		buf_printf(b, " No energy: the agent's formula '%s' gives none to cgroups; see --private.\n",
			   f->formula);
	}
}

static void add_left(const struct run_left *l, struct buf *b)
{
	char shown[64];

	if (!l->n)
		return;
	buf_printf(b, " %u process%s of it still ran, counted up to here:", l->n, l->n == 1 ? "" : "es");
	for (unsigned i = 0; i < l->n && i < RUN_LEFT_MAX; i++)
		buf_printf(b, "%s %s (%d)", i ? "," : "", text_escape(shown, sizeof(shown), l->comm[i]),
			   (int)l->pid[i]);
	buf_add_str(b, l->n > RUN_LEFT_MAX ? ", ...\n" : "\n");
}

static void add_ends(const struct run_report *r, struct buf *b)
{
	unsigned failures = 0;

	for (unsigned i = 0; i < r->n; i++) {
		const struct run_result *run = &r->runs[i];

		failures += run->exit_status != 0;
		if (*run->error && (!i || strcmp(run->error, run[-1].error) != 0))
			buf_printf(b, " No figures of the agent: %s\n", run->error);
		add_left(&run->left, b);
	}
	if (failures && r->n > 1)
		buf_printf(b, " %u of %u runs failed.\n", failures, r->n);
	if (r->n == 1 && r->runs[0].signal)
		buf_printf(b, " Ended by signal %d (%s).\n", r->runs[0].signal, strsignal(r->runs[0].signal));
	else if (r->n == 1 && r->exit_status)
		buf_printf(b, " Exit status %d.\n", r->exit_status);
}

/* "1.234 J" */
static void add_amount(struct buf *b, double v, const char *const units[3])
{
	struct scaled s = scale(v, units);

	buf_printf(b, "%.3f %s", v * s.factor, s.unit);
}

static void add_others(const struct run_facts *f, const struct run_result *r, struct buf *b)
{
	if (!r->others_known)
		return;
	buf_add_str(b, r->n_others ? " Beside it ran" : " Nothing else ran.");
	for (unsigned i = 0; i < r->n_others; i++) {
		buf_printf(b, "%s %s (", i ? "," : "", r->other[i].name);
		add_amount(b, (double)r->other[i].cpu_ns / 1e9, seconds);
		buf_add_str(b, " of CPU");
		if (f->split && f->n_domains) {
			buf_add_str(b, ", ");
			add_amount(b, (double)r->other[i].energy_uj / 1e6, joules);
		}
		buf_add_char(b, ')');
	}
	if (r->n_others)
		buf_add_char(b, '.');
}

static void add_outlier(const struct run_report *r, const struct run_outlier *o, struct buf *b)
{
	static const char *const name[] = {
		[OUTLIER_ENERGY] = "energy", [OUTLIER_CPU] = "CPU time", [OUTLIER_WALL] = "elapsed time"
	};
	const char *const *units = o->of == OUTLIER_ENERGY ? joules : seconds;
	double factor = o->of == OUTLIER_ENERGY ? 1e-6 : 1e-9;

	buf_printf(b, " Run %u", o->run + 1);
	if (r->side)
		buf_printf(b, " of %c", r->side);
	buf_printf(b, " lies apart: %s ", name[o->of]);
	add_amount(b, o->value * factor, units);
	buf_add_str(b, ", median ");
	add_amount(b, o->median * factor, units);
	buf_add_char(b, '.');
	add_others(r->facts, &r->runs[o->run], b);
	buf_add_char(b, '\n');
}

static void add_outliers(const struct run_report *r, struct buf *b)
{
	struct run_outlier *list;
	int n = run_outliers_find(r, &list);

	b->failed |= n < 0;
	for (int i = 0; i < n && i < OUTLIERS_SHOWN; i++)
		add_outlier(r, &list[i], b);
	if (n > OUTLIERS_SHOWN)
		buf_printf(b, " %d more run%s apart; --json names all.\n", n - OUTLIERS_SHOWN,
			   n == OUTLIERS_SHOWN + 1 ? " lies" : "s lie");
	free(list);
}

/* Has the agent given figures of any run? */
static bool run_any_measured(const struct run_report *r)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->runs[i].measured)
			return true;
	return false;
}

static void add_attached_notes(const struct run_attached *a, struct buf *b)
{
	char shown[400];

	text_escape(shown, sizeof(shown), a->cgroup);
	if (a->by == RUN_BY_ROWS)
		buf_add_str(b, " Figures: the rows of the cgroup and of those below it, of ended ones too.\n");
	else if (a->by == RUN_BY_ROW)
		buf_printf(b, " Figures: the row of cgroup %s, in which the process was alone.\n", shown);
	else
		buf_printf(
			b,
			" Figures: %.1f %% of the row of cgroup %s, the process's part of the CPU time there: estimated.\n"
			" Switches, network and block work of one process are not known.\n",
			100 * a->share, shown);
	if (strcmp(a->until, "end") == 0)
		buf_printf(b, " Measured until the %s ended.\n", a->pid ? "process" : "cgroup");
	else if (strcmp(a->until, "move") == 0)
		buf_add_str(b, " The process moved to another cgroup; measured until then. Measure it again there.\n");
}

void run_write_notes(const struct run_report *r, bool machine, struct buf *b)
{
	if (r->attached)
		add_attached_notes(r->attached, b);
	if (machine && run_any_measured(r))
		add_notes(r, b);
	add_outliers(r, b);
	add_ends(r, b);
}
