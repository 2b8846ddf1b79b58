/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_INSTANT_H
#define JD_INSTANT_H
#include <stdint.h>

/* An instant as people write it: Unix seconds, with a fraction if need be, RFC 3339, or "-90m" before now. Unix time in
 * ns. 0 or -EINVAL. */
int instant_parse(const char *text, int64_t now_ns, int64_t *ret_ns);

#endif
