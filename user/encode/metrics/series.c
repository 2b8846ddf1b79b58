/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "encode/emit.h"
#include "series.h"

#define COST_SHOWN_MAX 1e12 /* more is no price */
#define AUDIT_SHOWN_MAX 1e6 /* more is no error, nor is NaN */

struct label {
	const char *key, *value;
};

const char *series_suffix(enum series_type type)
{
	static const char *const suffixes[] = { "_total", "", "_info" };

	return suffixes[type];
}

char *series_number(char *p, uint64_t v, unsigned digits)
{
	uint64_t whole = v, fraction = 0;

	/* division by a constant is a multiplication */
	if (digits == 6) {
		whole = v / 1000000;
		fraction = v % 1000000;
	} else if (digits == 9) {
		whole = v / 1000000000;
		fraction = v % 1000000000;
	}
	return emit_fraction(emit_u64(p, whole), fraction, digits);
}

static void begin(struct series_writer *w, const struct series_family *f)
{
	w->family = f;
	w->row = SERIES_MACHINE;
	if (w->ops->begin)
		w->ops->begin(w, f);
}

/* Makes the text of up to n labels in the room of the caller. A label that does not fit is left out whole. */
static struct series_labels make(const struct series_writer *w, char room[SERIES_LABEL_MAX], const struct label *l,
				 unsigned n)
{
	struct buf b = { .data = (uint8_t *)room, .cap = SERIES_LABEL_MAX, .limit = SERIES_LABEL_MAX };

	for (unsigned i = 0; i < n; i++) {
		size_t was = b.len;

		w->ops->label(&b, l[i].key, l[i].value);
		if (b.failed) {
			b.failed = false;
			b.len = was;
		}
	}
	return (struct series_labels){ room, b.len };
}

/* A sample of the machine, with one label or none (key NULL). */
static void sample(struct series_writer *w, const char *key, const char *value, uint64_t v, unsigned digits)
{
	const struct series_labels none = { "", 0 };
	const struct label l = { key, value };
	char room[SERIES_LABEL_MAX];

	w->ops->sample(w, none, key ? make(w, room, &l, 1) : none, v, digits);
}

struct domain_labels {
	struct label l[4];
	unsigned n;
	char package[12], die[12];
};

static void domain_labels(struct domain_labels *to, const struct domain_desc *d)
{
	to->n = 0;
	to->l[to->n++] = (struct label){ "domain", domain_kind_name(d->kind) };
	snprintf(to->package, sizeof(to->package), "%u", d->package);
	snprintf(to->die, sizeof(to->die), "%u", d->die);
	if (d->kind != DOMAIN_PSYS && d->kind != DOMAIN_WALL)
		to->l[to->n++] = (struct label){ d->kind == DOMAIN_GPU      ? "gpu" :
						 d->kind == DOMAIN_EXTERNAL ? "meter" :
									      "package",
						 to->package };
	if (d->has_die)
		to->l[to->n++] = (struct label){ "die", to->die };
}

/* Writes a family with a sample per domain. field: offset of the figure in struct total_domain. */
static void domain_family(struct series_writer *w, const struct series_family *f, size_t field)
{
	const struct schema *s = w->totals->schema;
	const struct series_labels none = { "", 0 };
	char room[SERIES_LABEL_MAX];
	struct domain_labels l;

	begin(w, f);
	for (unsigned d = 0; d < s->n_domains; d++) {
		uint64_t sum = 0;

		if (!totals_first_domain(s, d, false))
			continue;
		for (unsigned i = d; i < s->n_domains; i++)
			if (s->domains[i].kind == s->domains[d].kind &&
			    s->domains[i].package == s->domains[d].package && s->domains[i].die == s->domains[d].die)
				sum += *(const uint64_t *)((const char *)&w->totals->domains[i] + field);
		domain_labels(&l, &s->domains[d]);
		w->ops->sample(w, none, make(w, room, l.l, l.n), sum, 6);
	}
}

static void write_machine_energy(struct series_writer *w)
{
	static const struct series_family energy = { "jouled_energy_joules", "joules",
						     "Energy measured, or estimated, per domain.", SERIES_COUNTER };
	static const struct series_family idle = { "jouled_idle_energy_joules", "joules",
						   "The part of it that the idle machine draws.", SERIES_COUNTER };
	static const struct series_family residual = { "jouled_residual_energy_joules", "joules",
						       "The part of it that nobody can be charged with.",
						       SERIES_COUNTER };

	domain_family(w, &energy, offsetof(struct total_domain, energy_uj));
	domain_family(w, &idle, offsetof(struct total_domain, idle_uj));
	domain_family(w, &residual, offsetof(struct total_domain, residual_uj));
}

/* Writes the number of intervals by the quality of their energy, so that missing energy is visible. */
static void write_qualities(struct series_writer *w)
{
	static const struct series_family f = { "jouled_energy_intervals", "",
						"Intervals by the quality of their energy; lost ones brought none.",
						SERIES_COUNTER };
	const struct schema *s = w->totals->schema;
	const struct series_labels none = { "", 0 };
	char room[SERIES_LABEL_MAX];
	struct domain_labels l;

	begin(w, &f);
	for (unsigned d = 0; d < s->n_domains; d++) {
		if (!totals_first_domain(s, d, false))
			continue;
		domain_labels(&l, &s->domains[d]);
		for (unsigned q = 0; q < TOTALS_QUALITIES; q++) {
			l.l[l.n] = (struct label){ "quality", quality_name(q ? 1u << (q - 1) : 0) };
			w->ops->sample(w, none, make(w, room, l.l, l.n + 1), w->totals->domains[d].intervals[q], 0);
		}
	}
}

/* Writes which kinds to add up: other domains contain the rest, and a sum over all would count energy twice. */
static void write_summed(struct series_writer *w)
{
	static const struct series_family f = {
		"jouled_domain_summed", "",
		"1 for the kinds of domains that are added up to the machine, 0 for those that the others hold.",
		SERIES_GAUGE
	};
	const struct schema *s = w->totals->schema;

	begin(w, &f);
	for (unsigned d = 0; d < s->n_domains; d++)
		if (totals_first_domain(s, d, true))
			sample(w, "domain", domain_kind_name(s->domains[d].kind), schema_sums(s, d), 0);
}

static uint64_t kind_sum(const struct totals *t, const uint64_t *v, unsigned d)
{
	uint64_t sum = 0;

	for (unsigned i = d; i < t->schema->n_domains; i++)
		if (t->schema->domains[i].kind == t->schema->domains[d].kind)
			sum += v[i];
	return sum;
}

static void write_retired(struct series_writer *w)
{
	static const struct series_family f = { "jouled_retired_energy_joules", "joules",
						"Energy of ended cgroups whose own series is not shown any more.",
						SERIES_COUNTER };
	const struct schema *s = w->totals->schema;

	begin(w, &f);
	for (unsigned d = 0; d < s->n_domains; d++)
		if (totals_first_domain(s, d, true))
			sample(w, "domain", domain_kind_name(s->domains[d].kind),
			       kind_sum(w->totals, w->totals->retired, d), 6);
}

static void write_counts(struct series_writer *w)
{
	static const struct series_family cpu = { "jouled_cpu_seconds", "seconds", "Time of all CPUs.",
						  SERIES_COUNTER };
	static const struct series_family losses = { "jouled_losses", "", "What could not be counted where it belongs.",
						     SERIES_COUNTER };
	static const struct series_family intervals = { "jouled_intervals", "",
							"Intervals that these totals are made of.", SERIES_COUNTER };
	static const struct series_family msr = { "jouled_msr_events", "", "Events of the msr PMU, all CPUs.",
						  SERIES_COUNTER };
	const struct totals *t = w->totals;

	begin(w, &cpu);
	sample(w, "mode", "busy", t->busy_ns, 9);
	sample(w, "mode", "idle", t->idle_ns, 9);
	sample(w, "mode", "irq_steal", t->irq_steal_ns, 9);
	sample(w, "mode", "offline", t->offline_ns, 9);
	begin(w, &msr);
	for (unsigned i = 0; i < t->schema->msr.n; i++)
		sample(w, "event", t->schema->msr.ev[i].name, t->msr[i], 0);
	begin(w, &losses);
	sample(w, "reason", "folded", t->losses.folded, 0);
	sample(w, "reason", "counter_reads", t->losses.lost_reads, 0);
	sample(w, "reason", "lifecycle_events", t->losses.lost_events, 0);
	sample(w, "reason", "switches_mended", t->losses.missed_switches, 0);
	begin(w, &intervals);
	sample(w, NULL, NULL, t->adds, 0);
}

static void write_self(struct series_writer *w, const struct series_self *self)
{
	static const struct series_family cpu = { "jouled_self_cpu_seconds", "seconds",
						  "Processor time of the agent itself.", SERIES_COUNTER };
	static const struct series_family memory = { "jouled_self_resident_bytes", "bytes",
						     "Memory of the agent itself.", SERIES_GAUGE };
	static const struct series_family sent = { "jouled_output_documents", "", "Documents that an output delivered.",
						   SERIES_COUNTER };
	static const struct series_family dropped = { "jouled_output_dropped_documents", "",
						      "Documents that it dropped.", SERIES_COUNTER };
	const struct series_labels none = { "", 0 };
	char room[SERIES_LABEL_MAX], number[12];

	begin(w, &cpu);
	sample(w, NULL, NULL, self->cpu_ns, 9);
	begin(w, &memory);
	sample(w, NULL, NULL, self->resident_bytes, 0);
	for (int k = 0; k < 2; k++) {
		begin(w, k ? &dropped : &sent);
		for (unsigned i = 0; i < self->n_outputs; i++) {
			const struct series_output *o = &self->outputs[i];
			const struct label l[] = { { "number", number }, { "output", o->name } };

			snprintf(number, sizeof(number), "%u", i);
			w->ops->sample(w, none, make(w, room, l, 2), k ? o->dropped : o->documents, 0);
		}
	}
}

/* The price and the intensity that hold now: a query multiplies them with energy. */
static void write_cost(struct series_writer *w, const struct series_cost *c)
{
	static const struct series_family price = { "jouled_energy_price_per_kwh", "",
						    "Price of a kWh, in the currency of the configuration.",
						    SERIES_GAUGE };
	static const struct series_family carbon = { "jouled_carbon_grams_per_kwh", "",
						     "Carbon intensity of a kWh now, in grams of CO2.", SERIES_GAUGE };

	if (c->price < COST_SHOWN_MAX) { /* not where it is NaN */
		begin(w, &price);
		sample(w, NULL, NULL, (uint64_t)(c->price * 1e6 + 0.5), 6);
	}
	if (c->carbon_g < COST_SHOWN_MAX) {
		begin(w, &carbon);
		sample(w, NULL, NULL, (uint64_t)(c->carbon_g * 1e6 + 0.5), 6);
	}
}

/* What the last audit says of each domain, and when it was. */
static void write_audit(struct series_writer *w, const struct audit *a)
{
	static const struct series_family error = {
		"jouled_audit_error_ratio", "ratio",
		"Within this part of it the charge of a cgroup is right, by the last audit (95 %).", SERIES_GAUGE
	};
	static const struct series_family time = { "jouled_audit_time_seconds", "seconds",
						   "When the last audit ended, Unix time.", SERIES_GAUGE };
	const struct series_labels none = { "", 0 };
	const struct schema *s = w->totals->schema;
	char room[SERIES_LABEL_MAX];
	struct domain_labels l;

	begin(w, &error);
	for (unsigned d = 0; d < s->n_domains; d++) {
		double e = audit_error(a, s->domains[d].name);

		if (!totals_first_domain(s, d, false) || !(e < AUDIT_SHOWN_MAX))
			continue;
		domain_labels(&l, &s->domains[d]);
		w->ops->sample(w, none, make(w, room, l.l, l.n), (uint64_t)(e * 1e6 + 0.5), 6);
	}
	begin(w, &time);
	sample(w, NULL, NULL, (uint64_t)(a->time_ns > 0 ? a->time_ns : 0), 9);
}

static void write_build(struct series_writer *w)
{
	static const struct series_family f = { "jouled_build", "", "The agent.", SERIES_INFO };
	const struct series_labels none = { "", 0 };
	const struct label l[] = { { "version", JOULED_VERSION }, { "sensor", w->totals->schema->sensor } };
	char room[SERIES_LABEL_MAX];

	begin(w, &f);
	w->ops->sample(w, none, make(w, room, l, 2), 1, 0);
}

static void row_sample(struct series_writer *w, unsigned row, struct series_labels more, uint64_t v, unsigned digits)
{
	const size_t at = w->out->len;
	const uint32_t last = w->totals->n_rows - 1;

	w->row = row;
	w->ops->sample(w, row_labels_of(w->ended ? &w->ends->before : w->labels, row), more, v, digits);
	if (w->order) /* an heir may end more rows than it has */
		row_order_row(w->order, row < last ? row : last, at);
}

/* Writes that series of a family have ended: those of rows that had such series in the page before. */
static void ended_samples(struct series_writer *w, unsigned has, struct series_labels more, unsigned digits)
{
	const struct row_ended *e;
	size_t n = 0;

	if (!w->ends)
		return;
	e = row_ends_list(w->ends, &n);
	w->ended = true;
	for (size_t i = 0; i < n; i++)
		if (e[i].has & has)
			row_sample(w, e[i].row, more, 0, digits);
	w->ended = false;
}

/* Writes a sample for every row that has such series. */
static void row_samples(struct series_writer *w, unsigned has, unsigned column, struct series_labels more,
			unsigned digits)
{
	const struct totals *t = w->totals;

	for (unsigned i = 0; i < t->n_rows; i++) {
		if (row_labels_has(w->labels, i) & has)
			row_sample(w, i, more, totals_shown(t, i, column), digits);
	}
	ended_samples(w, has, more, digits);
}

/* Writes per row the sum over all domains of the kind of domain d. */
static void kind_samples(struct series_writer *w, unsigned d, struct series_labels more)
{
	const struct totals *t = w->totals;

	for (unsigned i = 0; i < t->n_rows; i++) {
		uint64_t sum = 0;

		if (!row_labels_has(w->labels, i))
			continue;
		for (unsigned k = d; k < t->schema->n_domains; k++)
			if (t->schema->domains[k].kind == t->schema->domains[d].kind)
				sum += totals_shown(t, i, k);
		row_sample(w, i, more, sum, 6);
	}
	ended_samples(w, ROW_SERIES, more, 6);
}

static void write_cgroup_energy(struct series_writer *w)
{
	static const struct series_family f = {
		"jouled_cgroup_energy_joules", "joules",
		"Energy of a cgroup's own processes; kernel, irq+steal, other and unselected are what is left of the split.",
		SERIES_COUNTER
	};
	const struct schema *s = w->totals->schema;
	char room[SERIES_LABEL_MAX];

	begin(w, &f);
	for (unsigned d = 0; d < s->n_domains; d++) {
		const struct label l = { "domain", domain_kind_name(s->domains[d].kind) };

		if (totals_first_domain(s, d, true))
			kind_samples(w, d, make(w, room, &l, 1));
	}
}

/* One series per cgroup and not per domain, and none where it is not known. */
static void write_cgroup_range(struct series_writer *w)
{
	static const struct series_family f = {
		"jouled_cgroup_energy_error_ratio", "ratio",
		"Half the range that holds a cgroup's energy of the last interval nine times in ten, by that energy.",
		SERIES_GAUGE
	};
	const struct series_labels none = { "", 0 };
	unsigned any = 0;
	const struct row_ended *e;
	size_t n = 0;

	for (unsigned i = TOTAL_FIRST_CGROUP; i < w->totals->n_rows; i++)
		any |= row_labels_has(w->labels, i);
	e = w->ends ? row_ends_list(w->ends, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		any |= e[i].has;
	if (!(any & ROW_SERIES_RANGE))
		return;
	begin(w, &f);
	for (unsigned i = TOTAL_FIRST_CGROUP; i < w->totals->n_rows; i++)
		if (row_labels_has(w->labels, i) & ROW_SERIES_RANGE)
			row_sample(w, i, none, (uint64_t)(totals_range(w->totals, i) * 1e6 + 0.5), 6);
	ended_samples(w, ROW_SERIES_RANGE, none, 6);
}

static void write_cgroup_use(struct series_writer *w)
{
	static const struct series_family cpu = { "jouled_cgroup_cpu_seconds", "seconds",
						  "Processor time of a cgroup's own processes.", SERIES_COUNTER };
	static const struct series_family switches = { "jouled_cgroup_switches", "",
						       "Times a CPU was switched to the cgroup.", SERIES_COUNTER };
	static const struct series_family events = { "jouled_cgroup_events", "", "Perf events counted for the cgroup.",
						     SERIES_COUNTER };
	const struct series_labels none = { "", 0 };
	const struct totals *t = w->totals;
	char room[SERIES_LABEL_MAX];

	begin(w, &cpu);
	row_samples(w, ROW_SERIES, totals_column(t, TOTAL_TIME), none, 9);
	begin(w, &switches);
	row_samples(w, ROW_SERIES, totals_column(t, TOTAL_SWITCHES), none, 0);
	begin(w, &events);
	for (unsigned i = 0; i < t->schema->core.n; i++) {
		const struct label l = { "event", t->schema->core.ev[i].name };

		row_samples(w, ROW_SERIES, totals_counter(t, i), make(w, room, &l, 1), 0);
	}
}

static void write_cgroup_traffic(struct series_writer *w)
{
	static const struct {
		struct series_family f;
		unsigned column;
	} all[] = {
		{ { "jouled_cgroup_network_receive_bytes", "bytes", "Bytes that the cgroup's sockets received.",
		    SERIES_COUNTER },
		  TOTAL_RX_BYTES },
		{ { "jouled_cgroup_network_receive_packets", "packets", "Packets that they received.", SERIES_COUNTER },
		  TOTAL_RX_PACKETS },
		{ { "jouled_cgroup_network_transmit_bytes", "bytes", "Bytes that the cgroup's sockets sent.",
		    SERIES_COUNTER },
		  TOTAL_TX_BYTES },
		{ { "jouled_cgroup_network_transmit_packets", "packets", "Packets that they sent.", SERIES_COUNTER },
		  TOTAL_TX_PACKETS },
		{ { "jouled_cgroup_block_read_bytes", "bytes", "Bytes that block devices read for the cgroup.",
		    SERIES_COUNTER },
		  TOTAL_READ_BYTES },
		{ { "jouled_cgroup_block_read_requests", "requests", "Requests that read them.", SERIES_COUNTER },
		  TOTAL_READ_REQUESTS },
		{ { "jouled_cgroup_block_write_bytes", "bytes",
		    "Bytes that block devices wrote for the cgroup, writeback included.", SERIES_COUNTER },
		  TOTAL_WRITE_BYTES },
		{ { "jouled_cgroup_block_write_requests", "requests", "Requests that wrote them.", SERIES_COUNTER },
		  TOTAL_WRITE_REQUESTS },
		{ { "jouled_cgroup_block_discard_bytes", "bytes", "Bytes that block devices discarded for the cgroup.",
		    SERIES_COUNTER },
		  TOTAL_DISCARD_BYTES },
		{ { "jouled_cgroup_block_discard_requests", "requests", "Requests that discarded them.",
		    SERIES_COUNTER },
		  TOTAL_DISCARD_REQUESTS },
	};
	const struct series_labels none = { "", 0 };
	const struct totals *t = w->totals;

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		begin(w, &all[i].f);
		row_samples(w, all[i].column < TOTAL_BLOCK ? ROW_SERIES_NETWORK : ROW_SERIES_BLOCK,
			    totals_column(t, all[i].column), none, 0);
	}
}

/* The labels of this page, and what has ended since the one before. */
static int begin_rows(struct series_writer *w)
{
	int rc;

	if (w->ends)
		row_ends_begin(w->ends, w->labels);
	rc = row_labels_make(w);
	return !rc && w->ends ? row_ends_find(w->ends, w->labels) : rc;
}

int series_write(struct series_writer *w, const struct totals *t, const struct series_self *self)
{
	int rc;

	w->totals = t;
	rc = begin_rows(w);
	if (rc)
		return rc;
	write_build(w);
	write_machine_energy(w);
	write_qualities(w);
	write_summed(w);
	write_retired(w);
	write_counts(w);
	write_cgroup_energy(w);
	write_cgroup_range(w);
	write_cgroup_use(w);
	write_cgroup_traffic(w);
	if (self)
		write_self(w, self);
	if (self)
		write_cost(w, &self->cost);
	if (self && self->audit)
		write_audit(w, self->audit);
	return w->out->failed ? -ENOMEM : 0;
}

int series_write_pushed(struct series_writer *w, struct series_encoder *e, uint32_t rows, const struct snapshot *s)
{
	const struct series_self self = { .cpu_ns = s->self_cpu_ns,
					  .resident_bytes = s->self_resident_bytes,
					  .cost = { (double)NAN, (double)NAN } };
	struct buf *out = w->out;
	int rc;

	row_order_begin(&e->order, rows);
	w->order = &e->order;
	w->out = &e->order.samples;
	rc = series_write(w, e->totals, s->self_cpu_ns ? &self : NULL);
	if (!rc)
		rc = row_order_write(&e->order, e->totals->n_rows, out);
	e->ends.made = !rc;
	return rc;
}

void series_encoder_inherit(struct series_encoder *e, struct series_encoder *old)
{
	struct buf labels = e->labels, before = e->ends.before;

	e->labels = old->labels;
	e->ends.before = old->ends.before;
	e->ends.made = old->ends.made;
	old->labels = labels;
	old->ends.before = before;
	old->ends.made = false;
}

int series_encoder_init(struct series_encoder *e, const struct encode_options *o, const struct schema *s,
			struct err *err)
{
	struct totals_options to = { .keep_ns = o->keep_ns, .top = o->top, .by = o->by };
	int rc = totals_fit(&to, s, o->max_series, SERIES_OWN, err);

	if (rc)
		return rc;
	e->totals = totals_new(s, &to);
	return e->totals ? 0 : err_set(err, -ENOMEM, "output: out of memory; free some");
}

void series_encoder_fini(struct series_encoder *e)
{
	totals_free(e->totals);
	free(e->totals);
	buf_free(&e->labels);
	row_order_free(&e->order);
	row_ends_free(&e->ends);
}
