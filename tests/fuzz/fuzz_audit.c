/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/audit with any body: taken, or refused with one clean line. What is taken is written as text and as JSON, and that is
 * taken again with the same errors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ctl/audit/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const uint8_t *s, size_t left)
{
	for (size_t n; left; left -= n, s += n) {
		n = text_utf8_len(s, left);
		if (!n || (*s < 0x20 && *s != '\n'))
			abort();
	}
}

static bool same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static void write_and_read(const struct audit *a)
{
	static struct audit again;
	struct buf b = { 0 };
	struct json j;

	audit_write_text(a, &b);
	check_text(b.data, b.len);
	buf_reset(&b);
	json_init(&j, &b);
	audit_json(&j, a);
	check_text(b.data, b.len);
	if (b.len <= AUDIT_BYTES_MAX) {
		if (audit_parse((const char *)b.data, b.len, &again, NULL) != 0)
			abort();
		if (again.n != a->n || !same(again.within, a->within) ||
		    !same(audit_error(&again, "package-0"), audit_error(a, "package-0")))
			abort();
	}
	buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct audit a;
	struct err err = { 0 };

	if (audit_parse((const char *)data, size, &a, &err) == 0)
		write_and_read(&a);
	else
		check_text((const uint8_t *)err.text, strlen(err.text));
	return 0;
}
