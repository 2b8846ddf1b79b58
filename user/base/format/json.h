/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming JSON writer over a buf: owns commas, nesting and escaping, nothing else. Compact,
 * slashes not escaped. Invalid UTF-8 bytes become U+FFFD. Depth at most 32. */
#ifndef JD_JSON_H
#define JD_JSON_H
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

struct json {
	struct buf *out;
	uint32_t comma; /* bit per depth: a value was written there */
	int depth;
};

void json_init(struct json *j, struct buf *out);
void json_object_begin(struct json *j);
void json_object_end(struct json *j);
void json_array_begin(struct json *j);
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key);
void json_str(struct json *j, const char *s);
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
void json_double(struct json *j, double v); /* shortest of %.15g..%.17g that reads back; non-finite -> null */
void json_bool(struct json *j, bool v);
void json_key_u64(struct json *j, const char *key, uint64_t v);
void json_key_str(struct json *j, const char *key, const char *s);

#endif
