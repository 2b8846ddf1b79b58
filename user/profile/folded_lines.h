/* SPDX-License-Identifier: Apache-2.0 */
/* Writes folded stacks: a line is cgroup;process;frame;...;frame, a space, and microjoules. Equal stacks are one line. */
#ifndef JD_FOLDED_LINES_H
#define JD_FOLDED_LINES_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/hash.h"

struct folded_lines {
	struct buf text; /* lines, each ended by a NUL */
	struct folded_line {
		size_t at;
		uint64_t uj;
	} * v;
	uint32_t n, cap;
	struct hash by_text;
	size_t begin; /* of the line that is made */
};

void folded_begin(struct folded_lines *f);
/* raw: from outside, not escaped yet. */
void folded_label(struct folded_lines *f, const char *label, bool raw);
/* 0 or -ENOMEM. */
int folded_end(struct folded_lines *f, uint64_t uj);
/* Appends the lines unless rc says that they are not whole, and frees f. Returns rc, or -ENOMEM. */
int folded_write(struct folded_lines *f, int rc, struct buf *out);

#endif
