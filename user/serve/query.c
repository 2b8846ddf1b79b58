/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "../base/clock.h"
#include "../base/parse.h"
#include "../base/text.h"

#define SHORTEST_NS (10 * NS_PER_MS)
#define LONGEST_NS (3600 * NS_PER_S)

static const char *const sorts[] = { [SORT_POWER] = "power", [SORT_ENERGY] = "energy", [SORT_CPU] = "cpu", [SORT_NAME] = "name" };

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == len && strncmp(at, word, len) == 0)
			return true;
	return false;
}

static int set_sort(struct query *q, const char *value, struct err *err)
{
	for (unsigned i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++)
		if (strcmp(sorts[i], value) == 0) {
			q->sort = (enum query_sort)i;
			return 0;
		}
	return err_set(err, -EINVAL, "sort: unknown order; write power, energy, cpu or name");
}

static int set_count(uint64_t *to, const char *name, const char *value, struct err *err)
{
	if (parse_u64(value, to) != 0)
		return err_set(err, -EINVAL, "%s: no number; write a whole number such as %s=20", name, name);
	return 0;
}

static int set_interval(struct query *q, const char *value, struct err *err)
{
	uint64_t ns;

	if (parse_duration_ns(value, &ns) != 0 || ns < SHORTEST_NS || ns > LONGEST_NS)
		return err_set(err, -EINVAL, "interval: expected a duration from 10ms to 1h, such as interval=500ms");
	q->interval_ns = ns;
	return 0;
}

static int set(struct query *q, const char *name, const char *value, struct err *err)
{
	if (strcmp(name, "sort") == 0)
		return set_sort(q, value, err);
	if (strcmp(name, "limit") == 0)
		return set_count(&q->limit, name, value, err);
	if (strcmp(name, "depth") == 0)
		return set_count(&q->depth, name, value, err);
	if (strcmp(name, "interval") == 0)
		return set_interval(q, value, err);
	if (strlen(value) >= sizeof(q->format))
		return err_set(err, -EINVAL, "format: unknown; write json, cbor, hwpc, power, table or vjoule");
	snprintf(q->format, sizeof(q->format), "%s", value);
	return 0;
}

int query_parse(struct query *q, const char *allowed, const char *const *names, const char *const *values, unsigned n,
		struct err *err)
{
	char shown[64];

	*q = (struct query){ .limit = UINT64_MAX, .depth = UINT64_MAX };
	for (unsigned i = 0; i < n; i++) {
		int rc = 0;

		text_escape(shown, sizeof(shown), names[i]);
		if (!has_word(allowed, names[i]))
			return *allowed ? err_set(err, -EINVAL, "%s: no parameter of this request; it knows %s", shown, allowed) :
			       err_set(err, -EINVAL, "%s: this request takes no parameters; leave it out", shown);
		for (unsigned k = 0; k < i && !rc; k++)
			if (strcmp(names[k], names[i]) == 0)
				rc = err_set(err, -EINVAL, "%s: given twice; leave one out", shown);
		if (!rc)
			rc = values[i] ? set(q, names[i], values[i], err) :
			     err_set(err, -EINVAL, "%s: no value; write %s=VALUE", shown, shown);
		if (rc)
			return rc;
	}
	return 0;
}

/* 0 = no match, 1 = any, 2 = type and any, 3 = exactly. */
static int match(const char *range, size_t len, const char *type)
{
	const char *slash = strchr(type, '/');
	size_t major = (size_t)(slash - type);

	if (len == 3 && strncmp(range, "*/*", 3) == 0)
		return 1;
	if (len == major + 2 && strncasecmp(range, type, major + 1) == 0 && range[len - 1] == '*')
		return 2;
	return len == strlen(type) && strncasecmp(range, type, len) == 0 ? 3 : 0;
}

/* The q of a range in thousandths (RFC 9110, 12.4.2); 1000 where there is none. */
static unsigned quality_of(const char *params, const char *end)
{
	for (const char *at = params; at < end; at++) {
		unsigned q = 0, scale = 1000;

		if (*at != ';')
			continue;
		at += 1 + strspn(at + 1, " \t");
		if (at + 1 >= end || (*at | 32) != 'q' || at[1] != '=') {
			at--;
			continue;
		}
		for (at += 2; at < end && scale; at++) {
			if (*at == '.')
				continue;
			if (*at < '0' || *at > '9')
				break;
			q += (unsigned)(*at - '0') * scale;
			scale /= 10;
		}
		return q > 1000 ? 1000 : q;
	}
	return 1000;
}

/* What an Accept says of one type: the most specific range decides. */
static unsigned liking(const char *accept, const char *type)
{
	int best = 0;
	unsigned q = 0;

	for (const char *at = accept; *at; at += *at == ',') {
		const char *end;
		size_t len;
		int m;

		at += strspn(at, " \t");
		end = at + strcspn(at, ",");
		len = strcspn(at, ";, \t");
		m = match(at, len, type);
		if (m > best) {
			best = m;
			q = quality_of(at + len, end);
		}
		at = end;
	}
	return q;
}

int query_accept(const char *accept, const char *const *types)
{
	unsigned most = 0;
	int found = -1;

	if (!accept || !accept[strspn(accept, " \t")])
		return 0;
	for (int i = 0; types[i]; i++) {
		unsigned q = liking(accept, types[i]);

		if (q > most) {
			most = q;
			found = i;
		}
	}
	return found;
}
