/* SPDX-License-Identifier: Apache-2.0 */
/* Limits as a person writes them: "150W", "877MHz,1065MHz". */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../base/parse.h"
#include "record_limits.h"

#define WATTS_MAX 10000
#define MHZ_MAX 100000

/* text up to a unit that may be missing. */
static int number_with(const char *text, const char *unit, uint64_t max, uint32_t *ret)
{
	size_t n = strlen(text), u = strlen(unit);
	char digits[16];
	uint64_t v;

	if (n > u && strcmp(text + n - u, unit) == 0)
		n -= u;
	if (n >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, n);
	digits[n] = '\0';
	if (strspn(digits, "0123456789") != n || parse_u64(digits, &v) != 0 || !v || v > max)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

int record_setting_power(const char *text, struct record_setting *s, struct err *err)
{
	uint32_t watts;

	if (number_with(text, "W", WATTS_MAX, &watts) != 0)
		return err_set(err, -EINVAL, "--power-limit %.40s: no number of watts; write one such as 150", text);
	s->power_mw = watts * 1000;
	snprintf(s->name, sizeof(s->name), "%uW", watts);
	return 0;
}

int record_setting_clocks(const char *text, struct record_setting *s, struct err *err)
{
	char mem[24];
	const char *comma = strchr(text, ',');
	size_t n = comma ? (size_t)(comma - text) : sizeof(mem);

	if (n < sizeof(mem)) {
		memcpy(mem, text, n);
		mem[n] = '\0';
	}
	if (n >= sizeof(mem) || number_with(mem, "MHz", MHZ_MAX, &s->mem_mhz) != 0 ||
	    number_with(comma + 1, "MHz", MHZ_MAX, &s->gpu_mhz) != 0) {
		s->mem_mhz = s->gpu_mhz = 0;
		return err_set(err, -EINVAL, "--app-clocks %.40s: no pair of MHz; write MEMORY,GPU such as 877,1065",
			       text);
	}
	snprintf(s->name, sizeof(s->name), "%uMHz,%uMHz", s->mem_mhz, s->gpu_mhz);
	return 0;
}

int record_settings_sweep(const char *text, struct record_setting *list, unsigned *ret_n, struct err *err)
{
	char copy[RECORD_SETTINGS_MAX * sizeof(list->name)], *save = NULL;
	unsigned n = 0;
	int code = 0;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return err_set(err, -E2BIG, "--sweep: more than %d settings; make it two sweeps", RECORD_SETTINGS_MAX);
	for (char *word = strtok_r(copy, " ;\t\n", &save); word && !code; word = strtok_r(NULL, " ;\t\n", &save)) {
		if (n == RECORD_SETTINGS_MAX)
			return err_set(err, -E2BIG, "--sweep: more than %d settings; make it two sweeps",
				       RECORD_SETTINGS_MAX);
		list[n] = (struct record_setting){ 0 };
		code = strchr(word, ',') ? record_setting_clocks(word, &list[n], err) :
					   record_setting_power(word, &list[n], err);
		n += !code;
	}
	if (code || !n)
		return err_set(
			err, -EINVAL,
			"--sweep %.60s: write settings such as \"150W 200W 250W\" or \"877MHz,1065MHz 877MHz,1222MHz\"",
			text);
	*ret_n = n;
	return 0;
}
