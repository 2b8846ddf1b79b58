/* SPDX-License-Identifier: Apache-2.0 */
#include "go_table.h"
#include <string.h>

#define FUNCTIONS_MAX (4u << 20)
#define RELOCATIONS_MAX (16u << 20)

enum { MAGIC_2 = 0xfffffffb, MAGIC_16 = 0xfffffffa, MAGIC_18 = 0xfffffff0, MAGIC_20 = 0xfffffff1 };
/* Of the header: a magic number, two zeros, the least step, the size of a pointer; then pointers. */
enum { AT_STEP = 6, AT_POINTER = 7, AT_COUNT = 8, POINTER = 8 };

static bool load(const struct go_table *t, uint64_t at, unsigned n, uint64_t *ret)
{
	*ret = 0;
	if (at > t->size || n > t->size - at)
		return false;
	memcpy(ret, t->bytes + at, n);
	return true;
}

/* A word of the header by its number behind the count of functions, which is 0. */
static uint64_t header(const struct go_table *t, unsigned number)
{
	uint64_t v;

	return load(t, AT_COUNT + number * POINTER, POINTER, &v) ? v : UINT64_MAX;
}

/* A program that may be loaded anywhere has the begin of its code as a relocation: the number that is added. */
static uint64_t relocated(Elf *elf, uint64_t address)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	GElf_Rela r;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data = gelf_getshdr(scn, &sh) && sh.sh_type == SHT_RELA && (sh.sh_flags & SHF_ALLOC) ?
					 elf_getdata(scn, NULL) :
					 NULL;

		for (unsigned i = 0; data && i < RELOCATIONS_MAX && gelf_getrela(data, (int)i, &r); i++)
			if (r.r_offset == address)
				return (uint64_t)r.r_addend;
	}
	return 0;
}

static bool read_header(Elf *elf, uint64_t address, struct go_table *t)
{
	uint64_t magic, step, pointer;
	const bool fine = load(t, 0, 4, &magic) && load(t, AT_STEP, 1, &step) && load(t, AT_POINTER, 1, &pointer);

	if (!fine || pointer != POINTER || !step)
		return false;
	t->step = (unsigned)step;
	t->n = header(t, 0);
	t->word = POINTER;
	switch (magic) {
	case MAGIC_2:
		t->functions = AT_COUNT + POINTER;
		break;
	case MAGIC_16:
		t->names = header(t, 2);
		t->depths = header(t, 5);
		t->functions = header(t, 6);
		break;
	case MAGIC_18:
	case MAGIC_20:
		t->word = 4;
		t->text = header(t, 2);
		if (!t->text)
			t->text = relocated(elf, address + AT_COUNT + 2 * POINTER);
		t->names = header(t, 3);
		t->depths = header(t, 6);
		t->functions = header(t, 7);
		break;
	default:
		return false;
	}
	return t->n < FUNCTIONS_MAX && t->names < t->size && t->depths < t->size && t->functions < t->size &&
	       (t->word == POINTER || t->text);
}

bool go_table_find(Elf *elf, struct go_table *ret)
{
	Elf_Scn *scn = NULL;
	size_t names;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		const Elf_Data *data;

		if (!name || sh.sh_type == SHT_NOBITS ||
		    (strcmp(name, ".gopclntab") != 0 && strcmp(name, ".data.rel.ro.gopclntab") != 0))
			continue;
		data = elf_rawdata(scn, NULL);
		*ret = (struct go_table){ .bytes = data ? data->d_buf : NULL };
		ret->size = ret->bytes ? data->d_size : 0;
		return read_header(elf, sh.sh_addr, ret);
	}
	return false;
}

bool go_table_function(const struct go_table *t, uint64_t number, struct go_function *ret)
{
	const uint64_t entry = t->functions + number * 2 * t->word;
	/* its own address, the offset of its name, two numbers, where it returns after a deferred call, the depths; from 1.2 on */
	const unsigned name_at = t->word, depths_at = t->word + 12;
	/* offsets of the old form are those of the table */
	const uint64_t base = t->names ? t->functions : 0;
	uint64_t start, at, end, name, depths;

	if (!load(t, entry, t->word, &start) || !load(t, entry + t->word, t->word, &at) ||
	    !load(t, entry + 2 * t->word, t->word, &end) || at > t->size || !load(t, base + at + name_at, 4, &name) ||
	    !load(t, base + at + depths_at, 4, &depths))
		return false;
	name += t->names;
	depths += t->depths;
	if (start >= end || name >= t->size || depths >= t->size || !memchr(t->bytes + name, 0, t->size - name))
		return false;
	*ret = (struct go_function){ t->text + start, t->text + end, (const char *)t->bytes + name, depths };
	return ret->start < ret->end;
}

/* A number of 7 bits a byte, the lowest first. */
static bool read_varint(const struct go_table *t, uint64_t *at, uint32_t *ret)
{
	uint32_t v = 0;

	for (unsigned shift = 0; shift < 32 && *at < t->size; shift += 7) {
		const uint8_t byte = t->bytes[(*at)++];

		v |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

struct go_depths go_depths(const struct go_function *f)
{
	return (struct go_depths){ .at = f->depths, .from = f->start, .to = f->start, .depth = -1 };
}

bool go_depths_next(const struct go_table *t, struct go_depths *d)
{
	uint32_t change, length;

	if (!read_varint(t, &d->at, &change) || (!change && d->begun) || !read_varint(t, &d->at, &length) || !length)
		return false;
	d->begun = true;
	d->depth = (int32_t)((uint32_t)d->depth + (change & 1 ? ~(change >> 1) : change >> 1));
	d->from = d->to;
	d->to += (uint64_t)length * t->step;
	return true;
}
