/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions by the symbol tables of an ELF file (System V ABI, chapter 4). The file is untrusted: libelf
 * checks what it reads, numbers are bounded here, and whoever calls is a process without rights (profile_names.c). */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <string.h>
#include "go_table.h"
#include "symbol_query.h"

#define SECTIONS_MAX 65536
#define SYMBOLS_MAX (4u << 20)
#define SEGMENTS_MAX 1024

static void name_from(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, struct symbol_query *q, uint32_t n)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	const size_t count = sh->sh_entsize ? sh->sh_size / sh->sh_entsize : 0;
	GElf_Sym sym;

	for (size_t i = 0; data && i < count && i < SYMBOLS_MAX && gelf_getsym(data, (int)i, &sym); i++) {
		const unsigned type = GELF_ST_TYPE(sym.st_info);
		const char *name;

		if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) || sym.st_shndx == SHN_UNDEF ||
		    !sym.st_size)
			continue;
		name = elf_strptr(elf, sh->sh_link, sym.st_name);
		if (name)
			symbol_offer(q, n, (const uint64_t[]){ sym.st_value, sym.st_size }, name, strlen(name));
	}
}

static void name_from_go(Elf *elf, struct symbol_query *q, uint32_t n)
{
	struct go_table t;
	struct go_function f;

	if (!go_table_find(elf, &t))
		return;
	for (uint64_t i = 0; i < t.n; i++)
		if (go_table_function(&t, i, &f))
			symbol_offer(q, n, (const uint64_t[]){ f.start, f.end - f.start }, f.name, strlen(f.name));
}

/* Turns offsets of the file into addresses of its image; ~0 = no segment has it. */
static int to_addresses(Elf *elf, struct symbol_query *q, uint32_t n)
{
	size_t segments = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &segments))
		return -ENOEXEC;
	for (uint32_t i = 0; i < n; i++)
		q[i].address = UINT64_MAX;
	for (size_t s = 0; s < segments && s < SEGMENTS_MAX; s++) {
		if (!gelf_getphdr(elf, (int)s, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (q[i].offset >= ph.p_offset && q[i].offset - ph.p_offset < ph.p_filesz)
				q[i].address = q[i].offset - ph.p_offset + ph.p_vaddr;
	}
	symbol_sort(q, n);
	return 0;
}

static int find_in(Elf *elf, struct symbol_query *q, uint32_t n)
{
	Elf_Scn *scn = NULL;
	unsigned seen = 0;
	GElf_Shdr sh;
	int rc = elf && elf_kind(elf) == ELF_K_ELF ? to_addresses(elf, q, n) : -ENOEXEC;

	while (!rc && (scn = elf_nextscn(elf, scn)) && seen++ < SECTIONS_MAX)
		if (gelf_getshdr(scn, &sh) && (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM))
			name_from(elf, scn, &sh, q, n);
	if (!rc)
		name_from_go(elf, q, n);
	return rc;
}

int elf_symbols_read(int fd, struct symbol_query *q, uint32_t n)
{
	Elf *elf;
	int rc;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	rc = find_in(elf, q, n);
	elf_end(elf);
	return rc;
}

int elf_symbols_in(char *image, size_t size, struct symbol_query *q, uint32_t n)
{
	Elf *elf;
	int rc;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	elf = elf_memory(image, size);
	rc = find_in(elf, q, n);
	elf_end(elf);
	return rc;
}
