/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "choice.h"

#define INTERVAL_MIN_NS (10 * NS_PER_MS)
#define INTERVAL_MAX_NS (3600 * NS_PER_S)

int choice_word(const char *subject, const char *text, const char *const *names, int otherwise, struct err *err)
{
	char all[256] = "", shown[64];
	const char *near = NULL;
	unsigned best = 3;
	size_t at = 0;

	if (!text)
		return otherwise;
	for (int i = 0; names[i]; i++) {
		unsigned d = text_distance(names[i], text);

		if (strcmp(names[i], text) == 0)
			return i;
		if (d < best) {
			best = d;
			near = names[i];
		}
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s", i ? ", " : "", names[i]);
	}
	text_escape(shown, sizeof(shown), text);
	if (near)
		return err_set(err, -EINVAL, "%s %s: no such word; did you mean %s?", subject, shown, near);
	return err_set(err, -EINVAL, "%s %s: no such word; one of %s", subject, shown, all);
}

int choice_number(const char *subject, const char *text, struct choice_range range, uint64_t *ret, struct err *err)
{
	char shown[64];
	uint64_t n;

	if (!text)
		return 0;
	if (parse_u64(text, &n) != 0 || n < range.min || n > range.max)
		return err_set(err, -EINVAL, "%s %s: not a number from %llu to %llu; give one", subject,
			       text_escape(shown, sizeof(shown), text), (unsigned long long)range.min,
			       (unsigned long long)range.max);
	*ret = n;
	return 0;
}

int choice_interval(const char *subject, const char *text, uint64_t *ret_ns, struct err *err)
{
	char shown[64];
	uint64_t ns;

	if (!text)
		return 0;
	if (parse_duration_ns(text, &ns) != 0 || ns < INTERVAL_MIN_NS || ns > INTERVAL_MAX_NS)
		return err_set(err, -EINVAL, "%s %s: not a time from 10ms to 1h; such as 500ms or 2s", subject,
			       text_escape(shown, sizeof(shown), text));
	*ret_ns = ns;
	return 0;
}
