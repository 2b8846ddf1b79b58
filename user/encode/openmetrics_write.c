/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "emit.h"
#include "openmetrics_internal.h"

#define LINE_ROOM 512 /* names, numbers and labels of our own in one line */

struct label {
	uint32_t at, len;
};

/* In 0.0.4 the sample's name is described, in 1.0 the family's, with its unit. */
void metrics_begin(struct metrics_writer *w, const struct metrics_family *f, const char *type)
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

/* Label values: backslash, quote and line feed are escaped in both forms. */
void metrics_escaped(struct buf *b, const char *s)
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

/* cgroup="..." and names of every row, once: they stand in each family. */
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

/* digits 6: microjoules as joules; 9: nanoseconds as seconds; 0: as it is. */
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

void metrics_sample(struct metrics_writer *w, const char *labels, uint64_t v, unsigned digits)
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

/* The same for every row that is shown; more: further labels, with a leading comma. */
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

/* Where a kind has one domain its column is taken as it is; several are added up row by row. */
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
	int err = make_labels(&w);

	if (err)
		return err;
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
