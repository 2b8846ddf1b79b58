/* SPDX-License-Identifier: Apache-2.0 */
/* The half of frame_names.c that reads a file, in a process without rights (code_reader.h), and the answers that it sends. */
#ifndef JD_NAME_READER_H
#define JD_NAME_READER_H
#include "symbol_query.h"

struct name_question {
	bool perf_map;
	const char *build_id; /* that READER_DEBUG must have; NULL = there is no such file */
	bool has_alt; /* READER_ALT is there */
	bool without_alt; /* nobody has it: tell what there is without it */
	const char *own_id; /* that READER_FILE must have; NULL = any */
	bool id_alone; /* nothing but its build id is asked for */
	bool symbols_alone; /* it has the symbols of a program that is not here, mapped at that offset */
	uint64_t mapped;
	struct symbol_query *q;
	uint32_t n;
};

enum name_kind {
	NAME_BUILD_ID, /* of the file; `at` means nothing */
	NAME_ALT, /* lines and functions that were compiled in need a file of this build id; the path of it */
	NAME_FUNCTION, /* of the symbol */
	NAME_INLINED, /* a function that was compiled in, the innermost first, and the place in it */
	NAME_LINE, /* the place in the function of the symbol, and its name if no symbol has told it */
};

/* Name and file follow, without a NUL; one of both may be empty. */
struct name_answer {
	uint32_t at, kind, line, name, file;
};

/* The work of the reader. arg: a struct name_question. */
void name_reader(void *arg);

#endif
