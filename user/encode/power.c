/* SPDX-License-Identifier: Apache-2.0 */
/* Power reports (docs/formats/power.md). Each energy domain has a report for the machine (`all`), one per target,
 * and one for each other part. The energies of the parts add up to that of `all` to the microjoule:
 *
 *	{"timestamp":T,"sensor":S,"target":"/a/b","power":1.25,"metadata":{"energy_uj":1250000,
 *	 "domain":"package-0","kind":"package","package":0,"quality":"measured","formula":"share","idle":"own"}}
 *
 * all = every /path + kernel + irq+steal + other + unselected + idle + residual. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/format/json.h"
#include "power.h"

static int power_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e;
	int rc;

	for (unsigned i = 0; o->csv && i < s->n_domains; i++)
		if (!target_text_ok(s->domains[i].name, true))
			return err_set(err, -EINVAL, "domain %s: its name cannot stand in CSV; use file-format=json",
				       s->domains[i].name);
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(err, -ENOMEM, "power: out of memory; free some");
	e->schema = s;
	e->iso = o->iso_time;
	e->csv = o->csv;
	rc = target_sensor(o->sensor ? o->sensor : s->sensor, o->csv, e->sensor, err);
	if (rc) {
		free(e);
		return rc;
	}
	*ret = e;
	return 0;
}

static int power_preamble(struct encoder *e, const struct schema *s, struct buf *out)
{
	if (e->csv)
		buf_add_str(out, "timestamp,sensor,target,power,socket,domain,quality,formula,idle,energy_uj\n");
	return out->failed ? -ENOMEM : 0;
}

/* Returns why the energy of a domain is unusable in this interval; NULL when it is usable. */
static const char *unusable(const struct snap_domain *d)
{
	if (d->quality & QUALITY_LOST)
		return "lost";
	if (d->end_ns <= d->start_ns || ((d->quality & QUALITY_STALE) && !d->energy_uj))
		return "stale";
	return NULL;
}

static unsigned row_quality(const struct encoder *e, uint32_t row, unsigned domain)
{
	return snapshot_energy_quality(e->snap, row, domain);
}

static bool named(const struct encoder *e, uint32_t row)
{
	return selection_shows(e->shown, e->snap, row) && !(e->targets.rows[row].flags & TARGET_REFUSED);
}

/* Adds up the energy of a target: its row and the rows joined to it. */
static void add_target(const struct encoder *e, uint32_t row, struct power_part *p)
{
	for (; row != TARGET_NONE; row = e->targets.rows[row].next) {
		uint64_t energy_uj = *snapshot_energy(e->snap, row, p->domain);

		p->uncertainty_ppm = snapshot_joined_ppm(p->energy_uj, p->uncertainty_ppm, energy_uj,
							 *snapshot_uncertainty(e->snap, row, p->domain));
		p->energy_uj += energy_uj;
		p->quality |= row_quality(e, row, p->domain);
	}
}

static int power_line(struct encoder *e, const struct power_part *p, struct buf *out);

/* Adds the target `unselected`: cgroups left out by cgroups.include and cgroups.exclude. */
static int add_unselected(struct encoder *e, unsigned domain, struct buf *out)
{
	struct power_part p = { .target = "unselected", .domain = domain, .uncertainty_ppm = SNAPSHOT_UNKNOWN };
	bool any = false;

	for (uint32_t i = 0; i < e->snap->n_rows; i++) {
		if (e->snap->rows[i].kind != ROW_CGROUP || named(e, i) || (e->targets.rows[i].flags & TARGET_JOINED))
			continue;
		add_target(e, i, &p);
		any = true;
	}
	return any ? power_line(e, &p, out) : 0;
}

static bool has_causes(enum domain_kind kind)
{
	return kind == DOMAIN_WALL || kind == DOMAIN_PSYS;
}

static int add_row(struct encoder *e, uint32_t row, unsigned domain, struct buf *out)
{
	const struct snap_row *r = &e->snap->rows[row];
	struct power_part p = { .row = row, .domain = domain, .uncertainty_ppm = SNAPSHOT_UNKNOWN };

	if (r->kind == ROW_IDLE || (r->kind >= ROW_FIRST_CAUSE && !has_causes(e->snap->schema->domains[domain].kind)) ||
	    (e->targets.rows[row].flags & TARGET_JOINED) || (r->kind == ROW_CGROUP && !named(e, row)))
		return 0;
	if (r->kind != ROW_CGROUP)
		p.target = row_kind_name(r->kind);
	add_target(e, row, &p);
	return power_line(e, &p, out);
}

static int add_machine(struct encoder *e, unsigned domain, struct buf *out)
{
	const struct snap_domain *d = &e->snap->domains[domain];
	uint64_t idle_row = *snapshot_energy(e->snap, ROW_IDLE, domain);
	const struct power_part parts[] = {
		{ .target = "all",
		  .domain = domain,
		  .energy_uj = d->energy_uj,
		  .quality = d->quality,
		  .uncertainty_ppm = SNAPSHOT_UNKNOWN },
		{ .target = "idle",
		  .domain = domain,
		  .energy_uj = d->idle_uj + idle_row,
		  .quality = d->idle_quality,
		  .uncertainty_ppm = d->idle_uncertainty >= 0 ? (uint32_t)fmin(d->idle_uncertainty * 1e6, 1e9) :
								SNAPSHOT_UNKNOWN },
		{ .target = "residual",
		  .domain = domain,
		  .energy_uj = d->residual_uj,
		  .quality = d->quality,
		  .uncertainty_ppm = SNAPSHOT_UNKNOWN },
	};
	int rc = 0;

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]) && !rc; i++)
		rc = power_line(e, &parts[i], out);
	return rc;
}

static int add_domain(struct encoder *e, unsigned domain, struct buf *out)
{
	bool split = e->snap->formula[0] && strcmp(e->snap->formula, "none") != 0;
	int rc = add_machine(e, domain, out);

	/* without a split all energy is residual; rows would have zeros that are no measurement */
	if (!split)
		return rc;
	for (uint32_t i = 0; i < e->snap->n_rows && !rc; i++)
		rc = add_row(e, i, domain, out);
	return rc ? rc : add_unselected(e, domain, out);
}

static void withhold_domain(struct encoder *e, unsigned domain, const char *why)
{
	e->stats.withheld_rows++;
	snprintf(e->stats.reason, sizeof(e->stats.reason), "%s: its energy is %s in this interval",
		 e->schema->domains[domain].name, why);
}

/* Counts cgroups without a valid path: their energy goes into `unselected`. */
static void count_refused(struct encoder *e, const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->n_rows; i++) {
		if (!(e->targets.rows[i].flags & TARGET_REFUSED))
			continue;
		e->stats.withheld_rows++;
		snprintf(e->stats.reason, sizeof(e->stats.reason), "cgroup %llu: its path does not begin with a slash",
			 (unsigned long long)s->rows[i].id);
	}
}

static int add_domains(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	unsigned sent = 0;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		const char *why = unusable(&s->domains[d]);
		int rc = 0;

		if (why)
			withhold_domain(e, d, why);
		else
			rc = add_domain(e, d, out);
		if (rc)
			return rc;
		sent += !why;
	}
	if (sent)
		return 0;
	e->stats.withheld_ticks++;
	if (!s->schema->n_domains)
		snprintf(e->stats.reason, sizeof(e->stats.reason), "machine: no energy source; see jouled doctor");
	return 0;
}

static void power_begin(struct encoder *e, const struct snapshot *s);

static int power_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	size_t start = out->len;
	int rc = targets_update(&e->targets, s, false);

	if (!rc && !e->csv)
		rc = targets_write_texts(&e->targets, s);
	if (rc)
		return rc;
	e->shown = shown;
	power_begin(e, s);
	count_refused(e, s);
	rc = add_domains(e, s, out);
	if (!rc && out->failed)
		rc = -ENOMEM;
	if (rc)
		out->len = start;
	else
		e->stats.renamed_rows += e->renamed;
	return rc;
}

static const struct encoder_stats *power_stats(const struct encoder *e)
{
	return &e->stats;
}

static void power_destroy(struct encoder *e)
{
	if (!e)
		return;
	targets_free(&e->targets);
	buf_free(&e->head);
	buf_free(&e->tail);
	free(e);
}

const struct encoder_ops encode_power = {
	.name = "power",
	.create = power_create,
	.preamble = power_preamble,
	.encode = power_encode,
	.stats = power_stats,
	.destroy = power_destroy,
};

#define NO_TAIL UINT32_MAX

/* Computes W = uJ x 1000 / ns with integers only, in units of 1e-9 W, rounded half up. Doubles in their
 * shortest form would cost ten times as much. */
static char *power_text(char *p, uint64_t energy_uj, uint64_t time_ns)
{
	const uint64_t giga = 1000000000, tera = 1000000000000;
	uint64_t nw;

	if (energy_uj < UINT64_MAX / tera / 2)
		nw = (energy_uj * tera + time_ns / 2) / time_ns;
	else
		nw = (uint64_t)(((unsigned __int128)energy_uj * tera + time_ns / 2) / time_ns);
	p = emit_u64(p, nw / giga);
	return emit_fraction(p, nw % giga, 9);
}

static void csv_head(struct encoder *e, const char *iso)
{
	if (e->iso)
		buf_add_str(&e->head, iso);
	else
		buf_add_i64(&e->head, e->snap->end_real_ns / (int64_t)NS_PER_MS);
	buf_add_char(&e->head, ',');
	buf_add_str(&e->head, e->sensor);
	buf_add_char(&e->head, ',');
}

static void power_begin(struct encoder *e, const struct snapshot *s)
{
	struct json j;
	char iso[24];

	e->snap = s;
	e->renamed = 0;
	e->tail_domain = NO_TAIL;
	buf_reset(&e->head);
	clock_iso_ms(s->end_real_ns, iso);
	if (e->csv) {
		csv_head(e, iso);
		return;
	}
	json_init(&j, &e->head);
	json_object_begin(&j);
	json_key(&j, "timestamp");
	if (e->iso)
		json_str(&j, iso);
	else
		json_i64(&j, s->end_real_ns / (int64_t)NS_PER_MS);
	json_key_str(&j, "sensor", e->sensor);
	json_key(&j, "target");
}

static void csv_tail(struct encoder *e, const struct domain_desc *desc, unsigned quality)
{
	buf_add_char(&e->tail, ',');
	buf_add_u64(&e->tail, desc->package);
	buf_add_char(&e->tail, ',');
	buf_add_str(&e->tail, desc->name);
	buf_add_char(&e->tail, ',');
	buf_add_str(&e->tail, quality_name(quality));
	buf_add_char(&e->tail, ',');
	buf_add_str(&e->tail, e->snap->formula);
	buf_add_char(&e->tail, ',');
	buf_add_str(&e->tail, idle_policy_name(e->snap->idle_policy));
	buf_add_char(&e->tail, ',');
}

static void json_tail(struct encoder *e, const struct domain_desc *desc, const struct power_part *p)
{
	struct json j;

	json_init(&j, &e->tail);
	json_object_begin(&j);
	json_key_str(&j, "domain", desc->name);
	json_key_str(&j, "kind", domain_kind_name(desc->kind));
	json_key_u64(&j, "package", desc->package);
	json_key_str(&j, "quality", quality_name(p->quality));
	json_key_str(&j, "formula", e->snap->formula);
	json_key_str(&j, "idle", idle_policy_name(e->snap->idle_policy));
	if (!e->tail.failed)
		e->tail.data[0] = ','; /* continues an object that begins with the energy; json_end() closes it */
}

/* The tail is the same for hundreds of rows. It is made again only when something that it depends on changes. */
static void make_tail(struct encoder *e, const struct power_part *p)
{
	if (e->tail_domain == p->domain && e->tail_quality == p->quality)
		return;
	buf_reset(&e->tail);
	if (e->csv)
		csv_tail(e, &e->schema->domains[p->domain], p->quality);
	else
		json_tail(e, &e->schema->domains[p->domain], p);
	e->tail_domain = p->domain;
	e->tail_quality = p->quality;
}

/* The name of a part as it stands in the form at hand: the row's or its own, which is plain text. `name` is room for it. */
static const char *name_of(struct encoder *e, const struct power_part *p, char name[TARGET_NAME_MAX], size_t *ret_len)
{
	const struct target_row *row = &e->targets.rows[p->row];

	if (p->target) {
		*ret_len = (size_t)snprintf(name, TARGET_NAME_MAX, e->csv ? "%s" : "\"%s\"", p->target);
		return name;
	}
	if (!e->csv) {
		e->renamed += (row->flags & TARGET_RENAMED) != 0;
		*ret_len = row->text_len;
		return targets_text(&e->targets, p->row);
	}
	if (!(row->flags & TARGET_CHECK)) {
		*ret_len = row->len;
		return e->snap->rows[p->row].path;
	}
	e->renamed += target_name(&e->snap->rows[p->row], true, name);
	*ret_len = strlen(name);
	return name;
}

/* Closes the object, with the uncertainty as a decimal fraction, at least one unit of its last place. */
static char *json_end(char *p, uint32_t ppm)
{
	const uint32_t million = 1000000;

	if (ppm != SNAPSHOT_UNKNOWN) {
		p = emit_literal(p, ",\"uncertainty\":");
		p = emit_u64(p, (ppm ? ppm : 1) / million);
		p = emit_fraction(p, (ppm ? ppm : 1) % million, 6);
	}
	return emit_literal(p, "}}\n");
}

static int power_line(struct encoder *e, const struct power_part *p, struct buf *out)
{
	const struct snap_domain *d = &e->snap->domains[p->domain];
	char room[TARGET_NAME_MAX], *to;
	size_t name_len;
	const char *name = name_of(e, p, room, &name_len);

	make_tail(e, p);
	if (e->head.failed || e->tail.failed)
		return -ENOMEM;
	to = (char *)buf_reserve(out, e->head.len + name_len + e->tail.len + POWER_TEXT_MAX + EMIT_U64_MAX + 64);
	if (!to)
		return -ENOMEM;
	to = emit_mem(to, e->head.data, e->head.len);
	to = emit_mem(to, name, name_len);
	to = e->csv ? emit_literal(to, ",") : emit_literal(to, ",\"power\":");
	to = power_text(to, p->energy_uj, d->end_ns - d->start_ns);
	if (!e->csv) {
		to = emit_literal(to, ",\"metadata\":{\"energy_uj\":");
		to = emit_u64(to, p->energy_uj);
	}
	to = emit_mem(to, e->tail.data, e->tail.len);
	if (e->csv) {
		to = emit_u64(to, p->energy_uj);
		*to++ = '\n';
	} else {
		to = json_end(to, p->uncertainty_ppm);
	}
	out->len = (size_t)((uint8_t *)to - out->data);
	return 0;
}
