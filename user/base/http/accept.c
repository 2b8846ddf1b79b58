/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include "http.h"

/* How exactly a range matches a type: 0 = no match, 1 = any, 2 = type and any, 3 = exactly. */
static int match(const char *range, size_t len, const char *type)
{
	size_t major = strcspn(type, "/"), whole = strcspn(type, ";");

	if (len == 3 && strncmp(range, "*/*", 3) == 0)
		return 1;
	if (len == major + 2 && strncasecmp(range, type, major + 1) == 0 && range[len - 1] == '*')
		return 2;
	return len == whole && strncasecmp(range, type, len) == 0 ? 3 : 0;
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

/* The q of one type in an Accept header, in thousandths; 0 = not accepted. The most specific range decides. */
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

int http_accept(const char *accept, const char *const *types)
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
