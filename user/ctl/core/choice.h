/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options. subject names verb and option: "top: --sort". text is NULL where the option is not given. */
#ifndef JD_CTL_CHOICE_H
#define JD_CTL_CHOICE_H
#include <stdint.h>
#include "base/err.h"

/* Returns the index of text in names, which end with NULL; `otherwise` where text is NULL. -EINVAL: err names the nearest
 * word, or all of them. */
int choice_word(const char *subject, const char *text, const char *const *names, int otherwise, struct err *err);

/* Both ends belong to it. */
struct choice_range {
	uint64_t min, max;
};

static inline struct choice_range choice_range(uint64_t min, uint64_t max)
{
	return (struct choice_range){ min, max };
}

/* 0; *ret keeps its value where text is NULL. -EINVAL. */
int choice_number(const char *subject, const char *text, struct choice_range range, uint64_t *ret, struct err *err);
/* The same for a time, from 10 ms to 1 h. */
int choice_interval(const char *subject, const char *text, uint64_t *ret_ns, struct err *err);

#endif
