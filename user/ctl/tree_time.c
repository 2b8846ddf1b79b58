/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include "tree_csv.h"

/* Exactly n digits; -1 = there are not. */
static int digits(const char **s, unsigned n)
{
	int v = 0;

	for (; n; n--, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return -1;
		v = v * 10 + (**s - '0');
	}
	return v;
}

static int field(const char **s, char before, unsigned n, int min, int max)
{
	int v;

	if (before && *(*s)++ != before)
		return -1;
	v = digits(s, n);
	return v < min || v > max ? -1 : v;
}

/* Z, +hh:mm or nothing; what it is ahead of UTC in seconds. */
static int zone(const char *s, bool *ret_zoned, int *ret_ahead_s)
{
	int sign = *s == '-' ? -1 : 1, hours, minutes;

	*ret_zoned = *s != '\0';
	*ret_ahead_s = 0;
	if (!*s || strcmp(s, "Z") == 0)
		return 0;
	if (*s != '+' && *s != '-')
		return -EINVAL;
	s++;
	hours = field(&s, '\0', 2, 0, 23);
	minutes = hours < 0 ? -1 : field(&s, ':', 2, 0, 59);
	if (minutes < 0 || *s)
		return -EINVAL;
	*ret_ahead_s = sign * (hours * 3600 + minutes * 60);
	return 0;
}

static int clock_time(const char **s, struct tm *tm)
{
	tm->tm_hour = field(s, '\0', 2, 0, 23);
	tm->tm_min = tm->tm_hour < 0 ? -1 : field(s, ':', 2, 0, 59);
	tm->tm_sec = tm->tm_min < 0 ? -1 : field(s, ':', 2, 0, 59);
	return tm->tm_sec < 0 ? -EINVAL : 0;
}

static int date(const char **s, struct tm *tm)
{
	static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	/* 64 bits of nanoseconds end in 2262 */
	tm->tm_year = field(s, '\0', 4, 1970, 2261) - 1900;
	tm->tm_mon = tm->tm_year < 0 ? -1 : field(s, '-', 2, 1, 12) - 1;
	tm->tm_mday = tm->tm_mon < 0 ? -1 : field(s, '-', 2, 1, 31);
	return tm->tm_mday < 0 || tm->tm_mday > days[tm->tm_mon] ? -EINVAL : 0;
}

int tree_parse_time(const char *s, int64_t *ret_ns, unsigned *ret_digits, bool *ret_zoned)
{
	struct tm tm = { 0 };
	int64_t fraction = 0;
	unsigned n = 0;
	int ahead_s;
	bool zoned;

	if (date(&s, &tm) || (*s != ' ' && *s != 'T'))
		return -EINVAL;
	s++;
	if (clock_time(&s, &tm))
		return -EINVAL;
	if (*s == '.')
		for (s++; isdigit((unsigned char)*s); s++, n++)
			if (n < 9)
				fraction = fraction * 10 + (*s - '0');
	for (unsigned i = n; i < 9; i++)
		fraction *= 10;
	if (zone(s, &zoned, &ahead_s))
		return -EINVAL;
	*ret_ns = ((int64_t)timegm(&tm) - ahead_s) * 1000000000 + fraction;
	*ret_digits = n;
	*ret_zoned = zoned;
	return 0;
}
