/* SPDX-License-Identifier: Apache-2.0 */
/* Strict text to number; the whole string must be used. 0 or -EINVAL / -ERANGE; ret untouched on failure. */
#ifndef JD_PARSE_H
#define JD_PARSE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int parse_u64(const char *s, uint64_t *ret); /* decimal or 0x hex */
int parse_i64(const char *s, int64_t *ret);
int parse_double(const char *s, double *ret); /* finite, C locale */
int parse_duration_ns(const char *s, uint64_t *ret); /* 10ms 1s 2m 1h 7d, 250us, 1.5s; a unit is required */
int parse_bytes(const char *s, uint64_t *ret); /* 4096, 64KiB, 16MiB, 1GiB, 10MB */
/* "0-3,8,10-11" as in sysfs cpu lists into a bitmap of n bits; number set or -errno. Empty list = 0. */
int parse_cpulist(const char *s, uint8_t *bits, size_t n);
bool parse_bool(const char *s, bool *ret); /* true/false/yes/no/on/off; false = not a bool */

#endif
