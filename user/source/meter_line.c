// SPDX-License-Identifier: Apache-2.0
/* Lines of a command or FIFO: words dNcM=VALUE, watts unless a unit follows (uW, mW, W, kW). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "../base/parse.h"
#include "meter_internal.h"

#define WORD_MAX 48

static bool unit_of(const char *unit, double *ret)
{
	static const struct {
		const char *name;
		double watts;
	} units[] = {
		{ "", 1 }, { "W", 1 }, { "mW", 1e-3 }, { "uW", 1e-6 }, { "kW", 1e3 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name) != 0)
			continue;
		*ret = units[i].watts;
		return true;
	}
	return false;
}

/* d0c0=12.5mW; the digits are one each, as the readers of the tree know them. */
static bool parse_word(char *word, struct meter_value *ret)
{
	char *number = word + 5, unit[WORD_MAX];
	size_t len;
	double value, scale;

	if (word[0] != 'd' || !isdigit((unsigned char)word[1]) || word[2] != 'c' || !isdigit((unsigned char)word[3]) ||
	    word[4] != '=')
		return false;
	len = strspn(number, "+-.0123456789eE");
	snprintf(unit, sizeof(unit), "%s", number + len);
	number[len] = '\0';
	if (!unit_of(unit, &scale) || parse_double(number, &value) != 0 || !meter_watts(value * scale, &ret->power_uw))
		return false;
	ret->device = (uint8_t)(word[1] - '0');
	ret->channel = (uint8_t)(word[3] - '0');
	return true;
}

unsigned meter_parse_line(const char *line, struct meter_value *ret, unsigned max)
{
	unsigned n = 0;

	while (*line && n < max) {
		char word[WORD_MAX];
		size_t len;

		line += strspn(line, " \t\r,;");
		len = strcspn(line, " \t\r,;");
		if (len && len < sizeof(word)) {
			memcpy(word, line, len);
			word[len] = '\0';
			n += parse_word(word, &ret[n]);
		}
		line += len;
	}
	return n;
}
