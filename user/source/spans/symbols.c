// SPDX-License-Identifier: Apache-2.0
/* Where a function lies in its file, by the ELF symbol tables (System V ABI, chapter 4). The file is untrusted:
 * libelf checks what it reads, and sizes are bounded here. */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <sys/stat.h>
#include "base/parse.h"
#include "probes.h"

#define MAX_SECTIONS 65536
#define MAX_SYMBOLS (16u << 20)
#define MAX_SEGMENTS 1024

/* "name@VERSION" is name. */
static bool same_name(const char *in_table, const char *wanted)
{
	size_t n = strlen(wanted);

	return in_table && strncmp(in_table, wanted, n) == 0 && (!in_table[n] || in_table[n] == '@');
}

static bool find_in_table(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, const char *symbol, uint64_t *ret)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = sh->sh_entsize ? sh->sh_size / sh->sh_entsize : 0;
	GElf_Sym sym;

	if (!data)
		return false;
	for (size_t i = 0; i < n && i < MAX_SYMBOLS; i++) {
		if (!gelf_getsym(data, (int)i, &sym))
			return false;
		if ((GELF_ST_TYPE(sym.st_info) != STT_FUNC && GELF_ST_TYPE(sym.st_info) != STT_GNU_IFUNC) ||
		    sym.st_shndx == SHN_UNDEF || !sym.st_value)
			continue;
		if (same_name(elf_strptr(elf, sh->sh_link, sym.st_name), symbol)) {
			*ret = sym.st_value;
			return true;
		}
	}
	return false;
}

static int find_address(Elf *elf, const char *symbol, uint64_t *ret)
{
	Elf_Scn *scn = NULL;
	unsigned seen = 0;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn)) && seen++ < MAX_SECTIONS)
		if (gelf_getshdr(scn, &sh) && (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM) &&
		    find_in_table(elf, scn, &sh, symbol, ret))
			return 0;
	return -ENOENT;
}

static int address_to_offset(Elf *elf, uint64_t address, uint64_t size, uint64_t *ret)
{
	size_t n = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n))
		return -ENOEXEC;
	for (size_t i = 0; i < n && i < MAX_SEGMENTS; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		if (address < ph.p_vaddr || address - ph.p_vaddr >= ph.p_filesz)
			continue;
		if (address - ph.p_vaddr >= size || ph.p_offset >= size - (address - ph.p_vaddr))
			return -ERANGE;
		*ret = address - ph.p_vaddr + ph.p_offset;
		return 0;
	}
	return -ERANGE;
}

/* True when the offset is code. A probe is a breakpoint in the file's pages; in data it would change the data of
 * every program. */
static bool is_code(Elf *elf, uint64_t offset)
{
	size_t n = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n && i < MAX_SEGMENTS; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && (ph.p_flags & PF_X) &&
		    offset >= ph.p_offset && offset - ph.p_offset < ph.p_filesz)
			return true;
	return false;
}

static int find_in(Elf *elf, uint64_t size, const char *symbol, uint64_t *ret)
{
	uint64_t address;
	int rc;

	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	if (strncmp(symbol, "0x", 2) == 0) {
		rc = parse_u64(symbol, &address);
		if (!rc && (address >= size || !is_code(elf, address)))
			rc = -ERANGE;
		if (!rc)
			*ret = address;
		return rc;
	}
	rc = find_address(elf, symbol, &address);
	return rc ? rc : address_to_offset(elf, address, size, ret);
}

/* The file is read, not mapped: truncating a mapped file would kill the agent. */
int symbol_offset(int fd, const char *symbol, uint64_t *ret)
{
	struct stat st;
	Elf *elf;
	int rc;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	rc = find_in(elf, (uint64_t)st.st_size, symbol, ret);
	elf_end(elf);
	return rc;
}

int symbol_offset_in(char *image, size_t size, const char *symbol, uint64_t *ret)
{
	Elf *elf;
	int rc;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	elf = elf_memory(image, size);
	rc = find_in(elf, size, symbol, ret);
	elf_end(elf);
	return rc;
}
