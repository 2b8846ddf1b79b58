/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of .eh_frame as rows: libdw reads and executes them, and what a rule says is put into one of the forms of
 * unwind.h. Functions that have none there may have them in .debug_frame. Go's compiler writes neither; its own table tells the
 * depth of the stack. The file is untrusted: whoever calls is a process without rights, with little time and memory (code_reader.h). */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include "go_table.h"
#include "unwind.h"

/* Registers as DWARF numbers them on x86-64 (System V ABI, figure 3.36). */
enum { REGISTER_BP = 6, REGISTER_SP = 7, REGISTER_IP = 16 };
#define SEGMENTS_MAX 64
#define CIE_NONE UINT64_MAX

struct segment {
	uint64_t address, offset, bytes;
};

struct rows {
	Elf *elf;
	Dwarf_CFI *cfi; /* of the section that is read */
	Dwarf_CFI *before; /* of .eh_frame, while .debug_frame is read; NULL = there is none */
	bool is_eh;
	const unsigned char *ident;
	Elf_Data *data;
	uint64_t address; /* of the section */
	uint64_t cie; /* the common entry whose encoding is known */
	unsigned encoding; /* of the addresses of its functions (DW_EH_PE_*) */
	struct segment segment[SEGMENTS_MAX];
	unsigned n_segments;
	int (*put)(void *arg, const struct unwind_row *row);
	void *arg;
};

static bool fits(int64_t v, int64_t most)
{
	return v >= -most && v <= most;
}

/* A register plus a number: the operator, and what is added. */
static bool is_based(const Dwarf_Op *op, unsigned reg, int64_t *ret)
{
	if (op->atom == DW_OP_bregx && op->number == reg)
		*ret = (int64_t)op->number2;
	else if (op->atom == DW_OP_breg0 + reg)
		*ret = (int64_t)op->number;
	else
		return false;
	return true;
}

/* The jump table of an ELF file (.plt): rsp + 8 + ((rip & 15) >= N) << 3. */
static bool is_plt(const Dwarf_Op *op, size_t n, int64_t *ret)
{
	static const uint8_t form[] = { DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
					DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus };

	if (n != sizeof(form) || op[0].number != 8 || op[1].number || op[4].atom < DW_OP_lit0 ||
	    op[4].atom > DW_OP_lit31)
		return false;
	for (size_t i = 0; i < n; i++)
		if (form[i] && op[i].atom != form[i])
			return false;
	*ret = op[4].atom - DW_OP_lit0;
	return true;
}

static void read_cfa(Dwarf_Frame *frame, struct unwind_row *row)
{
	Dwarf_Op *op;
	size_t n;
	int64_t v = 0;
	const bool known = dwarf_frame_cfa(frame, &op, &n) == 0 && n;
	const bool at = known && n == 2 && op[1].atom == DW_OP_deref;

	row->cfa_rule = UNWIND_CFA_OTHER;
	if (known && (n == 1 || at) && is_based(op, REGISTER_SP, &v))
		row->cfa_rule = at ? UNWIND_CFA_AT_SP : UNWIND_CFA_SP;
	else if (known && (n == 1 || at) && is_based(op, REGISTER_BP, &v))
		row->cfa_rule = at ? UNWIND_CFA_AT_BP : UNWIND_CFA_BP;
	else if (known && is_plt(op, n, &v))
		row->cfa_rule = UNWIND_CFA_PLT;
	if (!fits(v, INT32_MAX))
		row->cfa_rule = UNWIND_CFA_OTHER;
	row->cfa = row->cfa_rule == UNWIND_CFA_OTHER ? 0 : (int32_t)v;
}

/* Where a register stands. False: it has no value, as the return address where a program begins. */
static bool read_place(Dwarf_Frame *frame, int reg, uint8_t *ret_place, int16_t *ret_offset)
{
	Dwarf_Op memory[3], *op;
	size_t n;
	int64_t v = 0;

	*ret_place = UNWIND_LOST;
	if (dwarf_frame_register(frame, reg, memory, &op, &n) != 0)
		return true;
	if (!n) {
		*ret_place = op ? UNWIND_LOST : UNWIND_SAME;
		return op == NULL;
	}
	if (op[0].atom == DW_OP_call_frame_cfa && (n == 1 || (n == 2 && op[1].atom == DW_OP_plus_uconst))) {
		*ret_place = UNWIND_AT_CFA;
		v = n == 2 ? (int64_t)op[1].number : 0;
	} else if (n == 2 && op[0].atom == DW_OP_call_frame_cfa && is_based(&op[1], REGISTER_SP, &v)) {
		*ret_place =
			UNWIND_AT_SP; /* an expression finds the frame's address on its stack, and leaves it there */
	} else if (n == 2 && op[0].atom == DW_OP_call_frame_cfa && is_based(&op[1], REGISTER_BP, &v)) {
		*ret_place = UNWIND_AT_BP;
	}
	if (!fits(v, INT16_MAX))
		*ret_place = UNWIND_LOST;
	*ret_offset = *ret_place == UNWIND_LOST ? 0 : (int16_t)v;
	return true;
}

static int put_at(const struct rows *r, struct unwind_row *row, uint64_t address)
{
	for (unsigned i = 0; i < r->n_segments; i++) {
		const struct segment *s = &r->segment[i];
		/* the end of a function may be the end of its segment */
		const uint64_t into = address - s->address;

		if (address < s->address || into > s->bytes || s->offset + into > UINT32_MAX)
			continue;
		row->start = (uint32_t)(s->offset + into);
		return r->put(r->arg, row);
	}
	return 0;
}

/* The rows of the function at [from, to). */
static int put_function(const struct rows *r, uint64_t from, uint64_t to)
{
	struct unwind_row end = { .cfa_rule = UNWIND_CFA_UNKNOWN };
	int rc = 0;

	while (!rc && from < to) {
		struct unwind_row row = { 0 };
		Dwarf_Addr first, next = from;
		Dwarf_Frame *frame = NULL;
		bool signal = false;

		if (dwarf_cfi_addrframe(r->cfi, from, &frame) != 0)
			break;
		if (dwarf_frame_info(frame, &first, &next, &signal) == REGISTER_IP && next > from) {
			read_cfa(frame, &row);
			if (!read_place(frame, REGISTER_IP, &row.ra_place, &row.ra))
				row.cfa_rule = UNWIND_CFA_NONE;
			read_place(frame, REGISTER_BP, &row.bp_place, &row.bp);
			row.signal = signal;
			rc = put_at(r, &row, from);
		}
		free(frame);
		if (next <= from)
			break;
		from = next;
	}
	return rc ? rc : put_at(r, &end, to);
}

/* An encoded number at *at (LSB, "DWARF extensions", 10.5). */
static bool read_number(unsigned encoding, const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
	static const uint8_t sizes[16] = {
		[DW_EH_PE_absptr] = 8, [DW_EH_PE_udata2] = 2, [DW_EH_PE_udata4] = 4, [DW_EH_PE_udata8] = 8,
		[DW_EH_PE_sdata2] = 2, [DW_EH_PE_sdata4] = 4, [DW_EH_PE_sdata8] = 8
	};
	const unsigned size = sizes[encoding & 15];
	uint64_t v = 0;

	if (!size || end - *at < (ptrdiff_t)size)
		return false;
	memcpy(&v, *at, size);
	if ((encoding & DW_EH_PE_signed) && size < 8 && v >> (8 * size - 1))
		v |= ~0ull << 8 * size;
	*at += size;
	*ret = v;
	return true;
}

/* How the functions of a common entry are encoded. */
static bool read_encoding(const Dwarf_CIE *cie, unsigned *ret)
{
	const uint8_t *at = cie->augmentation_data, *end = at + cie->augmentation_data_size;
	uint64_t skipped;

	*ret = DW_EH_PE_absptr;
	if (cie->augmentation[0] != 'z')
		return cie->augmentation[0] == '\0';
	for (const char *letter = cie->augmentation + 1; *letter && at < end; letter++) {
		if (*letter == 'R') {
			*ret = *at;
			return true;
		}
		if (*letter == 'L')
			at++;
		else if (*letter == 'P' && !(at++, read_number(at[-1], &at, end, &skipped)))
			return false;
	}
	return true;
}

/* Does .eh_frame have rules for the address? */
static bool is_covered(const struct rows *r, uint64_t address)
{
	Dwarf_Frame *frame = NULL;
	const bool covered = r->before && dwarf_cfi_addrframe(r->before, address, &frame) == 0;

	free(frame);
	return covered;
}

static int put_entry(struct rows *r, const Dwarf_FDE *fde)
{
	const uint8_t *at = fde->start;
	const uint64_t here = r->address + (uint64_t)(at - (const uint8_t *)r->data->d_buf);
	Dwarf_CFI_Entry cie;
	Dwarf_Off next;
	uint64_t from, length;

	if (fde->CIE_pointer != r->cie) {
		r->cie = CIE_NONE;
		if (dwarf_next_cfi(r->ident, r->data, r->is_eh, fde->CIE_pointer, &next, &cie) != 0 ||
		    cie.CIE_id != DW_CIE_ID_64 || !read_encoding(&cie.cie, &r->encoding))
			return 0;
		r->cie = fde->CIE_pointer;
	}
	if ((r->encoding & 0x70 & ~DW_EH_PE_pcrel) || (r->encoding & DW_EH_PE_indirect) ||
	    !read_number(r->encoding, &at, fde->end, &from) || !read_number(r->encoding & 7, &at, fde->end, &length))
		return 0;
	from += r->encoding & DW_EH_PE_pcrel ? here : 0;
	return from + length > from && !is_covered(r, from) ? put_function(r, from, from + length) : 0;
}

static bool find_segments(struct rows *r)
{
	size_t n = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(r->elf, &n))
		return false;
	for (size_t i = 0; i < n && r->n_segments < SEGMENTS_MAX; i++)
		if (gelf_getphdr(r->elf, (int)i, &ph) && ph.p_type == PT_LOAD && (ph.p_flags & PF_X))
			r->segment[r->n_segments++] = (struct segment){ ph.p_vaddr, ph.p_offset, ph.p_filesz };
	return r->n_segments;
}

static bool find_section(struct rows *r, const char *wanted)
{
	Elf_Scn *scn = NULL;
	size_t names;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(r->elf, &names))
		return false;
	while ((scn = elf_nextscn(r->elf, scn))) {
		const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(r->elf, names, sh.sh_name) : NULL;

		if (!name || strcmp(name, wanted) != 0 || sh.sh_type == SHT_NOBITS)
			continue;
		if ((sh.sh_flags & SHF_COMPRESSED) && elf_compress(scn, 0, 0) < 0)
			return false;
		r->address = sh.sh_addr;
		r->data = elf_rawdata(scn, NULL);
		return r->data && r->data->d_buf;
	}
	return false;
}

static int put_entries(struct rows *r)
{
	Dwarf_Off at = 0, next;
	Dwarf_CFI_Entry entry;
	int rc = 0;

	r->cie = CIE_NONE;
	/* 0: an entry; 1: the end; -1: an entry that cannot be read, or its file */
	while (!rc && dwarf_next_cfi(r->ident, r->data, r->is_eh, at, &next, &entry) == 0 && next > at) {
		if (entry.CIE_id != DW_CIE_ID_64)
			rc = put_entry(r, &entry.fde);
		at = next;
	}
	return rc;
}

static int put_frames(struct rows *r)
{
	Dwarf_CFI *eh = find_section(r, ".eh_frame") ? dwarf_getcfi_elf(r->elf) : NULL;
	Dwarf *dwarf = NULL;
	int rc = 0;

	r->ident = (const unsigned char *)elf_getident(r->elf, NULL);
	r->cfi = eh;
	r->is_eh = true;
	if (r->cfi && r->ident)
		rc = put_entries(r);
	if (!rc && r->ident && find_section(r, ".debug_frame")) {
		dwarf = dwarf_begin_elf(r->elf, DWARF_C_READ, NULL);
		r->cfi = dwarf ? dwarf_getcfi(dwarf) : NULL;
		r->before = eh;
		r->is_eh = false;
		rc = r->cfi ? put_entries(r) : 0;
	}
	dwarf_end(dwarf);
	if (eh)
		dwarf_cfi_end(eh);
	return rc;
}

static bool is_one_of(const char *name, const char *const *list)
{
	while (*list && strcmp(name, *list) != 0)
		list++;
	return *list;
}

/* Where Go's stacks begin: of a goroutine, of a thread, and where a function goes over to its thread's own stack, so that
 * its caller is on another one (runtime/asm_amd64.s). Go's own profiles end there, too. */
static const char *const go_starts[] = { "runtime.goexit",      "runtime.mstart",
					 "runtime.rt0_go",      "runtime.mcall",
					 "runtime.systemstack", "runtime.morestack",
					 "runtime.asmcgocall",  NULL };
/* They call the kernel's code on their thread's own stack, and keep their frame in rbp (runtime/sys_linux_amd64.s). */
static const char *const go_by_pointer[] = { "runtime.nanotime1", "runtime.walltime", "time.now", NULL };

static int put_go_function(const struct rows *r, const struct go_table *t, const struct go_function *f)
{
	struct unwind_row end = { .cfa_rule = UNWIND_CFA_UNKNOWN };
	const bool start = is_one_of(f->name, go_starts), by_pointer = is_one_of(f->name, go_by_pointer);
	struct go_depths d = go_depths(f);
	int rc = 0;

	while (!rc && go_depths_next(t, &d) && d.from < f->end) {
		struct unwind_row row = { .cfa_rule = UNWIND_CFA_SP, .ra_place = UNWIND_AT_CFA, .ra = -8 };

		if (start)
			row.cfa_rule = UNWIND_CFA_NONE;
		else if (d.depth < 0 || d.depth > INT32_MAX - 16)
			row.cfa_rule = UNWIND_CFA_OTHER;
		else if (by_pointer && d.depth)
			row.cfa_rule = UNWIND_CFA_BP;
		row.cfa = row.cfa_rule == UNWIND_CFA_SP ? d.depth + 8 : row.cfa_rule == UNWIND_CFA_BP ? 16 : 0;
		row.bp_place = d.depth ? UNWIND_AT_CFA : UNWIND_SAME;
		row.bp = d.depth ? -16 : 0;
		rc = put_at(r, &row, d.from);
	}
	return rc ? rc : put_at(r, &end, f->end);
}

static int put_go(const struct rows *r)
{
	struct go_table t;
	struct go_function f;
	int rc = 0;

	if (!go_table_find(r->elf, &t))
		return 0;
	for (uint64_t i = 0; i < t.n && !rc; i++)
		if (go_table_function(&t, i, &f))
			rc = put_go_function(r, &t, &f);
	return rc;
}

static int read_rows(struct rows *r)
{
	GElf_Ehdr eh;
	int rc;

	if (!gelf_getehdr(r->elf, &eh) || eh.e_machine != EM_X86_64 || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    !find_segments(r))
		return -ENOEXEC;
	rc = put_frames(r);
	return rc ? rc : put_go(r);
}

int unwind_rows_read(int fd, int (*put)(void *arg, const struct unwind_row *row), void *arg)
{
	struct rows r = { .put = put, .arg = arg, .cie = CIE_NONE };
	int rc = -ENOEXEC;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return rc;
	r.elf = elf_begin(fd, ELF_C_READ, NULL);
	if (r.elf && elf_kind(r.elf) == ELF_K_ELF)
		rc = read_rows(&r);
	elf_end(r.elf);
	return rc;
}
