/* SPDX-License-Identifier: Apache-2.0 */
#include "name_reader.h"
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"
#include "code_reader.h"

#define PERF_MAP_MAX (64u << 20)

static void read_perf_map(struct symbol_query *q, uint32_t n)
{
	struct buf b = { .limit = PERF_MAP_MAX };
	ssize_t got = 1;

	while (got > 0 && buf_reserve(&b, 65536)) {
		got = pread(READER_FILE, b.data + b.len, 65536, (off_t)b.len);
		b.len += got > 0 ? (size_t)got : 0;
	}
	perf_map_read((const char *)b.data, b.len, q, n);
	buf_free(&b);
}

static void tell(struct name_answer a, const char *name, const char *file)
{
	const size_t n = name ? strlen(name) : 0, m = file ? strlen(file) : 0;

	a.name = n < SYMBOL_NAME_MAX ? (uint32_t)n : SYMBOL_NAME_MAX;
	a.file = m < SOURCE_FILE_MAX ? (uint32_t)m : SOURCE_FILE_MAX;
	if (!a.name && !a.file)
		return;
	reader_tell(&a, sizeof(a));
	reader_tell(name, a.name);
	reader_tell(file, a.file);
}

/* The name as a person wrote it, of a symbol of C++ or Rust; other names stay. libiberty's demangler has had its faults, and
 * runs where it can do no harm. */
static void tell_plainly(struct name_answer a, const char *symbol, const char *file)
{
	char *plain = symbol ? cplus_demangle(symbol, DMGL_AUTO) : NULL;

	tell(a, plain ? plain : symbol, file);
	free(plain);
}

static void tell_source(void *arg, const struct symbol_query *q, const struct source *s)
{
	tell_plainly((struct name_answer){ q->at, s->inlined ? NAME_INLINED : NAME_LINE, s->line, 0, 0 }, s->function,
		     s->file);
}

static void tell_functions(const struct name_question *ask)
{
	for (uint32_t i = 0; i < ask->n; i++)
		if (ask->q[i].name)
			tell_plainly((struct name_answer){ .at = ask->q[i].at, .kind = NAME_FUNCTION }, ask->q[i].name,
				     NULL);
}

static void read_elf(const struct name_question *ask)
{
	char build_id[BUILD_ID_TEXT] = "", other[BUILD_ID_TEXT] = "";
	Elf *elf = elf_begin(READER_FILE, ELF_C_READ, NULL), *debug = NULL, *alt = NULL;
	struct elf_alt lacks;

	elf_build_id_of(elf, build_id);
	tell((struct name_answer){ .kind = NAME_BUILD_ID }, build_id, NULL);
	if (ask->id_alone || (ask->own_id && strcmp(build_id, ask->own_id) != 0))
		return;
	if (ask->build_id) {
		debug = elf_begin(READER_DEBUG, ELF_C_READ, NULL);
		elf_build_id_of(debug, other);
		if (strcmp(other, ask->build_id) != 0)
			return;
	}
	if (ask->symbols_alone ? elf_symbols_alone(elf, ask->mapped, ask->q, ask->n) :
				 elf_symbols_of(elf, debug, ask->q, ask->n))
		return;
	tell_functions(ask); /* before the lines, which may take longer than there is time */
	if (ask->has_alt)
		alt = elf_begin(READER_ALT, ELF_C_READ, NULL);
	if (!elf_lines_of(debug ? debug : elf, alt, ask->without_alt ? NULL : &lacks, ask->q, ask->n, tell_source,
			  NULL))
		tell((struct name_answer){ .kind = NAME_ALT }, lacks.build_id, lacks.path);
}

void name_reader(void *arg)
{
	const struct name_question *ask = arg;

	if (ask->perf_map) {
		read_perf_map(ask->q, ask->n);
		tell_functions(ask);
	} else if (elf_version(EV_CURRENT) != EV_NONE) {
		read_elf(ask);
	}
}
