/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "../base/clock.h"
#include "../base/json.h"
#include "power.h"

#define NO_TAIL UINT32_MAX

/* A fraction of so many decimals, without zeros at its end; nothing when it is 0. */
static char *emit_fraction(char *p, uint64_t fraction, unsigned decimals)
{
	if (!fraction)
		return p;
	*p++ = '.';
	for (unsigned i = decimals; i-- > 0; fraction /= 10)
		p[i] = (char)('0' + fraction % 10);
	p += decimals;
	while (p[-1] == '0')
		p--;
	return p;
}

/* Integers all the way: W = uJ x 1000 / ns, here in units of 1e-9 W and rounded half up. Doubles
 * in their shortest form cost ten times as much. */
char *power_text(char *p, uint64_t energy_uj, uint64_t time_ns)
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

void power_begin(struct encoder *e, const struct snapshot *s)
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
		e->tail.data[0] = ','; /* goes on in an object that begins with the energy; json_end() ends it */
}

/* The same for hundreds of rows: made anew only when one of what it depends on changes. */
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

static void add_name(struct encoder *e, const struct power_part *p, struct buf *out)
{
	const char *text = p->target ? p->target : e->snap->rows[p->row].path;
	char name[TARGET_NAME_MAX];
	struct json j;

	if (!p->target && (e->targets.rows[p->row].flags & TARGET_CHECK)) {
		e->renamed += target_name(&e->snap->rows[p->row], e->csv, name);
		text = name;
	}
	if (e->csv) {
		buf_add_str(out, text);
		return;
	}
	json_init(&j, out);
	json_str(&j, text);
}

/* With the uncertainty as a decimal fraction, not below its last place. */
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

int power_line(struct encoder *e, const struct power_part *p, struct buf *out)
{
	const struct snap_domain *d = &e->snap->domains[p->domain];
	char *to;

	make_tail(e, p);
	if (e->head.failed || e->tail.failed)
		return -ENOMEM;
	buf_add(out, e->head.data, e->head.len);
	add_name(e, p, out);
	to = (char *)buf_reserve(out, e->tail.len + POWER_TEXT_MAX + EMIT_U64_MAX + 64);
	if (!to)
		return -ENOMEM;
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
