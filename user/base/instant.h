/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_INSTANT_H
#define JD_INSTANT_H
#include <stdint.h>

/* Parses an instant as people write it: Unix seconds, with a fraction if need be; RFC 3339; or a time before now such
 * as "-90m". *ret_ns is Unix time. 0 or -EINVAL. */
int instant_parse(const char *text, int64_t now_ns, int64_t *ret_ns);

#endif
