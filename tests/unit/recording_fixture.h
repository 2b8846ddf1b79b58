/* SPDX-License-Identifier: Apache-2.0 */
/* Random machines and snapshots, and files of what was encoded. */
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
#include <unistd.h>
#include <cmocka.h>
#include "model/recording/recording.h"

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
	e->kind = (enum event_kind)(draw(w) % EVENT_KINDS);
	e->added = draw(w) % 2;
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
		s->cpus[i] = (struct cpu_desc){ .cpu = (uint16_t)i,
						.package = (uint16_t)(draw(w) % s->n_packages),
						.die = (uint16_t)(draw(w) % 3),
						.core = (uint16_t)draw(w),
						.present = draw(w) % 4,
						.core_type = draw(w) % 2 ? 0 : (uint8_t)(draw(w) % SCHEMA_CORE_TYPES) };
	for (unsigned i = 0; i < s->n_cpus; i++)
		if (s->cpus[i].core_type >= s->n_core_types)
			s->n_core_types = s->cpus[i].core_type + 1u;
	s->n_domains = (unsigned)draw(w) % 9;
	for (unsigned i = 0; i < s->n_domains; i++) {
		struct domain_desc *d = &s->domains[i];

		*d = (struct domain_desc){ .kind = (enum domain_kind)(draw(w) % DOMAIN_KINDS),
					   .has_die = draw(w) % 2,
					   .package = (uint16_t)(draw(w) % s->n_packages),
					   .interface = (enum energy_interface)(draw(w) % (ENERGY_REPLAY + 1)) };
		d->die = d->has_die ? (uint16_t)draw(w) : 0;
		d->idle_known = d->interface == ENERGY_ESTIMATE;
		d->idle_uw = d->idle_known ? draw_value(w) : 0;
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
		*c = (struct snap_cell){ .row = s->n_rows,
					 .cpu = (uint16_t)cpu,
					 .quality = (uint16_t)(draw(w) % 64),
					 .time_ns = draw_value(w),
					 .switches = draw_value(w) };
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

	*row = (struct snap_row){ .kind = i < 4 ? (enum row_kind)i : ROW_CGROUP,
				  .key = i * 3 + (unsigned)draw(w) % 3,
				  .generation = (uint32_t)draw_value(w),
				  .id = draw_value(w),
				  .level = (uint16_t)draw_value(w),
				  .ended = draw(w) % 2,
				  .selected = draw(w) % 2,
				  .quality = (unsigned)draw(w) % 64 };
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
		for (unsigned k = 0; k < TRAFFIC_VALUES; k++)
			traffic_values(&row->traffic)[k] = draw_value(w);
	s->n_rows++;
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		*snapshot_energy(s, i, d) = draw(w) % 3 ? draw_value(w) : 0;
	for (unsigned d = 0, known = draw(w) % 2; d < s->schema->n_domains; d++)
		*snapshot_uncertainty(s, i, d) = known && draw(w) % 4 ? (uint32_t)draw_value(w) : SNAPSHOT_UNKNOWN;
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
		s->domains[i] = (struct snap_domain){ .start_ns = draw_value(w),
						      .end_ns = draw_value(w),
						      .quality = (unsigned)draw(w) % 64,
						      .energy_uj = draw_value(w),
						      .energy_q32 = draw_value(w),
						      .idle_uj = draw_value(w),
						      .residual_uj = draw_value(w),
						      .idle_power_uw = draw_value(w),
						      .idle_quality = (unsigned)draw(w) % 64,
						      .share_quality = (unsigned)draw(w) % 64,
						      .scale = (double)draw(w) / 3e9,
						      .uncertainty = draw(w) % 2 ? (double)NAN : 0.25,
						      .idle_uncertainty = draw(w) % 2 ? (double)NAN : 0.75 };
	for (unsigned i = 0; i < s->schema->n_domains; i++)
		s->domains[i].idle_quality |= s->domains[i].quality; /* as formulas have it */
	for (unsigned i = 0; i < s->schema->n_domains; i++)
		s->domains[i].audit_ppm = draw(w) % 2 ? (uint32_t)draw(w) % (SNAP_AUDIT_MOST_PPM + 1) : 0;
	for (unsigned i = 0; i < s->schema->n_domains; i++)
		if (draw(w) % 2)
			s->domains[i].work = (struct work_price){ draw_value(w), draw_value(w), draw_value(w),
								  draw_value(w), draw_value(w) };
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
	s->skew_ns = s->number % 2 ? draw_value(w) : 0;
	s->losses = (struct losses){ draw_value(w), draw_value(w), draw_value(w), draw_value(w), 0 };
	snprintf(s->formula, sizeof(s->formula), "share");
	s->idle_policy = (enum idle_policy)(draw(w) % 3);
	s->audit = (struct snap_audit){ 0 };
	if (draw(w) % 2)
		s->audit = (struct snap_audit){ .formula = "share", .better = "model", .why = "share is off by 9 %" };
	s->n_rows = s->n_cells = 0;
	for (unsigned i = 0; i < rows; i++)
		draw_row(w, i);
	draw_machine(w);
}

static inline int file_of(const struct buf *b)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	assert_int_equal(fwrite(b->data, 1, b->len, f), b->len);
	rewind(f);
	int fd = dup(fileno(f));
	assert_true(fd >= 0);
	fclose(f);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static inline struct recording *opened(const struct buf *b)
{
	struct recording *r = NULL;
	struct err e = { 0 };

	if (recording_open_fd(file_of(b), &r, &e))
		fail_msg("%s", e.text);
	return r;
}

#endif
