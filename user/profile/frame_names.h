/* SPDX-License-Identifier: Apache-2.0 */
/* Names of frames. A file of code is read by a process of its own without rights, since whoever runs it wrote it. Where
 * another file has its symbols (DIR/.build-id/xx/yy.debug), that one is read beside it. The kernel's names come from
 * /proc/kallsyms. */
#ifndef JD_FRAME_NAMES_H
#define JD_FRAME_NAMES_H
#include "code.h"
#include "room.h"
#include "stacks.h"
#include "symbol_query.h"

struct frame_source {
	char *text; /* the function; escaped */
	char *file; /* escaped; NULL = unknown */
	uint32_t line; /* 0 = unknown */
};

struct frame_name {
	uint64_t frame;
	char *text; /* escaped; "function", or "[file]" where no symbol covers it; "[file+0xOFFSET]" with no_names or build_id */
	char *file; /* of the source; escaped; NULL = unknown */
	uint32_t line; /* of the source; 0 = unknown */
	uint32_t n_inlined;
	struct frame_source *inlined; /* functions that were compiled into this one here, the innermost first */
	bool known; /* it is a function */
	bool start; /* it is where a program or a thread begins */
};

#define FRAME_NO_ROOM "[no room]"

#define FRAME_DEBUG_DIR "/usr/lib/debug"

/* What is asked for beside the names that a file has itself. */
struct frame_wish {
	const char *debug_dirs; /* parted by ':' */
	/* The frames of which stacks. NULL = of all. */
	bool (*wants)(const void *arg, uint32_t stack);
	const void *arg;
	bool no_names; /* build ids are read, and nothing else */
	/* The files are other ones than those that ran: only one of this build id is believed. Where it is not there, its
	 * symbols in debug_dirs do alone, if it was mapped at an offset that is known. NULL = they are those that ran. */
	const char *build_id;
	uint64_t mapped; /* in bytes; UINT64_MAX = unknown */
};

struct frame_names {
	struct frame_name *v; /* by frame */
	uint32_t n, cap;
	size_t bytes,
		bytes_most; /* of texts, in blocks of the heap; most 0 = no limit. Beyond, a frame is FRAME_NO_ROOM */
	struct room *room; /* for all names that are kept; borrowed, NULL = no limit */
	uint32_t failed; /* files whose reader ended before its work */
	char lacks[BUILD_ID_TEXT]; /* a file that others share debug information with and that is not here; "" = none */
	const struct frame_wish *wish; /* NULL = files in FRAME_DEBUG_DIR */
	char (*build_id)[BUILD_ID_TEXT]; /* by file of the code; "" = it has none, or was not asked for */
	uint32_t n_files; /* of build_id; frame_names_add's */
	void (*meanwhile)(void *arg); /* called now and then while a file is read; NULL = nothing is */
	void *arg;
};

/* Names the frames of all stacks. 0 or -ENOMEM. Call frame_names_free in any case. */
int frame_names_fill(struct frame_names *f, const struct code *code, const struct stacks *stacks);
/* Names those of frames[0..n) that f does not know yet, and keeps the others. Reorders frames. 0 or -ENOMEM. */
int frame_names_add(struct frame_names *f, const struct code *code, uint64_t *frames, uint32_t n);
/* NULL = no wanted stack has it. */
const struct frame_name *frame_name(const struct frame_names *f, uint64_t frame);
void frame_names_free(struct frame_names *f);

#endif
