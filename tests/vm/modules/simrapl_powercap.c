// SPDX-License-Identifier: GPL-2.0-only
/* Door 1: zones of control type "intel-rapl" (drivers/powercap/powercap_sys.c). Two constraints that
 * do nothing: the core wants at least one with its four verbs. */
#include <linux/err.h>
#include <linux/powercap.h>
#include "simrapl.h"

static struct powercap_control_type *control;

static u64 unit_nj(void)
{
	return max(1000000000ull >> settings.esu, 1ull);
}

/* As intel_rapl_common.c counts: whole nanojoules a unit, cut to whole microjoules. */
static int get_energy(struct powercap_zone *zone, u64 *ret)
{
	struct rapl_domain *d = container_of(zone, struct rapl_domain, zone);
	u64 pj = model_counter_pj(d, DOOR_POWERCAP);

	if (settings.err)
		return -EIO;
	if (settings.range_uj)
		*ret = pj / PJ_PER_UJ % (settings.range_uj + 1ull);
	else
		*ret = (model_raw(pj) & U32_MAX) * unit_nj() / 1000;
	return 0;
}

static int get_range(struct powercap_zone *zone, u64 *ret)
{
	*ret = settings.range_uj ? settings.range_uj : U32_MAX * unit_nj() / 1000;
	return 0;
}

static int set_enable(struct powercap_zone *zone, bool on)
{
	return 0;
}

static int get_enable(struct powercap_zone *zone, bool *ret)
{
	*ret = true;
	return 0;
}

static int release(struct powercap_zone *zone)
{
	return 0;
}

static const struct powercap_zone_ops zone_ops = {
	.get_max_energy_range_uj = get_range,
	.get_energy_uj = get_energy,
	.set_enable = set_enable,
	.get_enable = get_enable,
	.release = release,
};

static int set_number(struct powercap_zone *zone, int id, u64 value)
{
	return 0;
}

static int get_number(struct powercap_zone *zone, int id, u64 *ret)
{
	*ret = 1000000;
	return 0;
}

static const char *get_name(struct powercap_zone *zone, int id)
{
	return id ? "short_term" : "long_term";
}

static const struct powercap_zone_constraint_ops constraint_ops = {
	.set_power_limit_uw = set_number,
	.get_power_limit_uw = get_number,
	.set_time_window_us = set_number,
	.get_time_window_us = get_number,
	.get_name = get_name,
};

static int add(struct rapl_domain *d, struct powercap_zone *parent)
{
	struct powercap_zone *zone;

	if (!d->exists)
		return 0;
	zone = powercap_register_zone(&d->zone, control, d->name, parent, &zone_ops, 2, &constraint_ops);
	d->has_zone = !IS_ERR(zone);
	return PTR_ERR_OR_ZERO(zone);
}

/* Order of registration is that of numbers: packages first, then theirs, as on hardware. */
int zones_register(void)
{
	static const enum rapl_kind children[] = { RAPL_CORE, RAPL_UNCORE, RAPL_DRAM };
	int i, k, err = 0;

	control = powercap_register_control_type(NULL, "intel-rapl", NULL);
	if (IS_ERR(control))
		return PTR_ERR(control);
	for (i = 0; i < rapl_n_units && !err; i++) {
		struct rapl_domain *package = &rapl_units[i].domain[RAPL_PACKAGE];

		err = add(package, NULL);
		for (k = 0; k < ARRAY_SIZE(children) && !err; k++)
			err = add(&rapl_units[i].domain[children[k]], package->exists ? &package->zone : NULL);
		if (!err)
			err = add(&rapl_units[i].domain[RAPL_PSYS], NULL);
	}
	if (err)
		zones_unregister();
	return err;
}

void zones_unregister(void)
{
	int i, k;

	/* children before their packages */
	for (i = 0; i < 2 * rapl_n_units; i++) {
		struct rapl_unit *u = &rapl_units[i / 2];

		for (k = 0; k < RAPL_KINDS; k++) {
			if ((k == RAPL_PACKAGE) == i % 2 && u->domain[k].has_zone)
				powercap_unregister_zone(control, &u->domain[k].zone);
		}
	}
	powercap_unregister_control_type(control);
}
