/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl decode over any bytes. The first byte says how: the format, the dialect, text or JSON. Whatever
 * comes, what is written is printable, every line of JSON is JSON, an error says where, and no more than
 * 64 MiB are held at any time. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sanitizer/allocator_interface.h>

#include "ctl/decode/decode.h"

#define MEMORY_MAX (64u << 20)
#define LINE_KEPT (256u << 10) /* longer lines are not parsed again */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static size_t held, most;

static void on_malloc(const volatile void *p, size_t n)
{
	held += n;
	most = held > most ? held : most;
}

static void on_free(const volatile void *p)
{
	size_t n = p ? __sanitizer_get_allocated_size(p) : 0;

	held -= n < held ? n : held;
}

struct lines {
	bool json, long_line;
	size_t n;
	char text[LINE_KEPT];
};

static void check_line(struct lines *l)
{
	json_error_t e;
	json_t *v;

	/* our numbers are of 64 bits without a sign, jansson's are not */
	v = json_loadb(l->text, l->n, JSON_DECODE_INT_AS_REAL, &e);
	must(v && json_is_object(v) && json_object_get(v, "format") && json_object_get(v, "record"));
	json_decref(v);
}

static int take(void *arg, const void *p, size_t n)
{
	struct lines *l = arg;
	const uint8_t *s = p;

	for (size_t i = 0; i < n; i++) {
		must((s[i] >= 0x20 || s[i] == '\n') && s[i] != 0x7f);
		must(s[i] != 0xc2 || i + 1 == n || s[i + 1] >= 0xa0);
		l->long_line |= l->n == LINE_KEPT;
		if (l->n < LINE_KEPT)
			l->text[l->n++] = (char)s[i];
		if (s[i] != '\n')
			continue;
		if (l->json && !l->long_line)
			check_line(l);
		l->n = 0;
		l->long_line = false;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* places without a name keep the meaning of the corpus */
	static const char *const formats[] = { NULL, "vjoule", NULL, NULL, "zico", "snapshot", NULL, NULL };
	static const char *const dialects[] = { NULL, NULL, "document", "v0.2" };
	static struct lines lines;
	static bool hooked;
	struct decoding d = { 0 };
	const struct err *e;
	struct out out;
	int code;

	if (!size)
		return 0;
	if (!hooked)
		hooked = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
	held = most = 0;
	lines = (struct lines){ .json = data[0] & 32 };
	d.format = formats[data[0] & 7];
	d.dialect = dialects[data[0] >> 3 & 3];
	out_init(&out, lines.json, take, &lines);
	d.in = input_new(-1, data + 1, size - 1, "input");
	d.out = &out;
	code = decode_all(&d);
	e = input_failure(d.in);
	must(code == e->code && code <= 0);
	must(!code || (strstr(e->text, ": expected ") && strstr(e->text, ", found ") && strstr(e->text, "byte ")));
	must(!code || !strchr(e->text, '\n'));
	must(!lines.n || code); /* half a line only where a record was being written */
	must(most < MEMORY_MAX);
	out_free(&out);
	input_free(d.in);
	return 0;
}
