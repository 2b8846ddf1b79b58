/* SPDX-License-Identifier: Apache-2.0 */
/* The SVG writer: well-formed whatever the names, and text that fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl/plot/svg.h"

static char *text_of(struct buf *b)
{
	buf_add_char(b, '\0');
	assert_false(b->failed);
	return (char *)b->data;
}

static void test_elements(void **state)
{
	struct buf b = { 0 };
	struct svg s;
	char *t;

	svg_begin(&s, &b, svg_size(300, 200), "A <title>", "What & why");
	svg_open(&s, "g");
	svg_attr(&s, "class", "grid");
	svg_line(&s, NULL, svg_at(1, 2.5), svg_at(3.14159, 4));
	svg_close(&s);
	svg_text(&s, "ink", "end", svg_at(10, 20), "a<b>&\"'");
	svg_end(&s);
	t = text_of(&b);
	assert_non_null(strstr(
		t,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"300\" height=\"200\" viewBox=\"0 0 300 200\" role=\"img\">"));
	assert_non_null(strstr(t, "<title>A &lt;title&gt;</title>"));
	assert_non_null(strstr(t, "<desc>What &amp; why</desc>"));
	assert_non_null(strstr(t, "<line x1=\"1\" y1=\"2.5\" x2=\"3.14\" y2=\"4\"/>"));
	assert_non_null(strstr(
		t, "<text class=\"ink\" text-anchor=\"end\" x=\"10\" y=\"20\">a&lt;b&gt;&amp;&quot;&#39;</text>"));
	assert_non_null(strstr(t, "</svg>\n"));
	assert_null(strstr(t, "<script"));
	buf_free(&b);
}

/* XML 1.0, 2.2: what cannot stand in a document, in any form. */
static void test_hostile_text(void **state)
{
	struct buf b = { 0 };
	struct svg s = { .out = &b };
	char *t;

	svg_text(&s, NULL, NULL, svg_at(0, 0),
		 "\x01\x1b[31m\xff\xc3(\xef\xbf\xbf \xe2\x80\xae]]>\xed\xa0\x80 \xc3\xa9");
	t = text_of(&b);
	assert_string_equal(
		t,
		"<text x=\"0\" y=\"0\">\\x01\\x1b[31m\\xff\\xc3(\\xef\\xbf\\xbf \\xe2\\x80\\xae]]&gt;\\xed\\xa0\\x80 \xc3\xa9</text>");
	buf_free(&b);
}

static void test_attribute_cannot_end(void **state)
{
	struct buf b = { 0 };
	struct svg s = { .out = &b };

	svg_open(&s, "g");
	svg_attr(&s, "class", "x\" onload=\"alert(1)\n");
	svg_close(&s);
	assert_string_equal(text_of(&b), "<g class=\"x&quot; onload=&quot;alert(1)\\x0a\"/>");
	buf_free(&b);
}

static void test_path(void **state)
{
	struct buf b = { 0 };
	struct svg s = { .out = &b };

	svg_open(&s, "path");
	svg_path_begin(&s);
	svg_move_to(&s, 0, 10);
	svg_line_to(&s, 5, 10);
	svg_line_to(&s, 5, 2.345);
	svg_line_to(&s, 5, 2.346);
	svg_line_to(&s, 7, 3);
	svg_path_close(&s);
	svg_path_end(&s);
	svg_close(&s);
	assert_string_equal(text_of(&b), "<path d=\"M0 10H5V2.35L7 3Z\"/>");
	buf_free(&b);
}

static void test_numbers_are_numbers(void **state)
{
	struct buf b = { 0 };
	struct svg s = { .out = &b };

	svg_rect(&s, NULL, svg_at(NAN, INFINITY), svg_size(-0.0001, 1e300));
	assert_string_equal(text_of(&b), "<rect x=\"0\" y=\"0\" width=\"0\" height=\"1000000000\"/>");
	buf_free(&b);
}

static void test_too_deep(void **state)
{
	struct buf b = { 0 };
	struct svg s = { .out = &b };

	for (int i = 0; i <= SVG_DEPTH_MAX; i++)
		svg_open(&s, "g");
	assert_true(b.failed);
	buf_free(&b);
}

static void test_fit(void **state)
{
	const char *path =
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234.slice/cri-containerd-abcdef.scope";
	char dst[256];

	assert_string_equal(svg_fit(dst, sizeof(dst), "/short", 200, 12), "/short");
	for (double width = 20; width < 700; width += 7) {
		svg_fit(dst, sizeof(dst), path, width, 12);
		assert_true(svg_text_width(dst, 12) <= width + 12);
		assert_true(strlen(dst) < strlen(path) + 3);
	}
	svg_fit(dst, sizeof(dst), path, 200, 12);
	assert_non_null(strstr(dst, "\xe2\x80\xa6"));
	assert_string_equal(dst + strlen(dst) - 6, ".scope");
	/* multi-byte characters are cut whole */
	for (double width = 12; width < 100; width += 3) {
		svg_fit(dst, sizeof(dst),
			"\xc3\xa9\xc3\xa8\xe6\xbc\xa2\xe5\xad\x97\xc3\xa9\xc3\xa8\xe6\xbc\xa2\xe5\xad\x97\xf0\x9f\x98\x80",
			width, 12);
		for (const unsigned char *c = (const unsigned char *)dst; *c;) {
			size_t n = *c < 0x80 ? 1 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : 4;

			assert_true(*c < 0x80 || *c >= 0xc2);
			for (size_t i = 1; i < n; i++)
				assert_int_equal(c[i] & 0xc0, 0x80);
			c += n;
		}
	}
	svg_fit(dst, 8, path, 500, 12);
	assert_true(strlen(dst) < 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_attribute_cannot_end),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_numbers_are_numbers),
		cmocka_unit_test(test_too_deep),
		cmocka_unit_test(test_fit),
	};

	return cmocka_run_group_tests_name("svg", tests, NULL, NULL);
}
