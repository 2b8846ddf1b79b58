/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files of a profile on this machine, by build id, and names their code. */
#ifndef JD_PROFILE_SYMBOL_FILES_H
#define JD_PROFILE_SYMBOL_FILES_H
#include "pprof_symbolize.h"

enum symbols_why {
	SYMBOLS_FOUND, /* the file, or its symbols; they may not cover every place */
	SYMBOLS_NOWHERE, /* no file of that build id is here */
	SYMBOLS_OTHER, /* the file of that name has another build id, and no other file has it */
	SYMBOLS_NO_ID, /* the profile does not say which file it was */
	SYMBOLS_RUNTIME, /* a compiler made it while the program ran */
	SYMBOLS_OTHER_BOOT, /* the kernel was started anew since, or it is that of another machine */
};

/* What became of a file. */
struct symbols_of_file {
	const struct symbolize_file *file;
	enum symbols_why why;
	const char *lacks; /* build id of a file that it shares debug information with and that is not here; "" = none */
	const char *here; /* SYMBOLS_OTHER: its build id, "" = it has none */
	uint32_t places, named;
};

struct symbol_files {
	const char *debug_dirs; /* parted by ':'; NULL = FRAME_DEBUG_DIR */
	void (*tell)(void *arg, const struct symbols_of_file *f); /* called for each file */
	void *arg;
	struct code code;
};

int symbol_files_open(struct symbol_files *s); /* 0 or -errno */
/* A symbolize_namer; arg: an open struct symbol_files. */
int symbol_files_name(void *arg, const struct symbolize_file *file, uint64_t *frames, uint32_t n,
		      struct frame_names *ret);
/* The build id of an open file, "" = it has none. 0 or -ENOMEM. */
int symbol_files_id(struct symbol_files *s, int fd, char ret[BUILD_ID_TEXT]);
void symbol_files_close(struct symbol_files *s); /* zeroed accepted */

#endif
