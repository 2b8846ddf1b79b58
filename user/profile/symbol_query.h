/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that want a name, and what gives names: ELF symbol tables and the perf maps of JIT compilers. Both are
 * hostile input. A reader walks over its functions once, and each function names the addresses inside it. */
#ifndef JD_SYMBOL_QUERY_H
#define JD_SYMBOL_QUERY_H
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_NAME_MAX 400 /* bytes that are shown, without the NUL; a longer name is cut */
#define SYMBOL_RAW_MAX 8192 /* the same, of the name as the file has it */
#define BUILD_ID_TEXT 129 /* up to 64 bytes in hexadecimal, and the NUL */

struct symbol_query {
	uint64_t offset; /* in the file; in a perf map the address */
	uint64_t address; /* of the ELF image; a reader's */
	uint64_t size; /* of the function that named it; 0 = nothing did */
	uint32_t at; /* the caller's number */
	char *name; /* NULL = unknown; free() */
};

/* Names every address in [start, start + size) that has no name from a smaller function. q is sorted by address. name
 * has len bytes and no NUL. */
void symbol_offer(struct symbol_query *q, uint32_t n, const uint64_t range[2], const char *name, size_t len);
void symbol_sort(struct symbol_query *q, uint32_t n); /* by address */

/* q[].offset are given; names are added. What has no name stays without one. fd is read, not mapped. 0, -ENOEXEC, or
 * -errno of the file. */
int elf_symbols_read(int fd, struct symbol_query *q, uint32_t n);
int elf_symbols_in(char *image, size_t size, struct symbol_query *q, uint32_t n);

/* The build id in hexadecimal; "" = the file has none. */
void elf_build_id_read(int fd, char ret[BUILD_ID_TEXT]);
void elf_build_id_in(char *image, size_t size, char ret[BUILD_ID_TEXT]);

/* text: lines "START SIZE NAME" in hexadecimal (tools/perf/Documentation/jit-interface.txt). Other lines are skipped. */
void perf_map_read(const char *text, size_t size, struct symbol_query *q, uint32_t n);

#endif
