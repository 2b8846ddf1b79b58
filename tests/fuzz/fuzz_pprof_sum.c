// SPDX-License-Identifier: Apache-2.0
/* A profile in pprof's form that somebody else wrote. The first byte chooses what has names. What is taken can be written and
 * is read again as the same; naming its code leaves every sum as it was. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "profile/pprof_symbolize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *copy_of(const char *text)
{
	char *ret = strdup(text);

	if (!ret)
		abort();
	return ret;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Names in the way of the readers, without files: some have functions that were compiled in, some are the start. */
static int name(void *arg, const struct symbolize_file *file, uint64_t *frames, uint32_t n, struct frame_names *ret)
{
	const unsigned how = *(const uint8_t *)arg;

	if (strlen(file->path) + strlen(file->build_id) + strlen(file->boot) > 65536 || (how & 7) == 7)
		return -ENOMEM;
	qsort(frames, n, sizeof(*frames), by_number);
	ret->v = calloc(n, sizeof(*ret->v));
	if (!ret->v)
		abort();
	for (uint32_t i = 0; i < n; i++) {
		struct frame_name *f = &ret->v[ret->n];

		if (frame_file(frames[i]) != (file->kernel ? CODE_KERNEL : SYMBOLIZE_FILE))
			abort();
		if (i && frames[i] == frames[i - 1])
			continue;
		ret->n++;
		f->frame = frames[i];
		f->known = frames[i] & how;
		f->start = f->known && (frames[i] & 1);
		f->text = copy_of(f->known ? "f" : "[file]");
		f->file = how & 16 ? copy_of("f.c") : NULL;
		f->line = how;
		if (!(how & 32))
			continue;
		f->inlined = calloc(1, sizeof(*f->inlined));
		if (!f->inlined)
			abort();
		f->inlined[f->n_inlined++] = (struct frame_source){ .text = copy_of("in"), .line = 1 };
	}
	return 0;
}

static int add(void *arg, const struct pprof_sample *s)
{
	uint64_t *sum = arg;

	sum[0] += s->samples;
	sum[1] += s->energy_uj;
	if (s->n > STACK_FRAMES_MAX + 1)
		abort();
	for (unsigned i = 0; i < s->n; i++)
		sum[2] += strlen(s->frame[i]) != 0;
	return 0;
}

static void sums(const struct pprof_sum *s, uint64_t ret[3])
{
	memset(ret, 0, 3 * sizeof(*ret));
	if (pprof_sum_each(s, add, ret) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pprof_sum *s = pprof_sum_new(SIZE_MAX), *again = pprof_sum_new(SIZE_MAX), *named = NULL;
	struct buf out = { 0 };
	uint64_t had[3], has[3];
	uint8_t how = size ? data[0] : 0;

	if (!s || !again)
		abort();
	if (size && pprof_sum_add(s, data + 1, size - 1, &(struct pprof_filter){ 0 }) == 0) {
		sums(s, had);
		if (pprof_sum_write(s, &out) != 0 ||
		    pprof_sum_add(again, out.data, out.len, &(struct pprof_filter){ 0 }) != 0)
			abort();
		sums(again, has);
		if (memcmp(had, has, sizeof(had)) != 0)
			abort();
		if (pprof_symbolize(s, name, &how, &named) == 0) {
			sums(named, has);
			if (had[0] != has[0] || had[1] != has[1])
				abort();
		}
	}
	pprof_sum_free(named);
	pprof_sum_free(again);
	pprof_sum_free(s);
	buf_free(&out);
	return 0;
}
