/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics page: what is not about one cgroup. */
#include <stdio.h>
#include <string.h>
#include "openmetrics_internal.h"

bool metrics_first_of(const struct schema *s, unsigned d, bool any_package)
{
	for (unsigned i = 0; i < d; i++)
		if (s->domains[i].kind == s->domains[d].kind &&
		    (any_package ||
		     (s->domains[i].package == s->domains[d].package && s->domains[i].die == s->domains[d].die)))
			return false;
	return true;
}

static void domain_labels(char dst[96], const struct domain_desc *d)
{
	const char *number = d->kind == DOMAIN_GPU ? "gpu" : d->kind == DOMAIN_EXTERNAL ? "meter" : "package";
	int n = d->kind == DOMAIN_PSYS ?
			snprintf(dst, 96, "domain=\"psys\"") :
			snprintf(dst, 96, "domain=\"%s\",%s=\"%u\"", domain_kind_name(d->kind), number, d->package);

	if (d->has_die)
		snprintf(dst + n, 96 - (size_t)n, ",die=\"%u\"", d->die);
}

/* One family with a sample per domain; field: offset of the figure in struct total_domain. */
static void domain_family(struct metrics_writer *w, const struct metrics_family *f, size_t field)
{
	const struct schema *s = w->t->schema;
	char labels[96];

	metrics_begin(w, f, "counter");
	for (unsigned d = 0; d < s->n_domains; d++) {
		uint64_t sum = 0;

		if (!metrics_first_of(s, d, false))
			continue;
		for (unsigned i = d; i < s->n_domains; i++)
			if (s->domains[i].kind == s->domains[d].kind &&
			    s->domains[i].package == s->domains[d].package && s->domains[i].die == s->domains[d].die)
				sum += *(const uint64_t *)((const char *)&w->t->domains[i] + field);
		domain_labels(labels, &s->domains[d]);
		metrics_sample(w, labels, sum, 6);
	}
}

static void write_machine_energy(struct metrics_writer *w)
{
	static const struct metrics_family energy = { "jouled_energy_joules", "joules",
						      "Energy measured, or estimated, per domain." };
	static const struct metrics_family idle = { "jouled_idle_energy_joules", "joules",
						    "The part of it that the idle machine draws." };
	static const struct metrics_family residual = { "jouled_residual_energy_joules", "joules",
							"The part of it that nobody can be charged with." };

	domain_family(w, &energy, offsetof(struct total_domain, energy_uj));
	domain_family(w, &idle, offsetof(struct total_domain, idle_uj));
	domain_family(w, &residual, offsetof(struct total_domain, residual_uj));
}

/* A value never stands for what was not seen: intervals by the quality of their energy. */
static void write_qualities(struct metrics_writer *w)
{
	static const struct metrics_family f = { "jouled_energy_intervals", "",
						 "Intervals by the quality of their energy; lost ones brought none." };
	const struct schema *s = w->t->schema;
	char labels[160], domain[96];

	metrics_begin(w, &f, "counter");
	for (unsigned d = 0; d < s->n_domains; d++) {
		if (!metrics_first_of(s, d, false))
			continue;
		domain_labels(domain, &s->domains[d]);
		for (unsigned q = 0; q < TOTALS_QUALITIES; q++) {
			snprintf(labels, sizeof(labels), "%s,quality=\"%s\"", domain,
				 quality_name(q ? 1u << (q - 1) : 0));
			metrics_sample(w, labels, w->t->domains[d].intervals[q], 0);
		}
	}
}

static uint64_t kind_sum(const struct totals *t, const uint64_t *v, unsigned d)
{
	uint64_t sum = 0;

	for (unsigned i = d; i < t->schema->n_domains; i++)
		if (t->schema->domains[i].kind == t->schema->domains[d].kind)
			sum += v[i];
	return sum;
}

static void write_retired(struct metrics_writer *w)
{
	static const struct metrics_family f = { "jouled_retired_energy_joules", "joules",
						 "Energy of ended cgroups whose own series is not shown any more." };
	char labels[64];

	metrics_begin(w, &f, "counter");
	for (unsigned d = 0; d < w->t->schema->n_domains; d++) {
		if (!metrics_first_of(w->t->schema, d, true))
			continue;
		snprintf(labels, sizeof(labels), "domain=\"%s\"", domain_kind_name(w->t->schema->domains[d].kind));
		metrics_sample(w, labels, kind_sum(w->t, w->t->retired, d), 6);
	}
}

static void write_machine(struct metrics_writer *w)
{
	static const struct metrics_family cpu = { "jouled_cpu_seconds", "seconds", "Time of all CPUs." };
	static const struct metrics_family losses = { "jouled_losses", "",
						      "What could not be counted where it belongs." };
	static const struct metrics_family intervals = { "jouled_intervals", "",
							 "Intervals that these totals are made of." };
	static const struct metrics_family msr = { "jouled_msr_events", "", "Events of the msr PMU, all CPUs." };
	const struct totals *t = w->t;
	char labels[SCHEMA_NAME_MAX + 16];

	metrics_begin(w, &cpu, "counter");
	metrics_sample(w, "mode=\"busy\"", t->busy_ns, 9);
	metrics_sample(w, "mode=\"idle\"", t->idle_ns, 9);
	metrics_sample(w, "mode=\"irq_steal\"", t->irq_steal_ns, 9);
	metrics_sample(w, "mode=\"offline\"", t->offline_ns, 9);
	metrics_begin(w, &msr, "counter");
	for (unsigned i = 0; i < t->schema->msr.n; i++) {
		snprintf(labels, sizeof(labels), "event=\"%s\"", t->schema->msr.ev[i].name);
		metrics_sample(w, labels, t->msr[i], 0);
	}
	metrics_begin(w, &losses, "counter");
	metrics_sample(w, "reason=\"folded\"", t->losses.folded, 0);
	metrics_sample(w, "reason=\"counter_reads\"", t->losses.lost_reads, 0);
	metrics_sample(w, "reason=\"lifecycle_events\"", t->losses.lost_events, 0);
	metrics_sample(w, "reason=\"switches_mended\"", t->losses.missed_switches, 0);
	metrics_begin(w, &intervals, "counter");
	metrics_sample(w, "", t->adds, 0);
}

void metrics_self(struct metrics_writer *w, const struct openmetrics_self *self)
{
	static const struct metrics_family cpu = { "jouled_self_cpu_seconds", "seconds",
						   "Processor time of the agent itself." };
	static const struct metrics_family memory = { "jouled_self_resident_bytes", "bytes",
						      "Memory of the agent itself." };
	static const struct metrics_family sent = { "jouled_output_documents", "",
						    "Documents that an output delivered." };
	static const struct metrics_family dropped = { "jouled_output_dropped_documents", "",
						       "Documents that it dropped." };
	char labels[400];

	metrics_begin(w, &cpu, "counter");
	metrics_sample(w, "", self->cpu_ns, 9);
	metrics_begin(w, &memory, "gauge");
	buf_printf(w->out, "%s %llu\n", memory.name, (unsigned long long)self->resident_bytes);
	for (int k = 0; k < 2; k++) {
		metrics_begin(w, k ? &dropped : &sent, "counter");
		for (unsigned i = 0; i < self->n_outputs; i++) {
			struct buf b = { .data = (uint8_t *)labels,
					 .cap = sizeof(labels) - 1,
					 .limit = sizeof(labels) - 1 };

			buf_printf(&b, "number=\"%u\",output=\"", i);
			metrics_escaped(&b, self->outputs[i].name);
			if (b.failed)
				b.len = sizeof(labels) - 2;
			buf_add_char(&b, '"');
			labels[b.len] = '\0';
			metrics_sample(w, labels, k ? self->outputs[i].dropped : self->outputs[i].documents, 0);
		}
	}
}

static void write_info(struct metrics_writer *w)
{
	static const struct metrics_family info = { "jouled_build", "", "The agent." },
					   gauge = { "jouled_build_info", "", "The agent." };

	metrics_begin(w, w->version_1 ? &info : &gauge, w->version_1 ? "info" : "gauge");
	buf_add_str(w->out, "jouled_build_info{version=\"" JOULED_VERSION "\",sensor=\"");
	metrics_escaped(w->out, w->t->schema->sensor);
	buf_add_str(w->out, "\"} 1\n");
}

void metrics_machine(struct metrics_writer *w)
{
	write_info(w);
	write_machine_energy(w);
	write_qualities(w);
	write_retired(w);
	write_machine(w);
}
