/* SPDX-License-Identifier: Apache-2.0 */
#include "baseline.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/format/json.h"
#include "base/text.h"
#include "ctl/core/named_file.h"

#define FORMAT "jouled run baseline 1"

static const char *const trait_key[BASELINE_TRAITS] = { "machine", "frequency", "formula", "domains",
							"events",  "figure",    "quality" };

void baseline_free(struct baseline *b)
{
	free(b->v);
	*b = (struct baseline){ 0 };
}

void baseline_write(const struct baseline *b, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_key_str(&j, "format", FORMAT);
	json_key_str(&j, "command", b->command);
	for (unsigned i = 0; i < BASELINE_TRAITS; i++)
		json_key_str(&j, trait_key[i], b->trait[i]);
	json_key(&j, "values");
	json_array_begin(&j);
	for (unsigned i = 0; i < b->n; i++)
		json_double(&j, b->v[i]);
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(out, '\n');
}

static int wrong(const char *name, const char *what, struct err *err)
{
	return err_set(err, -EBADMSG, "%.200s: %s; save it again with joulectl run --save", name, what);
}

static bool take_text(const json_t *o, const char *key, char dst[BASELINE_TEXT_MAX])
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v) || json_string_length(v) >= BASELINE_TEXT_MAX)
		return false;
	text_clean(dst, BASELINE_TEXT_MAX, json_string_value(v));
	return true;
}

static int take_values(const char *name, const json_t *list, struct baseline *b, struct err *err)
{
	size_t n = json_array_size(list);

	if (!n || n > BASELINE_RUNS_MAX)
		return wrong(name, "it has no values, or more than 100000", err);
	b->v = calloc(n, sizeof(*b->v));
	if (!b->v)
		return err_set(err, -ENOMEM, "%.200s: out of memory; free some", name);
	for (; b->n < n; b->n++) {
		const json_t *v = json_array_get(list, b->n);
		double x = json_number_value(v);

		if (!json_is_number(v) || !isfinite(x) || x < 0)
			return wrong(name, "a value is no number from 0 on", err);
		b->v[b->n] = x;
	}
	return 0;
}

int baseline_parse(const char *name, const char *text, size_t size, struct baseline *ret, struct err *err)
{
	json_t *doc = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	const char *format = json_string_value(json_object_get(doc, "format"));
	struct baseline b = { 0 };
	int rc = 0;

	if (!format || strcmp(format, FORMAT) != 0)
		rc = wrong(name, "it is no baseline of this version", err);
	if (!rc && !take_text(doc, "command", b.command))
		rc = wrong(name, "it has no command", err);
	for (unsigned i = 0; !rc && i < BASELINE_TRAITS; i++)
		if (!take_text(doc, trait_key[i], b.trait[i]))
			rc = wrong(name, trait_key[i], err);
	if (!rc)
		rc = take_values(name, json_object_get(doc, "values"), &b, err);
	json_decref(doc);
	if (rc)
		baseline_free(&b);
	else
		*ret = b;
	return rc;
}

int baseline_read(const char *path, struct baseline *ret, struct err *err)
{
	struct buf b = { 0 };
	int rc = named_file_read(path, BASELINE_BYTES_MAX, "name a file that joulectl run --save wrote", &b, err);

	if (!rc)
		rc = baseline_parse(path, (const char *)b.data, b.len, ret, err);
	buf_free(&b);
	return rc;
}

int baseline_alike(const struct baseline *saved, const struct baseline *now, struct err *err)
{
	for (unsigned i = 0; i < BASELINE_TRAITS; i++)
		if (strcmp(saved->trait[i], now->trait[i]) != 0)
			return err_set(err, -EXDEV,
				       "%s differs: saved with '%.100s', now '%.100s'; save a baseline here, or give "
				       "--base-cmd",
				       trait_key[i], saved->trait[i], now->trait[i]);
	return 0;
}
