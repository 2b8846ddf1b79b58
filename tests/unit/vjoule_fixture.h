/* SPDX-License-Identifier: Apache-2.0 */
/* A vjoule encoder over a snapshot built by hand, and the numbers of its records. Tests that look at
 * layout use golden bytes; these walk a record by docs/formats/vjoule.md to find one number. */
#ifndef JD_TEST_VJOULE_FIXTURE_H
#define JD_TEST_VJOULE_FIXTURE_H
#include "encode_fixture.h"

struct record {
	const uint8_t *at;
	size_t left;
	bool v02;
};

static inline uint64_t take(struct record *r, unsigned n)
{
	uint64_t v = 0;

	assert_true(r->left >= n);
	for (unsigned i = n; i-- > 0;)
		v = v << 8 | r->at[i];
	r->at += n;
	r->left -= n;
	return v;
}

static inline float take_float(struct record *r)
{
	uint32_t bits = (uint32_t)take(r, 4);
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* The payload of the first record in the buffer, which is the only one. */
static inline struct record record_open(const struct buf *b, bool v02)
{
	struct record r = { b->data, b->len, v02 };
	size_t len = take(&r, 4);

	assert_int_equal(len, r.left);
	return r;
}

#define REPORT_COLUMNS 32
#define REPORT_CGROUPS 8000

struct report {
	float energy[5];
	uint32_t temperature, n_khz, khz[64];
	unsigned n_system, n_cgroups, n_metrics;
	int64_t system[REPORT_COLUMNS]; /* by identifier */
	struct report_cgroup {
		char name[4200];
		int64_t values[REPORT_COLUMNS];
	} * cgroups;
	size_t bytes;
};

static inline unsigned take_metrics(struct record *r, int64_t *values)
{
	unsigned n = (unsigned)take(r, 4);

	for (unsigned i = 0; i < n; i++) {
		uint64_t id = take(r, r->v02 ? 8 : 2);

		assert_true(id < REPORT_COLUMNS); /* with v0.2's padding: it must be zero */
		values[id] = (int64_t)take(r, 8);
	}
	return n;
}

static inline void report_read(struct report *ret, const struct buf *b, bool v02)
{
	struct record r = record_open(b, v02);

	free(ret->cgroups);
	*ret = (struct report){ .bytes = b->len };
	for (unsigned i = 0; i < 5; i++)
		ret->energy[i] = take_float(&r);
	if (v02) {
		ret->temperature = (uint32_t)take(&r, 4);
		ret->n_khz = (uint32_t)take(&r, 4);
		assert_true(ret->n_khz <= 64);
		for (unsigned i = 0; i < ret->n_khz; i++)
			ret->khz[i] = (uint32_t)take(&r, 4);
	}
	ret->n_system = take_metrics(&r, ret->system);
	ret->n_cgroups = (unsigned)take(&r, v02 ? 2 : 4);
	assert_true(ret->n_cgroups <= REPORT_CGROUPS);
	ret->cgroups = calloc(ret->n_cgroups + 1, sizeof(*ret->cgroups));
	assert_non_null(ret->cgroups);
	for (unsigned i = 0; i < ret->n_cgroups; i++) {
		size_t len = take(&r, 4);

		assert_true(len < sizeof(ret->cgroups[i].name) && len <= r.left);
		memcpy(ret->cgroups[i].name, r.at, len);
		r.at += len;
		r.left -= len;
		ret->n_metrics = take_metrics(&r, ret->cgroups[i].values);
	}
	assert_int_equal(r.left, 0);
}

static inline const int64_t *report_find(const struct report *r, const char *name)
{
	const int64_t *found = NULL;

	for (unsigned i = 0; i < r->n_cgroups; i++) {
		if (strcmp(r->cgroups[i].name, name) != 0)
			continue;
		assert_null(found); /* names differ */
		found = r->cgroups[i].values;
	}
	return found;
}

/* Encodes what the fixture holds into r. */
static inline void report_of(struct report *r, struct fixture *f, bool v02)
{
	buf_reset(&f->out);
	assert_int_equal(f->ops->encode(f->encoder, &f->snap, NULL, &f->out), 0);
	report_read(r, &f->out, v02);
}

/* Names of the header, one blank between them. */
static inline const char *header_names(struct fixture *f, bool v02)
{
	static char text[2000];
	struct record r;
	unsigned n;

	buf_reset(&f->out);
	assert_int_equal(f->ops->preamble(f->encoder, &f->schema, &f->out), 0);
	r = record_open(&f->out, v02);
	take(&r, v02 ? 8 : 0);
	take(&r, v02 ? 8 : 0);
	take(&r, v02 ? 5 : 0);
	n = (unsigned)take(&r, 4);
	text[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(take(&r, 2), i); /* dense, rising */
		size_t len = take(&r, 4);

		assert_true(len <= r.left);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s", i ? " " : "", (int)len,
			 (const char *)r.at);
		r.at += len;
		r.left -= len;
	}
	assert_int_equal(r.left, 0);
	return text;
}

/* A row of one cell with counters k, 2 k, 3 k ... */
static inline struct snap_row *counted_row(struct fixture *f, const char *path, uint64_t id, uint64_t k)
{
	struct snap_row *r = fixture_row(f, path, id);

	r->time_ns = 1000 * k;
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		r->counters[i] = (i + 1) * k;
	return r;
}

static inline void three_events(struct fixture *f)
{
	fixture_event(&f->schema.core, "CYCLES", EVENT_PERF);
	fixture_event(&f->schema.core, "LLC_MISSES", EVENT_PERF);
	fixture_event(&f->schema.core, "TASK_CLOCK", EVENT_TASK_CLOCK);
}

#endif
