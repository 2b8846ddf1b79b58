// SPDX-License-Identifier: Apache-2.0
/* What plugs answer. Shelly of the first generation: meters[].power, emeters[].power; of later ones: objects with apower
 * (switches, PM) or act_power (EM1), or a_act_power to c_act_power (EM). Tasmota: ENERGY.Power, a number or a list of them; old
 * firmware: StatusPWR.Power. All in watts. */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include "meter_internal.h"

struct found {
	int64_t *uw;
	unsigned n, known, max;
};

static void take(struct found *f, const json_t *v)
{
	if (f->n == f->max)
		return;
	f->uw[f->n] = METER_NO_VALUE;
	f->known += json_is_number(v) && meter_watts(json_number_value(v), &f->uw[f->n]);
	f->n++;
}

/* An element may say of itself that its measurement failed (is_valid, first generation). */
static void take_list(struct found *f, const json_t *list)
{
	const json_t *element;
	size_t i;

	json_array_foreach(list, i, element) {
		bool object = json_is_object(element);

		take(f, !object                                             ? element :
			json_is_false(json_object_get(element, "is_valid")) ? NULL :
									      json_object_get(element, "power"));
	}
}

static void take_component(struct found *f, const json_t *o)
{
	static const char *const names[] = { "apower", "act_power", "a_act_power", "b_act_power", "c_act_power" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_object_get(o, names[i]))
			take(f, json_object_get(o, names[i]));
}

static int finish(json_t *root, const struct found *f)
{
	json_decref(root);
	return f->known ? (int)f->n : -EBADMSG;
}

int meter_shelly_parse(const char *text, size_t n, int64_t *ret_uw, unsigned max)
{
	json_t *root = json_loadb(text, n, 0, NULL), *o;
	struct found f = { ret_uw, 0, 0, max };
	const char *key;

	if (!json_is_object(root))
		return finish(root, &f);
	take_list(&f, json_object_get(root, "emeters"));
	if (!f.n)
		take_list(&f, json_object_get(root, "meters"));
	if (!f.n)
		take_component(&f, root);
	if (!f.n)
		json_object_foreach(root, key, o)
			if (json_is_object(o))
				take_component(&f, o);
	return finish(root, &f);
}

int meter_tasmota_parse(const char *text, size_t n, int64_t *ret_uw, unsigned max)
{
	json_t *root = json_loadb(text, n, 0, NULL);
	struct found f = { ret_uw, 0, 0, max };
	const json_t *power = json_object_get(json_object_get(json_object_get(root, "StatusSNS"), "ENERGY"), "Power");

	if (!power)
		power = json_object_get(json_object_get(root, "StatusPWR"), "Power");
	if (json_is_array(power))
		take_list(&f, power);
	else if (power)
		take(&f, power);
	return finish(root, &f);
}
