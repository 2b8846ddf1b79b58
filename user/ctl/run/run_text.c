/* SPDX-License-Identifier: Apache-2.0 */
/* For people: a line per value, numbers and units below each other. What is not known has no line. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/text.h"
#include "run_result.h"
#include "run_stats.h"

#define COMMAND_MAX 100

struct text {
	const struct run_report *r;
	struct buf *b;
	double *v; /* a value per run */
	unsigned n; /* of it */
};

/* A number in the unit that leaves one to three digits before the point. */
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

/* 1234567 as 1,234,567. */
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

/* "      12.345 J   package-0" and room for a remark. */
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
		struct run_stats s = run_stats_of(t->v, t->n);

		if (s.mean > 0)
			buf_printf(t->b, " +- %5.2f %%", 100 * s.ci95 / s.mean);
	}
	if (quality != QUALITY_MEASURED)
		buf_printf(t->b, "  %s", quality_name(quality));
	while (t->b->len && t->b->data[t->b->len - 1] == ' ')
		t->b->len--;
	buf_add_char(t->b, '\n');
}

/* What get says of each run in t->v; its mean. i: 0, or the column of run_result.value + 1. */
static double each(struct text *t, double (*get)(const struct run_facts *f, const struct run_result *r, unsigned i),
		   unsigned i)
{
	t->n = 0;
	for (unsigned k = 0; k < t->r->n; k++)
		if (t->r->runs[k].started && (!i || run_value_known(t->r->facts, &t->r->runs[k], i - 1)))
			t->v[t->n++] = get(t->r->facts, &t->r->runs[k], i);
	return run_stats_of(t->v, t->n).mean;
}

static double get_value(const struct run_facts *f, const struct run_result *r, unsigned i)
{
	return (double)r->value[i - 1];
}

static double get_total(const struct run_facts *f, const struct run_result *r, unsigned i)
{
	double sum = 0;

	for (unsigned d = 0; d < f->n_domains; d++)
		sum += run_domain_adds_up(&f->domain[d]) ? (double)r->value[d] : 0;
	return sum;
}

static double get_wall(const struct run_facts *f, const struct run_result *r, unsigned i)
{
	return (double)r->wall_ns;
}

static double get_cpu(const struct run_facts *f, const struct run_result *r, unsigned i)
{
	return (double)run_cpu_ns(f, r);
}

static double get_user(const struct run_facts *f, const struct run_result *r, unsigned i)
{
	return (double)r->user_ns;
}

static double get_system(const struct run_facts *f, const struct run_result *r, unsigned i)
{
	return (double)r->system_ns;
}

static double get_peak(const struct run_facts *f, const struct run_result *r, unsigned i)
{
	return (double)r->memory_peak;
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

static void add_energy(struct text *t)
{
	const struct run_facts *f = t->r->facts;
	double wall_ns = each(t, get_wall, 0);
	unsigned parts = 0, quality = 0;

	for (unsigned d = 0; d < f->n_domains; d++) {
		double uj = each(t, get_value, d + 1);

		add_joules(t, f->domain[d].name, uj, wall_ns, energy_quality(t, d));
		if (run_domain_adds_up(&f->domain[d])) {
			parts++;
			quality |= energy_quality(t, d);
		}
	}
	if (parts > 1)
		add_joules(t, "in all", each(t, get_total, 1), wall_ns, quality);
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
			return each(t, get_value, f->n_domains + RUN_FIXED + i + 1);
	return NAN;
}

static void add_counters(struct text *t)
{
	const struct run_facts *f = t->r->facts;
	double cycles = mean_of(t, "CYCLES"), cpu_ns = each(t, get_cpu, 0);
	char number[40], remark[60];

	for (unsigned i = 0; i < f->n_counters; i++) {
		double v = each(t, get_value, f->n_domains + RUN_FIXED + i + 1);

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
		add_grouped(number, sizeof(number),
			    (uint64_t)(each(t, get_value, f->n_domains + RUN_SWITCHES + 1) + 0.5));
		begin(t, number, "", "switches");
		end(t, count_quality(t), "%s", "");
	}
}

static void add_memory(struct text *t)
{
	double peak = each(t, get_peak, 0);
	const char *unit = peak < 1 << 20 ? "KiB" : peak < 1 << 30 ? "MiB" : "GiB";
	char number[32];

	snprintf(number, sizeof(number), "%.1f",
		 peak / (peak < 1 << 20 ? 1 << 10 :
			 peak < 1 << 30 ? 1 << 20 :
					  1 << 30));
	begin(t, number, unit, "peak memory");
	end(t, QUALITY_MEASURED, "%s", t->r->runs[0].memory_of_cgroup ? "" : "of its largest process");
}

static void add_network(struct text *t)
{
	const struct run_facts *f = t->r->facts;
	double rx = each(t, get_value, f->n_domains + RUN_RX_BYTES + 1),
	       tx = each(t, get_value, f->n_domains + RUN_TX_BYTES + 1);

	if (!f->network || (rx <= 0 && tx <= 0))
		return;
	buf_printf(t->b, "%20s %-3s %-16s ", "", "", "network");
	add_bytes(t->b, rx);
	buf_add_str(t->b, " received, ");
	add_bytes(t->b, tx);
	buf_add_str(t->b, " sent\n");
}

static void add_head(struct text *t)
{
	char shown[4 * COMMAND_MAX];
	size_t start;

	buf_add_str(t->b, "\n Energy of '");
	start = t->b->len;
	for (char *const *word = t->r->command; *word && t->b->len - start <= COMMAND_MAX; word++)
		buf_printf(t->b, "%s%s", word == t->r->command ? "" : " ", text_escape(shown, sizeof(shown), *word));
	if (t->b->len - start > COMMAND_MAX) {
		t->b->len = start + COMMAND_MAX;
		while ((t->b->data[t->b->len] & 0xc0) == 0x80) /* not within a character */
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
	double wall = each(t, get_wall, 0), cpu = each(t, get_cpu, 0);
	char remark[60] = "";

	if (wall > 0)
		snprintf(remark, sizeof(remark), "%9.3f CPUs", cpu / wall);
	add_time(t, "CPU time", cpu, remark);
	add_time(t, "user", each(t, get_user, 0), "");
	add_time(t, "system", each(t, get_system, 0), "");
	add_time(t, "elapsed", each(t, get_wall, 0), "");
	buf_add_char(t->b, '\n');
}

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
	add_memory(&t);
	if (measured)
		add_network(&t);
	buf_add_char(b, '\n');
	run_write_notes(r, b);
	buf_add_char(b, '\n');
	free(t.v);
}
