/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include "../base/text.h"
#include "trace_pick.h"

bool trace_uuid_ok(const char *text)
{
	size_t digits = 0;

	for (; *text; text++) {
		if (*text != '-' && !isxdigit((unsigned char)*text))
			return false;
		digits += *text != '-';
	}
	return digits == 32;
}

static bool has_uuid(const struct trace *t, const char *text)
{
	char hex[3] = "";
	unsigned n = 0;

	for (; *text && n < 2 * sizeof(t->uuid); text++) {
		if (*text == '-')
			continue;
		snprintf(hex, sizeof(hex), "%02x", t->uuid[n / 2]);
		if (tolower((unsigned char)*text) != hex[n % 2])
			return false;
		n++;
	}
	return n == 2 * sizeof(t->uuid);
}

bool span_picked(const struct span *s, const char *command)
{
	return !command || text_glob(command, s->comm) || (s->kind == SPAN_FUNCTION && text_glob(command, s->symbol));
}

static bool has_command(const struct trace *t, const char *command)
{
	for (uint32_t i = 0; i < t->n_spans; i++)
		if (span_picked(&t->spans[i], command))
			return true;
	return false;
}

static int64_t end_of(const struct trace *t)
{
	int64_t last = INT64_MIN;

	for (uint32_t i = 0; i < t->n_spans; i++) {
		const struct span *s = &t->spans[i];
		int64_t end_ns = (int64_t)((uint64_t)s->start_real_ns + (s->end_ns - s->start_ns));

		last = end_ns > last ? end_ns : last;
	}
	return last;
}

bool trace_picked(const struct trace *t, const struct trace_pick *p)
{
	const struct span *root = &t->spans[0];

	if (p->cgroup && !text_glob(p->cgroup, root->cgroup))
		return false;
	if (p->uuid && !has_uuid(t, p->uuid))
		return false;
	if (p->until_ns != INT64_MIN && root->start_real_ns > p->until_ns)
		return false;
	if (p->since_ns != INT64_MIN && end_of(t) < p->since_ns)
		return false;
	return !p->command || has_command(t, p->command);
}
