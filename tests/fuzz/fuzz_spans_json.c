/* SPDX-License-Identifier: Apache-2.0 */
/* Any file given to joulectl spans: refused with one line, or shown in every form, none of which has a control character
 * or anything active in it. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "ctl/spans/ctl_spans.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_json(struct buf *b)
{
	json_error_t why;
	json_t *doc = json_loadb((char *)b->data, b->len, 0, &why);

	if (!json_is_object(doc))
		abort();
	json_decref(doc);
	buf_reset(b);
}

static void is_text(struct buf *b)
{
	for (size_t i = 0; i < b->len; i++)
		if (b->data[i] < 0x20 && b->data[i] != '\n')
			abort();
	buf_reset(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spans_list l = { 0 };
	struct err err = { 0 };
	struct buf b = { 0 };
	struct flame *f;
	const char *ours;

	if (spans_read_json(&l, (const char *)data, size, "fuzz", &err) != 0) {
		if (!err.text[0])
			abort();
		spans_list_free(&l);
		return 0;
	}
	spans_print_json(&l, &b);
	is_json(&b);
	if (spans_print_chrome(&l, "*a*", &b) == 0)
		is_json(&b);
	if (spans_print(&l, NULL, 80, &b) == 0)
		is_text(&b);
	f = spans_flame_new(NULL);
	if (f && spans_flame_add(f, &l) == 0 && spans_flame_draw(f, &l.missing, 320, &b) == 0) {
		buf_add_char(&b, '\0');
		ours = strstr((char *)b.data, "<script>");
		if (!ours || strstr(ours + 1, "<script") || !strstr(ours, "</svg>\n"))
			abort();
	}
	spans_flame_free(f);
	buf_free(&b);
	spans_list_free(&l);
	return 0;
}
