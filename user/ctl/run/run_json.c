/* SPDX-License-Identifier: Apache-2.0 */
/* For programs: one object. Without repeats the run's own keys stand in it, with them `runs` has one object
 * each and `statistics` the means. Keys of what is not known are left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/json.h"
#include "run_result.h"
#include "run_stats.h"

struct writer {
	struct json j;
	const struct run_report *r;
	double *v;
};

static bool has_energy(const struct run_facts *f)
{
	return f->n_domains && f->split;
}

static double power(const struct run_result *r, unsigned d)
{
	return r->wall_ns ? (double)r->value[d] * 1e3 / (double)r->wall_ns : NAN;
}

static void add_energy(struct json *j, const struct run_facts *f, const struct run_result *r)
{
	json_key(j, "energy_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++)
		json_key_u64(j, f->domain[d].name, r->value[d]);
	json_object_end(j);
	json_key(j, "energy_quality");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++)
		json_key_str(j, f->domain[d].name, quality_name(r->energy_quality[d]));
	json_object_end(j);
	json_key(j, "power_w");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++) {
		json_key(j, f->domain[d].name);
		json_double(j, power(r, d));
	}
	json_object_end(j);
}

/* Of the whole machine, between the readings before and after. */
static void add_machine(struct json *j, const struct run_facts *f, const struct run_result *r)
{
	json_key(j, "machine");
	json_object_begin(j);
	json_key_u64(j, "interval_ns", r->window_ns);
	json_key(j, "energy_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++)
		json_key_u64(j, f->domain[d].name, r->machine_uj[d]);
	json_object_end(j);
	json_key(j, "idle_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++)
		json_key_u64(j, f->domain[d].name, r->idle_uj[d]);
	json_object_end(j);
	json_object_end(j);
}

static void add_network(struct json *j, const struct run_facts *f, const struct run_result *r)
{
	json_key(j, "network");
	json_object_begin(j);
	json_key_u64(j, "rx_bytes", run_fixed(f, r, RUN_RX_BYTES));
	json_key_u64(j, "rx_packets", run_fixed(f, r, RUN_RX_PACKETS));
	json_key_u64(j, "tx_bytes", run_fixed(f, r, RUN_TX_BYTES));
	json_key_u64(j, "tx_packets", run_fixed(f, r, RUN_TX_PACKETS));
	json_object_end(j);
}

static void add_measured(struct json *j, const struct run_facts *f, const struct run_result *r)
{
	if (has_energy(f))
		add_energy(j, f, r);
	json_key(j, "counters");
	json_object_begin(j);
	for (unsigned i = 0; i < f->n_counters; i++)
		if (run_counter_known(f, r, i))
			json_key_u64(j, f->counter[i], run_counter(f, r, i));
	json_object_end(j);
	json_key_str(j, "counters_quality", quality_name(r->quality));
	if (f->switches)
		json_key_u64(j, "switches", run_fixed(f, r, RUN_SWITCHES));
	if (f->network)
		add_network(j, f, r);
	if (f->n_domains)
		add_machine(j, f, r);
}

static void add_left(struct json *j, const struct run_left *l)
{
	json_key_u64(j, "left_running", l->n);
	json_key(j, "left");
	json_array_begin(j);
	for (unsigned i = 0; i < l->n && i < RUN_LEFT_MAX; i++) {
		json_object_begin(j);
		json_key_u64(j, "pid", (uint64_t)l->pid[i]);
		json_key_str(j, "name", l->comm[i]);
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_run(struct json *j, const struct run_facts *f, const struct run_result *r)
{
	json_key_u64(j, "exit_status", (uint64_t)r->exit_status);
	if (r->signal)
		json_key_u64(j, "signal", (uint64_t)r->signal);
	if (*r->error)
		json_key_str(j, "error", r->error);
	if (!r->started)
		return;
	json_key_u64(j, "wall_ns", r->wall_ns);
	json_key_u64(j, "cpu_ns", run_cpu_ns(f, r));
	json_key_u64(j, "user_ns", r->user_ns);
	json_key_u64(j, "system_ns", r->system_ns);
	json_key_str(j, "quality", quality_name(run_quality(f, r)));
	if (r->measured)
		add_measured(j, f, r);
	json_key_u64(j, "memory_peak_bytes", r->memory_peak);
	json_key_str(j, "memory_peak_of", r->memory_of_cgroup ? "cgroup" : "largest process");
	if (r->left.n)
		add_left(j, &r->left);
}

/* The column of all runs that have one: 0 wall, 1 CPU time, then values of the agent, then their power. */
enum { WALL, CPU, VALUES, POWERS = VALUES + RUN_VALUES_MAX };

static void add_stats(struct writer *w, const char *key, unsigned column)
{
	const struct run_facts *f = w->r->facts;
	struct run_stats s;
	unsigned n = 0;

	for (unsigned i = 0; i < w->r->n; i++) {
		const struct run_result *r = &w->r->runs[i];

		if (!r->started ||
		    (column >= POWERS ? !r->measured : column >= VALUES && !run_value_known(f, r, column - VALUES)))
			continue;
		w->v[n++] = column == WALL  ? (double)r->wall_ns :
			    column == CPU   ? (double)run_cpu_ns(f, r) :
			    column < POWERS ? (double)r->value[column - VALUES] :
					      power(r, column - POWERS);
	}
	if (!n)
		return;
	s = run_stats_of(w->v, n);
	json_key(&w->j, key);
	json_object_begin(&w->j);
	json_key_u64(&w->j, "n", n);
	json_key(&w->j, "mean");
	json_double(&w->j, s.mean);
	json_key(&w->j, "stddev");
	json_double(&w->j, n > 1 ? s.stddev : NAN);
	json_key(&w->j, "ci95");
	json_double(&w->j, n > 1 ? s.ci95 : NAN);
	json_object_end(&w->j);
}

static void add_group(struct writer *w, const char *key, unsigned first, unsigned n,
		      const char *(*name)(const struct run_facts *, unsigned))
{
	json_key(&w->j, key);
	json_object_begin(&w->j);
	for (unsigned i = 0; i < n; i++)
		add_stats(w, name(w->r->facts, i), first + i);
	json_object_end(&w->j);
}

static const char *domain_name(const struct run_facts *f, unsigned i)
{
	return f->domain[i].name;
}

static const char *counter_name(const struct run_facts *f, unsigned i)
{
	return f->counter[i];
}

static void add_statistics(struct writer *w)
{
	const struct run_facts *f = w->r->facts;

	json_key(&w->j, "statistics");
	json_object_begin(&w->j);
	add_stats(w, "wall_ns", WALL);
	add_stats(w, "cpu_ns", CPU);
	if (has_energy(f)) {
		add_group(w, "energy_uj", VALUES, f->n_domains, domain_name);
		add_group(w, "power_w", POWERS, f->n_domains, domain_name);
	}
	add_group(w, "counters", VALUES + f->n_domains + RUN_FIXED, f->n_counters, counter_name);
	json_object_end(&w->j);
}

static void add_facts(struct json *j, const struct run_report *r)
{
	json_key(j, "command");
	json_array_begin(j);
	for (char *const *word = r->command; *word; word++)
		json_str(j, *word);
	json_array_end(j);
	json_key_str(j, "agent", r->facts->private_agent ? "private" : "running");
	json_key_str(j, "formula", r->facts->formula);
	json_key_str(j, "idle", r->facts->idle);
	json_key(j, "idle_power_w");
	json_object_begin(j);
	for (unsigned d = 0; d < r->facts->n_domains; d++) {
		json_key(j, r->facts->domain[d].name);
		json_double(j, (double)r->facts->domain[d].idle_power_uw / 1e6);
	}
	json_object_end(j);
}

void run_write_json(const struct run_report *r, struct buf *b)
{
	struct writer w = { .r = r, .v = calloc(r->n, sizeof(double)) };
	unsigned quality = 0;

	if (!w.v) {
		b->failed = true;
		return;
	}
	json_init(&w.j, b);
	json_object_begin(&w.j);
	add_facts(&w.j, r);
	if (r->n == 1) {
		add_run(&w.j, r->facts, &r->runs[0]);
	} else {
		for (unsigned i = 0; i < r->n; i++)
			quality |= run_quality(r->facts, &r->runs[i]);
		json_key_u64(&w.j, "exit_status", (uint64_t)r->exit_status);
		json_key_str(&w.j, "quality", quality_name(quality));
		json_key(&w.j, "runs");
		json_array_begin(&w.j);
		for (unsigned i = 0; i < r->n; i++) {
			json_object_begin(&w.j);
			add_run(&w.j, r->facts, &r->runs[i]);
			json_object_end(&w.j);
		}
		json_array_end(&w.j);
		add_statistics(&w);
	}
	json_object_end(&w.j);
	buf_add_char(b, '\n');
	free(w.v);
}
