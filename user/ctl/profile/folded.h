/* SPDX-License-Identifier: Apache-2.0 */
/* Files of folded stacks, as joulectl profile -o x.folded writes them: a line is cgroup;process;frame;...;frame, a space,
 * and microjoules. Foreign input. */
#ifndef JD_FOLDED_H
#define JD_FOLDED_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define FOLDED_BYTES_MAX ((size_t)256 << 20)
#define FOLDED_LABELS_MAX 8192

/* Calls each for every line; labels lie in text, which is changed. A return value other than 0 ends the reading. subject:
 * the file, for messages. 0, -EINVAL with err, or what each returned. */
int folded_parse(char *text, size_t n, const char *subject,
		 int (*each)(void *ctx, const char *const *label, unsigned n, uint64_t uj), void *ctx, struct err *err);

#endif
