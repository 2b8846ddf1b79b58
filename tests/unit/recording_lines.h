/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that tests/golden/read_snapshot.py prints for a schema and a snapshot, made here field by
 * field: keys in alphabetical order, paths and doubles in hex. */
#ifndef JD_TEST_RECORDING_LINES_H
#define JD_TEST_RECORDING_LINES_H
#include "recording_fixture.h"

static inline void print_list(struct buf *b, const char *key, const uint64_t *v, unsigned n)
{
	buf_printf(b, "\"%s\": [", key);
	for (unsigned i = 0; i < n; i++)
		buf_printf(b, "%s%llu", i ? ", " : "", (unsigned long long)v[i]);
	buf_add_str(b, "]");
}

static inline void print_hex(struct buf *b, const char *key, const void *data, size_t n)
{
	buf_printf(b, "\"%s\": \"", key);
	for (size_t i = 0; i < n; i++)
		buf_printf(b, "%02x", ((const uint8_t *)data)[i]);
	buf_add_str(b, "\"");
}

static inline void print_double(struct buf *b, const char *key, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	buf_printf(b, "\"%s\": \"%016llx\"", key, (unsigned long long)bits);
}

#define U(b, key, v) buf_printf(b, "\"%s\": %llu, ", key, (unsigned long long)(v))
#define WORD(v) ((v) ? "true" : "false")

static inline void print_events(struct buf *b, const char *key, const struct event_set *set)
{
	static const char quoted[] = "because, \\\"so\\\"";

	buf_printf(b, "\"%s\": [", key);
	for (unsigned i = 0; i < set->n; i++) {
		const struct event_desc *e = &set->ev[i];
		size_t n = sizeof(e->cpus);

		buf_add_str(b, i ? ", {" : "{");
		if (e->added)
			buf_add_str(b, "\"added\": true, ");
		U(b, "config", e->config);
		U(b, "config1", e->config1);
		U(b, "config2", e->config2);
		while (n && !e->cpus[n - 1])
			n--;
		if (e->cpus_only_known) {
			print_hex(b, "cpus", e->cpus, n);
			buf_add_str(b, ", ");
		}
		U(b, "kind", e->kind);
		buf_printf(b, "\"name\": \"%s\", \"pmu\": \"%s\", \"reason\": \"%s\", \"type\": %u}", e->name, e->pmu,
			   e->reason[0] ? quoted : "", e->type);
	}
	buf_add_str(b, "], ");
}

static inline void print_header(const struct schema *s, struct buf *b)
{
	buf_printf(b, "{\"boot_id\": \"%s\", \"clock\": \"%s\", ", s->boot_id, s->clock);
	print_events(b, "core", &s->core);
	buf_add_str(b, "\"cpus\": [");
	for (unsigned i = 0; i < s->n_cpus; i++) {
		buf_printf(b, "%s[%s, %u, %u, %u", i ? ", " : "", WORD(s->cpus[i].present), s->cpus[i].package,
			   s->cpus[i].die, s->cpus[i].core);
		if (s->cpus[i].core_type)
			buf_printf(b, ", %u", s->cpus[i].core_type);
		buf_add_str(b, "]");
	}
	buf_add_str(b, "], \"domains\": [");
	for (unsigned i = 0; i < s->n_domains; i++) {
		const struct domain_desc *d = &s->domains[i];

		buf_add_str(b, i ? ", {" : "{");
		if (d->has_die)
			U(b, "die", d->die);
		if (d->idle_known)
			U(b, "idle_uw", d->idle_uw);
		buf_printf(
			b,
			"\"interface\": \"%s\", \"kind\": \"%s\", \"name\": \"%s\", \"package\": %u, \"reason\": \"%s\"}",
			energy_interface_name(d->interface), domain_kind_name(d->kind), d->name, d->package, d->reason);
	}
	buf_printf(b, "], \"format\": \"jouled-snapshot\", \"idle_merged\": %s, \"irq_separate\": %s, ",
		   WORD(s->idle_merged), WORD(s->irq_separate));
	print_events(b, "msr", &s->msr);
	buf_printf(b, "\"multiplexed\": %s, ", WORD(s->multiplexed));
	U(b, "packages", s->n_packages);
	U(b, "schema", recording_schema_id(s));
	buf_printf(b, "\"sensor\": \"%s\", \"trigger\": \"%s\", \"version\": 1}\n", s->sensor, s->trigger);
}

static inline void print_cell(struct buf *b, const struct snap_cell *c, unsigned n)
{
	buf_add_str(b, "{");
	print_list(b, "counters", c->counters, n);
	buf_add_str(b, ", ");
	U(b, "cpu", c->cpu);
	U(b, "enabled_ns", c->enabled_ns);
	U(b, "quality", c->quality);
	U(b, "running_ns", c->running_ns);
	U(b, "switches", c->switches);
	buf_printf(b, "\"time_ns\": %llu}", (unsigned long long)c->time_ns);
}

static inline void print_row(struct buf *b, const struct snapshot *s, unsigned i, bool energy)
{
	static const uint64_t zeros[SCHEMA_MAX_DOMAINS];
	const struct snap_row *r = &s->rows[i];

	buf_add_str(b, "{");
	print_list(b, "block", traffic_const(&r->traffic) + TRAFFIC_NETWORK, TRAFFIC_BLOCK);
	buf_add_str(b, ", \"cells\": [");
	for (unsigned c = 0; c < r->n_cells; c++) {
		buf_add_str(b, c ? ", " : "");
		print_cell(b, &s->cells[r->first_cell + c], s->schema->core.n);
	}
	buf_add_str(b, "], ");
	print_list(b, "counters", r->counters, s->schema->core.n);
	buf_add_str(b, ", ");
	U(b, "enabled_ns", r->enabled_ns);
	buf_printf(b, "\"ended\": %s, ", WORD(r->ended));
	print_list(b, "energy_uj", energy ? snapshot_energy(s, i, 0) : zeros, s->schema->n_domains);
	buf_add_str(b, ", ");
	U(b, "generation", r->generation);
	U(b, "id", r->id);
	U(b, "key", r->key);
	buf_printf(b, "\"kind\": \"%s\", ", row_kind_name(r->kind));
	U(b, "level", r->level);
	print_hex(b, "path", r->path, strlen(r->path));
	buf_add_str(b, ", ");
	U(b, "quality", r->quality);
	U(b, "running_ns", r->running_ns);
	buf_printf(b, "\"selected\": %s, ", WORD(r->selected));
	U(b, "switches", r->switches);
	U(b, "time_ns", r->time_ns);
	print_list(b, "traffic", traffic_const(&r->traffic), TRAFFIC_NETWORK);
	buf_add_str(b, ", \"uncertainty_ppm\": [");
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		buf_printf(b, "%s%u", d ? ", " : "", energy ? *snapshot_uncertainty(s, i, d) : UINT32_MAX);
	buf_add_str(b, "]}");
}

static inline void print_cpu(struct buf *b, const struct snap_cpu *c, unsigned i, unsigned n_msr)
{
	buf_add_str(b, "{");
	U(b, "busy_ns", c->busy_ns);
	U(b, "cpu", i);
	U(b, "elapsed_ns", c->elapsed_ns);
	U(b, "flags", c->online);
	U(b, "idle_ns", c->idle_ns);
	U(b, "irq_steal_ns", c->irq_steal_ns);
	print_list(b, "msr", c->msr, n_msr);
	buf_add_str(b, ", ");
	U(b, "msr_enabled_ns", c->msr_enabled_ns);
	U(b, "msr_running_ns", c->msr_running_ns);
	U(b, "offline_ns", c->offline_ns);
	buf_printf(b, "\"quality\": %u}", c->quality);
}

/* Left out where there is none. */
static inline void print_price(struct buf *b, const char *key, uint64_t q32)
{
	if (q32)
		U(b, key, q32);
}

static inline void print_domain(struct buf *b, const struct snap_domain *d, bool energy)
{
	buf_add_str(b, "{");
	print_price(b, "audit_ppm", d->audit_ppm);
	U(b, "end_ns", d->end_ns);
	U(b, "energy_q32", d->energy_q32);
	U(b, "energy_uj", d->energy_uj);
	if (energy) {
		U(b, "idle_power_uw", d->idle_power_uw);
		U(b, "idle_quality", d->idle_quality);
		U(b, "idle_uj", d->idle_uj);
		print_double(b, "idle_uncertainty", d->idle_uncertainty);
		buf_add_str(b, ", ");
	}
	print_price(b, "network_byte_q32", d->work.network_byte_q32);
	print_price(b, "packet_q32", d->work.packet_q32);
	U(b, "quality", d->quality);
	print_price(b, "read_byte_q32", d->work.read_byte_q32);
	print_price(b, "request_q32", d->work.request_q32);
	if (energy) {
		U(b, "residual_uj", d->residual_uj);
		print_double(b, "scale", d->scale);
		buf_add_str(b, ", ");
		U(b, "share_quality", d->share_quality);
	}
	buf_printf(b, "\"start_ns\": %llu", (unsigned long long)d->start_ns);
	if (energy) {
		buf_add_str(b, ", ");
		print_double(b, "uncertainty", d->uncertainty);
	}
	if (d->work.write_byte_q32)
		buf_printf(b, ", \"write_byte_q32\": %llu", (unsigned long long)d->work.write_byte_q32);
	buf_add_str(b, "}");
}

static inline void print_snapshot(const struct snapshot *s, bool energy, struct buf *b)
{
	buf_add_str(b, "{");
	if (s->audit.formula[0])
		buf_printf(b, "\"audit_better\": \"%s\", \"audit_formula\": \"%s\", ", s->audit.better,
			   s->audit.formula);
	buf_add_str(b, "\"cpus\": [");
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		buf_add_str(b, i ? ", " : "");
		print_cpu(b, &s->cpus[i], i, s->schema->msr.n);
	}
	buf_add_str(b, "], \"domains\": [");
	for (unsigned i = 0; i < s->schema->n_domains; i++) {
		buf_add_str(b, i ? ", " : "");
		print_domain(b, &s->domains[i], energy);
	}
	buf_add_str(b, "], ");
	U(b, "end_ns", s->end_ns);
	buf_printf(b, "\"end_real_ns\": %lld, ", (long long)s->end_real_ns);
	if (energy)
		buf_printf(b, "\"formula\": \"%s\", \"idle_policy\": \"%s\", ", s->formula,
			   idle_policy_name(s->idle_policy));
	buf_printf(
		b,
		"\"losses\": {\"folded\": %llu, \"lost_events\": %llu, \"lost_reads\": %llu, \"missed_switches\": %llu}, ",
		(unsigned long long)s->losses.folded, (unsigned long long)s->losses.lost_events,
		(unsigned long long)s->losses.lost_reads, (unsigned long long)s->losses.missed_switches);
	U(b, "missed", s->missed);
	U(b, "nominal_ns", s->nominal_ns);
	U(b, "number", s->number);
	buf_add_str(b, "\"rows\": [");
	for (unsigned i = 0; i < s->n_rows; i++) {
		buf_add_str(b, i ? ", " : "");
		print_row(b, s, i, energy);
	}
	buf_add_str(b, "], ");
	U(b, "schema", recording_schema_id(s->schema));
	if (s->skew_ns)
		U(b, "skew_ns", s->skew_ns);
	U(b, "start_ns", s->start_ns);
	buf_printf(b, "\"suspended_ns\": %llu}\n", (unsigned long long)s->suspended_ns);
}

/* Equal, or the place where they part. */
static inline void same_line(const char *want, const char *got)
{
	size_t n = 0;

	while (want[n] && want[n] == got[n])
		n++;
	if (want[n] != got[n])
		fail_msg("at %zu: expected ...%.120s, found ...%.120s", n, want + (n > 60 ? n - 60 : 0),
			 got + (n > 60 ? n - 60 : 0));
}

#endif
