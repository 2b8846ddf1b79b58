/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that want a name, and what gives names: ELF symbol tables and the perf maps of JIT compilers. Both are
 * hostile input. A reader walks over its functions once, and each function names the addresses inside it. */
#ifndef JD_SYMBOL_QUERY_H
#define JD_SYMBOL_QUERY_H
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_NAME_MAX 400 /* bytes that are shown, without the NUL; a longer name is cut */
#define SYMBOL_RAW_MAX 8192 /* the same, of the name as the file has it */
#define BUILD_ID_TEXT 129 /* up to 64 bytes in hexadecimal, and the NUL */

struct symbol_query {
	uint64_t offset; /* in the file; in a perf map the address */
	uint64_t address; /* of the ELF image; a reader's */
	uint64_t start, size; /* of the function that named it; size 0 = nothing did */
	uint32_t at; /* the caller's number */
	bool has_source; /* a reader's */
	char *name; /* NULL = unknown; free() */
};

/* Names every address in [start, start + size) that has no name from a smaller function. Of names for the same bytes the one
 * with the fewest underscores before it stays, and of those the first. q is sorted by address. name has len bytes and no NUL. */
void symbol_offer(struct symbol_query *q, uint32_t n, const uint64_t range[2], const char *name, size_t len);
void symbol_sort(struct symbol_query *q, uint32_t n); /* by address */
/* The first query at or behind an address. */
uint32_t symbol_first(const struct symbol_query *q, uint32_t n, uint64_t address);

/* q[].offset are given; addresses and names are added. What has no name stays without one. The file is read, not mapped.
 * Names come from its symbol tables, those of its .gnu_debugdata, and the table of Go. debug: a file with the symbols of this
 * one, or NULL; its names are taken before others. 0 or -ENOEXEC. */
int elf_symbols_of(Elf *elf, Elf *debug, struct symbol_query *q, uint32_t n);
/* The same by a file that has symbols alone, where the program is not here. Its segments keep their addresses, not their
 * offsets (objcopy --only-keep-debug), so that it must be known at which offset of the program its executable segment was
 * mapped: page by page both go up together. 0, or -ENOEXEC: also where it has several such segments. */
int elf_symbols_alone(Elf *debug, uint64_t mapped, struct symbol_query *q, uint32_t n);

#define SOURCE_INLINES_MAX \
	24 /* functions that were compiled into each other; what is around more of them is not told */
#define SOURCE_FILE_MAX 1000 /* bytes of a path that are shown */

/* A place in the source. */
struct source {
	const char *function; /* NULL = unknown; as the linker knows it */
	const char *file; /* NULL = unknown */
	uint32_t line; /* 0 = unknown */
	bool inlined; /* the function was compiled into the next one that is told */
};
typedef void source_teller(void *arg, const struct symbol_query *q, const struct source *s);
/* The file to which dwz(1) moved debug information that several files share. Both are as the file that wants it says. */
struct elf_alt {
	char build_id[BUILD_ID_TEXT];
	char path[SOURCE_FILE_MAX + 1];
};
/* For each of q with an address, tells the function there and those that it was compiled into, the innermost first. alt: the
 * file with the other part of the debug information, or NULL. Where that is wanted (.gnu_debugaltlink) and alt is not the one:
 * false, nothing is told, and *lacks says which one; lacks NULL: what is there without it is told. */
bool elf_lines_of(Elf *elf, Elf *alt, struct elf_alt *lacks, struct symbol_query *q, uint32_t n, source_teller *tell,
		  void *arg);

/* The build id in hexadecimal; "" = the file has none. */
void elf_build_id_of(Elf *elf, char ret[BUILD_ID_TEXT]);

/* text: lines "START SIZE NAME" in hexadecimal (tools/perf/Documentation/jit-interface.txt). Other lines are skipped. */
void perf_map_read(const char *text, size_t size, struct symbol_query *q, uint32_t n);

#endif
