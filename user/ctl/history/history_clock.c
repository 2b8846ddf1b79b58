/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "history_clock.h"

static const json_t *residual_of(const json_t *doc)
{
	const json_t *series;
	size_t i;

	json_array_foreach(json_object_get(doc, "series"), i, series) {
		const char *row = json_string_value(json_object_get(series, "row"));

		if (row && strcmp(row, "residual") == 0)
			return json_object_get(series, "points");
	}
	return NULL;
}

/* [unix_ns, interval_ns, quality, [0, ...]] */
static json_t *without_energy(const json_t *point, size_t domains)
{
	json_t *nothing = json_array();

	for (size_t d = 0; nothing && d < domains; d++)
		if (json_array_append_new(nothing, json_integer(0)) != 0) {
			json_decref(nothing);
			return NULL;
		}
	return json_pack("[O?,O?,O?,o]", json_array_get(point, 0), json_array_get(point, 1), json_array_get(point, 2),
			 nothing);
}

int history_add_clock(json_t *doc, const json_t *machine)
{
	const size_t domains = json_array_size(json_object_get(doc, "domains"));
	const json_t *points = residual_of(machine), *point;
	json_t *times = json_array(), *series;
	bool failed = !times;
	size_t i;

	json_array_foreach(points, i, point)
		failed = failed || json_array_append_new(times, without_energy(point, domains)) != 0;
	series = failed ? NULL :
			  json_pack("{s:s,s:s,s:b,s:O}", "row", "residual", "cgroup", "residual", "clock", 1, "points",
				    times);
	json_decref(times);
	if (!points) {
		json_decref(series);
		return failed ? -ENOMEM : 0;
	}
	return json_array_append_new(json_object_get(doc, "series"), series) == 0 ? 0 : -ENOMEM;
}
