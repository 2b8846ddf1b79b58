/* SPDX-License-Identifier: Apache-2.0 */
/* Query parameters and Accept of any bytes: taken, or refused with one clean line. Lines of the input:
 * Accept, then NAME=VALUE each. */
#include <stdlib.h>
#include <string.h>

#include "base/http/http.h"
#include "base/text.h"
#include "serve/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const struct err *err)
{
	const unsigned char *s = (const unsigned char *)err->text;

	for (size_t left = strlen(err->text), n; left; left -= n, s += n) {
		n = text_utf8_len(s, left);
		if (!n || *s < 0x20)
			abort();
	}
	if (!strchr(err->text, ';'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = { "application/json", "text/plain; charset=utf-8", "application/cbor",
					     NULL };
	const char *names[HTTP_ARGS_MAX], *values[HTTP_ARGS_MAX];
	char *text = malloc(size + 1), *next = NULL, *line;
	struct err err = { 0 };
	struct query q;
	unsigned n = 0;
	int chosen;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	line = strtok_r(text, "\n", &next);
	chosen = http_accept(line, types);
	if (chosen < -1 || chosen > 2)
		abort();
	while (n < HTTP_ARGS_MAX && (line = strtok_r(NULL, "\n", &next))) {
		names[n] = line;
		values[n] = strchr(line, '=');
		if (values[n])
			*(char *)values[n]++ = '\0';
		n++;
	}
	if (query_parse(&q, "sort limit depth interval format", &(struct query_args){ names, values, n }, &err) != 0)
		check_line(&err);
	else if (q.interval_ns && q.interval_ns < 10000000)
		abort();
	free(text);
	return 0;
}
