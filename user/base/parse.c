/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "parse.h"

static int digit(char c, unsigned base)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (base == 16 && (c | 32) >= 'a' && (c | 32) <= 'f')
		return (c | 32) - 'a' + 10;
	return -1;
}

/* Takes digits up to the first other character, which *end then points to. */
static int take_digits(const char *s, unsigned base, uint64_t *ret, const char **end)
{
	uint64_t v = 0;
	int d;

	if (digit(*s, base) < 0)
		return -EINVAL;
	for (; (d = digit(*s, base)) >= 0; s++)
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) || __builtin_add_overflow(v, (uint64_t)d, &v))
			return -ERANGE;
	*ret = v;
	*end = s;
	return 0;
}

int parse_u64(const char *s, uint64_t *ret)
{
	unsigned base = s[0] == '0' && (s[1] | 32) == 'x' ? 16 : 10;
	const char *end;
	uint64_t v;
	int rc;

	rc = take_digits(base == 16 ? s + 2 : s, base, &v, &end);
	if (rc)
		return rc;
	if (*end)
		return -EINVAL;
	*ret = v;
	return 0;
}

int parse_i64(const char *s, int64_t *ret)
{
	bool minus = *s == '-';
	uint64_t v;
	int rc;

	rc = parse_u64(s + minus, &v);
	if (rc)
		return rc;
	if (v > (uint64_t)INT64_MAX + minus)
		return -ERANGE;
	*ret = minus ? (int64_t)-v : (int64_t)v;
	return 0;
}

static locale_t c_locale;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* strtod takes the decimal point of the user's locale; files and sysfs always have a dot. */
int parse_double(const char *s, double *ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char *end;
	double v;

	if (!*s || s[strspn(s, "0123456789+-.eE")])
		return -EINVAL;
	pthread_once(&once, make_c_locale);
	if (!c_locale)
		return -ENOMEM;
	v = strtod_l(s, &end, c_locale);
	if (*end || end == s)
		return -EINVAL;
	if (!isfinite(v))
		return -ERANGE;
	*ret = v;
	return 0;
}

/* Units of digits[.digits]UNIT, which is count * unit, rounded down; the fraction may have nine digits. */
struct unit {
	const char *name;
	uint64_t factor;
};

static int parse_with_unit(const char *s, const struct unit *units, uint64_t *ret)
{
	uint64_t whole, fraction = 0, scale = 1;
	unsigned __int128 v;
	int rc;

	rc = take_digits(s, 10, &whole, &s);
	if (rc)
		return rc;
	if (*s == '.') {
		if (digit(*++s, 10) < 0)
			return -EINVAL;
		for (; digit(*s, 10) >= 0; s++) {
			if (scale == 1000000000)
				return -EINVAL;
			fraction = fraction * 10 + (uint64_t)digit(*s, 10);
			scale *= 10;
		}
	}
	while (units->name && strcmp(units->name, s) != 0)
		units++;
	if (!units->name)
		return -EINVAL;
	v = (unsigned __int128)whole * units->factor + (unsigned __int128)fraction * units->factor / scale;
	if (v > UINT64_MAX)
		return -ERANGE;
	*ret = (uint64_t)v;
	return 0;
}

int parse_duration_ns(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {
		{ "ns", 1 },
		{ "us", 1000 },
		{ "ms", 1000000 },
		{ "s", 1000000000ull },
		{ "m", 60000000000ull },
		{ "h", 3600000000000ull },
		{ "d", 86400000000000ull },
		{ NULL, 0 },
	};

	return parse_with_unit(s, units, ret);
}

int parse_bytes(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "kB", 1000 },
		{ "KB", 1000 },
		{ "MB", 1000000 },
		{ "GB", 1000000000 },
		{ "KiB", 1ull << 10 },
		{ "MiB", 1ull << 20 },
		{ "GiB", 1ull << 30 },
		{ "TiB", 1ull << 40 },
		{ NULL, 0 },
	};

	return parse_with_unit(s, units, ret);
}

/* One pass over the list; bits NULL only checks. */
static int walk_cpulist(const char *s, uint8_t *bits, size_t n)
{
	int set = 0;

	while (*s) {
		uint64_t first, last;
		int rc;

		rc = take_digits(s, 10, &first, &s);
		last = first;
		if (!rc && *s == '-')
			rc = take_digits(s + 1, 10, &last, &s);
		if (rc)
			return rc;
		if (last < first || (*s && (*s != ',' || !s[1])))
			return -EINVAL;
		if (last >= n)
			return -ERANGE;
		for (uint64_t i = first; bits && i <= last; i++) {
			set += !(bits[i / 8] >> i % 8 & 1);
			bits[i / 8] |= (uint8_t)(1 << i % 8);
		}
		s += *s == ',';
	}
	return set;
}

int parse_cpulist(const char *s, uint8_t *bits, size_t n)
{
	int rc = walk_cpulist(s, NULL, n);

	if (rc)
		return rc;
	memset(bits, 0, (n + 7) / 8);
	return walk_cpulist(s, bits, n);
}

bool parse_bool(const char *s, bool *ret)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(s, words[i]) == 0) {
			*ret = i & 1;
			return true;
		}
	return false;
}
