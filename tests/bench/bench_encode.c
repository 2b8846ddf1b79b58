/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of encoders and formulas: 1000 cgroups with 92-byte paths on 2 CPUs with 6 counters, every (cgroup,
 * CPU) pair touched. Prints nanoseconds per cgroup (per touched pair for hwpc, whose documents hold
 * one object for each) beside copying the same bytes, the two interleaved: median and quartiles.
 * Arguments: rounds (default 41). One line per encoder, tab-separated, for `make bench`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "encode/encode.h"
#include "encode/metrics/openmetrics.h"
#include "encode/push.h"
#include "formula/formula.h"
#include "serve/routes.h"

/* The encoders that are measured; the program finds them in the table (encode/encode.c). */
extern const struct encoder_ops encode_hwpc, encode_power, encode_table, encode_snapshot, encode_vjoule, encode_influx,
	encode_remote_write, encode_otlp;
extern const struct push_format push_influx, push_remote_write, push_otlp;
/* Of alloc_count.so; NULL without it. */
extern unsigned long long alloc_count_calls(void) __attribute__((weak));

#define CGROUPS 1000
#define CPUS 2
#define COUNTERS 6
#define ROWS (READING_SPECIAL_ROWS + CGROUPS)
#define MAX_ROUNDS 1001

static struct schema schema;
static struct snapshot snap = { .schema = &schema };
static char paths[CGROUPS][93];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void make_schema(void)
{
	static const char *const events[COUNTERS] = {
		"CPU_CLK_THREAD_UNHALTED:REF_P",
		"CPU_CLK_THREAD_UNHALTED:THREAD_P",
		"LLC_MISSES",
		"INSTRUCTIONS_RETIRED",
		"BRANCH_MISSES",
		"TASK_CLOCK",
	};
	static const char *const msr[] = { "TSC", "APERF", "MPERF" };

	snprintf(schema.sensor, sizeof(schema.sensor), "bench");
	schema.n_cpus = CPUS;
	schema.n_packages = 1;
	schema.cpus = calloc(CPUS, sizeof(*schema.cpus));
	for (unsigned i = 0; i < CPUS; i++)
		schema.cpus[i] = (struct cpu_desc){ .cpu = (uint16_t)i, .present = true };
	for (unsigned i = 0; i < COUNTERS; i++)
		snprintf(schema.core.ev[i].name, SCHEMA_NAME_MAX, "%s", events[i]);
	schema.core.n = COUNTERS;
	for (unsigned i = 0; i < 3; i++)
		snprintf(schema.msr.ev[i].name, SCHEMA_NAME_MAX, "%s", msr[i]);
	schema.msr.n = 3;
	schema.n_domains = 1;
	schema.domains[0] = (struct domain_desc){ .kind = DOMAIN_PACKAGE,
						  .interface = ENERGY_POWERCAP,
						  .name = "package-0" };
}

static void make_row(unsigned i)
{
	struct snap_row *r = &snap.rows[READING_SPECIAL_ROWS + i];

	snprintf(paths[i], sizeof(paths[i]),
		 "/kubepods.slice/kubepods-burstable.slice/kubepods-pod%08x.slice/cri-%014x.scope", i * 2654435761u, i);
	*r = (struct snap_row){ .kind = ROW_CGROUP,
				.id = 1000 + i,
				.path = paths[i],
				.selected = true,
				.key = READING_SPECIAL_ROWS + i,
				.first_cell = i * CPUS,
				.n_cells = CPUS };
	for (unsigned c = 0; c < CPUS; c++) {
		struct snap_cell *cell = &snap.cells[i * CPUS + c];

		*cell = (struct snap_cell){ .row = READING_SPECIAL_ROWS + i,
					    .cpu = (uint16_t)c,
					    .time_ns = 400000 + i * 777 };
		cell->enabled_ns = cell->running_ns = cell->time_ns;
		for (unsigned k = 0; k < COUNTERS; k++)
			r->counters[k] += cell->counters[k] = (uint64_t)cell->time_ns * 3 / (k * k * 5 + 1);
		r->time_ns += cell->time_ns;
	}
	*snapshot_energy(&snap, READING_SPECIAL_ROWS + i, 0) = r->time_ns / 100;
}

static void make_snapshot(void)
{
	snap.start_ns = 1000000000;
	snap.end_ns = 2000000000;
	snap.nominal_ns = 1000000000;
	snap.end_real_ns = 1673603482630000000;
	if (snapshot_reserve(&snap, ROWS, CGROUPS * CPUS))
		exit(1);
	memset(snap.energy_uj, 0, sizeof(uint64_t) * ROWS);
	memset(snap.uncertainty_ppm, 0xff, sizeof(uint32_t) * ROWS);
	for (unsigned i = 0; i < READING_SPECIAL_ROWS; i++)
		snap.rows[i] = (struct snap_row){ .kind = (enum row_kind)i,
						  .path = row_kind_name((enum row_kind)i),
						  .selected = true };
	snap.n_rows = ROWS;
	snap.n_cells = CGROUPS * CPUS;
	for (unsigned i = 0; i < CPUS; i++) {
		snap.cpus[i] = (struct snap_cpu){ .online = true, .elapsed_ns = 1000000000, .busy_ns = 700000000 };
		snap.cpus[i].msr[0] = snap.cpus[i].msr[1] = snap.cpus[i].msr[2] = 2600000000;
	}
	for (unsigned i = 0; i < CGROUPS; i++)
		make_row(i);
	snap.domains[0] = (struct snap_domain){ .start_ns = 1000000000,
						.end_ns = 2000000000,
						.energy_uj = 30000000,
						.energy_q32 = 128849018880,
						.scale = 1 };
	snprintf(snap.formula, sizeof(snap.formula), "share");
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void measure(const struct encoder_ops *ops, unsigned rounds, unsigned units, const char *unit)
{
	static uint64_t encode_ns[MAX_ROUNDS], copy_ns[MAX_ROUNDS];
	struct encode_options o = { .stand_ins = true };
	struct encoder *e = NULL;
	struct buf out = { 0 };
	struct err err = { 0 };
	char *copy;

	if (ops->create(&o, &schema, &e, &err) || ops->encode(e, &snap, NULL, &out) || !out.len) {
		fprintf(stderr, "%s: %s%s\n", ops->name, err.text, e ? ops->stats(e)->reason : "");
		exit(1);
	}
	copy = malloc(out.len);
	for (unsigned i = 0; copy && i < rounds; i++) {
		uint64_t t0, t1;

		snap.end_real_ns += 1000000000;
		buf_reset(&out);
		t0 = now_ns();
		ops->encode(e, &snap, NULL, &out);
		t1 = now_ns();
		memcpy(copy, out.data, out.len);
		__asm__ volatile("" : : "r"(copy) : "memory");
		copy_ns[i] = now_ns() - t1;
		encode_ns[i] = t1 - t0;
	}
	qsort(encode_ns, rounds, sizeof(*encode_ns), by_value);
	qsort(copy_ns, rounds, sizeof(*copy_ns), by_value);
	printf("%s\t%zu bytes\tmedian %.1f us\tper %s %.1f ns (%.1f-%.1f)\tmemcpy %.1f ns (%.1f-%.1f)\tratio %.1f\n",
	       ops->name, out.len, (double)encode_ns[rounds / 2] / 1e3, unit, (double)encode_ns[rounds / 2] / units,
	       (double)encode_ns[rounds / 4] / units, (double)encode_ns[rounds * 3 / 4] / units,
	       (double)copy_ns[rounds / 2] / units, (double)copy_ns[rounds / 4] / units,
	       (double)copy_ns[rounds * 3 / 4] / units, (double)encode_ns[rounds / 2] / (double)copy_ns[rounds / 2]);
	free(copy);
	buf_free(&out);
	ops->destroy(e);
}

/* The bytes of a document as they are sent, and the time of packing them. */
static size_t packed(const struct push_format *f, const struct buf *document, uint64_t *ns)
{
	size_t head = f->head ? f->head(document->data, document->len) : 0, n = 0;
	struct push_part part = { document->data, document->data + head, head, document->len - head };
	struct buf wrapped = { 0 }, body = { 0 };
	struct packer p = { 0 };

	if (f->wrap ? f->wrap(&part, &wrapped) : (buf_add(&wrapped, document->data, document->len), wrapped.failed))
		exit(1);
	for (unsigned i = 0; i < 5; i++) { /* the least: the first one allocates */
		uint64_t t0 = now_ns();

		buf_reset(&body);
		if (pack(&p, f->packing, wrapped.data, wrapped.len, &body))
			exit(1);
		*ns = i && now_ns() - t0 > *ns ? *ns : now_ns() - t0;
	}
	n = body.len;
	packer_fini(&p);
	buf_free(&wrapped);
	buf_free(&body);
	return n;
}

/* A format that is pushed. Values change from document to document; the last one is packed. */
static void measure_pushed(const struct encoder_ops *ops, const struct push_format *f, unsigned rounds)
{
	static uint64_t ns[MAX_ROUNDS];
	struct encode_options o = { .sensor = "bench", .keep_ns = SERIES_KEEP_NS };
	unsigned long long calls = 0;
	uint64_t pack_ns = 0;
	struct encoder *e = NULL;
	struct buf out = { 0 };
	unsigned series = 0;
	size_t at, n;

	if (ops->create(&o, &schema, &e, NULL))
		exit(1);
	for (unsigned i = 0; i < rounds + 2; i++) {
		uint64_t t0;

		for (unsigned k = READING_SPECIAL_ROWS; k < ROWS; k++) {
			snap.rows[k].time_ns = (uint64_t)rand() % 4000000;
			for (unsigned c = 0; c < COUNTERS; c++)
				snap.rows[k].counters[c] = (uint64_t)rand() % 4000000;
			*snapshot_energy(&snap, k, 0) = (uint64_t)rand() % 60000;
		}
		snap.end_real_ns += 1000000000;
		buf_reset(&out);
		if (i == 2 && alloc_count_calls)
			calls = alloc_count_calls();
		t0 = now_ns();
		if (ops->encode(e, &snap, NULL, &out))
			exit(1);
		if (i >= 2)
			ns[i - 2] = now_ns() - t0;
	}
	if (alloc_count_calls)
		calls = alloc_count_calls() - calls;
	for (at = f->head ? f->head(out.data, out.len) : 0; at < out.len && (n = f->item(out.data + at, out.len - at));
	     at += n)
		series++;
	qsort(ns, rounds, sizeof(*ns), by_value);
	n = packed(f, &out, &pack_ns);
	printf("%s\t%zu bytes\tmedian %.1f us\tper series %.1f ns (%.1f-%.1f)\t%.1f bytes a sample as sent, packed in %.1f ns\t%s%.2f heap allocations\n",
	       ops->name, out.len, (double)ns[rounds / 2] / 1e3, (double)ns[rounds / 2] / series,
	       (double)ns[rounds / 4] / series, (double)ns[rounds * 3 / 4] / series, (double)n / series,
	       (double)pack_ns / series, alloc_count_calls ? "" : "not counted: ", (double)calls / rounds);
	buf_free(&out);
	ops->destroy(e);
}

/* The work of the query socket's thread for one answer: JSON, CBOR or the metrics page. */
static void write_answer(unsigned what, struct totals *t, struct encoder *cbor, struct buf *scratch, struct buf *out)
{
	buf_reset(out);
	if (what == 0)
		serve_snapshot_json(&snap, out);
	else if (what == 1)
		encode_snapshot.encode(cbor, &snap, NULL, out);
	else
		openmetrics_write(t, NULL, false, scratch, out);
}

static void measure_answers(unsigned rounds)
{
	static const char *const names[] = { "answer json", "answer cbor", "answer metrics" };
	static uint64_t ns[MAX_ROUNDS];
	struct totals_options to = { .keep_ns = SERIES_KEEP_NS };
	struct totals *t = totals_new(&schema, &to);
	struct encode_options o = { 0 };
	struct buf out = { 0 }, scratch = { 0 };
	struct encoder *cbor = NULL;

	if (!t || encode_snapshot.create(&o, &schema, &cbor, NULL))
		exit(1);
	totals_add(t, &snap, NULL);
	for (unsigned what = 0; what < 3; what++) {
		write_answer(what, t, cbor, &scratch, &out);
		for (unsigned i = 0; i < rounds; i++) {
			uint64_t t0 = now_ns();

			write_answer(what, t, cbor, &scratch, &out);
			ns[i] = now_ns() - t0;
		}
		qsort(ns, rounds, sizeof(*ns), by_value);
		printf("%s\t%zu bytes\tmedian %.1f us\tper cgroup %.1f ns (%.1f-%.1f)\t-\t-\n", names[what], out.len,
		       (double)ns[rounds / 2] / 1e3, (double)ns[rounds / 2] / CGROUPS, (double)ns[rounds / 4] / CGROUPS,
		       (double)ns[rounds * 3 / 4] / CGROUPS);
	}
	encode_snapshot.destroy(cbor);
	totals_free(t);
	free(t);
	buf_free(&out);
	buf_free(&scratch);
}

/* Splitting one domain; each round is a new interval, so the model learns from it too. */
static void measure_formula(const struct formula_ops *ops, unsigned rounds)
{
	static uint64_t apply_ns[MAX_ROUNDS];
	struct formula_options o = { .idle = IDLE_OWN };
	struct formula *f;

	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		o.idle_watts[k] = (double)NAN;
	f = ops->create(&o);
	for (unsigned i = 0; i < rounds; i++) {
		struct snap_cell *cell = &snap.cells[i * 7 % snap.n_cells];
		uint64_t t0;

		cell->counters[i % COUNTERS] += 1000000000;
		snap.domains[0].start_ns = snap.domains[0].end_ns;
		snap.domains[0].end_ns += 1000000000;
		snap.domains[0].energy_uj = 30000000 + i % 5 * 1000000;
		t0 = now_ns();
		if (!f || ops->apply(f, &snap))
			exit(1);
		apply_ns[i] = now_ns() - t0;
	}
	ops->destroy(f);
	qsort(apply_ns, rounds, sizeof(*apply_ns), by_value);
	printf("formula %s\t-\tmedian %.1f us\tper cgroup %.1f ns (%.1f-%.1f)\t-\t-\n", ops->name,
	       (double)apply_ns[rounds / 2] / 1e3, (double)apply_ns[rounds / 2] / CGROUPS,
	       (double)apply_ns[rounds / 4] / CGROUPS, (double)apply_ns[rounds * 3 / 4] / CGROUPS);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 41;

	if (rounds < 1 || rounds > MAX_ROUNDS)
		return 2;
	make_schema();
	make_snapshot();
	measure(&encode_hwpc, rounds, CGROUPS * CPUS, "touched (cgroup, CPU)");
	measure(&encode_power, rounds, CGROUPS, "cgroup");
	measure(&encode_table, rounds, CGROUPS, "cgroup");
	measure(&encode_vjoule, rounds, CGROUPS, "cgroup");
	measure(&encode_snapshot, rounds, CGROUPS, "cgroup");
	measure_pushed(&encode_influx, &push_influx, rounds);
	measure_pushed(&encode_remote_write, &push_remote_write, rounds);
	measure_pushed(&encode_otlp, &push_otlp, rounds);
	measure_answers(rounds);
	measure_formula(&formula_share, rounds);
	measure_formula(&formula_model, rounds);
	snapshot_free(&snap);
	free(schema.cpus);
	return 0;
}
