/* SPDX-License-Identifier: Apache-2.0 */
/* Instants as people write them. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "clock.h"
#include "instant.h"
#include "parse.h"

#define LATEST_S 9000000000ll /* the year 2255; nanoseconds of it fit 63 bits */

static int fraction(const char **at, int64_t *ret_ns)
{
	int64_t unit = NS_PER_S / 10, ns = 0;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	for (; isdigit((unsigned char)**at); ++*at, unit /= 10)
		ns += (**at - '0') * unit;
	*ret_ns = ns;
	return 0;
}

static int64_t digits(const char *s, unsigned n)
{
	int64_t v = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!isdigit((unsigned char)s[i]))
			return -1;
		v = v * 10 + (s[i] - '0');
	}
	return v;
}

/* "Z", "+01:00", "-08:30": seconds east of UTC. */
static int zone(const char *s, int64_t *ret_s)
{
	int64_t hours, minutes;

	if ((*s == 'Z' || *s == 'z') && !s[1]) {
		*ret_s = 0;
		return 0;
	}
	if ((*s != '+' && *s != '-') || strlen(s) != 6 || s[3] != ':')
		return -EINVAL;
	hours = digits(s + 1, 2);
	minutes = digits(s + 4, 2);
	if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
		return -EINVAL;
	*ret_s = (hours * 3600 + minutes * 60) * (*s == '-' ? -1 : 1);
	return 0;
}

/* RFC 3339, 5.6: YYYY-MM-DDThh:mm:ss[.fraction]zone. */
static int calendar(const char *s, int64_t *ret_ns)
{
	int64_t ns = 0, east_s = 0, seconds;
	struct tm tm = { 0 }, back;
	const char *at = s + 19;
	time_t t;

	if (strlen(s) < 20 || s[4] != '-' || s[7] != '-' || (s[10] != 'T' && s[10] != 't' && s[10] != ' ') ||
	    s[13] != ':' || s[16] != ':')
		return -EINVAL;
	tm.tm_year = (int)digits(s, 4) - 1900;
	tm.tm_mon = (int)digits(s + 5, 2) - 1;
	tm.tm_mday = (int)digits(s + 8, 2);
	tm.tm_hour = (int)digits(s + 11, 2);
	tm.tm_min = (int)digits(s + 14, 2);
	tm.tm_sec = (int)digits(s + 17, 2);
	if (tm.tm_year < 70 || tm.tm_year > 350 || tm.tm_mon < 0 || tm.tm_mday < 1 || tm.tm_hour < 0 ||
	    tm.tm_hour > 23 || tm.tm_min < 0 || tm.tm_min > 59 || tm.tm_sec < 0 || tm.tm_sec > 60)
		return -EINVAL;
	back = tm;
	t = timegm(&back);
	if (back.tm_mon != tm.tm_mon && tm.tm_sec != 60)
		return -EINVAL; /* the 31st of a month of 30 days */
	if (*at == '.') {
		at++;
		if (fraction(&at, &ns) != 0)
			return -EINVAL;
	}
	if (zone(at, &east_s) != 0)
		return -EINVAL;
	seconds = (int64_t)t - east_s;
	*ret_ns = seconds * (int64_t)NS_PER_S + ns;
	return 0;
}

static int unix_time(const char *s, int64_t *ret_ns)
{
	int64_t seconds = 0, ns = 0;
	const char *at = s;

	for (; isdigit((unsigned char)*at); at++) {
		seconds = seconds * 10 + (*at - '0');
		if (seconds > LATEST_S)
			return -EINVAL;
	}
	if (at == s)
		return -EINVAL;
	if (*at == '.') {
		at++;
		if (fraction(&at, &ns) != 0)
			return -EINVAL;
	}
	if (*at)
		return -EINVAL;
	*ret_ns = seconds * (int64_t)NS_PER_S + ns;
	return 0;
}

int instant_parse(const char *text, int64_t now_ns, int64_t *ret_ns)
{
	uint64_t ago;

	if (text[0] == '-') {
		if (parse_duration_ns(text + 1, &ago) != 0 || ago > INT64_MAX / 2)
			return -EINVAL;
		*ret_ns = now_ns - (int64_t)ago;
		return 0;
	}
	return strchr(text, ':') ? calendar(text, ret_ns) : unix_time(text, ret_ns);
}
