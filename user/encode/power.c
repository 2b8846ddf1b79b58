/* SPDX-License-Identifier: Apache-2.0 */
/* Power reports (docs/formats/power.md): per energy domain a report for the machine (`all`), one
 * per target, and one for everything else that got a part, so that the energies of the parts add
 * up to that of `all` to the microjoule:
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
#include "power.h"

static int power_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e;
	int code;

	for (unsigned i = 0; o->csv && i < s->n_domains; i++)
		if (!target_text_ok(s->domains[i].name, true))
			return err_set(err, -EINVAL, "domain %s: its name cannot stand in CSV; use file-format=json",
				       s->domains[i].name);
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(err, -ENOMEM, "power: out of memory");
	e->schema = s;
	e->iso = o->iso_time;
	e->csv = o->csv;
	code = target_sensor(o, s, e->sensor, err);
	if (code) {
		free(e);
		return code;
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

/* Why nothing can be said of a domain in this interval; NULL when something can. */
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
	return e->snap->rows[row].selected && !(e->targets.rows[row].flags & TARGET_REFUSED);
}

/* Of a sum: errors may all lie to one side. What has no energy adds none; something without a known
 * uncertainty leaves that of the sum unknown. */
static uint32_t joined_ppm(const struct power_part *p, uint64_t energy_uj, uint32_t ppm)
{
	double both = (double)p->energy_uj + (double)energy_uj;

	if (!p->energy_uj || !energy_uj)
		return energy_uj || !p->energy_uj ? ppm : p->uncertainty_ppm;
	if (ppm == SNAPSHOT_UNKNOWN || p->uncertainty_ppm == SNAPSHOT_UNKNOWN)
		return SNAPSHOT_UNKNOWN;
	return (uint32_t)((p->uncertainty_ppm * (double)p->energy_uj + ppm * (double)energy_uj) / both);
}

/* The energy of a target: of its row and of those joined to it. */
static void add_target(const struct encoder *e, uint32_t row, struct power_part *p)
{
	for (; row != TARGET_NONE; row = e->targets.rows[row].next) {
		uint64_t energy_uj = *snapshot_energy(e->snap, row, p->domain);

		p->uncertainty_ppm = joined_ppm(p, energy_uj, *snapshot_uncertainty(e->snap, row, p->domain));
		p->energy_uj += energy_uj;
		p->quality |= row_quality(e, row, p->domain);
	}
}

/* Targets without a name of their own in this output: cgroups left out by cgroups.include/exclude. */
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

static int add_row(struct encoder *e, uint32_t row, unsigned domain, struct buf *out)
{
	const struct snap_row *r = &e->snap->rows[row];
	struct power_part p = { .row = row, .domain = domain, .uncertainty_ppm = SNAPSHOT_UNKNOWN };

	if (r->kind == ROW_IDLE || (e->targets.rows[row].flags & TARGET_JOINED) ||
	    (r->kind == ROW_CGROUP && !named(e, row)))
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
		  .quality = d->quality | d->idle_quality,
		  .uncertainty_ppm = d->idle_uncertainty >= 0 ? (uint32_t)fmin(d->idle_uncertainty * 1e6, 1e9) :
								SNAPSHOT_UNKNOWN },
		{ .target = "residual",
		  .domain = domain,
		  .energy_uj = d->residual_uj,
		  .quality = d->quality,
		  .uncertainty_ppm = SNAPSHOT_UNKNOWN },
	};
	int err = 0;

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]) && !err; i++)
		err = power_line(e, &parts[i], out);
	return err;
}

static int add_domain(struct encoder *e, unsigned domain, struct buf *out)
{
	bool split = e->snap->formula[0] && strcmp(e->snap->formula, "none") != 0;
	int err = add_machine(e, domain, out);

	/* unsplit, all of it is residual: rows would be zeros that nobody measured */
	if (!split)
		return err;
	for (uint32_t i = 0; i < e->snap->n_rows && !err; i++)
		err = add_row(e, i, domain, out);
	return err ? err : add_unselected(e, domain, out);
}

static void withhold_domain(struct encoder *e, unsigned domain, const char *why)
{
	e->stats.withheld_rows++;
	snprintf(e->stats.reason, sizeof(e->stats.reason), "%s: its energy is %s in this interval",
		 e->schema->domains[domain].name, why);
}

/* Cgroups whose path is no path: their energy goes into `unselected`. */
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
		int err = 0;

		if (why)
			withhold_domain(e, d, why);
		else
			err = add_domain(e, d, out);
		if (err)
			return err;
		sent += !why;
	}
	if (sent)
		return 0;
	e->stats.withheld_ticks++;
	if (!s->schema->n_domains)
		snprintf(e->stats.reason, sizeof(e->stats.reason), "machine: no energy source; see jouled doctor");
	return 0;
}

static int power_encode(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	size_t start = out->len;
	int err = targets_update(&e->targets, s, false);

	if (err)
		return err;
	power_begin(e, s);
	count_refused(e, s);
	err = add_domains(e, s, out);
	if (!err && out->failed)
		err = -ENOMEM;
	if (err)
		out->len = start;
	else
		e->stats.renamed_rows += e->renamed;
	return err;
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
	.help = "power per cgroup and energy domain, JSON lines or CSV",
	.create = power_create,
	.preamble = power_preamble,
	.encode = power_encode,
	.stats = power_stats,
	.destroy = power_destroy,
};
