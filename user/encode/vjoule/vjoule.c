/* SPDX-License-Identifier: Apache-2.0 */
/* vJoule reports (docs/formats/vjoule.md; the layout stands in vjoule_wire.h). The preamble is the
 * header record: metrics with dense identifiers. Each interval is one report record: energies in
 * joules, the machine's metrics, and those of each cgroup; increments all of them, and the sum over
 * the cgroups is never above the machine's, because that is the sum over all rows. */
#include <errno.h>
#include <stdlib.h>
#include "vjoule.h"

static const struct {
	enum domain_kind kind;
	const char *name;
} energies[VJOULE_ENERGIES] = {
	[VJOULE_PP0] = { DOMAIN_CORE, "core" },       [VJOULE_PP1] = { DOMAIN_UNCORE, "uncore" },
	[VJOULE_PKG] = { DOMAIN_PACKAGE, "package" }, [VJOULE_DRAM] = { DOMAIN_DRAM, "dram" },
	[VJOULE_PSYS] = { DOMAIN_PSYS, "psys" },
};

static void vjoule_destroy(struct encoder *e)
{
	if (!e)
		return;
	targets_free(&e->targets);
	buf_free(&e->notes);
	free(e->names);
	free(e->send);
	free(e->ranked);
	free(e->khz);
	free(e->tree.v);
	free(e->spare.v);
	buf_free(&e->tree.text);
	buf_free(&e->spare.text);
	free(e);
}

static bool has_energy(const struct schema *s, unsigned i, bool estimated)
{
	for (unsigned d = 0; d < s->n_domains; d++)
		if (s->domains[d].kind == energies[i].kind &&
		    (!estimated || s->domains[d].interface == ENERGY_ESTIMATE))
			return true;
	return false;
}

static void note_energies(struct encoder *e)
{
	char absent[64] = "", estimated[64] = "";

	for (unsigned i = 0; i < VJOULE_ENERGIES; i++) {
		char *list = !has_energy(e->schema, i, false) ? absent :
			     has_energy(e->schema, i, true)   ? estimated :
								NULL;

		if (!list)
			continue;
		strncat(list, *list ? ", " : "", sizeof(absent) - strlen(list) - 1);
		strncat(list, energies[i].name, sizeof(absent) - strlen(list) - 1);
	}
	if (*absent)
		vjoule_note(e, "energy: this machine has no %s; 0.0 is sent", absent);
	if (*estimated)
		vjoule_note(e, "energy: %s is an estimate, not a counter", estimated);
}

static uint32_t count_cpus(const struct schema *s)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < s->n_cpus && !s->n_online; i++)
		n += s->cpus[i].present;
	n += s->n_online;
	return n ? n : 1;
}

static int vjoule_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));
	int code;

	if (!e)
		return err_set(err, -ENOMEM, "vjoule: out of memory");
	e->schema = s;
	e->dialect = o->dialect_v02 ? VJOULE_V02 : VJOULE_DOCUMENT;
	e->cpus = count_cpus(s);
	e->khz = calloc(e->cpus, sizeof(*e->khz));
	code = vjoule_columns(e, o, err);
	if (!code)
		note_energies(e);
	if (!code && (!e->khz || e->notes.failed))
		code = err_set(err, -ENOMEM, "vjoule: out of memory");
	if (code) {
		vjoule_destroy(e);
		return code;
	}
	*ret = e;
	return 0;
}

static int vjoule_preamble(struct encoder *e, const struct schema *s, struct buf *out)
{
	struct vjoule_entry entries[VJOULE_COLUMNS];
	const struct vjoule_header h = { .cpus = e->cpus, .n = e->n_columns, .entries = entries };
	uint8_t *p;

	for (unsigned i = 0; i < e->n_columns; i++)
		entries[i] = (struct vjoule_entry){ (int16_t)i, (uint32_t)strlen(e->columns[i].name),
						    e->columns[i].name };
	p = buf_reserve(out, vjoule_header_size(e->dialect, &h));
	if (!p)
		return -ENOMEM;
	out->len = (size_t)(vjoule_put_header(p, e->dialect, &h) - out->data);
	return 0;
}

/* Packages together; psys is the whole platform, however many zones tell it. */
static float energy(const struct snapshot *s, unsigned i)
{
	uint64_t uj = 0;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		if (s->schema->domains[d].kind != energies[i].kind)
			continue;
		uj += s->domains[d].energy_uj;
		if (i == VJOULE_PSYS)
			break;
	}
	return (float)((double)uj / 1e6);
}

static uint64_t package_q32(const struct snapshot *s)
{
	uint64_t q32 = 0;

	for (unsigned d = 0; d < s->schema->n_domains; d++)
		if (s->schema->domains[d].kind == DOMAIN_PACKAGE)
			q32 = vjoule_add(q32, s->domains[d].energy_q32);
	return q32;
}

static uint64_t msr_sum(const struct snapshot *s, unsigned msr)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		sum = vjoule_add(sum, s->cpus[i].msr[msr]);
	return sum;
}

static void fill_machine(struct encoder *e, const struct snapshot *s, struct vjoule_metric system[VJOULE_COLUMNS],
			 struct vjoule_machine *m)
{
	for (unsigned i = 0; i < e->n_columns; i++) {
		const struct vjoule_column *c = &e->columns[i];
		uint64_t v = c->kind == VJOULE_RAPL ? package_q32(s) :
			     c->kind == VJOULE_MSR  ? msr_sum(s, c->index) :
						      e->sums[i];

		system[i] = (struct vjoule_metric){ (int16_t)i, (int64_t)v };
	}
	*m = (struct vjoule_machine){
		.temperature_mc = s->package_mc, .khz = e->khz, .n_system = e->n_columns, .system = system
	};
	for (unsigned i = 0; i < VJOULE_ENERGIES; i++)
		m->energy_j[i] = energy(s, i);
	m->n_khz = e->schema->cpufreq ? e->cpus : 0;
	for (unsigned i = 0; i < m->n_khz; i++)
		e->khz[i] = s->khz && i < e->schema->n_cpus ? s->khz[i] : 0;
}

static uint8_t *put_values(const struct encoder *e, uint8_t *p, const char *name, uint32_t len, const uint64_t *values)
{
	struct vjoule_metric metrics[VJOULE_METRICS];
	const struct vjoule_cgroup c = { name, len, vjoule_metrics(e), metrics };

	for (unsigned i = 0; i < c.n; i++)
		metrics[i] = (struct vjoule_metric){ (int16_t)(e->n_machine + i), (int64_t)values[i] };
	return vjoule_put_cgroup(p, e->dialect, &c);
}

static uint8_t *put_joined(const struct encoder *e, uint8_t *p, const struct snapshot *s, uint32_t row)
{
	uint64_t values[VJOULE_METRICS] = { 0 };

	vjoule_add_row(e, s, row, values);
	return put_values(e, p, s->rows[row].path, e->names[s->rows[row].key].len, values);
}

/* The identifiers stay the same from row to row: only the values are exchanged. */
static uint8_t *put_rows(const struct encoder *e, uint8_t *p, const struct snapshot *s)
{
	struct vjoule_metric metrics[VJOULE_METRICS];
	struct vjoule_cgroup c = { .n = vjoule_metrics(e), .metrics = metrics };
	const struct vjoule_column *columns = e->columns + e->n_machine;

	for (unsigned i = 0; i < c.n; i++)
		metrics[i].id = (int16_t)(e->n_machine + i);
	for (unsigned i = 0; i < e->n_send; i++) {
		const struct snap_row *r = &s->rows[e->send[i]];

		c.name = r->path;
		c.len = e->names[r->key].len;
		for (unsigned k = 0; k < c.n; k++)
			metrics[k].value = (int64_t)vjoule_value(&columns[k], r);
		p = vjoule_put_cgroup(p, e->dialect, &c);
	}
	return p;
}

static uint8_t *put_cgroups(const struct encoder *e, uint8_t *p, const struct snapshot *s)
{
	static const uint64_t zeros[VJOULE_METRICS];

	if (!e->joined)
		p = put_rows(e, p, s);
	for (unsigned i = 0; i < e->n_send && e->joined; i++)
		p = put_joined(e, p, s, e->send[i]);
	for (unsigned i = 0; i < e->tree.n && e->n_ghosts; i++)
		if (e->tree.v[i].at == VJOULE_NO_PLACE && e->tree.v[i].sent)
			p = put_values(e, p, vjoule_place_name(&e->tree, &e->tree.v[i]), e->tree.v[i].len, zeros);
	if (e->extras[VJOULE_KERNEL].sent)
		p = put_values(e, p, "/kernel", strlen("/kernel"), e->extras[VJOULE_KERNEL].values);
	if (e->extras[VJOULE_OTHER].sent)
		p = put_values(e, p, "/other", strlen("/other"), e->extras[VJOULE_OTHER].values);
	return p;
}

static int vjoule_encode(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	struct vjoule_metric system[VJOULE_COLUMNS];
	struct vjoule_machine m;
	size_t size;
	uint8_t *p;
	int err = vjoule_plan(e, s);

	if (err)
		return err;
	fill_machine(e, s, system, &m);
	size = vjoule_machine_size(e->dialect, &m);
	if (e->dialect == VJOULE_V02)
		err = vjoule_fit(e, s, size < VJOULE_V02_MAX ? VJOULE_V02_MAX - size : 0);
	if (err)
		return err;
	p = size + e->size <= INT32_MAX ? buf_reserve(out, size + e->size) : NULL;
	if (!p)
		return -ENOMEM;
	p = vjoule_put_machine(p, e->dialect, &m, size + e->size, e->n_cgroups);
	out->len = (size_t)(put_cgroups(e, p, s) - out->data);
	e->stats.withheld_rows += e->withheld;
	return 0;
}

static const struct encoder_stats *vjoule_stats(const struct encoder *e)
{
	return &e->stats;
}

static const char *vjoule_note_at(const struct encoder *e, unsigned i)
{
	size_t at = 0;

	for (; i && at < e->notes.len; i--)
		at += strlen((const char *)e->notes.data + at) + 1;
	return at < e->notes.len ? (const char *)e->notes.data + at : NULL;
}

const struct encoder_ops encode_vjoule = {
	.name = "vjoule",
	.help = "binary reports for vJoule formulas",
	.create = vjoule_create,
	.preamble = vjoule_preamble,
	.encode = vjoule_encode,
	.stats = vjoule_stats,
	.note = vjoule_note_at,
	.destroy = vjoule_destroy,
};
