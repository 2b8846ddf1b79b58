/* SPDX-License-Identifier: Apache-2.0 */
/* rapl-power.csv, cgroup-power.csv and counters.csv from readings of the agent. Energy is cumulative since the
 * experiment began, so that a reader can take the difference of any two rows. Power is the mean since the row before. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/thread.h"
#include "measure.h"

#define COLUMNS (2 * SCHEMA_MAX_DOMAINS + RUN_VALUES_MAX)

static const char *const fixed_names[RUN_FIXED] = {
	"cpu-ns",     "switches",      "rx-bytes",    "rx-packets",     "tx-bytes",      "tx-packets",
	"read-bytes", "read-requests", "write-bytes", "write-requests", "discard-bytes", "discard-requests"
};

/* True when the machine counts a column of RUN_RX_BYTES and behind it. */
static bool is_counted(const struct run_facts *f, unsigned column)
{
	return column < RUN_BLOCK ? f->network : f->block;
}

void record_measure_begin(struct record_measure *m, struct agent *a, const struct run_facts *f, const char *path,
			  enum record_samples from)
{
	*m = (struct record_measure){ .agent = a, .figures = { .facts = *f }, .path = path, .samples_from = from };
}

void record_measure_end(struct record_measure *m)
{
	run_rows_free(&m->rows);
}

/* GPUs and external meters have files of their own. */
static bool is_rapl(const struct run_domain *d)
{
	return d->kind < DOMAIN_GPU;
}

/* A repetition has only the domain of its own GPU, as its gpu-power.csv. A cgroup has none where energy is not split. */
bool record_has_domain(const struct run_facts *f, const struct record_out *out, enum recorder_table t, unsigned d)
{
	const struct run_domain *domain = &f->domain[d];

	if (t == RECORDER_CGROUP && !f->split)
		return false;
	return is_rapl(domain) ||
	       (t == RECORDER_CGROUP && domain->kind == DOMAIN_GPU && strcmp(domain->name, out->domain) == 0);
}

static void name_energy(const struct record_measure *m, struct record_out *out, enum recorder_table t)
{
	char text[SCHEMA_MAX_DOMAINS][80];
	const char *names[2 * SCHEMA_MAX_DOMAINS];
	unsigned n = 0;

	for (unsigned d = 0; d < m->figures.facts.n_domains; d++)
		if (record_has_domain(&m->figures.facts, out, t, d))
			names[n++] = m->figures.facts.domain[d].name;
	for (unsigned d = 0; d < m->figures.facts.n_domains; d++) {
		if (!record_has_domain(&m->figures.facts, out, t, d))
			continue;
		snprintf(text[d], sizeof(text[d]), "%s-energy", m->figures.facts.domain[d].name);
		names[n++] = text[d];
	}
	if (n)
		recorder_columns(out->rec, t, names, n);
}

/* Names the columns of counters.csv: cpu-ns, events, then switches, network traffic and block work where they are counted. */
static void name_counters(const struct record_measure *m, struct recorder *r)
{
	const char *names[RUN_VALUES_MAX] = { fixed_names[RUN_CPU] };
	unsigned n = 1;

	for (unsigned c = 0; c < m->figures.facts.n_counters; c++)
		names[n++] = m->figures.facts.counter[c];
	if (m->figures.facts.switches)
		names[n++] = fixed_names[RUN_SWITCHES];
	for (unsigned i = RUN_RX_BYTES; i < RUN_FIXED; i++)
		if (is_counted(&m->figures.facts, i))
			names[n++] = fixed_names[i];
	recorder_columns(r, RECORDER_COUNTERS, names, n);
}

static uint64_t milliwatt(uint64_t uj, uint64_t ns)
{
	return ns ? (uint64_t)((double)uj * 1e6 / (double)ns + 0.5) : 0;
}

/* Returns the kinds of domains in rapl-power.csv that are added up, a DOMAIN_BIT each. */
static unsigned summed(const struct record_measure *m)
{
	unsigned kinds = 0;

	for (unsigned d = 0; d < m->figures.facts.n_domains; d++)
		kinds |= is_rapl(&m->figures.facts.domain[d]) ? DOMAIN_BIT(m->figures.facts.domain[d].kind) : 0;
	return domain_kinds_summed(kinds);
}

/* Writes a row of energy and power, in uJ and mW. energy: of this row; before: of the row before. Returns the power of
 * RAPL in mW; no domain is counted twice. */
static uint64_t write_energy(const struct record_measure *m, struct record_out *out, enum recorder_table t,
			     const uint64_t *energy, const uint64_t *before)
{
	uint64_t ns = m->last.mono_ns - m->first.mono_ns - m->before.window_ns, sum = 0;
	int64_t v[COLUMNS];
	unsigned n = 0, kinds = summed(m);

	for (unsigned d = 0; d < m->figures.facts.n_domains; d++) {
		uint64_t mw = milliwatt(energy[d] - before[d], ns);

		if (record_has_domain(&m->figures.facts, out, t, d))
			v[n++] = (int64_t)mw;
		if (kinds & DOMAIN_BIT(m->figures.facts.domain[d].kind))
			sum += mw;
	}
	for (unsigned d = 0; d < m->figures.facts.n_domains; d++)
		if (record_has_domain(&m->figures.facts, out, t, d))
			v[n++] = (int64_t)energy[d];
	if (n)
		recorder_row(out->rec, t, m->last.real_ns, v);
	return sum;
}

static void write_counters(const struct record_measure *m, struct record_out *out, const struct run_result *r)
{
	int64_t v[RUN_VALUES_MAX] = { (int64_t)run_fixed(&m->figures.facts, r, RUN_CPU) };
	unsigned n = 1;

	for (unsigned c = 0; c < m->figures.facts.n_counters; c++)
		v[n++] = run_counter_known(&m->figures.facts, r, c) ? (int64_t)run_counter(&m->figures.facts, r, c) :
								      RECORDER_EMPTY;
	if (m->figures.facts.switches)
		v[n++] = (int64_t)run_fixed(&m->figures.facts, r, RUN_SWITCHES);
	for (unsigned i = RUN_RX_BYTES; i < RUN_FIXED; i++)
		if (is_counted(&m->figures.facts, i))
			v[n++] = (int64_t)run_fixed(&m->figures.facts, r, i);
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

/* Writes the row of the second reading, from which energy is counted. Its power is the mean since the first reading. */
static void write_first(struct record_measure *m, struct record_outs *outs, const struct run_machine *earlier)
{
	struct run_result zero = { .measured = true };
	struct run_result back = { 0 };

	for (unsigned d = 0; d < m->figures.facts.n_domains; d++)
		back.machine_uj[d] = earlier->energy_uj[d] -
				     m->first.energy_uj[d]; /* modulo 2^64, as the difference in write_energy */
	back.window_ns = earlier->mono_ns - m->first.mono_ns;
	m->before = back;
	for (unsigned i = 0; i < outs->n; i++)
		write_rows(m, &outs->out[i], &zero);
	m->before = zero;
}

int record_measure_take(struct record_measure *m, struct record_outs *outs, struct err *err)
{
	struct record_figures *figures = &m->figures;
	struct run_machine now = { 0 };
	struct run_result r = { 0 };
	const bool split = figures->facts.split;
	int rc = run_reading_ask(m->agent, m->path,
				 &(struct run_reading){ .facts = &figures->facts, .machine = &now, .rows = &m->rows },
				 err);

	figures->facts.split = split; /* the tables that were begun stay, whatever formula a reload sets */
	if (rc) {
		m->figures.failed++;
		return rc == -EPROTO ? 0 : rc;
	}
	if (!m->begun) {
		m->begun = true;
		m->first = now;
		return 0;
	}
	if (!m->before.measured) {
		struct run_machine earlier = m->first;

		m->first = m->last = now;
		run_rows_start(&m->rows);
		write_first(m, outs, &earlier);
		return 0;
	}
	m->last = now;
	run_result_fill(&r, &m->figures.facts, &m->rows, &m->first, &now);
	for (unsigned i = 0; i < outs->n; i++)
		write_rows(m, &outs->out[i], &r);
	for (unsigned d = 0; d < m->figures.facts.n_domains; d++)
		figures->quality[d] |= r.energy_quality[d], figures->machine_quality[d] |= r.machine_quality[d];
	figures->counts_quality |= r.quality;
	m->before = r;
	return 0;
}

/* snapshot.cbor: the stream of the agent, one snapshot per second, is written as it comes (docs/formats/snapshot.md).
 * A thread of its own reads it, because reading a stream blocks. */

struct record_snapshots {
	pthread_t thread;
	struct agent *agent;
	atomic_bool stop;
	unsigned n;
	int fd[RECORD_OUTS];
};

/* Writes a piece of the stream to all files. A failure is not reported here: the other files meet a full disk too. */
static int take(void *arg, const char *piece, size_t size)
{
	struct record_snapshots *t = arg;

	for (unsigned i = 0; i < t->n; i++)
		for (size_t at = 0; t->fd[i] >= 0 && at < size;) {
			ssize_t n = write(t->fd[i], piece + at, size - at);

			if (n < 0 && errno != EINTR)
				return -errno;
			at += n > 0 ? (size_t)n : 0;
		}
	return 0;
}

static void *run(void *arg)
{
	struct record_snapshots *t = arg;

	if (agent_begin(t->agent, "/v1/stream?format=cbor&interval=1s", "application/cbor", NULL) == 0)
		agent_take(t->agent, take, t, &t->stop, NULL);
	return NULL;
}

int record_snapshots_start(const char *socket, struct record_outs *outs, struct record_snapshots **ret, struct err *err)
{
	struct record_snapshots *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_set(err, -ENOMEM, "record: out of memory; free some");
	rc = agent_open(socket, &t->agent, err);
	if (rc) {
		free(t);
		return rc;
	}
	for (; t->n < outs->n; t->n++)
		t->fd[t->n] = recorder_file(outs->out[t->n].rec, "snapshot.cbor");
	rc = thread_start(&t->thread, "snapshots", 0, run, t);
	if (rc) {
		agent_close(t->agent);
		free(t);
		return err_set(err, rc, "record: no thread can be made; raise the limit of processes");
	}
	*ret = t;
	return 0;
}

void record_snapshots_stop(struct record_snapshots *t)
{
	if (!t)
		return;
	t->stop = true;
	pthread_join(t->thread, NULL);
	agent_close(t->agent);
	free(t);
}
