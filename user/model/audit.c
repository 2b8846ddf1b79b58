/* SPDX-License-Identifier: Apache-2.0 */
#include "audit.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/format/fields.h"
#include "base/text.h"

static const struct field line_rows[] = {
	FIELD(audit_line, cgroup),  FIELD(audit_line, domain),    FIELD(audit_line, draw),
	FIELD(audit_line, judged),  FIELD(audit_line, pairs),     FIELD(audit_line, charged_w),
	FIELD(audit_line, drawn_w), FIELD(audit_line, bias),      FIELD(audit_line, low),
	FIELD(audit_line, high),    FIELD(audit_line, displaced),
};
static const struct fields line_fields = FIELDS(line_rows);

static const struct field audit_rows[] = {
	FIELD(audit, version),
	FIELD(audit, time_ns),
	FIELD(audit, duration_ns),
	FIELD(audit, frozen_ns),
	FIELD(audit, seed),
	FIELD(audit, method),
	FIELD(audit, formula),
	FIELD(audit, better),
	FIELD(audit, why),
	FIELD(audit, ended_early),
	FIELD(audit, within),
	FIELD(audit, saturation),
	FIELD(audit, saturation_low),
	FIELD(audit, saturation_high),
};
static const struct fields audit_fields = FIELDS(audit_rows);

void audit_init(struct audit *a)
{
	*a = (struct audit){ .version = AUDIT_VERSION,
			     .within = NAN,
			     .saturation = NAN,
			     .saturation_low = NAN,
			     .saturation_high = NAN };
}

bool audit_add(struct audit *a, const struct audit_line *l)
{
	if (a->n == AUDIT_LINES_MAX)
		return false;
	a->line[a->n++] = *l;
	return true;
}

static double error_of(const struct audit_line *l)
{
	return fmax(fabs(l->low), fabs(l->high));
}

static double worst(const struct audit *a, const char *domain)
{
	double most = NAN;

	for (unsigned i = 0; i < a->n; i++) {
		const struct audit_line *l = &a->line[i];

		if (l->judged && !isnan(l->bias) && (!domain || strcmp(l->domain, domain) == 0))
			most = fmax(most, error_of(l)); /* fmax takes the number */
	}
	return most;
}

void audit_sum_up(struct audit *a)
{
	a->within = worst(a, NULL);
}

double audit_error(const struct audit *a, const char *domain)
{
	return worst(a, domain);
}

void audit_json(struct json *j, const struct audit *a)
{
	json_object_begin(j);
	fields_json(j, &audit_fields, a, 0);
	json_key(j, "lines");
	json_array_begin(j);
	for (unsigned i = 0; i < a->n; i++) {
		json_object_begin(j);
		fields_json(j, &line_fields, &a->line[i], 0);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void clean(char *text, size_t size)
{
	char copy[400];

	snprintf(copy, sizeof(copy), "%s", text);
	text_clean(text, size, copy);
}

/* Numbers of another program are taken only where they can be true. */
static bool is_sound(const struct audit_line *l)
{
	return !(l->low > l->bias) && !(l->high < l->bias) && !isinf(l->low) && !isinf(l->high) && *l->domain;
}

static int read_line(const json_t *o, struct audit *ret)
{
	struct audit_line l = { .bias = NAN, .low = NAN, .high = NAN };

	if (!json_is_object(o))
		return -EBADMSG;
	fields_json_read(o, &line_fields, &l, 0);
	if (!is_sound(&l))
		return -EBADMSG;
	if (isnan(l.low) || isnan(l.high))
		l.bias = l.low = l.high = NAN;
	clean(l.cgroup, sizeof(l.cgroup));
	clean(l.domain, sizeof(l.domain));
	clean(l.draw, sizeof(l.draw));
	return audit_add(ret, &l) ? 0 : -EBADMSG;
}

static bool is_formula(const char *name)
{
	return !*name || strcmp(name, "share") == 0 || strcmp(name, "model") == 0;
}

int audit_parse(const char *text, size_t size, struct audit *ret, struct err *err)
{
	json_t *doc = size <= AUDIT_BYTES_MAX ? json_loadb(text, size, 0, NULL) : NULL;
	const json_t *lines = json_object_get(doc, "lines"), *o;
	struct audit a;
	size_t i;
	int rc = json_array_size(lines) ? 0 : -EBADMSG;

	audit_init(&a);
	a.version = 0;
	if (!rc)
		fields_json_read(doc, &audit_fields, &a, 0);
	if (a.version != AUDIT_VERSION || !is_formula(a.better))
		rc = -EBADMSG;
	if (!rc)
		json_array_foreach(lines, i, o)
			if (!rc)
				rc = read_line(o, &a);
	json_decref(doc);
	if (rc)
		return err_set(err, rc, "audit: not the result of an audit of version %d; joulectl audit sends it",
			       AUDIT_VERSION);
	clean(a.method, sizeof(a.method));
	clean(a.formula, sizeof(a.formula));
	clean(a.why, sizeof(a.why));
	audit_sum_up(&a);
	*ret = a;
	return 0;
}
