/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions that Go's linker leaves in every program, also in one that is stripped: names, and how deep the
 * stack is at each instruction (src/internal/abi/symtab.go and src/runtime/symtab.go of Go; releases 1.2 to 1.15, 1.16,
 * 1.18 and 1.20 have each its magic number). The table is untrusted, and so is read by a process without rights. */
#ifndef JD_GO_TABLE_H
#define JD_GO_TABLE_H
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct go_table {
	const uint8_t *bytes; /* of the ELF file that was given */
	size_t size;
	uint64_t n; /* functions */
	uint64_t text; /* functions are relative to it; 0 = their addresses are whole */
	uint64_t names, depths, functions; /* where these parts begin */
	unsigned word; /* bytes of an entry of the list */
	unsigned step; /* instructions are multiples of so many bytes */
};

struct go_function {
	uint64_t start, end; /* addresses of the image */
	const char *name; /* ends with a NUL within the table */
	uint64_t depths; /* for go_depths */
};

/* Depth of the stack over a part of a function: bytes that it has below the return address. */
struct go_depths {
	uint64_t at; /* in the table */
	uint64_t from, to; /* the part's addresses */
	int32_t depth;
	bool begun;
};

/* Finds the table. False: the file has none, or one of another form. */
bool go_table_find(Elf *elf, struct go_table *ret);
/* The function of that number, below n. False: what the table says of it is nonsense. */
bool go_table_function(const struct go_table *t, uint64_t number, struct go_function *ret);
struct go_depths go_depths(const struct go_function *f);
/* The next part. False: there is none. */
bool go_depths_next(const struct go_table *t, struct go_depths *d);

#endif
