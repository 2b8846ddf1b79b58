/* SPDX-License-Identifier: Apache-2.0 */
/* The build id of an ELF file: the note NT_GNU_BUILD_ID of a segment PT_NOTE, or of a section where a file has no segments,
 * as those that dwz makes. The file is untrusted: see elf_symbols.c. */
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "symbol_query.h"

#define SEGMENTS_MAX 1024
#define SECTIONS_MAX 65536
#define NOTES_BYTES_MAX 65536 /* of a segment or section */

static bool take_note(Elf_Data *data, char ret[BUILD_ID_TEXT])
{
	size_t at = 0, next, name, desc;
	GElf_Nhdr note;

	while ((next = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
		const uint8_t *bytes = (const uint8_t *)data->d_buf + desc;

		at = next;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    memcmp((const char *)data->d_buf + name, "GNU", 4) != 0 || !note.n_descsz ||
		    note.n_descsz > BUILD_ID_TEXT / 2)
			continue;
		for (size_t i = 0; i < note.n_descsz; i++)
			snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
		return true;
	}
	return false;
}

static void take_section(Elf *elf, char ret[BUILD_ID_TEXT])
{
	Elf_Scn *scn = NULL;
	unsigned seen = 0;
	bool found = false;
	GElf_Shdr sh;

	while (!found && (scn = elf_nextscn(elf, scn)) && seen++ < SECTIONS_MAX) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_NOTE || sh.sh_size > NOTES_BYTES_MAX)
			continue;
		data = elf_getdata(scn, NULL);
		found = data && take_note(data, ret);
	}
}

void elf_build_id_of(Elf *elf, char ret[BUILD_ID_TEXT])
{
	size_t segments = 0;
	bool found = false;
	GElf_Phdr ph;

	ret[0] = '\0';
	if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &segments))
		return;
	if (!segments)
		take_section(elf, ret);
	for (size_t s = 0; s < segments && s < SEGMENTS_MAX && !found; s++) {
		Elf_Data *data;

		if (!gelf_getphdr(elf, (int)s, &ph) || ph.p_type != PT_NOTE || ph.p_filesz > NOTES_BYTES_MAX)
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz,
					    ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		found = data && take_note(data, ret);
	}
}
