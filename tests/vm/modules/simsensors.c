// SPDX-License-Identifier: GPL-2.0-only
/* Energy sensors of machines without RAPL: hwmon chips and a powercap control type of another name, over channels of a
 * known power. See README. */
#include <linux/err.h>
#include <linux/hwmon.h>
#include <linux/hwmon-sysfs.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/powercap.h>
#include <linux/workqueue.h>

#define PJ_PER_UJ 1000000ull
#define AVERAGE_MS 200

enum channel { CORE0, CORE1, SOCKET, RAIL, MEMORY, CHANNELS };

static uint mw[CHANNELS];
static ulong start_uj[CHANNELS] = { 1000000, 1000000, 1000000, 0, 499000000 };
static ulong range_uj = 499999999; /* of the zone */
static bool hwmon = true, zones = true, freeze;
static u64 pj[CHANNELS], shown_pj[CHANNELS], average_pj, average_uw;
static ktime_t settled, averaged;
static DEFINE_MUTEX(lock);

/* Everything until now was drawn with the powers as they were. freeze: it is drawn, but no counter moves. */
static void settle(void)
{
	ktime_t now = ktime_get();
	u64 ns = ktime_to_ns(ktime_sub(now, settled));
	int i;

	for (i = 0; i < CHANNELS; i++) {
		pj[i] += ns * mw[i];
		if (!freeze)
			shown_pj[i] += ns * mw[i];
	}
	settled = now;
}

static int set_settled(const char *val, const struct kernel_param *kp)
{
	int err;

	mutex_lock(&lock);
	settle();
	err = kp->arg == &freeze ? param_set_bool(val, kp) : param_set_uint(val, kp);
	mutex_unlock(&lock);
	return err;
}

static int get_settled(char *buffer, const struct kernel_param *kp)
{
	return kp->arg == &freeze ? param_get_bool(buffer, kp) : param_get_uint(buffer, kp);
}

/* Energy drawn since the load, uJ, one number a channel. */
static int get_truth(char *buffer, const struct kernel_param *kp)
{
	int i, len = 0;

	mutex_lock(&lock);
	settle();
	for (i = 0; i < CHANNELS; i++)
		len += scnprintf(buffer + len, PAGE_SIZE - len, "%llu%c", div64_u64(pj[i], PJ_PER_UJ),
				 i + 1 < CHANNELS ? ' ' : '\n');
	mutex_unlock(&lock);
	return len;
}

static const struct kernel_param_ops settled_ops = { .set = set_settled, .get = get_settled };
static const struct kernel_param_ops truth_ops = { .get = get_truth };
module_param_cb(core0_mw, &settled_ops, &mw[CORE0], 0644);
module_param_cb(core1_mw, &settled_ops, &mw[CORE1], 0644);
module_param_cb(socket_mw, &settled_ops, &mw[SOCKET], 0644);
module_param_cb(rail_mw, &settled_ops, &mw[RAIL], 0644);
module_param_cb(memory_mw, &settled_ops, &mw[MEMORY], 0644);
module_param_cb(freeze, &settled_ops, &freeze, 0644);
module_param_cb(truth_uj, &truth_ops, NULL, 0444);
module_param(range_uj, ulong, 0444);
module_param(hwmon, bool, 0444);
module_param(zones, bool, 0444);
module_param_array(start_uj, ulong, NULL, 0444);

static u64 counter_uj(enum channel c)
{
	u64 uj;

	mutex_lock(&lock);
	settle();
	uj = start_uj[c] + div64_u64(shown_pj[c], PJ_PER_UJ);
	mutex_unlock(&lock);
	return uj;
}

/* Door 1: the chip amd_energy. */
static umode_t is_visible(const void *data, enum hwmon_sensor_types type, u32 attr, int channel)
{
	return 0444;
}

static int energy_read(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel, long *ret)
{
	*ret = counter_uj(channel);
	return 0;
}

static int energy_label(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel, const char **ret)
{
	static const char *const labels[] = { "Ecore000", "Ecore001", "Esocket0" };

	*ret = labels[channel];
	return 0;
}

static const struct hwmon_ops energy_ops = {
	.is_visible = is_visible,
	.read = energy_read,
	.read_string = energy_label,
};
#define COUNTER (HWMON_E_INPUT | HWMON_E_LABEL)
static const u32 energy_config[] = { COUNTER, COUNTER, COUNTER, 0 };
static const struct hwmon_channel_info energy_info = { .type = hwmon_energy, .config = energy_config };
/* newer kernels want the list const twice, older ones once */
static const struct hwmon_channel_info *energy_infos[] = { &energy_info, NULL };
static const struct hwmon_chip_info energy_chip = { .ops = &energy_ops, .info = energy_infos };

/* Door 2: an ACPI power meter, whose files are in the device below the chip: the average of the last whole interval. */
static void average(struct work_struct *work);
static DECLARE_DELAYED_WORK(averaging, average);

static void average(struct work_struct *work)
{
	u64 ns;

	mutex_lock(&lock);
	settle();
	ns = ktime_to_ns(ktime_sub(settled, averaged));
	if (ns)
		average_uw = div64_u64((pj[RAIL] - average_pj) * 1000, ns);
	average_pj = pj[RAIL];
	averaged = settled;
	mutex_unlock(&lock);
	schedule_delayed_work(&averaging, msecs_to_jiffies(AVERAGE_MS));
}

static ssize_t name_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sprintf(buf, "power_meter\n");
}

static ssize_t power1_oem_info_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sprintf(buf, "CPU Power Socket 1\n");
}

static ssize_t power1_average_interval_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sprintf(buf, "%d\n", AVERAGE_MS);
}

static ssize_t power1_average_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	u64 uw;

	mutex_lock(&lock);
	uw = average_uw;
	mutex_unlock(&lock);
	return sprintf(buf, "%llu\n", uw);
}

static DEVICE_ATTR_RO(name);
static DEVICE_ATTR_RO(power1_oem_info);
static DEVICE_ATTR_RO(power1_average_interval);
static DEVICE_ATTR_RO(power1_average);
static struct attribute *meter_attrs[] = { &dev_attr_name.attr, &dev_attr_power1_oem_info.attr,
					   &dev_attr_power1_average_interval.attr, &dev_attr_power1_average.attr,
					   NULL };
static const struct attribute_group meter_group = { .attrs = meter_attrs };

/* Door 3: zones of control type "arm-scmi". */
static struct powercap_control_type *control;
static struct powercap_zone memory_zone, board_zone;
static bool has_memory, has_board;

static int zone_energy(struct powercap_zone *zone, u64 *ret)
{
	u64 uj = counter_uj(MEMORY);

	div64_u64_rem(uj, range_uj + 1ull, ret);
	return 0;
}

static int zone_range(struct powercap_zone *zone, u64 *ret)
{
	*ret = range_uj;
	return 0;
}

/* The board draws what all channels do. */
static int zone_power(struct powercap_zone *zone, u64 *ret)
{
	int i;

	for (i = 0, *ret = 0; i < CHANNELS; i++)
		*ret += mw[i] * 1000ull;
	return 0;
}

static int zone_set_enable(struct powercap_zone *zone, bool on)
{
	return 0;
}

static int zone_get_enable(struct powercap_zone *zone, bool *ret)
{
	*ret = true;
	return 0;
}

static int zone_release(struct powercap_zone *zone)
{
	return 0;
}

static const struct powercap_zone_ops counting = {
	.get_max_energy_range_uj = zone_range,
	.get_energy_uj = zone_energy,
	.set_enable = zone_set_enable,
	.get_enable = zone_get_enable,
	.release = zone_release,
};
static const struct powercap_zone_ops powering = {
	.get_max_power_range_uw = zone_range,
	.get_power_uw = zone_power,
	.set_enable = zone_set_enable,
	.get_enable = zone_get_enable,
	.release = zone_release,
};

static int limit_set(struct powercap_zone *zone, int id, u64 value)
{
	return 0;
}

static int limit_get(struct powercap_zone *zone, int id, u64 *ret)
{
	*ret = 1000000;
	return 0;
}

static const char *limit_name(struct powercap_zone *zone, int id)
{
	return "sustained";
}

static const struct powercap_zone_constraint_ops limits = {
	.set_power_limit_uw = limit_set,
	.get_power_limit_uw = limit_get,
	.set_time_window_us = limit_set,
	.get_time_window_us = limit_get,
	.get_name = limit_name,
};

static void zones_remove(void)
{
	if (has_memory)
		powercap_unregister_zone(control, &memory_zone);
	if (has_board)
		powercap_unregister_zone(control, &board_zone);
	powercap_unregister_control_type(control);
}

static int zones_add(void)
{
	control = powercap_register_control_type(NULL, "arm-scmi", NULL);
	if (IS_ERR(control))
		return PTR_ERR(control);
	has_board = !IS_ERR(powercap_register_zone(&board_zone, control, "board", NULL, &powering, 1, &limits));
	has_memory = has_board &&
		     !IS_ERR(powercap_register_zone(&memory_zone, control, "DDR", &board_zone, &counting, 1, &limits));
	if (has_memory)
		return 0;
	zones_remove();
	return -EIO;
}

static struct platform_device *energy_dev, *meter_dev;
static struct device *energy_hwmon, *meter_hwmon;

static int chips_add(void)
{
	int err;

	energy_dev = platform_device_register_simple("simsensors-energy", -1, NULL, 0);
	if (IS_ERR(energy_dev))
		return PTR_ERR(energy_dev);
	meter_dev = platform_device_register_simple("simsensors-meter", -1, NULL, 0);
	err = PTR_ERR_OR_ZERO(meter_dev);
	if (err)
		goto out_energy;
	err = sysfs_create_group(&meter_dev->dev.kobj, &meter_group);
	if (err)
		goto out_meter;
	energy_hwmon = hwmon_device_register_with_info(&energy_dev->dev, "amd_energy", NULL, &energy_chip, NULL);
	err = PTR_ERR_OR_ZERO(energy_hwmon);
	if (err)
		goto out_group;
	meter_hwmon = hwmon_device_register(&meter_dev->dev); /* the old kind, as acpi_power_meter had it */
	err = PTR_ERR_OR_ZERO(meter_hwmon);
	if (!err)
		return 0;
	hwmon_device_unregister(energy_hwmon);
out_group:
	sysfs_remove_group(&meter_dev->dev.kobj, &meter_group);
out_meter:
	platform_device_unregister(meter_dev);
out_energy:
	platform_device_unregister(energy_dev);
	return err;
}

static void chips_remove(void)
{
	hwmon_device_unregister(meter_hwmon);
	hwmon_device_unregister(energy_hwmon);
	sysfs_remove_group(&meter_dev->dev.kobj, &meter_group);
	platform_device_unregister(meter_dev);
	platform_device_unregister(energy_dev);
}

static int __init simsensors_init(void)
{
	int err;

	settled = averaged = ktime_get();
	err = hwmon ? chips_add() : 0;
	if (err)
		return err;
	err = zones ? zones_add() : 0;
	if (err && hwmon)
		chips_remove();
	if (!err)
		schedule_delayed_work(&averaging, 0);
	return err;
}

static void __exit simsensors_exit(void)
{
	cancel_delayed_work_sync(&averaging);
	if (zones)
		zones_remove();
	if (hwmon)
		chips_remove();
}

module_init(simsensors_init);
module_exit(simsensors_exit);
MODULE_DESCRIPTION("Simulated hwmon and powercap sensors with known energy");
MODULE_LICENSE("GPL");
