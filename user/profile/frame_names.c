/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_names.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/array.h"
#include "base/text.h"
#include "code_reader.h"
#include "name_reader.h"

#define SHOWN_MAX (4 * SYMBOL_NAME_MAX + 1)
#define SHOWN_FILE_MAX (4 * SOURCE_FILE_MAX + 1)

#define WAIT_MS 20

/* Counts a text of n bytes. False: it has no room. */
static bool has_room(struct frame_names *names, size_t n)
{
	n = room_block(n);
	if ((names->bytes_most && names->bytes + n > names->bytes_most) || !room_add(names->room, ROOM_NAMES, n))
		return false;
	names->bytes += n;
	return true;
}

/* Escaped, and without what parts the frames of folded stacks. NULL = no room, or no memory. */
static char *shown_name(struct frame_names *names, const char *name)
{
	char shown[SHOWN_MAX];

	text_escape(shown, sizeof(shown), name);
	for (char *at = shown; *at; at++)
		*at = *at == ';' ? ':' : *at;
	return has_room(names, strlen(shown) + 1) ? strdup(shown) : NULL;
}

static void set_name(struct frame_names *names, struct frame_name *f, const char *name)
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
	char plain[SYMBOL_NAME_MAX + 1];

	if (f->known)
		return;
	snprintf(plain, sizeof(plain), "%s%s", name, frame_file(f->frame) == CODE_KERNEL ? " [k]" : "");
	free(f->text);
	f->text = shown_name(names, plain);
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

static void set_file(struct frame_names *names, char **to, const char *file)
{
	char shown[SHOWN_FILE_MAX];

	free(*to);
	text_escape(shown, sizeof(shown), file);
	*to = *file && has_room(names, strlen(shown) + 1) ? strdup(shown) : NULL;
}

static void add_inlined(struct frame_names *names, struct frame_name *f, const struct name_answer *a, const char *name,
			const char *file)
{
	struct frame_source *s;

	if (f->n_inlined >= SOURCE_INLINES_MAX || !has_room(names, sizeof(*s)) ||
	    ARRAY_RESIZE(f->inlined, f->n_inlined + 1))
		return;
	s = &f->inlined[f->n_inlined];
	*s = (struct frame_source){ .text = shown_name(names, *name ? name : "[inlined]"), .line = a->line };
	if (!s->text)
		return;
	f->n_inlined++;
	set_file(names, &s->file, file);
}

/* What is asked of one file of code. */
struct asking {
	struct frame_name *v; /* [n], all of that file */
	uint32_t n;
	struct reader_files files;
	bool without_alt;
	char *build_id; /* of the file; that of files.debug must be the same */
	struct elf_alt lacks; /* what the reader said; "" = nothing */
};

/* False: no reader tells this. */
static bool take_answer(struct frame_names *names, const struct name_answer *a, const char *name, const char *file,
			struct asking *ask)
{
	struct frame_name *f = &ask->v[a->at];

	switch (a->kind) {
	case NAME_BUILD_ID:
		return take_build_id(name, ask->build_id);
	case NAME_ALT:
		snprintf(ask->lacks.path, sizeof(ask->lacks.path), "%s", file);
		return take_build_id(name, ask->lacks.build_id);
	case NAME_FUNCTION:
		set_name(names, f, name);
		return true;
	case NAME_INLINED:
		add_inlined(names, f, a, name, file);
		return true;
	case NAME_LINE:
		if (*name)
			set_name(names, f, name);
		set_file(names, &f->file, file);
		f->line = a->line;
		return true;
	default:
		return false;
	}
}

/* Reads answers to the end. False: they end within one, or name a frame that was not asked for. */
static bool take_answers(struct frame_names *names, int fd, struct asking *ask)
{
	FILE *in = fdopen(fd, "r");
	struct name_answer a;
	char name[SYMBOL_NAME_MAX + 1], file[SOURCE_FILE_MAX + 1];
	bool fine = true;

	if (!in) {
		close(fd);
		return false;
	}
	while (fine && fread(&a, sizeof(a), 1, in) == 1) {
		fine = a.at < ask->n && a.name <= SYMBOL_NAME_MAX && a.file <= SOURCE_FILE_MAX &&
		       fread(name, 1, a.name, in) == a.name && fread(file, 1, a.file, in) == a.file;
		if (!fine)
			break;
		name[a.name] = file[a.file] = '\0';
		fine = take_answer(names, &a, name, file, ask);
	}
	fclose(in);
	return fine;
}

/* A reader tells its answers at its end. */
static void wait_for_answers(const struct frame_names *f, int fd)
{
	while (f->meanwhile && poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, WAIT_MS) == 0)
		f->meanwhile(f->arg);
}

/* Names what is asked. False: the reader did not end well. */
static bool ask_reader(struct frame_names *f, const struct code_file *file, struct asking *asking)
{
	const uint32_t n = asking->n;
	struct name_question ask = { .perf_map = file->kind == CODE_PERF_MAP,
				     .build_id = asking->files.debug >= 0 ? asking->build_id : NULL,
				     .has_alt = asking->files.alt >= 0,
				     .without_alt = asking->without_alt,
				     .own_id = f->wish ? f->wish->build_id : NULL,
				     .id_alone = f->wish && f->wish->no_names,
				     .symbols_alone = file->kind == CODE_UNKNOWN,
				     .mapped = f->wish ? f->wish->mapped : 0,
				     .q = calloc(n, sizeof(*ask.q)),
				     .n = n };
	struct reader reader;
	bool fine = false;

	for (uint32_t i = 0; ask.q && i < n; i++)
		ask.q[i] = (struct symbol_query){ .offset = frame_offset(asking->v[i].frame), .at = i };
	if (ask.q && reader_start(&reader, &asking->files, name_reader, &ask) == 0) {
		wait_for_answers(f, reader.answers);
		fine = take_answers(f, reader.answers, asking);
		fine &= reader_end(&reader);
	}
	free(ask.q);
	return fine;
}

/* The file DIR/below in the root of a process, or -1. */
static int open_in(const struct code *code, const char *root, const char *dirs, const char *below)
{
	char path[PATH_MAX];
	int fd = -1;

	for (const char *at = dirs; at && *at && fd < 0; at = strchr(at, ':'), at += at ? 1 : 0) {
		const int n = snprintf(path, sizeof(path), "%.*s/%s", (int)strcspn(at, ":"), at, below);
		const int found = n < (int)sizeof(path) ? fsroot_find_inside(code->root, root, path) : -1;

		if (found < 0)
			continue;
		fd = fsroot_open_plain(found);
		close(found);
	}
	return fd;
}

/* The same below the directories of debug files, of this machine, or of the container that the file was seen in. */
static int open_below(const struct frame_names *f, const struct code *code, const struct code_file *file,
		      const char *below)
{
	const char *dirs = f->wish && f->wish->debug_dirs ? f->wish->debug_dirs : FRAME_DEBUG_DIR;
	char root[32];
	int fd = open_in(code, "/", dirs, below);

	if (fd < 0 && file->process) {
		snprintf(root, sizeof(root), "/proc/%d/root", code->processes[file->process].pid);
		fd = open_in(code, root, dirs, below);
	}
	return fd;
}

/* A file with the symbols of another one. -1 = there is none. */
static int open_debug(const struct frame_names *f, const struct code *code, const struct code_file *file,
		      const char *build_id)
{
	char below[BUILD_ID_TEXT + 32];

	if (strlen(build_id) < 4)
		return -1;
	snprintf(below, sizeof(below), ".build-id/%.2s/%s.debug", build_id, build_id + 2);
	return open_below(f, code, file, below);
}

/* The file to which dwz moved what several files share: by its build id, or as Debian's packages have it, in DIR/.dwz. Of the
 * path that a file says nothing else counts, and what is not of that build id is not believed. -1 = there is none. */
static int open_alt(const struct frame_names *f, const struct code *code, const struct code_file *file,
		    const struct elf_alt *alt)
{
	const char *dwz = strstr(alt->path, "/.dwz/");
	const int fd = open_debug(f, code, file, alt->build_id);

	return fd >= 0 || !dwz || strstr(dwz, "/../") ? fd : open_below(f, code, file, dwz + 1);
}

/* Names what is asked, also by a file that shares debug information with others. */
static bool ask_all(struct frame_names *f, const struct code *code, const struct code_file *file, struct asking *ask)
{
	bool fine = ask_reader(f, file, ask);

	if (!fine || !ask->lacks.build_id[0])
		return fine;
	ask->files.alt = open_alt(f, code, file, &ask->lacks);
	ask->without_alt = true; /* it is that one, or there is none */
	if (ask->files.alt < 0)
		memcpy(f->lacks, ask->lacks.build_id, sizeof(f->lacks));
	fine = ask_reader(f, file, ask);
	if (ask->files.alt >= 0)
		close(ask->files.alt);
	return fine;
}

/* Names v[0..n) by a file that has the symbols of another one, which is not here. */
static void name_by_symbols(struct frame_names *f, const struct code *code, uint32_t number, struct frame_name *v,
			    uint32_t n)
{
	const int debug = f->wish->mapped != UINT64_MAX ? open_debug(f, code, &code->files[number], f->wish->build_id) :
							  -1;
	struct asking ask = { v, n, { debug, -1, -1, 0 }, .build_id = f->build_id[number] };

	if (debug < 0)
		return;
	f->failed += !ask_all(f, code, &(struct code_file){ .kind = CODE_UNKNOWN, .fd = debug }, &ask);
	close(debug);
}

/* Names v[0..n), all of the file of that number. */
static void name_file(struct frame_names *f, const struct code *code, uint32_t number, struct frame_name *v, uint32_t n)
{
	const struct code_file *file = &code->files[number];
	struct asking own = { v, n, { file->fd, -1, -1, 0 }, .build_id = f->build_id[number] };
	const bool fine = file->fd < 0 || ask_all(f, code, file, &own);
	bool lines = false;
	int debug;

	f->failed += !fine;
	if (f->wish && f->wish->no_names)
		return;
	if (f->wish && f->wish->build_id && strcmp(f->build_id[number], f->wish->build_id) != 0) {
		name_by_symbols(f, code, number, v, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		lines |= v[i].line;
	debug = lines ? -1 : open_debug(f, code, file, f->build_id[number]);
	if (debug >= 0) {
		struct asking beside = { v, n, { file->fd, debug, -1, 0 }, .build_id = f->build_id[number] };

		for (uint32_t i = 0; i < n; i++)
			v[i].known = false; /* a symbol that was stripped may be closer */
		f->failed += !ask_all(f, code, file, &beside) && fine;
		close(debug);
	}
}

/* /proc/kallsyms has no sizes: a function reaches to the next symbol. */
static void name_kernel(struct frame_names *names, int kallsyms, struct frame_name *v, uint32_t n)
{
	const int fd = kallsyms >= 0 && lseek(kallsyms, 0, SEEK_SET) == 0 ? dup(kallsyms) : -1;
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
			set_name(names, &v[i], best[i].name);
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
	uint32_t n = 0, unique = 0;

	if (ARRAY_ZEROED(f->v, f->cap, stacks->n_frames))
		return -ENOMEM;
	for (uint32_t i = 0; i < stacks->n; i++)
		for (uint32_t k = 0;
		     k < stacks->v[i].n && (!f->wish || !f->wish->wants || f->wish->wants(f->wish->arg, i)); k++)
			f->v[n++] = (struct frame_name){ .frame = stacks->frames[stacks->v[i].first + k] };
	if (n)
		qsort(f->v, n, sizeof(*f->v), by_frame);
	for (uint32_t i = 0; i < n; i++)
		if (!unique || f->v[i].frame != f->v[unique - 1].frame)
			f->v[unique++] = f->v[i];
	f->n = unique;
	return 0;
}

#define KERNEL_BITS 0xffff000000000000ull /* of its addresses; frames keep the others */

/* What stands for a frame that no symbol covers. exact: with its place, by which it can be named later. */
static char *placeholder(struct frame_names *names, const struct code *code, uint64_t frame, bool exact)
{
	const struct code_file *file = &code->files[frame_file(frame)];
	const char *base = file->path ? strrchr(file->path, '/') : NULL;
	const unsigned long long at = frame_offset(frame);
	char text[512], *shown;

	if (file->kind == CODE_KERNEL && exact)
		snprintf(text, sizeof(text), "[kernel+0x%llx]", at | KERNEL_BITS);
	else if (file->kind == CODE_KERNEL)
		snprintf(text, sizeof(text), "[kernel]");
	else if (file->kind == CODE_UNKNOWN)
		snprintf(text, sizeof(text), "[unknown]");
	else if (file->kind == CODE_PERF_MAP)
		snprintf(text, sizeof(text), "[compiled at run time]");
	else if (exact)
		snprintf(text, sizeof(text), "[%.200s+0x%llx]", base ? base + 1 : "?", at);
	else
		snprintf(text, sizeof(text), "[%.200s]", base ? base + 1 : "?");
	shown = shown_name(names, text);
	return shown ? shown : strdup(FRAME_NO_ROOM);
}

int frame_names_fill(struct frame_names *f, const struct code *code, const struct stacks *stacks)
{
	const bool no_names = f->wish && f->wish->no_names, exact = no_names || (f->wish && f->wish->build_id);
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
		if (no_names && file->kind != CODE_ELF)
			continue;
		if (file->kind == CODE_KERNEL)
			name_kernel(f, code->kallsyms, f->v + i, end - i);
		else if (file->fd >= 0 || (f->wish && f->wish->build_id && file->kind == CODE_ELF))
			name_file(f, code, at, f->v + i, end - i);
	}
	for (uint32_t i = 0; !rc && i < f->n; i++) {
		if (!f->v[i].text)
			f->v[i].text = placeholder(f, code, f->v[i].frame, exact);
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

static void forget(struct frame_name *n)
{
	for (uint32_t i = 0; i < n->n_inlined; i++) {
		free(n->inlined[i].text);
		free(n->inlined[i].file);
	}
	free(n->inlined);
	free(n->text);
	free(n->file);
}

void frame_names_free(struct frame_names *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		forget(&f->v[i]);
	free(f->v);
	free(f->build_id);
	*f = (struct frame_names){ 0 };
}
