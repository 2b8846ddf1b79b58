/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_names.h"
#include <errno.h>
#include <fcntl.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/array.h"
#include "base/buf.h"
#include "base/text.h"
#include "code_reader.h"

#define PERF_MAP_MAX (64u << 20)
#define SHOWN_MAX (4 * SYMBOL_NAME_MAX + 1)

#define BUILD_ID UINT32_MAX /* an answer's number: it is the file's build id */

/* An answer of the reader; `len` bytes of the name follow. */
struct answer {
	uint32_t at, len;
};

static void read_perf_map(int fd, struct symbol_query *q, uint32_t n)
{
	struct buf b = { .limit = PERF_MAP_MAX };
	ssize_t got = 1;

	while (got > 0 && buf_reserve(&b, 65536)) {
		got = pread(fd, b.data + b.len, 65536, (off_t)b.len);
		b.len += got > 0 ? (size_t)got : 0;
	}
	perf_map_read((const char *)b.data, b.len, q, n);
	buf_free(&b);
}

static void write_answer(uint32_t at, const char *text)
{
	const size_t n = strlen(text);
	const struct answer a = { at, n < SYMBOL_NAME_MAX ? (uint32_t)n : SYMBOL_NAME_MAX };

	if (!a.len)
		return;
	reader_tell(&a, sizeof(a));
	reader_tell(text, a.len);
}

/* The name as a person wrote it, of a symbol of C++ or Rust; other names stay. libiberty's demangler has had its faults, and
 * runs where it can do no harm. */
static void write_name(uint32_t at, const char *symbol)
{
	char *plain = cplus_demangle(symbol, DMGL_AUTO);

	write_answer(at, plain ? plain : symbol);
	free(plain);
}

struct question {
	bool perf_map;
	struct symbol_query *q;
	uint32_t n;
};

static void read_file(void *arg)
{
	const struct question *ask = arg;
	char build_id[BUILD_ID_TEXT] = "";

	if (ask->perf_map) {
		read_perf_map(READER_FILE, ask->q, ask->n);
	} else {
		elf_build_id_read(READER_FILE, build_id);
		elf_symbols_read(READER_FILE, ask->q, ask->n);
	}
	write_answer(BUILD_ID, build_id);
	for (uint32_t i = 0; i < ask->n; i++)
		if (ask->q[i].name)
			write_name(ask->q[i].at, ask->q[i].name);
}

static void set_name(struct frame_name *f, const char *name)
{
	static const char *const starts[] = { "_start",
					      "__libc_start_main",
					      "__libc_start_call_main",
					      "__libc_start_main_impl",
					      "main",
					      "clone",
					      "__clone",
					      "clone3",
					      "__clone3",
					      "start_thread",
					      "thread_start",
					      "runtime.goexit",
					      "runtime.goexit.abi0",
					      "runtime.mstart",
					      "runtime.rt0_go.abi0" };
	char plain[SYMBOL_NAME_MAX + 1], shown[SHOWN_MAX];

	if (f->known)
		return;
	snprintf(plain, sizeof(plain), "%s%s", name, frame_file(f->frame) == CODE_KERNEL ? " [k]" : "");
	text_escape(shown, sizeof(shown), plain);
	for (char *at = shown; *at; at++) /* it parts the frames of folded stacks */
		*at = *at == ';' ? ':' : *at;
	free(f->text);
	f->text = strdup(shown);
	f->known = f->text;
	plain[strcspn(plain, "@")] = '\0';
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		f->start |= frame_file(f->frame) != CODE_KERNEL && strcmp(plain, starts[i]) == 0;
}

static bool take_build_id(const char *text, char ret[BUILD_ID_TEXT])
{
	const size_t n = strspn(text, "0123456789abcdef");

	if (text[n] || n >= BUILD_ID_TEXT)
		return false;
	memcpy(ret, text, n + 1);
	return true;
}

/* Reads answers to the end. False: they end within one, or name a frame that was not asked for. */
static bool take_answers(int fd, struct frame_name *v, uint32_t n, char build_id[BUILD_ID_TEXT])
{
	FILE *in = fdopen(fd, "r");
	struct answer a;
	char name[SYMBOL_NAME_MAX + 1];
	bool fine = true;

	if (!in) {
		close(fd);
		return false;
	}
	while (fread(&a, sizeof(a), 1, in) == 1) {
		fine = (a.at < n || a.at == BUILD_ID) && a.len && a.len <= SYMBOL_NAME_MAX &&
		       fread(name, a.len, 1, in) == 1;
		if (!fine)
			break;
		name[a.len] = '\0';
		if (a.at < n)
			set_name(&v[a.at], name);
		else if (!(fine = take_build_id(name, build_id)))
			break;
	}
	fclose(in);
	return fine;
}

/* Names v[0..n), all of one file. False: the reader did not end well. */
static bool ask_reader(const struct code_file *file, struct frame_name *v, uint32_t n, char build_id[BUILD_ID_TEXT])
{
	struct question ask = { file->kind == CODE_PERF_MAP, calloc(n, sizeof(*ask.q)), n };
	struct reader reader;
	bool fine = false;

	for (uint32_t i = 0; ask.q && i < n; i++)
		ask.q[i] = (struct symbol_query){ .offset = frame_offset(v[i].frame), .at = i };
	if (ask.q && reader_start(&reader, file->fd, read_file, &ask) == 0) {
		fine = take_answers(reader.answers, v, n, build_id);
		fine &= reader_end(&reader);
	}
	free(ask.q);
	return fine;
}

/* /proc/kallsyms has no sizes: a function reaches to the next symbol. */
static void name_kernel(const struct fsroot *root, struct frame_name *v, uint32_t n)
{
	const int fd = fsroot_openat(root, "/proc/kallsyms", O_RDONLY);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	struct closest {
		uint64_t at;
		char name[128];
	} *best = f ? calloc(n, sizeof(*best)) : NULL;
	char line[512], name[128], type;
	unsigned long long at;

	while (best && fgets(line, sizeof(line), f)) {
		const bool fits = sscanf(line, "%llx %c %127s", &at, &type, name) == 3 && at && strchr("tTwW", type);
		uint32_t from = 0, to = n;

		at &= 0xffffffffffffull;
		while (fits && from < to) {
			const uint32_t mid = from + (to - from) / 2;

			if (frame_offset(v[mid].frame) < at)
				from = mid + 1;
			else
				to = mid;
		}
		for (uint32_t i = from; fits && i < n && best[i].at < at; i++) {
			best[i].at = at;
			memcpy(best[i].name, name, sizeof(name));
		}
	}
	for (uint32_t i = 0; best && i < n; i++)
		if (best[i].at)
			set_name(&v[i], best[i].name);
	free(best);
	if (f)
		fclose(f);
}

static int by_frame(const void *a, const void *b)
{
	const uint64_t x = ((const struct frame_name *)a)->frame, y = ((const struct frame_name *)b)->frame;

	return (x > y) - (x < y);
}

static int collect(struct frame_names *f, const struct stacks *stacks)
{
	uint32_t unique = 0;

	if (ARRAY_ZEROED(f->v, f->cap, stacks->n_frames))
		return -ENOMEM;
	for (uint32_t i = 0; i < stacks->n_frames; i++)
		f->v[i] = (struct frame_name){ .frame = stacks->frames[i] };
	if (stacks->n_frames)
		qsort(f->v, stacks->n_frames, sizeof(*f->v), by_frame);
	for (uint32_t i = 0; i < stacks->n_frames; i++)
		if (!unique || f->v[i].frame != f->v[unique - 1].frame)
			f->v[unique++] = f->v[i];
	f->n = unique;
	return 0;
}

/* What stands for a frame that no symbol covers. */
static char *placeholder(const struct code *code, uint64_t frame)
{
	const struct code_file *file = &code->files[frame_file(frame)];
	const char *base = file->path ? strrchr(file->path, '/') : NULL;
	char text[512], shown[SHOWN_MAX];

	if (file->kind == CODE_KERNEL)
		snprintf(text, sizeof(text), "[kernel]");
	else if (file->kind == CODE_UNKNOWN)
		snprintf(text, sizeof(text), "[unknown]");
	else if (file->kind == CODE_PERF_MAP)
		snprintf(text, sizeof(text), "[compiled at run time]");
	else
		snprintf(text, sizeof(text), "[%.200s]", base ? base + 1 : "?");
	text_escape(shown, sizeof(shown), text);
	for (char *at = shown; *at; at++)
		*at = *at == ';' ? ':' : *at;
	return strdup(shown);
}

int frame_names_fill(struct frame_names *f, const struct code *code, const struct stacks *stacks)
{
	int rc = collect(f, stacks);
	uint32_t end;

	f->build_id = calloc(code->n_files, sizeof(*f->build_id));
	if (!f->build_id)
		rc = -ENOMEM;

	for (uint32_t i = 0; !rc && i < f->n; i = end) {
		const uint32_t at = frame_file(f->v[i].frame);
		const struct code_file *file = &code->files[at];

		for (end = i; end < f->n && frame_file(f->v[end].frame) == at; end++)
			;
		if (file->kind == CODE_KERNEL)
			name_kernel(code->root, f->v + i, end - i);
		else if (file->fd >= 0 && !ask_reader(file, f->v + i, end - i, f->build_id[at]))
			f->failed++;
	}
	for (uint32_t i = 0; !rc && i < f->n; i++) {
		if (!f->v[i].text)
			f->v[i].text = placeholder(code, f->v[i].frame);
		if (!f->v[i].text)
			rc = -ENOMEM;
	}
	return rc;
}

const struct frame_name *frame_name(const struct frame_names *f, uint64_t frame)
{
	const struct frame_name key = { .frame = frame };

	return f->n ? bsearch(&key, f->v, f->n, sizeof(*f->v), by_frame) : NULL;
}

void frame_names_free(struct frame_names *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		free(f->v[i].text);
	free(f->v);
	free(f->build_id);
	*f = (struct frame_names){ 0 };
}
