/* SPDX-License-Identifier: Apache-2.0 */
/* [version, uuid, [sensor, boot id, pod, namespace, container, unit], part, last, [[domain, interface] ...],
 *  [span ...]]; a span is an array of the numbers and texts of span_fields by key, then its energies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/format/cbor.h"
#include "trace_record.h"

#define RECORD_VERSION 1
#define FIRST_TEXT 27 /* key of a span's first text; the rest are texts too */
#define TEXTS (SPAN_RECORD_FIELDS - FIRST_TEXT)

static void put_text(struct buf *out, const char *s)
{
	cbw_bytes(out, s ? s : "", s ? strlen(s) : 0);
}

static void put_span(const struct span *s, const struct field *const order[SPAN_RECORD_FIELDS], struct buf *out)
{
	cbw_array(out, SPAN_RECORD_FIELDS + 1);
	for (unsigned i = 0; i < SPAN_RECORD_FIELDS; i++)
		if (i < FIRST_TEXT)
			field_cbor(out, order[i], s);
		else
			put_text(out, field_text(order[i], s));
	cbw_array(out, s->n_domains);
	for (unsigned d = 0; d < s->n_domains; d++)
		cbw_uint(out, s->energy_uj[d]);
}

int trace_record_write(const struct trace *t, struct buf *out)
{
	const struct field *order[SPAN_RECORD_FIELDS], *names[TRACE_RECORD_FIELDS];
	size_t start = out->len;

	fields_by_key(&span_fields, SPAN_RECORD, order, SPAN_RECORD_FIELDS);
	fields_by_key(&trace_fields, TRACE_RECORD, names, TRACE_RECORD_FIELDS);
	cbw_array(out, 7);
	cbw_uint(out, RECORD_VERSION);
	cbw_bytes(out, t->uuid, sizeof(t->uuid));
	cbw_array(out, TRACE_RECORD_FIELDS);
	for (unsigned i = 0; i < TRACE_RECORD_FIELDS; i++)
		put_text(out, field_text(names[i], t));
	cbw_uint(out, t->part);
	cbw_bool(out, t->last);
	cbw_array(out, t->n_domains);
	for (unsigned d = 0; d < t->n_domains; d++) {
		cbw_array(out, 2);
		put_text(out, t->domains[d]);
		put_text(out, t->interfaces ? t->interfaces[d] : "");
	}
	cbw_array(out, t->n_spans);
	for (uint32_t i = 0; i < t->n_spans && !out->failed; i++)
		put_span(&t->spans[i], order, out);
	if (!out->failed)
		return 0;
	out->len = start;
	return -ENOMEM;
}

/* Texts are stored as offsets while their buffer may still move. */
struct span_texts {
	size_t at[TEXTS];
};

struct owned {
	struct trace t; /* first member: callers hold a pointer to it */
	struct buf text;
	struct buf spans, offsets; /* struct span, struct span_texts */
	size_t names[TRACE_RECORD_FIELDS];
	const struct field *order[SPAN_RECORD_FIELDS], *name_fields[TRACE_RECORD_FIELDS];
	size_t domain_names[SCHEMA_MAX_DOMAINS][2];
	const char *domains[SCHEMA_MAX_DOMAINS], *interfaces[SCHEMA_MAX_DOMAINS];
};

struct reading {
	const uint8_t *data;
	size_t left;
};

static ssize_t feed(void *arg, void *dst, size_t n)
{
	struct reading *r = arg;

	n = n < r->left ? n : r->left;
	memcpy(dst, r->data, n);
	r->data += n;
	r->left -= n;
	return (ssize_t)n;
}

/* Reads the head of an array of n elements. */
static int fixed(struct cbr *r, uint64_t n, const char *what)
{
	struct cbr_iter it;
	int rc = cbr_array(r, &it, what);

	if (!rc && (it.open || it.left != n))
		rc = cbr_fail(r, what, "an array of another length");
	return rc;
}

/* Reads a text without NUL bytes and stores it with a NUL at the end. */
static int take_text(struct cbr *r, struct owned *o, size_t max, size_t *ret_at)
{
	size_t n = 0;
	char *to = (char *)buf_reserve(&o->text, max);
	int rc;

	if (!to)
		return -ENOMEM;
	rc = cbr_str(r, to, max, &n, "a text");
	if (rc)
		return rc;
	*ret_at = o->text.len;
	o->text.len += n + 1;
	return 0;
}

static int take_energy(struct cbr *r, struct owned *o, struct span *s)
{
	struct cbr_iter it;
	int rc = cbr_array(r, &it, "energies"), more = 0;

	while (!rc && (more = cbr_more(r, &it)) > 0) {
		if (s->n_domains == o->t.n_domains)
			return cbr_fail(r, "an energy for each domain", "more");
		rc = cbr_uint(r, &s->energy_uj[s->n_domains++], "an energy");
	}
	return rc ? rc : more;
}

static int take_span(struct cbr *r, struct owned *o)
{
	struct span s = { 0 };
	struct span_texts texts;
	int rc = fixed(r, SPAN_RECORD_FIELDS + 1, "a span");

	for (unsigned i = 0; i < FIRST_TEXT && !rc; i++)
		rc = field_cbor_read(r, o->order[i], &s);
	for (unsigned i = FIRST_TEXT; i < SPAN_RECORD_FIELDS && !rc; i++)
		rc = take_text(r, o, o->order[i]->max, &texts.at[i - FIRST_TEXT]);
	if (!rc)
		rc = take_energy(r, o, &s);
	if (rc)
		return rc;
	buf_add(&o->spans, &s, sizeof(s));
	buf_add(&o->offsets, &texts, sizeof(texts));
	o->t.n_spans++;
	return o->spans.failed || o->offsets.failed ? -ENOMEM : 0;
}

static int take_domains(struct cbr *r, struct owned *o)
{
	struct cbr_iter it;
	int rc = cbr_array(r, &it, "domains"), more = 0;

	while (!rc && (more = cbr_more(r, &it)) > 0) {
		unsigned d = o->t.n_domains;

		if (d == SCHEMA_MAX_DOMAINS)
			return cbr_fail(r, "at most 64 domains", "more");
		rc = fixed(r, 2, "a domain");
		for (unsigned i = 0; i < 2 && !rc; i++)
			rc = take_text(r, o, SCHEMA_NAME_MAX, &o->domain_names[d][i]);
		o->t.n_domains++;
	}
	return rc ? rc : more;
}

static int take_head(struct cbr *r, struct owned *o)
{
	uint64_t v = 0;
	size_t n = 0;
	int rc = fixed(r, 7, "a trace");

	if (!rc)
		rc = cbr_uint(r, &v, "a version");
	if (!rc && v != RECORD_VERSION)
		rc = cbr_fail(r, "version 1", "version %llu", (unsigned long long)v);
	if (!rc)
		rc = cbr_bytes(r, o->t.uuid, sizeof(o->t.uuid), &n, "a uuid");
	if (!rc && n != sizeof(o->t.uuid))
		rc = cbr_fail(r, "a uuid", "%zu bytes", n);
	if (!rc)
		rc = fixed(r, TRACE_RECORD_FIELDS, "the names of a trace");
	for (unsigned i = 0; i < TRACE_RECORD_FIELDS && !rc; i++)
		rc = take_text(r, o, o->name_fields[i]->max, &o->names[i]);
	if (!rc)
		rc = cbr_uint_max(r, UINT32_MAX, &v, "a part");
	o->t.part = (uint32_t)v;
	return rc ? rc : cbr_bool(r, &o->t.last, "whether it is the last part");
}

static int take_all(struct cbr *r, struct owned *o)
{
	struct cbr_iter it;
	int rc = take_head(r, o), more = 0;

	if (!rc)
		rc = take_domains(r, o);
	if (!rc)
		rc = cbr_array(r, &it, "spans");
	while (!rc && (more = cbr_more(r, &it)) > 0)
		rc = o->t.n_spans == TRACE_RECORD_SPANS_MAX ? cbr_fail(r, "at most 2^20 spans", "more") :
							      take_span(r, o);
	if (!rc && !more)
		more = cbr_at_end(r);
	return rc ? rc : more == 1 ? 0 : more < 0 ? more : cbr_fail(r, "the end", "more");
}

static const char *text_at(const struct owned *o, size_t at)
{
	return (const char *)o->text.data + at;
}

static void set_text(const struct owned *o, const struct field *f, void *obj, size_t at)
{
	const char *text = text_at(o, at);

	memcpy((char *)obj + f->offset, &text, sizeof(text));
}

/* Sets the pointers, now that the buffers no longer move. */
static void point(struct owned *o)
{
	for (unsigned i = 0; i < TRACE_RECORD_FIELDS; i++)
		set_text(o, o->name_fields[i], &o->t, o->names[i]);
	for (unsigned d = 0; d < o->t.n_domains; d++) {
		o->domains[d] = text_at(o, o->domain_names[d][0]);
		o->interfaces[d] = text_at(o, o->domain_names[d][1]);
	}
	o->t.domains = o->domains;
	o->t.interfaces = o->interfaces;
	o->t.spans = (struct span *)o->spans.data;
	for (uint32_t i = 0; i < o->t.n_spans; i++)
		for (unsigned k = 0; k < TEXTS; k++)
			set_text(o, o->order[FIRST_TEXT + k], &o->t.spans[i],
				 ((struct span_texts *)o->offsets.data)[i].at[k]);
}

int trace_record_read(const void *data, size_t len, struct trace **ret, struct err *err)
{
	struct reading in = { data, len };
	struct owned *o = calloc(1, sizeof(*o));
	struct cbr *r = cbr_new_from(feed, &in, "spooled trace");
	const char *wrong;
	int rc = -ENOMEM;

	if (!o || !r)
		goto out;
	fields_by_key(&span_fields, SPAN_RECORD, o->order, SPAN_RECORD_FIELDS);
	fields_by_key(&trace_fields, TRACE_RECORD, o->name_fields, TRACE_RECORD_FIELDS);
	cbr_err(r, err);
	rc = take_all(r, o);
	if (rc)
		goto out;
	point(o);
	wrong = o->t.n_spans ? trace_check(&o->t) : "no spans";
	if (wrong)
		rc = err_set(err, -EBADMSG, "spooled trace: %s", wrong);
out:
	if (rc == -ENOMEM)
		err_set(err, rc, "spooled trace: out of memory; free some");
	cbr_free(r);
	if (rc)
		trace_record_free(o ? &o->t : NULL);
	else
		*ret = &o->t;
	return rc;
}

void trace_record_free(struct trace *t)
{
	struct owned *o = (struct owned *)t;

	if (!o)
		return;
	buf_free(&o->text);
	buf_free(&o->spans);
	buf_free(&o->offsets);
	free(o);
}
