/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options. subject is "top: --sort"; text NULL = not given. */
#ifndef JD_CTL_CHOICE_H
#define JD_CTL_CHOICE_H
#include <stdint.h>
#include "../base/err.h"

/* Which of names (up to NULL), `otherwise` when not given. -EINVAL names the nearest, or all. */
int choice_word(const char *subject, const char *text, const char *const *names, int otherwise, struct err *err);
/* 0, *ret untouched when not given; -EINVAL. */
int choice_number(const char *subject, const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err);
int choice_interval(const char *subject, const char *text, uint64_t *ret_ns, struct err *err);

#endif
