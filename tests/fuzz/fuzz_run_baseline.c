/* SPDX-License-Identifier: Apache-2.0 */
/* Saved runs of any bytes: taken, and then compared and written again as text; or refused with one clean line. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ctl/compare/baseline.h"
#include "ctl/compare/gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const uint8_t *s, size_t left)
{
	for (size_t n; left; left -= n, s += n) {
		n = text_utf8_len(s, left);
		if (!n || (*s < 0x20 && *s != '\n'))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct baseline b = { 0 }, other = { 0 };
	struct err err = { 0 };
	struct buf out = { 0 };
	struct gate g = { .command = "x", .base = "y", .figure = "energy", .caution = "" };

	if (baseline_parse("base.json", (const char *)data, size, &b, &err) != 0) {
		if (!strstr(err.text, "; "))
			abort();
		return 0;
	}
	if (baseline_alike(&b, &other, &err) != 0)
		check_text((const uint8_t *)err.text, strlen(err.text));
	g.judgement = sequential_judge_apart(b.v, b.n, b.v, b.n, 0.02);
	g.command = b.command;
	gate_write_junit(&g, &out);
	gate_write_badge(&g, &out);
	check_text(out.data, out.len);
	buf_reset(&out);
	baseline_write(&b, &out);
	if (baseline_parse("again", (const char *)out.data, out.len, &other, &err) != 0 || other.n != b.n)
		abort();
	baseline_free(&other);
	baseline_free(&b);
	buf_free(&out);
	return 0;
}
