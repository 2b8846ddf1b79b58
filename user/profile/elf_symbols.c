/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions by the symbol tables of an ELF file (System V ABI, chapter 4). The file is untrusted: libelf
 * checks what it reads, numbers are bounded here, and whoever calls is a process without rights (code_reader.h). */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "go_table.h"
#include "symbol_query.h"

#define SECTIONS_MAX 65536
#define SYMBOLS_MAX (4u << 20)
#define SEGMENTS_MAX 1024
#define PAGE 4096 /* the least of any machine */
#define UNPACKED_MAX (64u << 20) /* of .gnu_debugdata */
#define UNPACKING_MAX (128u << 20) /* memory for it */

/* Functions of one binding. */
static void name_from(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, unsigned bind, struct symbol_query *q, uint32_t n)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	const size_t count = sh->sh_entsize ? sh->sh_size / sh->sh_entsize : 0;
	GElf_Sym sym;

	for (size_t i = 0; data && i < count && i < SYMBOLS_MAX && gelf_getsym(data, (int)i, &sym); i++) {
		const unsigned type = GELF_ST_TYPE(sym.st_info);
		const char *name;

		if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) || sym.st_shndx == SHN_UNDEF ||
		    !sym.st_size || GELF_ST_BIND(sym.st_info) != bind)
			continue;
		name = elf_strptr(elf, sh->sh_link, sym.st_name);
		if (name) /* without its version */
			symbol_offer(q, n, (const uint64_t[]){ sym.st_value, sym.st_size }, name, strcspn(name, "@"));
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

/* The executable segment, where it is the only one. Where pages may be of 64 KiB its address begins such a page: else the
 * page of the machine that ran it would have to be known. */
static bool only_segment(Elf *elf, GElf_Phdr *ret)
{
	size_t segments = 0;
	unsigned found = 0;
	GElf_Ehdr head;
	GElf_Phdr ph;

	if (!gelf_getehdr(elf, &head) || elf_getphdrnum(elf, &segments))
		return false;
	for (size_t s = 0; s < segments && s < SEGMENTS_MAX; s++)
		if (gelf_getphdr(elf, (int)s, &ph) && ph.p_type == PT_LOAD && (ph.p_flags & PF_X) && ++found)
			*ret = ph;
	return found == 1 && (head.e_machine == EM_X86_64 || (ret->p_vaddr & 0xf000) == 0);
}

/* Of names for the same function the first counts: that which other files know. */
static void name_from_tables(Elf *elf, struct symbol_query *q, uint32_t n)
{
	static const unsigned binds[] = { STB_GLOBAL, STB_WEAK, STB_LOCAL };
	Elf_Scn *scn = NULL;
	unsigned seen = 0;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn)) && seen++ < SECTIONS_MAX)
		if (gelf_getshdr(scn, &sh) && (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM))
			for (unsigned i = 0; i < sizeof(binds) / sizeof(binds[0]); i++)
				name_from(elf, scn, &sh, binds[i], q, n);
}

/* A section that has an ELF file in xz, with the symbols that were stripped. */
static const Elf_Data *packed_symbols(Elf *elf)
{
	Elf_Scn *scn = NULL;
	size_t names;
	unsigned seen = 0;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn)) && seen++ < SECTIONS_MAX) {
		const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;

		if (name && sh.sh_type == SHT_PROGBITS && strcmp(name, ".gnu_debugdata") == 0)
			return elf_rawdata(scn, NULL);
	}
	return NULL;
}

static void name_from_packed(Elf *elf, struct symbol_query *q, uint32_t n)
{
	const Elf_Data *data = packed_symbols(elf);
	uint64_t memory = UNPACKING_MAX;
	size_t from = 0, to = 0;
	uint8_t *image = data && data->d_buf ? malloc(UNPACKED_MAX) : NULL;
	Elf *inner;

	if (image && lzma_stream_buffer_decode(&memory, 0, NULL, data->d_buf, &from, data->d_size, image, &to,
					       UNPACKED_MAX) == LZMA_OK) {
		inner = elf_memory((char *)image, to);
		if (inner && elf_kind(inner) == ELF_K_ELF)
			name_from_tables(inner, q, n);
		elf_end(inner);
	}
	free(image);
}

int elf_symbols_alone(Elf *debug, uint64_t mapped, struct symbol_query *q, uint32_t n)
{
	GElf_Phdr ph = { 0 };

	if (!debug || elf_kind(debug) != ELF_K_ELF || mapped % PAGE || !only_segment(debug, &ph))
		return -ENOEXEC;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t at = q[i].offset - mapped + (ph.p_vaddr & ~(uint64_t)(PAGE - 1));

		q[i].address = q[i].offset >= mapped && at >= ph.p_vaddr && at - ph.p_vaddr < ph.p_memsz ? at :
													   UINT64_MAX;
	}
	symbol_sort(q, n);
	name_from_tables(debug, q, n);
	return 0;
}

int elf_symbols_of(Elf *elf, Elf *debug, struct symbol_query *q, uint32_t n)
{
	const int rc = elf && elf_kind(elf) == ELF_K_ELF ? to_addresses(elf, q, n) : -ENOEXEC;

	if (rc)
		return rc;
	if (debug && elf_kind(debug) == ELF_K_ELF)
		name_from_tables(debug, q, n);
	name_from_tables(elf, q, n);
	name_from_packed(elf, q, n);
	name_from_go(elf, q, n);
	return 0;
}
