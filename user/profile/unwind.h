/* SPDX-License-Identifier: Apache-2.0 */
/* The callers of a sampled function, where programs keep no frame pointers: from the registers and a copy of the stack,
 * by the rules that compilers leave in a file's .eh_frame (DWARF 5, section 6.4; System V ABI for x86-64, section 3.7).
 * The rules of a file are read once, by a process without rights (code_reader.h), into rows of 6 bytes. Only x86-64 is
 * unwound like this; Debian's arm64 programs keep frame pointers. */
#ifndef JD_PROFILE_UNWIND_H
#define JD_PROFILE_UNWIND_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "code.h"

#if defined(__x86_64__)
#define UNWIND_HERE 1
/* rbp, rsp and rip, by their bits in asm/perf_regs.h */
#define UNWIND_REGISTERS (1ull << 6 | 1ull << 7 | 1ull << 8)
#else
#define UNWIND_HERE 0
#define UNWIND_REGISTERS 0ull
#endif

/* Where the caller's stack pointer is: the frame's address (CFA). */
enum unwind_cfa {
	UNWIND_CFA_UNKNOWN, /* no function is here */
	UNWIND_CFA_OTHER, /* the rule needs other registers, or is of a form that is not here */
	UNWIND_CFA_SP, /* rsp + cfa */
	UNWIND_CFA_BP, /* rbp + cfa */
	UNWIND_CFA_AT_SP, /* stands at rsp + cfa */
	UNWIND_CFA_AT_BP, /* stands at rbp + cfa */
	UNWIND_CFA_PLT, /* rsp + 8, and 8 more when rip & 15 is at least `cfa`: a table of jumps */
	UNWIND_CFA_NONE, /* there is no caller: the program or the thread began here */
};
/* Where a register of the caller stands. */
enum unwind_place { UNWIND_SAME, UNWIND_AT_CFA, UNWIND_AT_SP, UNWIND_AT_BP, UNWIND_LOST };

/* The rule from an offset of the file on, up to the next row. */
struct unwind_row {
	uint32_t start;
	int32_t cfa;
	int16_t ra, bp; /* offsets of the return address and of rbp */
	uint8_t cfa_rule, ra_place, bp_place;
	uint8_t signal; /* the frame that the kernel makes for a signal: its caller was interrupted, and did not call */
};
_Static_assert(sizeof(struct unwind_row) == 16, "row layout");

/* Reads the rules of an ELF file in the order of their functions; each function ends with a row of
 * UNWIND_CFA_UNKNOWN. To be called by a reader. 0, -ENOEXEC, or what put returned. */
int unwind_rows_read(int fd, int (*put)(void *arg, const struct unwind_row *row), void *arg);

struct unwind_state {
	uint64_t ip, sp, bp;
	bool called; /* ip is a return address: the call is before it */
};
/* The copy of the stack. */
struct unwind_memory {
	const uint8_t *bytes;
	uint64_t at, n;
};
enum unwind_step {
	UNWIND_ON, /* the state is that of the caller */
	UNWIND_END, /* there is no caller */
	UNWIND_CUT /* the caller is beyond the copy, or no rule leads to it */
};
/* One step to the caller. row NULL: no rule is known, the frame pointer is followed. */
enum unwind_step unwind_step(const struct unwind_row *row, const struct unwind_memory *m, struct unwind_state *s);

#define UNWIND_ROWS_MAX (8u << 20) /* of all files: 48 MiB */
#define UNWIND_RULES_MAX UINT16_MAX /* different ones: compilers use some hundreds */

/* Rows of the files of a code: where each begins, and the number of its rule. */
struct unwind_table {
	uint32_t *starts;
	uint16_t *rules;
	uint32_t n;
	bool looked;
};
struct unwind {
	struct unwind_table table[CODE_FILES_MAX]; /* by the number of the file */
	uint32_t rows, rows_max; /* of all files; 0 = UNWIND_ROWS_MAX */
	struct room *room; /* of rows and rules; borrowed, NULL = no limit */
	struct unwind_row *rules; /* each once, without a start */
	uint32_t n_rules, rules_cap;
	struct hash by_rule;
	uint32_t failed; /* files that were not read to the end, or have more rules than there is room for */
	void (*meanwhile)(void *arg); /* called while a file is read: some take seconds */
	void *arg;
};
/* The rule at a frame. NULL: its file has none there. The first question about a file reads it. */
const struct unwind_row *unwind_row_at(struct unwind *u, const struct code *code, uint64_t frame);
void unwind_free(struct unwind *u);

#endif
