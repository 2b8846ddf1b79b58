// SPDX-License-Identifier: Apache-2.0
/* A profile in pprof's form from outside, twice into one sum. What is taken doubles to the unit, also where there is no room;
 * what the sum writes is read again with the same sums; names are whole texts; what is refused leaves no sample. In OpenTelemetry's
 * form every place that is named is in its table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "profile/pprof_sum_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct totals {
	uint64_t samples, uj, n;
};

static int each(void *arg, const struct pprof_sample *s)
{
	struct totals *t = arg;

	if (s->n > STACK_FRAMES_MAX + 1)
		abort();
	for (unsigned i = 0; i < s->n; i++)
		t->n += strlen(s->frame[i]);
	t->n += strlen(s->cgroup) + strlen(s->process) + strlen(s->quality) + 1;
	t->samples += s->samples;
	t->uj += s->energy_uj;
	return 0;
}

static struct totals totals_of(const struct pprof_sum *s)
{
	struct totals t = { 0 };

	if (pprof_sum_each(s, each, &t) != 0)
		abort();
	return t;
}

static bool admits(void *arg, const char *cgroup)
{
	return cgroup[0] == '/' && strcmp(cgroup, "/secret") != 0;
}

/* Of ProfilesDictionary: how many entries each table has, by its field. */
struct tables {
	uint64_t n[8];
};

static void in_table(const struct tables *t, unsigned table, uint64_t place)
{
	if (place >= t->n[table])
		abort();
}

static void list_in_table(const struct tables *t, unsigned table, const struct field *list)
{
	struct varint_reader r = inside(list);

	while (r.at < r.end)
		in_table(t, table, varint_take(&r));
	if (r.bad)
		abort();
}

/* places: by field, the table that it names a place of; of a list where it is bytes. below: by field, that of a part in it. */
static void look(const struct tables *t, struct varint_reader r, const uint8_t places[8], const uint8_t below[8])
{
	struct field f;

	while (next_field(&r, &f)) {
		if (f.number >= 8)
			continue;
		if (f.is_bytes && below && below[f.number])
			look(t, inside(&f), (const uint8_t[8]){ [1] = below[f.number] }, NULL);
		else if (f.is_bytes && places[f.number])
			list_in_table(t, places[f.number], &f);
		else if (places[f.number])
			in_table(t, places[f.number], f.value);
	}
	if (r.bad)
		abort();
}

static void look_at_dictionary(struct tables *t, const struct field *dictionary)
{
	/* 1 mappings, 2 locations, 3 functions, 5 strings, 6 attributes, 7 stacks */
	static const uint8_t places[8][8] = { [1] = { [4] = 5, [5] = 6 },
					      [2] = { [1] = 1 },
					      [3] = { [1] = 5, [2] = 5, [3] = 5 },
					      [6] = { [1] = 5 },
					      [7] = { [1] = 2 } },
			     lines[8] = { [3] = 3 };
	struct varint_reader r = inside(dictionary);
	struct field f;

	while (next_field(&r, &f))
		t->n[f.number < 8 ? f.number : 0]++;
	for (r = inside(dictionary); next_field(&r, &f);)
		if (f.number != 4 && f.number != 5)
			look(t, inside(&f), places[f.number], f.number == 2 ? lines : NULL);
	if (r.bad)
		abort();
}

static void look_at_profile(const struct tables *t, const struct field *profile)
{
	static const uint8_t sample[8] = { [1] = 7, [2] = 6 };
	struct varint_reader r = inside(profile);
	struct field f;

	while (next_field(&r, &f))
		if (f.number == 2)
			look(t, inside(&f), sample, NULL);
	if (r.bad)
		abort();
}

static void otlp_is_whole(const struct buf *request)
{
	struct varint_reader r = { request->data, request->data + request->len, false }, scope, all;
	struct tables t = { 0 };
	struct field f, in, profile;

	while (request->len && next_field(&r, &f))
		if (f.number == 2)
			look_at_dictionary(&t, &f);
	for (r.at = request->data; request->len && next_field(&r, &f);)
		for (scope = inside(&f); f.number == 1 && next_field(&scope, &in);)
			for (all = inside(&in); in.number == 2 && next_field(&all, &profile);)
				if (profile.number == 2)
					look_at_profile(&t, &profile);
	if (r.bad)
		abort();
}

/* Adds it once and again. */
static void twice(const void *data, size_t size, size_t room, const struct pprof_filter *f)
{
	struct pprof_sum *s = pprof_sum_new(room), *again = pprof_sum_new(1 << 26);
	struct totals one, two, read;
	struct buf out = { 0 };

	if (!s || !again)
		abort();
	if (pprof_sum_add(s, data, size, f) != 0) {
		if (totals_of(s).n)
			abort();
		goto done;
	}
	one = totals_of(s);
	if (pprof_sum_add(s, data, size, f) != 0)
		abort();
	two = totals_of(s);
	if (two.uj != 2 * one.uj || two.samples != 2 * one.samples)
		abort();
	if (pprof_sum_folded(s, &out) != 0)
		abort();
	buf_reset(&out);
	if (pprof_sum_write(s, &out) != 0 || pprof_sum_add(again, out.data, out.len, &(struct pprof_filter){ 0 }) != 0)
		abort();
	read = totals_of(again);
	if (read.uj != two.uj || read.samples != two.samples)
		abort();
	buf_reset(&out);
	if (pprof_sum_otlp(s, "fuzz", &out) != 0)
		abort();
	otlp_is_whole(&out);
done:
	buf_free(&out);
	pprof_sum_free(s);
	pprof_sum_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	twice(data, size, 1 << 26, &(struct pprof_filter){ 0 });
	twice(data, size, 1, &(struct pprof_filter){ 0 });
	twice(data, size, 1 << 26, &(struct pprof_filter){ .cgroup = "/a", .admits = admits });
	return 0;
}
