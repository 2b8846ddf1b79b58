/* SPDX-License-Identifier: Apache-2.0 */
/* Strings from outside made safe for a terminal or a log line. */
#ifndef JD_TEXT_H
#define JD_TEXT_H
#include <stddef.h>

/* Copies s with control bytes, backslash and bytes that are not UTF-8 as \xNN, at most size-1 bytes and always
 * NUL-terminated; returns dst. C1 controls (U+0080..U+009F) and the invisible characters that turn the direction of the
 * text after them (U+202A..202E, U+2066..2069) are escaped too. */
const char *text_escape(char *dst, size_t size, const char *s);
/* The same but backslashes stay: for a whole line whose parts may be escaped already. */
const char *text_clean(char *dst, size_t size, const char *s);
/* Bytes at the start of s that stand for themselves in a JSON string: ASCII without controls, quote and backslash. */
size_t text_plain_run(const unsigned char *s, size_t n);
/* How much of the subject s stands before ": cause" in a message, for the format "%.*s: ": all but the colon at the end
 * of stdout: and null:. */
int text_subject_len(const char *s);
#define TEXT_SUBJECT(s) text_subject_len(s), (s)
/* Length of a valid UTF-8 sequence at s (n bytes left), 0 when it is not one (RFC 3629). */
size_t text_utf8_len(const unsigned char *s, size_t n);
/* Edits (insert, drop, change a byte; ASCII case ignored) that make a from b: the nearest known
 * word of an error message. Only the first 63 bytes count. */
unsigned text_distance(const char *a, const char *b);
/* Glob as in cgroups.include: "*" within a component, "**" across, "?" one byte. */
int text_glob(const char *pattern, const char *s); /* 1 match, 0 none */

#endif
