/* SPDX-License-Identifier: Apache-2.0 */
/* Random machines and snapshots, and the lines that tests/golden/read_snapshot.py prints for them,
 * written here field by field. */
#ifndef JD_TEST_RECORDING_FIXTURE_H
#define JD_TEST_RECORDING_FIXTURE_H
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "model/recording_internal.h"

#define WORLD_ROWS 40

struct world {
	struct schema schema;
	struct snapshot snap;
	uint64_t rng;
	unsigned max_rows;
	char paths[WORLD_ROWS][400];
};

static inline uint64_t draw(struct world *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return w->rng * 0x2545f4914f6cdd1du;
}

/* Zero, small, large and extreme numbers alike: every length of a CBOR head. */
static inline uint64_t draw_value(struct world *w)
{
	uint64_t v = draw(w);
	unsigned shift = (unsigned)draw(w) % 72;

	return shift >= 64 ? (shift & 1 ? UINT64_MAX : 0) : v >> shift;
}

static inline void draw_event(struct world *w, struct event_set *set, const char *stem)
{
	struct event_desc *e = &set->ev[set->n];

	snprintf(e->name, sizeof(e->name), "%s_%u", stem, set->n++);
	e->kind = (enum event_kind)(draw(w) % 3);
	e->type = (uint32_t)draw_value(w);
	e->config = draw_value(w);
	e->config1 = draw_value(w);
	e->config2 = draw_value(w);
	snprintf(e->pmu, sizeof(e->pmu), draw(w) % 2 ? "cpu_core" : "");
	snprintf(e->reason, sizeof(e->reason), draw(w) % 2 ? "because, \"so\"" : "");
	e->cpus_only_known = draw(w) % 2;
	for (unsigned i = 0; e->cpus_only_known && i < draw(w) % 20; i++)
		e->cpus[draw(w) % sizeof(e->cpus)] |= (uint8_t)draw(w);
}

static inline void world_init(struct world *w, uint64_t seed)
{
	struct schema *s = &w->schema;

	memset(w, 0, sizeof(*w));
	w->rng = seed * 0x9e3779b97f4a7c15u + 1;
	w->max_rows = WORLD_ROWS;
	snprintf(s->sensor, sizeof(s->sensor), "node-%llu", (unsigned long long)seed);
	snprintf(s->boot_id, sizeof(s->boot_id), "0b9a8a3e-7a10-4c5f-9d52-0123456789ab");
	snprintf(s->trigger, sizeof(s->trigger), "tp_btf");
	snprintf(s->clock, sizeof(s->clock), "scheduler");
	s->multiplexed = draw(w) % 2;
	s->irq_separate = draw(w) % 2;
	s->idle_merged = draw(w) % 2;
	for (unsigned i = (unsigned)draw(w) % (SCHEMA_MAX_EVENTS + 1); i; i--)
		draw_event(w, &s->core, "EVENT");
	for (unsigned i = (unsigned)draw(w) % (SCHEMA_MAX_MSR + 1); i; i--)
		draw_event(w, &s->msr, "MSR");
	s->n_packages = 1 + (unsigned)draw(w) % 4;
	s->n_cpus = 1 + (unsigned)draw(w) % 40;
	s->cpus = calloc(s->n_cpus, sizeof(*s->cpus));
	for (unsigned i = 0; i < s->n_cpus; i++)
		s->cpus[i] = (struct cpu_desc){ .cpu = (uint16_t)i, .package = (uint16_t)(draw(w) % s->n_packages),
						.die = (uint16_t)(draw(w) % 3), .core = (uint16_t)draw(w), .present = draw(w) % 4 };
	s->n_domains = (unsigned)draw(w) % 9;
	for (unsigned i = 0; i < s->n_domains; i++) {
		struct domain_desc *d = &s->domains[i];

		*d = (struct domain_desc){ .kind = (enum domain_kind)(draw(w) % DOMAIN_KINDS), .has_die = draw(w) % 2,
					   .package = (uint16_t)(draw(w) % s->n_packages),
					   .interface = (enum energy_interface)(draw(w) % (ENERGY_REPLAY + 1)) };
		d->die = d->has_die ? (uint16_t)draw(w) : 0;
		snprintf(d->name, sizeof(d->name), "domain-%u", i);
		snprintf(d->reason, sizeof(d->reason), draw(w) % 2 ? "first that answered" : "");
	}
	w->snap.schema = s;
}

static inline void world_free(struct world *w, bool owns_schema)
{
	snapshot_free(&w->snap);
	if (owns_schema)
		free(w->schema.cpus);
}

/* One with something of everything, but little, for tests that try every byte. */
static inline void world_init_small(struct world *w)
{
	for (uint64_t seed = 1;; seed++) {
		world_init(w, seed);
		w->max_rows = 6;
		if (w->schema.n_cpus == 2 && w->schema.n_domains == 2 && w->schema.core.n == 2 && w->schema.msr.n > 0)
			return;
		world_free(w, true);
	}
}

/* Another world on the same schema. */
static inline void world_like(struct world *w, const struct world *first)
{
	memset(w, 0, sizeof(*w));
	w->rng = first->rng ^ (uint64_t)(uintptr_t)w ^ 0x5555;
	w->max_rows = first->max_rows;
	w->snap.schema = first->snap.schema;
}

/* Deep paths with common beginnings, and bytes that are not UTF-8. */
static inline void draw_path(struct world *w, char *path, size_t size, const char *before)
{
	size_t keep = before[0] ? (size_t)draw(w) % (strlen(before) + 1) : 0, n = keep ? keep : 1;

	memmove(path, keep ? before : "/", n);
	for (unsigned more = (unsigned)draw(w) % 60; more && n + 1 < size; more--)
		path[n++] = (char)(draw(w) % 8 ? 'a' + draw(w) % 26 : 1 + draw(w) % 255);
	path[n] = 0;
}

static inline void draw_cells(struct world *w, struct snap_row *row)
{
	struct snapshot *s = &w->snap;
	bool mux = draw(w) % 2;

	row->first_cell = s->n_cells;
	for (unsigned cpu = 0; cpu < s->schema->n_cpus; cpu++) {
		struct snap_cell *c = &s->cells[s->n_cells];

		if (draw(w) % 3)
			continue;
		*c = (struct snap_cell){ .row = s->n_rows, .cpu = (uint16_t)cpu, .quality = (uint16_t)(draw(w) % 64),
					 .time_ns = draw_value(w), .switches = draw_value(w) };
		for (unsigned i = 0; i < s->schema->core.n; i++)
			c->counters[i] = draw_value(w);
		c->enabled_ns = mux ? draw_value(w) : c->time_ns;
		c->running_ns = mux ? draw_value(w) : c->time_ns;
		row->time_ns += c->time_ns;
		row->switches += c->switches;
		row->enabled_ns += c->enabled_ns;
		row->running_ns += c->running_ns;
		for (unsigned i = 0; i < s->schema->core.n; i++)
			row->counters[i] += c->counters[i];
		s->n_cells++;
		row->n_cells++;
	}
}

static inline void draw_row(struct world *w, unsigned i)
{
	struct snapshot *s = &w->snap;
	struct snap_row *row = &s->rows[i];

	*row = (struct snap_row){ .kind = i < 4 ? (enum row_kind)i : ROW_CGROUP, .key = i * 3 + (unsigned)draw(w) % 3,
				  .generation = (uint32_t)draw_value(w), .id = draw_value(w), .level = (uint16_t)draw_value(w),
				  .ended = draw(w) % 2, .selected = draw(w) % 2, .quality = (unsigned)draw(w) % 64 };
	row->path = row_kind_name(row->kind);
	if (i >= 4) {
		draw_path(w, w->paths[i], sizeof(w->paths[i]), i > 4 ? w->paths[i - 1] : "");
		row->path = w->paths[i];
	}
	draw_cells(w, row);
	/* Totals that are not the sums: CPU time without eBPF, multiplexed sums. */
	if (draw(w) % 4 == 0) {
		row->time_ns = draw_value(w);
		row->enabled_ns = draw_value(w);
		row->running_ns = draw_value(w);
		row->switches = draw_value(w);
		for (unsigned k = 0; k < s->schema->core.n; k++)
			row->counters[k] = draw_value(w);
	}
	if (draw(w) % 2)
		row->traffic = (struct traffic){ draw_value(w), draw_value(w), draw_value(w), draw_value(w) };
	s->n_rows++;
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		*snapshot_energy(s, i, d) = draw(w) % 3 ? draw_value(w) : 0;
}

static inline void draw_machine(struct world *w)
{
	struct snapshot *s = &w->snap;

	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		struct snap_cpu *c = &s->cpus[i];

		memset(c, 0, sizeof(*c));
		c->online = draw(w) % 2;
		c->quality = (unsigned)draw(w) % 64;
		c->elapsed_ns = draw_value(w), c->idle_ns = draw_value(w), c->irq_steal_ns = draw_value(w);
		c->offline_ns = draw_value(w), c->busy_ns = draw_value(w);
		for (unsigned k = 0; k < s->schema->msr.n; k++)
			c->msr[k] = draw_value(w);
		c->msr_enabled_ns = draw_value(w), c->msr_running_ns = draw_value(w);
	}
	for (unsigned i = 0; i < s->schema->n_domains; i++)
		s->domains[i] = (struct snap_domain){
			.start_ns = draw_value(w), .end_ns = draw_value(w), .quality = (unsigned)draw(w) % 64,
			.energy_uj = draw_value(w), .energy_q32 = draw_value(w), .idle_uj = draw_value(w),
			.residual_uj = draw_value(w), .idle_power_uw = draw_value(w), .idle_quality = (unsigned)draw(w) % 64,
			.share_quality = (unsigned)draw(w) % 64, .scale = (double)draw(w) / 3e9,
			.uncertainty = draw(w) % 2 ? (double)NAN : 0.25 };
}

static inline void world_fill(struct world *w, uint64_t number)
{
	struct snapshot *s = &w->snap;
	unsigned rows = 4 + (unsigned)draw(w) % (w->max_rows - 3);

	assert_int_equal(snapshot_reserve(s, WORLD_ROWS, WORLD_ROWS * s->schema->n_cpus + 1), 0);
	s->number = number;
	s->end_ns = draw_value(w);
	s->start_ns = s->end_ns - draw_value(w) % (s->end_ns / 2 + 1);
	s->suspended_ns = draw_value(w);
	s->end_real_ns = (int64_t)(draw_value(w) >> 1) * (draw(w) % 2 ? 1 : -1);
	s->nominal_ns = draw_value(w);
	s->missed = draw_value(w);
	s->losses = (struct losses){ draw_value(w), draw_value(w), draw_value(w), draw_value(w) };
	snprintf(s->formula, sizeof(s->formula), "share");
	s->idle_policy = (enum idle_policy)(draw(w) % 3);
	s->n_rows = s->n_cells = 0;
	for (unsigned i = 0; i < rows; i++)
		draw_row(w, i);
	draw_machine(w);
}

/* From here on: what the independent reader prints, keys in alphabetical order. */

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
	for (unsigned i = 0; i < s->n_cpus; i++)
		buf_printf(b, "%s[%s, %u, %u, %u]", i ? ", " : "", WORD(s->cpus[i].present), s->cpus[i].package, s->cpus[i].die,
			   s->cpus[i].core);
	buf_add_str(b, "], \"domains\": [");
	for (unsigned i = 0; i < s->n_domains; i++) {
		const struct domain_desc *d = &s->domains[i];

		buf_add_str(b, i ? ", {" : "{");
		if (d->has_die)
			U(b, "die", d->die);
		buf_printf(b, "\"interface\": \"%s\", \"kind\": \"%s\", \"name\": \"%s\", \"package\": %u, \"reason\": \"%s\"}",
			   energy_interface_name(d->interface), domain_kind_name(d->kind), d->name, d->package, d->reason);
	}
	buf_printf(b, "], \"format\": \"jouled-snapshot\", \"idle_merged\": %s, \"irq_separate\": %s, ", WORD(s->idle_merged),
		   WORD(s->irq_separate));
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
	const uint64_t traffic[] = { r->traffic.rx_bytes, r->traffic.rx_packets, r->traffic.tx_bytes, r->traffic.tx_packets };

	buf_add_str(b, "{\"cells\": [");
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
	print_list(b, "traffic", traffic, 4);
	buf_add_str(b, "}");
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

static inline void print_domain(struct buf *b, const struct snap_domain *d, bool energy)
{
	buf_add_str(b, "{");
	U(b, "end_ns", d->end_ns);
	U(b, "energy_q32", d->energy_q32);
	U(b, "energy_uj", d->energy_uj);
	if (energy) {
		U(b, "idle_power_uw", d->idle_power_uw);
		U(b, "idle_quality", d->idle_quality);
		U(b, "idle_uj", d->idle_uj);
	}
	U(b, "quality", d->quality);
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
	buf_add_str(b, "}");
}

static inline void print_snapshot(const struct snapshot *s, bool energy, struct buf *b)
{
	buf_add_str(b, "{\"cpus\": [");
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
		buf_printf(b, "\"formula\": \"%s\", \"idle_policy\": \"%s\", ", s->formula, idle_policy_name(s->idle_policy));
	buf_printf(b, "\"losses\": {\"clamped_ns\": %llu, \"folded\": %llu, \"lost_events\": %llu, \"lost_reads\": %llu}, ",
		   (unsigned long long)s->losses.clamped_ns, (unsigned long long)s->losses.folded,
		   (unsigned long long)s->losses.lost_events, (unsigned long long)s->losses.lost_reads);
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
		fail_msg("at %zu: expected ...%.120s, found ...%.120s", n, want + (n > 60 ? n - 60 : 0), got + (n > 60 ? n - 60 : 0));
}

#endif
