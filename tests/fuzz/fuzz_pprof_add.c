// SPDX-License-Identifier: Apache-2.0
/* A profile in pprof's form from outside, twice into one sum. What is taken doubles to the unit, also where there is no room;
 * what the sum writes is read again with the same sums; names are whole texts; what is refused leaves no sample. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "profile/pprof_sum.h"

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
