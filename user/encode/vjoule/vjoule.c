/* SPDX-License-Identifier: Apache-2.0 */
/* vJoule reports (docs/formats/vjoule.md; wire.h has the layout). The preamble is the header record: metrics
 * with dense identifiers. Each interval is one report record: energies in joules, the machine's metrics, and
 * the metrics of each cgroup. All values are increments. The machine's values are sums over all rows, so the
 * cgroups never sum to more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/array.h"
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
	for (unsigned i = 0; i < e->cap_names; i++)
		free(e->names[i].text);
	free(e->names);
	hash_free(&e->by_name);
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
	int rc;

	if (!e)
		return err_set(err, -ENOMEM, "vjoule: out of memory; free some");
	e->schema = s;
	e->dialect = o->dialect_v02 ? VJOULE_V02 : VJOULE_DOCUMENT;
	e->cpus = count_cpus(s);
	e->khz = calloc(e->cpus, sizeof(*e->khz));
	rc = vjoule_columns(e, o, err);
	if (!rc)
		note_energies(e);
	if (!rc && (!e->khz || e->notes.failed))
		rc = err_set(err, -ENOMEM, "vjoule: out of memory; free some");
	if (rc) {
		vjoule_destroy(e);
		return rc;
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

/* Sums the packages. psys is the whole platform, so it counts once, however many zones report it. */
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
	return put_values(e, p, vjoule_text(e, &s->rows[row]), e->names[s->rows[row].key].len, values);
}

static inline uint8_t *put_row(const struct encoder *e, uint8_t *p, enum vjoule_dialect d, const struct snap_row *r)
{
	const struct vjoule_column *c = e->columns + e->n_machine;
	const unsigned n = vjoule_metrics(e);
	const uint32_t len = e->names[r->key].len;

	p = vjoule_put_u32(p, len);
	memcpy(p, vjoule_text(e, r), len);
	p = vjoule_put_u32(p + len, n);
	for (unsigned i = 0; i < n; i++) {
		const struct vjoule_metric m = { (int16_t)(e->n_machine + i), (int64_t)vjoule_value(&c[i], r) };

		p = vjoule_put_metrics(p, d, &m, 1);
	}
	return p;
}

/* The dialect is a constant of each loop. */
static uint8_t *put_rows(const struct encoder *e, uint8_t *p, const struct snapshot *s)
{
	if (e->dialect == VJOULE_V02) {
		for (unsigned i = 0; i < e->n_send; i++)
			p = put_row(e, p, VJOULE_V02, &s->rows[e->send[i]]);
	} else {
		for (unsigned i = 0; i < e->n_send; i++)
			p = put_row(e, p, VJOULE_DOCUMENT, &s->rows[e->send[i]]);
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
		if (e->tree.v[i].at == VJOULE_NO_PLACE && e->tree.v[i].now)
			p = put_values(e, p, vjoule_place_name(&e->tree, &e->tree.v[i]), e->tree.v[i].len, zeros);
	if (e->extras[VJOULE_KERNEL].sent)
		p = put_values(e, p, "/kernel", strlen("/kernel"), e->extras[VJOULE_KERNEL].values);
	if (e->extras[VJOULE_OTHER].sent)
		p = put_values(e, p, "/other", strlen("/other"), e->extras[VJOULE_OTHER].values);
	return p;
}

/* simple_formula takes a report without package energy as one without cgroups: it would remove all their
 * directories, and end. On a machine without package energy it never makes any. */
static bool is_silent(const struct encoder *e, const struct snapshot *s)
{
	return e->dialect == VJOULE_V02 && has_energy(e->schema, VJOULE_PKG, false) && energy(s, VJOULE_PKG) <= 0;
}

static int vjoule_plan(struct encoder *e, const struct snapshot *s);

static int vjoule_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	struct vjoule_metric system[VJOULE_COLUMNS];
	struct vjoule_machine m;
	size_t size;
	uint8_t *p;
	int rc;

	if (is_silent(e, s)) {
		e->stats.withheld_ticks++;
		snprintf(e->stats.reason, sizeof(e->stats.reason),
			 "package: no energy in this interval; simple_formula ends when such reports go on");
		return 0;
	}
	e->shown = shown;
	rc = vjoule_plan(e, s);
	if (rc)
		return rc;
	fill_machine(e, s, system, &m);
	size = vjoule_machine_size(e->dialect, &m);
	if (e->dialect == VJOULE_V02)
		rc = vjoule_fit(e, s, size < VJOULE_V02_MAX ? VJOULE_V02_MAX - size : 0);
	if (rc)
		return rc;
	p = size + e->size <= INT32_MAX ? buf_reserve(out, size + e->size) : NULL;
	if (!p)
		return -ENOMEM;
	p = vjoule_put_machine(p, e->dialect, &m, size + e->size, e->n_cgroups);
	out->len = (size_t)(put_cgroups(e, p, s) - out->data);
	e->stats.withheld_rows += e->withheld;
	e->stats.renamed_rows += e->renamed;
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
	.create = vjoule_create,
	.preamble = vjoule_preamble,
	.encode = vjoule_encode,
	.stats = vjoule_stats,
	.note = vjoule_note_at,
	.destroy = vjoule_destroy,
};

/* One pass over the rows computes their sums, which rows are sent, and the length of the record. Only new paths
 * are examined: two rows can share a path only when one of them has a new path. */

/* The largest possible number of rows with this value does not overflow. */
#define SUM_SAFE (INT64_MAX >> 21)

/* 1 or -ENOMEM. */
static int change_name(struct vjoule_name *n, const struct snap_row *row)
{
	char name[2 * VJOULE_V02_NAME_MAX];
	size_t len = vjoule_v02_name(row->path, n->len, name);

	if (len == n->len && !memcmp(name, row->path, len))
		return 1;
	if (len > VJOULE_V02_NAME_MAX) {
		n->kind = NAME_REFUSED;
		return 1;
	}
	n->text = malloc(len + 1);
	if (!n->text) {
		n->len = 0;
		return -ENOMEM;
	}
	memcpy(n->text, name, len);
	n->text[len] = '\0';
	n->len = (uint32_t)len;
	return 1;
}

/* 1 = the row's path is new, 0 = it is known, or -ENOMEM. */
static int look_up(struct encoder *e, const struct snap_row *row, struct vjoule_name **ret)
{
	struct vjoule_name *n;

	if (ARRAY_ZEROED(e->names, e->cap_names, (size_t)row->key + 1))
		return -ENOMEM;
	n = &e->names[row->key];
	*ret = n;
	if (n->len && n->generation == row->generation && n->renamed == row->renamed)
		return 0;
	free(n->text);
	*n = (struct vjoule_name){ .generation = row->generation, .renamed = row->renamed };
	n->len = (uint32_t)strnlen(row->path, VJOULE_NAME_MAX + 1);
	n->kind = vjoule_name_ok(e->dialect, row->path, n->len) ? vjoule_name_kind(row->path, n->len) : NAME_REFUSED;
	return e->dialect == VJOULE_V02 && n->kind == NAME_OK ? change_name(n, row) : 1;
}

static void leave_out(struct encoder *e, const struct snap_row *row, const char *why)
{
	e->withheld++;
	snprintf(e->stats.reason, sizeof(e->stats.reason), "cgroup %llu: %s", (unsigned long long)row->id, why);
}

/* True when no counter of the row could be read: zeros would be false. */
static bool all_lost(const struct encoder *e, const struct snap_row *row)
{
	bool core = false;

	if (!(row->quality & (QUALITY_LOST | QUALITY_PARTIAL)) || !row->time_ns)
		return false;
	for (unsigned i = e->n_machine; i < e->n_columns; i++) {
		if (vjoule_value(&e->columns[i], row))
			return false;
		core |= e->columns[i].kind == VJOULE_CORE;
	}
	return core;
}

static void add_values(const struct encoder *e, const struct snap_row *row, uint64_t *values)
{
	for (unsigned i = e->n_machine; i < e->n_columns; i++)
		values[i - e->n_machine] = vjoule_add(values[i - e->n_machine], vjoule_value(&e->columns[i], row));
}

void vjoule_add_row(const struct encoder *e, const struct snapshot *s, uint32_t row, uint64_t *values)
{
	add_values(e, &s->rows[row], values);
	for (uint32_t i = e->joined ? e->targets.rows[row].next : TARGET_NONE; i != TARGET_NONE;
	     i = e->targets.rows[i].next)
		add_values(e, &s->rows[i], values);
}

static void add_extra(struct encoder *e, unsigned extra, const struct snap_row *row)
{
	e->extras[extra].sent = true;
	add_values(e, row, e->extras[extra].values);
}

/* Idle and interrupt time belong to no task: TASK_CLOCK excludes their rows, counters include them. */
static inline bool counts(const struct snap_row *row, const struct vjoule_column *c)
{
	return c->kind == VJOULE_CORE || (row->kind != ROW_IDLE && row->kind != ROW_IRQ_STEAL);
}

static inline void add_sums(struct encoder *e, const struct snap_row *row)
{
	for (unsigned i = e->n_machine; i < e->n_columns; i++) {
		uint64_t v = counts(row, &e->columns[i]) ? vjoule_value(&e->columns[i], row) : 0;

		e->sums[i] += v;
		e->high |= v;
	}
}

static void add_special(struct encoder *e, const struct snapshot *s, uint32_t i)
{
	const struct snap_row *row = &s->rows[i];

	e->other_seen |= row->kind == ROW_OTHER && (row->time_ns || row->n_cells);
	if (!selection_shows(e->shown, s, i))
		return;
	if (row->kind == ROW_KERNEL)
		add_extra(e, VJOULE_KERNEL, row);
	if (row->kind == ROW_OTHER && e->other_seen)
		add_extra(e, VJOULE_OTHER, row);
}

static inline void choose(struct encoder *e, uint32_t i, const struct vjoule_name *name)
{
	e->send[e->n_send++] = i;
	e->names_size += name->len;
	e->renamed += name->text != NULL;
}

/* 1 = the path is new, 0, or -ENOMEM. */
static int add_cgroup(struct encoder *e, const struct snapshot *s, uint32_t i)
{
	const struct snap_row *row = &s->rows[i];
	struct vjoule_name *name;
	int new = look_up(e, row, &name);

	if (new < 0 || !selection_shows(e->shown, s, i))
		return new;
	if (name->plan != e->plans - 1)
		name->settled = false; /* another row may have taken its name meanwhile */
	name->plan = e->plans;
	new |= e->dialect == VJOULE_V02 && name->kind == NAME_OK && !name->settled;
	if (name->kind == NAME_REFUSED)
		leave_out(e, row, "its path cannot be a name (docs/formats/vjoule.md)");
	else if (name->kind != NAME_OK)
		add_extra(e, name->kind == NAME_KERNEL ? VJOULE_KERNEL : VJOULE_OTHER, row);
	else
		choose(e, i, name);
	e->any_lost |= row->quality && all_lost(e, row);
	return new;
}

/* Two paths must not get the same name. A row left without a name is not sent. */
static int settle_names(struct encoder *e, const struct snapshot *s)
{
	unsigned kept = 0;
	int rc = vjoule_settle_names(e, s);

	for (unsigned i = 0; i < e->n_send && !rc; i++) {
		if (e->names[s->rows[e->send[i]].key].kind == NAME_REFUSED)
			leave_out(e, &s->rows[e->send[i]], "its name cannot be told from another's");
		else
			e->send[kept++] = e->send[i];
	}
	e->n_send = rc ? e->n_send : kept;
	return rc;
}

static bool target_lost(const struct encoder *e, const struct snapshot *s, uint32_t row)
{
	bool lost = all_lost(e, &s->rows[row]);

	for (uint32_t i = e->joined ? e->targets.rows[row].next : TARGET_NONE; i != TARGET_NONE && lost;
	     i = e->targets.rows[i].next)
		lost = all_lost(e, &s->rows[i]);
	return lost;
}

static void drop_lost(struct encoder *e, const struct snapshot *s)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < e->n_send; i++) {
		if (target_lost(e, s, e->send[i]))
			leave_out(e, &s->rows[e->send[i]], "none of its counters could be read");
		else
			e->send[kept++] = e->send[i];
	}
	e->n_send = kept;
}

/* Joins rows of a cgroup that was removed and made again within the interval, because readers know cgroups by
 * name only. Either all rows of a path are in `send` or none, so the first of them is there. */
static int join(struct encoder *e, const struct snapshot *s)
{
	unsigned kept = 0;
	int rc = targets_update(&e->targets, s, false);

	if (rc)
		return rc;
	for (unsigned i = 0; i < e->n_send; i++)
		if (!(e->targets.rows[e->send[i]].flags & TARGET_JOINED))
			e->send[kept++] = e->send[i];
	e->joined = kept < e->n_send;
	e->n_send = kept;
	return 0;
}

/* The names of `send` again, after some have gone. */
static void measure_names(struct encoder *e, const struct snapshot *s)
{
	e->names_size = e->renamed = 0;
	for (unsigned i = 0; i < e->n_send; i++) {
		const struct vjoule_name *n = &e->names[s->rows[e->send[i]].key];

		e->names_size += n->len;
		e->renamed += n->text != NULL;
	}
}

static void measure(struct encoder *e)
{
	static const size_t extra_len[VJOULE_EXTRAS] = { sizeof("/kernel") - 1, sizeof("/other") - 1 };
	size_t each = vjoule_cgroup_size(e->dialect, 0, vjoule_metrics(e));

	e->n_cgroups = e->n_send;
	e->size = each * e->n_send + e->names_size;
	for (unsigned i = 0; i < VJOULE_EXTRAS; i++) {
		e->size += e->extras[i].sent ? each + extra_len[i] : 0;
		e->n_cgroups += e->extras[i].sent;
	}
}

/* Computes the sums again, checking each addition, because one may have overflowed. */
static void sum_carefully(struct encoder *e, const struct snapshot *s)
{
	memset(e->sums, 0, sizeof(e->sums));
	for (unsigned i = 0; i < s->n_rows; i++)
		for (unsigned k = e->n_machine; k < e->n_columns; k++)
			if (counts(&s->rows[i], &e->columns[k]))
				e->sums[k] = vjoule_add(e->sums[k], vjoule_value(&e->columns[k], &s->rows[i]));
}

/* Decides which rows of the snapshot are sent, and sums all. 0 or -ENOMEM. */
static int vjoule_plan(struct encoder *e, const struct snapshot *s)
{
	int news = 0, rc = ARRAY_ROOM(e->send, e->cap_send, s->n_rows);

	e->n_send = e->withheld = e->renamed = 0;
	e->names_size = 0;
	e->plans++;
	e->any_lost = false;
	e->high = 0;
	memset(e->sums, 0, sizeof(e->sums));
	memset(e->extras, 0, sizeof(e->extras));
	e->extras[VJOULE_OTHER].sent = e->other_stays;
	for (uint32_t i = 0; i < s->n_rows && !rc; i++) {
		int new = 0;

		add_sums(e, &s->rows[i]);
		if (s->rows[i].kind == ROW_CGROUP)
			new = add_cgroup(e, s, i);
		else
			add_special(e, s, i);
		news |= new;
		rc = new < 0 ? new : 0;
	}
	if (!rc && news && e->dialect == VJOULE_V02)
		rc = settle_names(e, s);
	if (!rc && (news || e->joined))
		rc = join(e, s);
	if (rc)
		return rc;
	if (e->high > SUM_SAFE)
		sum_carefully(e, s);
	if (e->any_lost)
		drop_lost(e, s);
	if (news || e->joined || e->any_lost)
		measure_names(e, s);
	measure(e);
	return 0;
}
