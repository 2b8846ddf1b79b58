/* SPDX-License-Identifier: Apache-2.0 */
/* vJoule reports, little endian, not aligned. A record is an i32 length, which does not count itself, and
 * that many bytes. The first record is the header, every later one a report.
 *
 *	document  header  i32 n; n x { i16 id; i32 len; name }
 *	          report  f32 pp0 pp1 pkg dram psys; i32 S; S x { i16 id; i64 value };
 *	                  i32 C; C x { i32 len; name; i32 m; m x { i16 id; i64 value } }
 *	v0.2      header  i32 cpus; u8 simulation; 3 x f32 power limits; i32 0; i32 n; n x as above
 *	          report  the five f32; u32 temperature; i32 F; F x i32 kHz; i32 S; S x { i16 id; 6 bytes
 *	                  of padding; i64 value }; i16 C; C x as above, with padding in the metrics
 *
 * No byte names the dialect: it is the one whose header fills the first record exactly. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "decode.h"

#define PAYLOAD_MAX (16u << 20)
#define METRIC_BYTES_MAX 1024 /* the text of every report repeats the names */
#define NAME_BYTES_MAX 4096 /* of a cgroup */
#define IDS 65536

enum { DIALECT_DOCUMENT = 1, DIALECT_V02 = 2 };
static const char *const dialect_names[] = { [DIALECT_DOCUMENT] = "document", [DIALECT_V02] = "v0.2" };

struct vjoule {
	struct decoding *d;
	int dialect; /* 0 before the header */
	struct buf payload, names; /* names: NUL-terminated */
	uint32_t name_at[IDS]; /* by (uint16_t)id: offset in names + 1 */
	int write_rc;
};

/* A position in a record, and the first error in it. The error is only stored here, because the header is tried in both
 * dialects. */
struct cursor {
	const uint8_t *p;
	size_t n, at;
	const char *expected; /* NULL = nothing is wrong */
	char found[100];
	char name[NAME_BYTES_MAX + 1];
};

static void wrong(struct cursor *c, const char *expected, const char *found, ...) __attribute__((format(printf, 3, 4)));
static void wrong(struct cursor *c, const char *expected, const char *found, ...)
{
	va_list ap;

	if (c->expected)
		return;
	va_start(ap, found);
	vsnprintf(c->found, sizeof(c->found), found, ap);
	va_end(ap);
	c->expected = expected;
}

/* NULL when the record has no n more bytes. */
static const uint8_t *take(struct cursor *c, size_t n, const char *expected)
{
	const uint8_t *p = c->p + c->at;

	if (c->expected)
		return NULL;
	if (c->n - c->at < n) {
		wrong(c, expected, "the end of the record, %zu bytes away", c->n - c->at);
		return NULL;
	}
	c->at += n;
	return p;
}

/* n bytes little endian. 0 once something is wrong. */
static uint64_t number(struct cursor *c, unsigned n, const char *expected)
{
	const uint8_t *p = take(c, n, expected);
	uint64_t v = 0;

	for (unsigned i = 0; p && i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static float real(struct cursor *c, const char *expected)
{
	uint32_t bits = (uint32_t)number(c, 4, expected);
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* Reads a count of elements that take at least `each` bytes each. The bytes left in the record bound the count. */
static uint32_t count(struct cursor *c, unsigned bytes, size_t each, const char *expected)
{
	uint64_t v = number(c, bytes, expected);

	if (!c->expected && v > (c->n - c->at) / each) {
		c->at -= bytes;
		wrong(c, expected, "%lld where %zu bytes follow",
		      bytes == 2 ? (long long)(int16_t)v : (long long)(int32_t)v, c->n - c->at - bytes);
	}
	return c->expected ? 0 : (uint32_t)v;
}

/* Reads a length and a name into c->name. */
static void name(struct cursor *c, unsigned max, const char *expected)
{
	uint32_t len = count(c, 4, 1, expected);
	const uint8_t *p;

	if (!c->expected && len > max) {
		c->at -= 4;
		wrong(c, expected, "one of %u bytes, more than %u", len, max);
	}
	p = take(c, len, expected);
	if (p && memchr(p, 0, len)) {
		c->at -= len;
		wrong(c, "a name without a NUL byte", "one at place %zu of it",
		      (size_t)((const uint8_t *)memchr(p, 0, len) - p));
	}
	memcpy(c->name, p && !c->expected ? p : (const uint8_t *)"", p && !c->expected ? len : 0);
	c->name[p && !c->expected ? len : 0] = 0;
}

static void whole(struct cursor *c)
{
	if (c->at < c->n)
		wrong(c, "the end of the record", "%zu more bytes", c->n - c->at);
}

static const char *name_of(const struct vjoule *v, int16_t id)
{
	uint32_t at = v->name_at[(uint16_t)id];

	return at ? (const char *)v->names.data + at - 1 : NULL;
}

/* n x { i16 id; i32 len; name } to the end of the record. */
static void read_names(struct cursor *c, struct vjoule *v, struct out *o)
{
	uint32_t n = count(c, 4, 6, "a number of metrics");

	memset(v->name_at, 0, sizeof(v->name_at));
	buf_reset(&v->names);
	out_list(o, "metrics");
	for (uint32_t i = 0; i < n && !c->expected; i++) {
		int16_t id = (int16_t)number(c, 2, "the id of a metric");

		name(c, METRIC_BYTES_MAX, "the name of a metric");
		if (!c->expected && v->name_at[(uint16_t)id])
			wrong(c, "a metric with an id of its own", "id %d again", id);
		v->name_at[(uint16_t)id] = (uint32_t)v->names.len + 1;
		buf_add(&v->names, c->name, strlen(c->name) + 1);
		out_map(o, NULL);
		out_i64(o, "id", id);
		out_str(o, "name", c->name);
		out_map_end(o);
	}
	out_list_end(o);
	whole(c);
}

/* Reads the description of the machine, which v0.2 has before the names. */
static void read_machine(struct cursor *c, struct out *o)
{
	int32_t cpus = (int32_t)number(c, 4, "a number of CPUs");
	uint64_t simulation = number(c, 1, "0 or 1 (simulation)");
	float limits[3];

	if (simulation > 1) {
		c->at--;
		wrong(c, "0 or 1 (simulation)", "%llu", (unsigned long long)simulation);
	}
	for (int i = 0; i < 3; i++)
		limits[i] = real(c, "a power limit");
	if (number(c, 4, "a number of power values")) {
		c->at -= 4;
		wrong(c, "no power values", "some");
	}
	out_i64(o, "cpus", cpus);
	out_bool(o, "simulation", simulation);
	/* Without simulation the limits are uninitialised memory of the writer. */
	if (!simulation)
		return;
	out_list(o, "power_limits");
	for (int i = 0; i < 3; i++)
		out_float(o, NULL, limits[i]);
	out_list_end(o);
}

/* o NULL = the record is only checked. */
static void read_header(struct cursor *c, struct vjoule *v, int dialect, struct out *o)
{
	if (dialect == DIALECT_V02)
		read_machine(c, o);
	read_names(c, v, o);
}

static void read_metrics(struct cursor *c, struct vjoule *v, struct out *o, const char *key)
{
	unsigned padding = v->dialect == DIALECT_V02 ? 6 : 0;
	uint32_t n = count(c, 4, 10 + padding, "a number of metrics");

	out_list(o, key);
	for (uint32_t i = 0; i < n && !c->expected && !v->write_rc; i++) {
		int16_t id = (int16_t)number(c, 2, "the id of a metric");

		take(c, padding, "padding");
		out_metric(o, id, name_of(v, id), (int64_t)number(c, 8, "the value of a metric"));
		if (!v->write_rc)
			v->write_rc = out_spill(o);
	}
	out_list_end(o);
}

static void read_energies(struct cursor *c, struct out *o)
{
	static const char *const names[] = { "pp0", "pp1", "pkg", "dram", "psys" };

	out_map(o, "energy_joules");
	for (int i = 0; i < 5; i++)
		out_float(o, names[i], real(c, "an energy"));
	out_map_end(o);
}

static void read_frequencies(struct cursor *c, struct out *o)
{
	uint64_t temperature = number(c, 4, "a temperature");
	uint32_t n = count(c, 4, 4, "a number of CPU frequencies");

	out_u64(o, "temperature_millidegrees", temperature);
	out_list(o, "frequencies_khz");
	for (uint32_t i = 0; i < n && !c->expected; i++)
		out_i64(o, NULL, (int32_t)number(c, 4, "a CPU frequency"));
	out_list_end(o);
}

/* o NULL = the record is only checked. */
static void read_report(struct cursor *c, struct vjoule *v, struct out *o)
{
	uint32_t n;

	read_energies(c, o);
	if (v->dialect == DIALECT_V02)
		read_frequencies(c, o);
	read_metrics(c, v, o, "system");
	n = count(c, v->dialect == DIALECT_V02 ? 2 : 4, 8, "a number of cgroups");
	out_list(o, "cgroups");
	for (; n && !c->expected && !v->write_rc; n--) {
		name(c, NAME_BYTES_MAX, "the name of a cgroup");
		out_map(o, NULL);
		out_str(o, "name", c->name);
		read_metrics(c, v, o, "metrics");
		out_map_end(o);
	}
	out_list_end(o);
	whole(c);
}

static void begin(struct vjoule *v, const char *kind, uint64_t offset)
{
	struct out *o = v->d->out;

	out_record(o, "vjoule", kind, offset);
	out_str(o, "dialect", dialect_names[v->dialect]);
	out_u64(o, "length", v->payload.len);
}

/* Returns the dialects in which the record is a header, as a sum. c becomes the attempt that got furthest. */
static int header_fits(struct vjoule *v, struct cursor *c)
{
	const struct cursor start = *c;
	int fits = 0;

	for (int i = DIALECT_DOCUMENT; i <= DIALECT_V02; i++) {
		struct cursor try = start;

		if (v->d->dialect && strcmp(v->d->dialect, dialect_names[i]) != 0)
			continue;
		read_header(&try, v, i, NULL);
		fits |= try.expected ? 0 : i;
		if (try.at >= c->at)
			*c = try;
	}
	return fits;
}

static int next_header(struct vjoule *v, struct cursor *c, uint64_t offset)
{
	const struct cursor start = *c;

	v->dialect = header_fits(v, c);
	if (v->dialect == (DIALECT_DOCUMENT | DIALECT_V02))
		return input_fail(v->d->in, offset, "a header of one dialect",
				  "one of both: say --dialect document or --dialect v0.2");
	if (!v->dialect && v->d->dialect)
		return input_fail(v->d->in, offset + 4 + c->at, c->expected, "%s", c->found);
	if (!v->dialect)
		return input_fail(v->d->in, offset + 4 + c->at, "a header of dialect document or v0.2",
				  "neither (%s is wanted, there is %s)", c->expected, c->found);
	*c = start;
	begin(v, "header", offset);
	read_header(c, v, v->dialect, v->d->out);
	return decode_record_end(v->d, offset);
}

static int next_report(struct vjoule *v, struct cursor *c, uint64_t offset)
{
	read_report(c, v, NULL);
	if (c->expected)
		return input_fail(v->d->in, offset + 4 + c->at, c->expected, "%s", c->found);
	c->at = 0;
	begin(v, "report", offset);
	read_report(c, v, v->d->out);
	return v->write_rc ? decode_write_failed(v->d, v->write_rc) : decode_record_end(v->d, offset);
}

static int vjoule_next(void *state)
{
	struct vjoule *v = state;
	struct input *in = v->d->in;
	uint64_t offset = input_offset(in);
	struct cursor c = { 0 };
	const uint8_t *p;
	uint8_t head[4];
	int32_t length;
	int rc = input_peek(in, 1, &p);

	if (rc <= 0)
		return rc;
	rc = input_take(in, head, sizeof(head), "a record's length");
	if (rc)
		return rc;
	length = (int32_t)(head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24);
	if (length <= 0 || (uint32_t)length > PAYLOAD_MAX)
		return input_fail(in, offset, "a record of 1 byte to 16 MiB", "a length of %d", length);
	buf_reset(&v->payload);
	rc = input_append(in, &v->payload, (size_t)length, "the rest of a record");
	if (rc)
		return rc;
	c.p = v->payload.data;
	c.n = v->payload.len;
	return v->dialect ? next_report(v, &c, offset) : next_header(v, &c, offset);
}

static int vjoule_open(struct decoding *d, void **ret_state)
{
	struct vjoule *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->d = d;
	*ret_state = v;
	return 0;
}

static void vjoule_close(void *state)
{
	struct vjoule *v = state;

	if (!v)
		return;
	buf_free(&v->payload);
	buf_free(&v->names);
	free(v);
}

const struct decoder decoder_vjoule = { vjoule_open, vjoule_next, vjoule_close };
