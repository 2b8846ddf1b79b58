/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of an agent of any bytes, twice in a row as joulectl run gets them: taken, or refused with one
 * clean line; what is written of them is text. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ctl/run/run_reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const uint8_t *s, size_t left)
{
	for (size_t n; left; left -= n, s += n) {
		n = text_utf8_len(s, left);
		if (!n || (*s < 0x20 && *s != '\n'))
			abort();
	}
}

static void write_all(const struct run_facts *f, struct run_result *r)
{
	static char *const command[] = { "x", NULL };
	struct run_report report = { .command = command, .facts = f, .runs = r, .n = 1 };
	struct buf b = { 0 };

	r->started = true;
	r->wall_ns = 1;
	run_write_json(&report, &b);
	check_text(b.data, b.len);
	buf_reset(&b);
	run_write_csv(&report, &b);
	buf_reset(&b);
	run_write_text(&report, &b);
	check_text(b.data, b.len);
	buf_free(&b);
}

/* A line break parts the two answers. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *cut = size ? memchr(data, '\n', size) : NULL;
	size_t first = cut ? (size_t)(cut - text) : size;
	struct run_machine a = { 0 }, b = { 0 };
	struct run_facts f = { 0 };
	struct run_rows rows = { 0 };
	struct run_result r = { 0 };
	struct err err = { 0 };

	run_facts_parse_status(text, size, &f, &err);
	if (run_reading_parse(text, first, &(struct run_reading){ .facts = &f, .machine = &a, .rows = &rows }, &err) !=
		    0 &&
	    !strchr(err.text, ';'))
		abort();
	if (cut && run_reading_parse(cut + 1, size - first - 1,
				     &(struct run_reading){ .facts = &f, .machine = &b, .rows = &rows }, &err) == 0) {
		run_result_fill(&r, &f, &rows, &a, &b);
		write_all(&f, &r);
	}
	run_rows_free(&rows);
	return 0;
}
