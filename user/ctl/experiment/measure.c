/* SPDX-License-Identifier: Apache-2.0 */
/* rapl-power.csv, cgroup-power.csv and counters.csv from readings of the agent. Energy is cumulative since the
 * experiment began, so that whoever reads it differences what he likes; power is the mean since the row before. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../base/clock.h"
#include "record.h"

#define COLUMNS (2 * SCHEMA_MAX_DOMAINS + RUN_VALUES_MAX)

static const char *const fixed_names[RUN_FIXED] = { "cpu-ns",     "switches", "rx-bytes",
						    "rx-packets", "tx-bytes", "tx-packets" };

void record_measure_begin(struct record_measure *m, struct agent *a, const struct run_facts *f, const char *path,
			  enum record_samples from)
{
	*m = (struct record_measure){ .agent = a, .facts = *f, .path = path, .samples_from = from };
}

void record_measure_end(struct record_measure *m)
{
	run_rows_free(&m->rows);
}

/* GPUs and meters outside have files of their own. */
static bool is_rapl(const struct run_domain *d)
{
	return d->kind != DOMAIN_GPU && d->kind != DOMAIN_EXTERNAL;
}

/* Of GPUs a repetition has its own alone, as its gpu-power.csv has. */
bool record_measure_has(const struct record_measure *m, const struct record_out *out, enum recorder_table t, unsigned d)
{
	const struct run_domain *domain = &m->facts.domain[d];

	return is_rapl(domain) ||
	       (t == RECORDER_CGROUP && domain->kind == DOMAIN_GPU && strcmp(domain->name, out->domain) == 0);
}

static void name_energy(const struct record_measure *m, struct record_out *out, enum recorder_table t)
{
	char text[SCHEMA_MAX_DOMAINS][80];
	const char *names[2 * SCHEMA_MAX_DOMAINS];
	unsigned n = 0;

	for (unsigned d = 0; d < m->facts.n_domains; d++)
		if (record_measure_has(m, out, t, d))
			names[n++] = m->facts.domain[d].name;
	for (unsigned d = 0; d < m->facts.n_domains; d++) {
		if (!record_measure_has(m, out, t, d))
			continue;
		snprintf(text[d], sizeof(text[d]), "%s-energy", m->facts.domain[d].name);
		names[n++] = text[d];
	}
	if (n)
		recorder_columns(out->rec, t, names, n);
}

/* cpu-ns, events, then what else there is here. */
static void name_counters(const struct record_measure *m, struct recorder *r)
{
	const char *names[RUN_VALUES_MAX] = { fixed_names[RUN_CPU] };
	unsigned n = 1;

	for (unsigned c = 0; c < m->facts.n_counters; c++)
		names[n++] = m->facts.counter[c];
	if (m->facts.switches)
		names[n++] = fixed_names[RUN_SWITCHES];
	for (unsigned i = RUN_RX_BYTES; m->facts.network && i < RUN_FIXED; i++)
		names[n++] = fixed_names[i];
	recorder_columns(r, RECORDER_COUNTERS, names, n);
}

static uint64_t milliwatt(uint64_t uj, uint64_t ns)
{
	return ns ? (uint64_t)((double)uj * 1e6 / (double)ns + 0.5) : 0;
}

/* energy: of the row; before: of the one before. The sum of powers that are apart from each other. */
static uint64_t write_energy(const struct record_measure *m, struct record_out *out, enum recorder_table t,
			     const uint64_t *energy, const uint64_t *before)
{
	uint64_t ns = m->last.mono_ns - m->first.mono_ns - m->before.window_ns, sum = 0;
	int64_t v[COLUMNS];
	unsigned n = 0;

	for (unsigned d = 0; d < m->facts.n_domains; d++) {
		uint64_t mw = milliwatt(energy[d] - before[d], ns);

		if (record_measure_has(m, out, t, d))
			v[n++] = (int64_t)mw;
		if (is_rapl(&m->facts.domain[d]) && run_domain_adds_up(&m->facts.domain[d]))
			sum += mw;
	}
	for (unsigned d = 0; d < m->facts.n_domains; d++)
		if (record_measure_has(m, out, t, d))
			v[n++] = (int64_t)energy[d];
	if (n)
		recorder_row(out->rec, t, m->last.real_ns, v);
	return sum;
}

static void write_counters(const struct record_measure *m, struct record_out *out, const struct run_result *r)
{
	int64_t v[RUN_VALUES_MAX] = { (int64_t)run_fixed(&m->facts, r, RUN_CPU) };
	unsigned n = 1;

	for (unsigned c = 0; c < m->facts.n_counters; c++)
		v[n++] = (int64_t)run_counter(&m->facts, r, c);
	if (m->facts.switches)
		v[n++] = (int64_t)run_fixed(&m->facts, r, RUN_SWITCHES);
	for (unsigned i = RUN_RX_BYTES; m->facts.network && i < RUN_FIXED; i++)
		v[n++] = (int64_t)run_fixed(&m->facts, r, i);
	recorder_row(out->rec, RECORDER_COUNTERS, m->last.real_ns, v);
}

static void name_all(const struct record_measure *m, struct record_out *out)
{
	name_energy(m, out, RECORDER_RAPL);
	if (!m->path)
		return;
	name_energy(m, out, RECORDER_CGROUP);
	name_counters(m, out->rec);
}

static void write_rows(struct record_measure *m, struct record_out *out, const struct run_result *r)
{
	uint64_t cgroup_mw = 0;

	if (!m->before.measured)
		name_all(m, out);
	m->power_mw = write_energy(m, out, RECORDER_RAPL, r->machine_uj, m->before.machine_uj);
	if (m->path) {
		cgroup_mw = write_energy(m, out, RECORDER_CGROUP, r->value, m->before.value);
		write_counters(m, out, r);
	}
	if (m->samples_from == SAMPLES_RAPL || (m->samples_from == SAMPLES_CGROUP && m->path))
		recorder_sample(out->rec, GPU_RING_POWER, m->last.real_ns / 1000,
				(int64_t)(m->samples_from == SAMPLES_RAPL ? m->power_mw : cgroup_mw));
}

/* The second reading: from here on energy counts, and this much was used since the first one. */
static void write_first(struct record_measure *m, struct record_out *out, unsigned n, const struct run_machine *earlier)
{
	struct run_result zero = { .measured = true };
	struct run_result back = { 0 };

	for (unsigned d = 0; d < m->facts.n_domains; d++)
		back.machine_uj[d] = earlier->energy_uj[d] -
				     m->first.energy_uj[d]; /* modulo 2^64, as the difference is taken */
	back.window_ns = earlier->mono_ns - m->first.mono_ns;
	m->before = back;
	for (unsigned i = 0; i < n; i++)
		write_rows(m, &out[i], &zero);
	m->before = zero;
}

int record_measure_take(struct record_measure *m, struct record_out *out, unsigned n, struct err *err)
{
	struct run_machine now;
	struct run_result r = { 0 };
	int code = run_reading_ask(m->agent, &m->facts, m->path, &now, &m->rows, err);

	if (code) {
		m->failed++;
		return code == -EPROTO ? 0 : code;
	}
	m->readings++;
	if (!m->begun) {
		m->begun = true;
		m->first = now;
		return 0;
	}
	if (!m->before.measured) {
		struct run_machine earlier = m->first;

		m->first = m->last = now;
		write_first(m, out, n, &earlier);
		return 0;
	}
	m->last = now;
	run_result_fill(&r, &m->facts, &m->rows, &m->first, &now);
	for (unsigned i = 0; i < n; i++)
		write_rows(m, &out[i], &r);
	for (unsigned d = 0; d < m->facts.n_domains; d++)
		m->quality[d] |= r.energy_quality[d];
	m->counts_quality |= r.quality;
	m->before = r;
	return 0;
}
