/* SPDX-License-Identifier: Apache-2.0 */
/* Names the code of a profile that was written without names, or without some of them: a place is a file, by its build id,
 * and an offset in it, and so means the same at another time and elsewhere. */
#ifndef JD_PROFILE_PPROF_SYMBOLIZE_H
#define JD_PROFILE_PPROF_SYMBOLIZE_H
#include "frame_names.h"
#include "pprof_sum.h"

#define SYMBOLIZE_FILES_MAX 4096 /* of a profile */
#define SYMBOLIZE_FILE (CODE_UNKNOWN + 1) /* the number of the file in frames; that of the kernel is CODE_KERNEL */

/* A file as the profile knows it; texts are from outside. */
struct symbolize_file {
	const char *path, *build_id; /* "" = none */
	uint64_t mapped; /* at which offset its code began; UINT64_MAX = unknown */
	bool kernel;
	const char *boot; /* of the kernel that the profile was taken under; "" = unknown */
};

/* Names frames[0..n) of one file into ret. What it does not know it leaves out, or not `known`. 0 or -ENOMEM. */
typedef int symbolize_namer(void *arg, const struct symbolize_file *file, uint64_t *frames, uint32_t n,
			    struct frame_names *ret);

/* Asks for what has no name yet, file by file, and makes *ret of it: samples keep their labels and values, and end at the
 * program's start where a name shows it now. s is used up. 0, -ENOMEM, -E2BIG: it has more files, or what name returned. */
int pprof_symbolize(struct pprof_sum *s, symbolize_namer *name, void *arg, struct pprof_sum **ret);

#endif
