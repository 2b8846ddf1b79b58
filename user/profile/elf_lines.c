/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the source, and functions that were compiled into others, by the debug information of an ELF file (DWARF 5,
 * chapters 3.3.8 and 6.2). libdw reads it. The file is untrusted: whoever calls is a process without rights, with little
 * time and memory (code_reader.h). */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "symbol_query.h"

#define RANGES_MAX 65536 /* of a unit */

struct lines {
	struct symbol_query *q; /* by address */
	uint32_t n;
	source_teller *tell;
	void *arg;
};

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *linked = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		linked = dwarf_formstring(&attr);
	return linked ? linked : dwarf_diename(die);
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	return dwarf_attr(die, name, &attr) && dwarf_formudata(&attr, &v) == 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
}

/* The place of a call that was compiled in. */
static void go_to_call(Dwarf_Die *unit, Dwarf_Die *die, struct source *s)
{
	const uint32_t file = number_of(die, DW_AT_call_file);
	Dwarf_Files *files;
	size_t n;

	s->file = dwarf_getsrcfiles(unit, &files, &n) == 0 && file < n ? dwarf_filesrc(files, file, NULL, NULL) : NULL;
	s->line = number_of(die, DW_AT_call_line);
}

/* The functions at an address, from the innermost that was compiled in to the one that a symbol stands for. */
static void tell_functions(const struct lines *l, Dwarf_Die *unit, const struct symbol_query *q, struct source *s)
{
	Dwarf_Die *scopes = NULL, inner;
	int n = dwarf_getscopes(unit, q->address, &scopes);
	unsigned depth = 0;

	if (n > 0) {
		inner = scopes[0];
		free(scopes);
		scopes = NULL;
		n = dwarf_getscopes_die(&inner, &scopes); /* those that the code is in, not those of the source */
	}
	for (int i = 0; i < n && depth < SOURCE_INLINES_MAX; i++) {
		const int tag = dwarf_tag(&scopes[i]);

		s->function = name_of(&scopes[i]);
		s->inlined = tag == DW_TAG_inlined_subroutine;
		if (!s->inlined && tag != DW_TAG_subprogram)
			continue;
		l->tell(l->arg, q, s);
		depth++;
		if (!s->inlined) {
			free(scopes);
			return;
		}
		go_to_call(unit, &scopes[i], s);
	}
	free(scopes);
	*s = (struct source){ .file = s->file, .line = s->line };
	l->tell(l->arg, q, s);
}

static void tell_about(const struct lines *l, Dwarf_Die *unit, struct symbol_query *q)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, q->address);
	struct source s = { 0 };
	int number = 0;

	if (line && dwarf_lineno(line, &number) == 0 && number > 0) {
		s.line = (uint32_t)number;
		s.file = dwarf_linesrc(line, NULL, NULL);
	}
	q->has_source = true;
	tell_functions(l, unit, q, &s);
}

static void look_at(const struct lines *l, Dwarf_Die *unit)
{
	Dwarf_Addr base, from, to;
	ptrdiff_t at = 0;

	for (unsigned i = 0; i < RANGES_MAX && (at = dwarf_ranges(unit, at, &base, &from, &to)) > 0; i++)
		for (uint32_t k = symbol_first(l->q, l->n, from); k < l->n && l->q[k].address < to; k++)
			if (!l->q[k].has_source)
				tell_about(l, unit, &l->q[k]);
}

static void read_units(Dwarf *dwarf, const struct lines *l)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		look_at(l, &unit);
}

/* The section .gnu_debugaltlink, which dwz writes: a path, a NUL, a build id. False: there is none. */
static bool read_link(Dwarf *dwarf, struct elf_alt *ret)
{
	const char *path = NULL;
	const uint8_t *id = NULL;
	const ssize_t n = dwelf_dwarf_gnu_debugaltlink(dwarf, &path, (const void **)&id);

	*ret = (struct elf_alt){ 0 };
	if (n <= 0 || n > BUILD_ID_TEXT / 2)
		return false;
	for (ssize_t i = 0; i < n; i++)
		snprintf(ret->build_id + 2 * i, 3, "%02x", id[i]);
	snprintf(ret->path, sizeof(ret->path), "%s", path);
	return true;
}

static Dwarf *begin(Elf *elf)
{
	return elf && elf_kind(elf) == ELF_K_ELF ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
}

/* The other part of the debug information, if it is that which is wanted. */
static Dwarf *begin_alt(Elf *alt, const struct elf_alt *wanted)
{
	char build_id[BUILD_ID_TEXT] = "";

	elf_build_id_of(alt, build_id);
	return strcmp(build_id, wanted->build_id) == 0 ? begin(alt) : NULL;
}

bool elf_lines_of(Elf *elf, Elf *alt, struct elf_alt *lacks, struct symbol_query *q, uint32_t n, source_teller *tell,
		  void *arg)
{
	Dwarf *dwarf = begin(elf), *other = NULL;
	const struct lines l = { q, n, tell, arg };
	struct elf_alt wanted = { 0 };
	const bool linked = dwarf && read_link(dwarf, &wanted);
	bool whole;

	if (linked)
		other = begin_alt(alt, &wanted);
	whole = !linked || other || !lacks;
	if (!whole)
		*lacks = wanted;
	if (other)
		dwarf_setalt(dwarf, other);
	if (dwarf && whole)
		read_units(dwarf, &l);
	dwarf_end(dwarf);
	dwarf_end(other);
	return whole;
}
