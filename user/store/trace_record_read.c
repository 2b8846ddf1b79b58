/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/cbor.h"
#include "trace_record_internal.h"

/* Texts are kept as offsets while their buffer may still move. */
struct span_texts {
	size_t at[RECORD_TEXTS];
};

struct owned {
	struct trace t; /* first: what callers hold */
	struct buf text;
	struct buf spans, offsets; /* struct span, struct span_texts */
	size_t names[RECORD_NAMES];
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

/* An array of a known number of elements. */
static int fixed(struct cbr *r, uint64_t n, const char *what)
{
	struct cbr_iter it;
	int err = cbr_array(r, &it, what);

	if (!err && (it.open || it.left != n))
		err = cbr_fail(r, what, "an array of another length");
	return err;
}

/* Bytes of any kind but NUL, kept with one behind them. */
static int take_text(struct cbr *r, struct owned *o, size_t max, size_t *ret_at)
{
	size_t n = 0;
	char *to = (char *)buf_reserve(&o->text, max);
	int err;

	if (!to)
		return -ENOMEM;
	err = cbr_str(r, to, max, &n, "a text");
	if (err)
		return err;
	*ret_at = o->text.len;
	o->text.len += n + 1;
	return 0;
}

static int take_numbers(struct cbr *r, struct span *s)
{
	static const struct {
		unsigned i;
		uint64_t max;
	} bounds[] = {
		{ 2, SPAN_FUNCTION }, { 3, SPAN_UNKNOWN }, { 4, UINT32_MAX }, { 5, UINT32_MAX }, { 6, UINT32_MAX },
		{ 7, UINT32_MAX },    { 8, UINT32_MAX },   { 13, INT32_MAX }, { 14, 1 },         { 15, 1 },
		{ 21, UINT32_MAX },   { 22, UINT32_MAX },  { 23, 1 },
	};
	uint64_t v[RECORD_NUMBERS] = { 0 };
	int64_t exit_code = 0;
	int err = 0;

	for (unsigned i = 0; i < RECORD_NUMBERS && !err; i++)
		err = cbr_uint(r, &v[i], "a number of a span");
	for (unsigned b = 0; b < sizeof(bounds) / sizeof(bounds[0]) && !err; b++)
		if (v[bounds[b].i] > bounds[b].max)
			err = cbr_fail(r, "a number of a span", "one that is too large");
	if (!err)
		err = cbr_int(r, &s->start_real_ns, "a clock");
	if (!err)
		err = cbr_int(r, &exit_code, "an exit code");
	if (!err && (exit_code < INT32_MIN || exit_code > INT32_MAX))
		err = cbr_fail(r, "an exit code", "one that is too large");
	record_numbers_to(s, v);
	s->exit_code = (int)exit_code;
	return err;
}

static int take_energy(struct cbr *r, struct owned *o, struct span *s)
{
	struct cbr_iter it;
	int err = cbr_array(r, &it, "energies"), more = 0;

	while (!err && (more = cbr_more(r, &it)) > 0) {
		if (s->n_domains == o->t.n_domains)
			return cbr_fail(r, "an energy for each domain", "more");
		err = cbr_uint(r, &s->energy_uj[s->n_domains++], "an energy");
	}
	return err ? err : more;
}

static int take_span(struct cbr *r, struct owned *o)
{
	static const size_t max[RECORD_TEXTS] = {
		SPAN_COMM_MAX, SPAN_PATH_MAX, SPAN_CMDLINE_MAX, 4096, SPAN_SYMBOL_MAX, SPAN_PATH_MAX,
	};
	struct span s = { 0 };
	struct span_texts texts;
	int err = fixed(r, RECORD_NUMBERS + 2 + RECORD_TEXTS + 1, "a span");

	if (!err)
		err = take_numbers(r, &s);
	for (unsigned i = 0; i < RECORD_TEXTS && !err; i++)
		err = take_text(r, o, max[i], &texts.at[i]);
	if (!err)
		err = take_energy(r, o, &s);
	if (err)
		return err;
	buf_add(&o->spans, &s, sizeof(s));
	buf_add(&o->offsets, &texts, sizeof(texts));
	o->t.n_spans++;
	return o->spans.failed || o->offsets.failed ? -ENOMEM : 0;
}

static int take_domains(struct cbr *r, struct owned *o)
{
	struct cbr_iter it;
	int err = cbr_array(r, &it, "domains"), more = 0;

	while (!err && (more = cbr_more(r, &it)) > 0) {
		unsigned d = o->t.n_domains;

		if (d == SCHEMA_MAX_DOMAINS)
			return cbr_fail(r, "at most 64 domains", "more");
		err = fixed(r, 2, "a domain");
		for (unsigned i = 0; i < 2 && !err; i++)
			err = take_text(r, o, SCHEMA_NAME_MAX, &o->domain_names[d][i]);
		o->t.n_domains++;
	}
	return err ? err : more;
}

static int take_head(struct cbr *r, struct owned *o)
{
	uint64_t v = 0;
	size_t n = 0;
	int err = fixed(r, 7, "a trace");

	if (!err)
		err = cbr_uint(r, &v, "a version");
	if (!err && v != RECORD_VERSION)
		err = cbr_fail(r, "version 1", "version %llu", (unsigned long long)v);
	if (!err)
		err = cbr_bytes(r, o->t.uuid, sizeof(o->t.uuid), &n, "a uuid");
	if (!err && n != sizeof(o->t.uuid))
		err = cbr_fail(r, "a uuid", "%zu bytes", n);
	if (!err)
		err = fixed(r, RECORD_NAMES, "the names of a trace");
	for (unsigned i = 0; i < RECORD_NAMES && !err; i++)
		err = take_text(r, o, 4096, &o->names[i]);
	if (!err)
		err = cbr_uint_max(r, UINT32_MAX, &v, "a part");
	o->t.part = (uint32_t)v;
	return err ? err : cbr_bool(r, &o->t.last, "whether it is the last part");
}

static int take_all(struct cbr *r, struct owned *o)
{
	struct cbr_iter it;
	int err = take_head(r, o), more = 0;

	if (!err)
		err = take_domains(r, o);
	if (!err)
		err = cbr_array(r, &it, "spans");
	while (!err && (more = cbr_more(r, &it)) > 0)
		err = o->t.n_spans == TRACE_RECORD_SPANS_MAX ? cbr_fail(r, "at most 2^20 spans", "more") :
							       take_span(r, o);
	if (!err && !more)
		more = cbr_at_end(r);
	return err ? err : more == 1 ? 0 : more < 0 ? more : cbr_fail(r, "the end", "more");
}

static const char *text_at(const struct owned *o, size_t at)
{
	return (const char *)o->text.data + at;
}

/* The buffers stand still now. */
static void point(struct owned *o)
{
	const char **names[RECORD_NAMES] = {
		&o->t.sensor, &o->t.boot_id, &o->t.pod, &o->t.pod_namespace, &o->t.container, &o->t.unit,
	};

	for (unsigned i = 0; i < RECORD_NAMES; i++)
		*names[i] = text_at(o, o->names[i]);
	for (unsigned d = 0; d < o->t.n_domains; d++) {
		o->domains[d] = text_at(o, o->domain_names[d][0]);
		o->interfaces[d] = text_at(o, o->domain_names[d][1]);
	}
	o->t.domains = o->domains;
	o->t.interfaces = o->interfaces;
	o->t.spans = (struct span *)o->spans.data;
	for (uint32_t i = 0; i < o->t.n_spans; i++) {
		struct span *s = &o->t.spans[i];
		const size_t *at = ((struct span_texts *)o->offsets.data)[i].at;
		const char **texts[RECORD_TEXTS] = {
			&s->comm, &s->exe, &s->cmdline, &s->cgroup, &s->symbol, &s->binary
		};

		for (unsigned k = 0; k < RECORD_TEXTS; k++)
			*texts[k] = text_at(o, at[k]);
	}
}

int trace_record_read(const void *data, size_t len, struct trace **ret, struct err *err)
{
	struct reading in = { data, len };
	struct owned *o = calloc(1, sizeof(*o));
	struct cbr *r = cbr_new_from(feed, &in, "spooled trace");
	const char *wrong = NULL;
	int rc = o && r ? 0 : err_set(err, -ENOMEM, "spooled trace: out of memory; free some");

	if (!rc) {
		cbr_err(r, err);
		rc = take_all(r, o);
		if (rc == -ENOMEM)
			err_set(err, rc, "spooled trace: out of memory; free some");
	}
	if (!rc) {
		point(o);
		wrong = o->t.n_spans ? trace_check(&o->t) : "no spans";
	}
	if (wrong)
		rc = err_set(err, -EBADMSG, "spooled trace: %s", wrong);
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
