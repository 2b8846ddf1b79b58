/* SPDX-License-Identifier: Apache-2.0 */
/* openmetrics as an output: each interval it writes the whole page in OpenMetrics 1.0, whose end is marked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "emit.h"
#include "encode.h"
#include "openmetrics.h"

struct metrics_writer {
	const struct totals *t;
	bool version_1;
	struct buf *out;
	struct buf *labels; /* n_rows pairs of u32 offset and length, then the texts */
	const char *family; /* the family that is being written */
};

struct metrics_family {
	const char *name; /* without _total */
	const char *unit; /* "" = none */
	const char *help;
};

const char *const openmetrics_types[2] = {
	"text/plain; version=0.0.4; charset=utf-8",
	"application/openmetrics-text; version=1.0.0; charset=utf-8",
};

struct encoder {
	struct encoder_stats stats;
	struct totals *totals;
	struct buf labels;
};

static void openmetrics_destroy(struct encoder *e)
{
	if (!e)
		return;
	totals_free(e->totals);
	free(e->totals);
	buf_free(&e->labels);
	free(e);
}

static int openmetrics_create(const struct encode_options *o, const struct schema *s, struct encoder **ret,
			      struct err *err)
{
	struct totals_options to = { .keep_ns = o->keep_ns ? o->keep_ns : OPENMETRICS_KEEP_NS, .top = o->top };
	struct encoder *e = calloc(1, sizeof(*e));

	if (e)
		e->totals = totals_new(s, &to);
	if (!e || !e->totals) {
		openmetrics_destroy(e);
		return err_set(err, -ENOMEM, "format openmetrics: out of memory; free some");
	}
	*ret = e;
	return 0;
}

static int openmetrics_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	totals_add(e->totals, s, shown);
	return openmetrics_write(e->totals, NULL, true, &e->labels, out);
}

static const struct encoder_stats *openmetrics_stats(const struct encoder *e)
{
	return &e->stats;
}

const struct encoder_ops encode_openmetrics = {
	.name = "openmetrics",
	.create = openmetrics_create,
	.encode = openmetrics_encode,
	.stats = openmetrics_stats,
	.destroy = openmetrics_destroy,
};

/* The parts of the metrics page that describe the machine and the agent, not one cgroup. */

/* True for the first domain of its kind (any_package), or of its kind, package and die: two GPUs are one series. */
static bool metrics_first_of(const struct schema *s, unsigned d, bool any_package)
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

static void metrics_begin(struct metrics_writer *w, const struct metrics_family *f, const char *type);

static void metrics_sample(struct metrics_writer *w, const char *labels, uint64_t v, unsigned digits);

/* Writes a family with a sample per domain. field: offset of the figure in struct total_domain. */
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

/* Writes the number of intervals by the quality of their energy, so that missing energy is visible. */
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

/* Writes which kinds to add up: other domains contain the rest, and a sum over all would count energy twice. */
static void write_summed(struct metrics_writer *w)
{
	static const struct metrics_family f = {
		"jouled_domain_summed", "",
		"1 for the kinds of domains that are added up to the machine, 0 for those that the others hold."
	};
	const struct schema *s = w->t->schema;

	metrics_begin(w, &f, "gauge");
	for (unsigned d = 0; d < s->n_domains; d++) {
		if (!metrics_first_of(s, d, true))
			continue;
		buf_printf(w->out, "%s{domain=\"%s\"} %d\n", f.name, domain_kind_name(s->domains[d].kind),
			   schema_sums(s, d));
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

static void metrics_escaped(struct buf *b, const char *s);

static void metrics_self(struct metrics_writer *w, const struct openmetrics_self *self)
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

static void metrics_machine(struct metrics_writer *w)
{
	write_info(w);
	write_machine_energy(w);
	write_qualities(w);
	write_summed(w);
	write_retired(w);
	write_machine(w);
}

#define LINE_ROOM 512 /* bytes of one line for names, numbers and fixed labels */

struct label {
	uint32_t at, len;
};

/* In 0.0.4 HELP and TYPE carry the sample's name; in 1.0 they carry the family's name, with its unit. */
static void metrics_begin(struct metrics_writer *w, const struct metrics_family *f, const char *type)
{
	const char *total = strcmp(type, "counter") == 0 && !w->version_1 ? "_total" : "";

	w->family = f->name;
	if (!w->version_1)
		buf_printf(w->out, "# HELP %s%s %s\n", f->name, total, f->help);
	buf_printf(w->out, "# TYPE %s%s %s\n", f->name, total, type);
	if (!w->version_1)
		return;
	if (*f->unit)
		buf_printf(w->out, "# UNIT %s %s\n", f->name, f->unit);
	buf_printf(w->out, "# HELP %s %s\n", f->name, f->help);
}

/* Appends a label value: backslash, quote and line feed are escaped in both forms. */
static void metrics_escaped(struct buf *b, const char *s)
{
	for (; *s; s++) {
		size_t n = strcspn(s, "\\\"\n");

		buf_add(b, s, n);
		s += n;
		if (!*s)
			return;
		buf_add_char(b, '\\');
		buf_add_char(b, *s == '\n' ? 'n' : *s);
	}
}

static bool shown(const struct totals *t, unsigned row)
{
	return t->rows[row].shown && row != ROW_IDLE;
}

static void add_names(struct buf *b, const struct names *n)
{
	static const enum name_field shown_names[] = {
		NAME_NAMESPACE, NAME_POD, NAME_CONTAINER, NAME_MACHINE, NAME_UNIT, NAME_USER,
	};

	for (unsigned i = 0; n && i < sizeof(shown_names) / sizeof(shown_names[0]); i++) {
		const char *text = names_text(n, shown_names[i]);

		if (!*text)
			continue;
		buf_add_char(b, ',');
		buf_add_str(b, name_field_key(shown_names[i]));
		buf_add_str(b, "=\"");
		metrics_escaped(b, text);
		buf_add_char(b, '"');
	}
}

/* Makes the label text of every row, cgroup="..." and names, once; all families use it. */
static int make_labels(struct metrics_writer *w)
{
	const struct totals *t = w->t;
	size_t heads = t->n_rows * sizeof(struct label);

	buf_reset(w->labels);
	if (!buf_reserve(w->labels, heads))
		return -ENOMEM;
	w->labels->len = heads;
	for (unsigned i = 0; i < t->n_rows; i++) {
		struct label l = { .at = (uint32_t)w->labels->len };

		if (shown(t, i)) {
			buf_add_str(w->labels, "cgroup=\"");
			metrics_escaped(w->labels, t->rows[i].name);
			buf_add_char(w->labels, '"');
			add_names(w->labels, t->rows[i].names);
		}
		l.len = (uint32_t)(w->labels->len - l.at);
		if (!w->labels->failed)
			memcpy(w->labels->data + i * sizeof(l), &l, sizeof(l));
	}
	return w->labels->failed ? -ENOMEM : 0;
}

/* digits 6: microjoules as joules; 9: nanoseconds as seconds; 0: unchanged. */
static char *number(char *p, uint64_t v, unsigned digits)
{
	uint64_t unit = digits == 6 ? 1000000 : digits == 9 ? 1000000000 : 1, fraction = v % unit;

	p = emit_u64(p, v / unit);
	if (!fraction)
		return p;
	*p++ = '.';
	for (unsigned i = digits; i--; fraction /= 10)
		p[i] = (char)('0' + fraction % 10);
	p += digits;
	while (p[-1] == '0')
		p--;
	return p;
}

/* Writes `family_total{labels} value`. labels are without braces and may be empty. digits as in number(). */
static void metrics_sample(struct metrics_writer *w, const char *labels, uint64_t v, unsigned digits)
{
	size_t name = strlen(w->family), len = strlen(labels);
	char *p = (char *)buf_reserve(w->out, name + len + LINE_ROOM);

	if (!p)
		return;
	p = emit_mem(p, w->family, name);
	p = emit_literal(p, "_total");
	if (len) {
		*p++ = '{';
		p = emit_mem(p, labels, len);
		*p++ = '}';
	}
	*p++ = ' ';
	p = number(p, v, digits);
	*p++ = '\n';
	w->out->len = (size_t)((uint8_t *)p - w->out->data);
}

/* Writes a sample for every row that is shown. more: further labels, with a leading comma. */
static void row_samples(struct metrics_writer *w, unsigned column, const char *more, unsigned digits)
{
	const struct totals *t = w->t;
	const struct label *l = (const struct label *)w->labels->data;
	size_t name = strlen(w->family), n_more = strlen(more);

	for (unsigned i = 0; i < t->n_rows; i++) {
		char *p;

		if (!shown(t, i))
			continue;
		p = (char *)buf_reserve(w->out, name + l[i].len + n_more + LINE_ROOM);
		if (!p)
			return;
		p = emit_mem(p, w->family, name);
		p = emit_literal(p, "_total{");
		p = emit_mem(p, w->labels->data + l[i].at, l[i].len);
		p = emit_mem(p, more, n_more);
		p = emit_literal(p, "} ");
		p = number(p, totals_shown(t, i, column), digits);
		*p++ = '\n';
		w->out->len = (size_t)((uint8_t *)p - w->out->data);
	}
}

/* Writes per row the sum over all domains of the kind of domain d. */
static void kind_samples(struct metrics_writer *w, unsigned d, const char *more)
{
	const struct totals *t = w->t;
	const struct label *l = (const struct label *)w->labels->data;

	for (unsigned i = 0; i < t->n_rows; i++) {
		uint64_t sum = 0;
		char *p;

		if (!shown(t, i))
			continue;
		for (unsigned k = d; k < t->schema->n_domains; k++)
			if (t->schema->domains[k].kind == t->schema->domains[d].kind)
				sum += totals_shown(t, i, k);
		p = (char *)buf_reserve(w->out, l[i].len + LINE_ROOM);
		if (!p)
			return;
		p = emit_literal(p, "jouled_cgroup_energy_joules_total{");
		p = emit_mem(p, w->labels->data + l[i].at, l[i].len);
		p = emit_mem(p, more, strlen(more));
		p = emit_literal(p, "} ");
		p = number(p, sum, 6);
		*p++ = '\n';
		w->out->len = (size_t)((uint8_t *)p - w->out->data);
	}
}

static void write_cgroup_energy(struct metrics_writer *w)
{
	static const struct metrics_family f = {
		"jouled_cgroup_energy_joules", "joules",
		"Energy of a cgroup's own processes; kernel, irq+steal, other and unselected are what is left of the split."
	};
	char more[64];

	metrics_begin(w, &f, "counter");
	for (unsigned d = 0; d < w->t->schema->n_domains; d++) {
		if (!metrics_first_of(w->t->schema, d, true))
			continue;
		snprintf(more, sizeof(more), ",domain=\"%s\"", domain_kind_name(w->t->schema->domains[d].kind));
		kind_samples(w, d, more);
	}
}

static void write_cgroup_use(struct metrics_writer *w)
{
	static const struct metrics_family cpu = { "jouled_cgroup_cpu_seconds", "seconds",
						   "Processor time of a cgroup's own processes." };
	static const struct metrics_family switches = { "jouled_cgroup_switches", "",
							"Times a CPU was switched to the cgroup." };
	static const struct metrics_family events = { "jouled_cgroup_events", "",
						      "Perf events counted for the cgroup." };
	char more[SCHEMA_NAME_MAX * 2 + 16];

	metrics_begin(w, &cpu, "counter");
	row_samples(w, totals_column(w->t, TOTAL_TIME), "", 9);
	metrics_begin(w, &switches, "counter");
	row_samples(w, totals_column(w->t, TOTAL_SWITCHES), "", 0);
	metrics_begin(w, &events, "counter");
	for (unsigned i = 0; i < w->t->schema->core.n; i++) {
		struct buf b = { .data = (uint8_t *)more, .cap = sizeof(more) - 1, .limit = sizeof(more) - 1 };

		buf_add_str(&b, ",event=\"");
		metrics_escaped(&b, w->t->schema->core.ev[i].name);
		buf_add_char(&b, '"');
		more[b.len] = '\0';
		row_samples(w, totals_counter(w->t, i), more, 0);
	}
}

static void write_cgroup_network(struct metrics_writer *w)
{
	static const struct {
		struct metrics_family f;
		unsigned column;
	} all[] = {
		{ { "jouled_cgroup_network_receive_bytes", "bytes", "Bytes that the cgroup's sockets received." },
		  TOTAL_RX_BYTES },
		{ { "jouled_cgroup_network_receive_packets", "packets", "Packets that they received." },
		  TOTAL_RX_PACKETS },
		{ { "jouled_cgroup_network_transmit_bytes", "bytes", "Bytes that the cgroup's sockets sent." },
		  TOTAL_TX_BYTES },
		{ { "jouled_cgroup_network_transmit_packets", "packets", "Packets that they sent." },
		  TOTAL_TX_PACKETS },
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		metrics_begin(w, &all[i].f, "counter");
		row_samples(w, totals_column(w->t, all[i].column), "", 0);
	}
}

int openmetrics_write(const struct totals *t, const struct openmetrics_self *self, bool version_1, struct buf *scratch,
		      struct buf *out)
{
	struct metrics_writer w = { .t = t, .version_1 = version_1, .out = out, .labels = scratch };
	int rc = make_labels(&w);

	if (rc)
		return rc;
	metrics_machine(&w);
	write_cgroup_energy(&w);
	write_cgroup_use(&w);
	write_cgroup_network(&w);
	if (self)
		metrics_self(&w, self);
	if (version_1)
		buf_add_str(out, "# EOF\n");
	return out->failed ? -ENOMEM : 0;
}
