/* SPDX-License-Identifier: Apache-2.0 */
/* Every parser of base on the same text; what they take must stay within its bounds. */
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/parse.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_all(const char *s)
{
	uint8_t bits[16], before[16];
	uint64_t u = 0;
	int64_t i = 0;
	double d = 0;
	bool b = false;
	int n;

	parse_u64(s, &u);
	parse_i64(s, &i);
	parse_double(s, &d);
	parse_duration_ns(s, &u);
	parse_bytes(s, &u);
	parse_bool(s, &b);
	memset(bits, 0x5a, sizeof(bits));
	memcpy(before, bits, sizeof(bits));
	n = parse_cpulist(s, bits, 100);
	if (n > 100 || (n < 0 && memcmp(bits, before, sizeof(bits)) != 0) || bits[13] != 0x5a)
		abort();
}

static void show_all(const char *s, size_t len)
{
	char *shown = malloc(4 * len + 1);
	struct buf out = { 0 };
	struct json j;

	text_escape(shown, 4 * len + 1, s);
	for (const unsigned char *p = (const unsigned char *)shown; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			abort();
	json_init(&j, &out);
	json_str(&j, s);
	for (size_t i = 0, n; i < out.len; i += n) {
		n = text_utf8_len(out.data + i, out.len - i);
		if (!n || out.data[i] < 0x20)
			abort();
	}
	buf_free(&out);
	free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s;
	size_t half;

	if (size > 300)
		return 0;
	s = malloc(size + 1);
	memcpy(s, data, size);
	s[size] = '\0';
	parse_all(s);
	show_all(s, strlen(s));
	half = strlen(s);
	if (half < size)
		text_glob(s, s + half + 1);
	free(s);
	return 0;
}
