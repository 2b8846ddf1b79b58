/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are kept for a long-lived sampler: a frame is asked for once, for it means the same code as long as its file is
 * known. What a compiler made at run time is asked for anew: another function may lie there by now. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "frame_names.h"

#define PART 4096 /* frames in a stack that is none */

static int by_frame(const void *a, const void *b)
{
	const struct frame_name *x = a, *y = b;

	return (x->frame > y->frame) - (x->frame < y->frame);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static size_t bytes_of(const struct frame_name *n)
{
	size_t bytes = (strcmp(n->text, FRAME_NO_ROOM) != 0 ? room_block(strlen(n->text) + 1) : 0) +
		       (n->file ? room_block(strlen(n->file) + 1) : 0);

	for (uint32_t i = 0; i < n->n_inlined; i++)
		bytes += room_block(sizeof(n->inlined[i])) + room_block(strlen(n->inlined[i].text) + 1) +
			 (n->inlined[i].file ? room_block(strlen(n->inlined[i].file) + 1) : 0);
	return bytes;
}

static int forget_changing(struct frame_names *f, const struct code *code)
{
	struct frame_names gone = { 0 };
	uint32_t kept = 0;

	if (ARRAY_ROOM(gone.v, gone.cap, f->n))
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n; i++)
		if (code->files[frame_file(f->v[i].frame)].kind != CODE_PERF_MAP)
			f->v[kept++] = f->v[i];
		else
			gone.v[gone.n++] = f->v[i];
	f->n = kept;
	f->bytes = 0;
	for (uint32_t i = 0; i < kept; i++)
		f->bytes += bytes_of(&f->v[i]);
	room_set(f->room, ROOM_NAMES, f->bytes);
	frame_names_free(&gone);
	return 0;
}

/* Moves what `from` has into f. */
static int take_over(struct frame_names *f, struct frame_names *from, uint32_t n_files)
{
	char(*ids)[BUILD_ID_TEXT];

	if (ARRAY_ROOM(f->v, f->cap, f->n + from->n))
		return -ENOMEM;
	ids = calloc(n_files, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_files; i++) {
		const bool known = i < f->n_files && f->build_id[i][0];

		memcpy(ids[i], known ? f->build_id[i] : from->build_id[i], BUILD_ID_TEXT);
	}
	free(f->build_id);
	f->build_id = ids;
	f->n_files = n_files;
	if (from->n)
		memcpy(f->v + f->n, from->v, from->n * sizeof(*f->v));
	f->n += from->n;
	f->failed += from->failed;
	if (from->lacks[0])
		memcpy(f->lacks, from->lacks, sizeof(f->lacks));
	f->bytes = from->bytes;
	from->n = 0; /* the texts are f's */
	if (f->n)
		qsort(f->v, f->n, sizeof(*f->v), by_frame);
	return 0;
}

int frame_names_add(struct frame_names *f, const struct code *code, uint64_t *frames, uint32_t n)
{
	struct frame_names fresh = { .meanwhile = f->meanwhile, .arg = f->arg, .wish = f->wish };
	struct stacks asked = { .frames = frames };
	int rc = forget_changing(f, code);

	fresh.bytes = f->bytes;
	fresh.bytes_most = f->bytes_most;
	fresh.room = f->room;

	if (n)
		qsort(frames, n, sizeof(*frames), by_number);
	for (uint32_t i = 0; i < n; i++)
		if ((!asked.n_frames || frames[asked.n_frames - 1] != frames[i]) && !frame_name(f, frames[i]))
			frames[asked.n_frames++] = frames[i];
	for (uint32_t at = 0; !rc && at < asked.n_frames; at += PART) {
		const uint32_t left = asked.n_frames - at;

		rc = ARRAY_ROOM(asked.v, asked.cap, asked.n + 1);
		if (!rc)
			asked.v[asked.n++] = (struct stack){ .first = at, .n = (uint16_t)(left < PART ? left : PART) };
	}
	if (!rc)
		rc = frame_names_fill(&fresh, code, &asked);
	if (!rc)
		rc = take_over(f, &fresh, code->n_files);
	frame_names_free(&fresh);
	room_set(f->room, ROOM_NAMES, f->bytes);
	free(asked.v);
	return rc;
}
