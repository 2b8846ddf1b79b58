// SPDX-License-Identifier: GPL-2.0-only
/* What the cores of the machine are: small ones, told by the capacity that the scheduler of other architectures tells;
 * and how long all CPUs of a package were idle at once. */
#include <linux/cpu.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/topology.h>
#include "simpmu.h"

#define PACKAGES 8
#define SMALL_CAPACITY 446

static ulong small; /* bit per CPU */
static DEFINE_MUTEX(small_lock);
static DEFINE_RAW_SPINLOCK(sleep_lock);
static struct {
	u32 awake;
	u64 since_ns, asleep_ns, exits;
} packages[PACKAGES];

bool sim_is_small(int cpu)
{
	return cpu < BITS_PER_LONG && READ_ONCE(small) >> cpu & 1;
}

static ssize_t cpu_capacity_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", sim_is_small(dev->id) ? SMALL_CAPACITY : 1024);
}

static DEVICE_ATTR_RO(cpu_capacity);

static int show_capacity(bool on)
{
	int cpu, err = 0;

	for_each_possible_cpu(cpu)
	{
		struct device *dev = get_cpu_device(cpu);

		if (dev && on && !err)
			err = device_create_file(dev, &dev_attr_cpu_capacity);
		else if (dev && !on)
			device_remove_file(dev, &dev_attr_cpu_capacity);
	}
	return err;
}

/* Files of capacity are there while some core is small. */
static int set_small(const char *val, const struct kernel_param *kp)
{
	ulong v;
	int err = kstrtoul(val, 0, &v);

	if (err)
		return err;
	mutex_lock(&small_lock);
	simpmu_settle();
	if (!small != !v)
		err = show_capacity(v != 0);
	if (!err)
		WRITE_ONCE(small, v);
	mutex_unlock(&small_lock);
	return err;
}

static const struct kernel_param_ops small_ops = { .set = set_small, .get = param_get_ulong };
module_param_cb(small, &small_ops, &small, 0644);

bool sim_sleep_set(struct sim_cpu *c, bool awake, u64 now)
{
	int package = topology_physical_package_id(c->cpu);
	unsigned long flags;
	bool woke = false;

	if (package < 0 || package >= PACKAGES)
		return false;
	raw_spin_lock_irqsave(&sleep_lock, flags);
	if (awake && !c->awake && !packages[package].awake++) {
		packages[package].asleep_ns += max(now, packages[package].since_ns) - packages[package].since_ns;
		packages[package].exits++;
		woke = true;
	} else if (!awake && c->awake && !--packages[package].awake) {
		packages[package].since_ns = now;
	}
	c->awake = awake;
	raw_spin_unlock_irqrestore(&sleep_lock, flags);
	return woke;
}

void simpmu_package_sleep(int package, u64 now, u64 *ret_asleep_ns, u64 *ret_exits)
{
	unsigned long flags;

	*ret_asleep_ns = *ret_exits = 0;
	if (package < 0 || package >= PACKAGES)
		return;
	raw_spin_lock_irqsave(&sleep_lock, flags);
	*ret_asleep_ns = packages[package].asleep_ns;
	*ret_exits = packages[package].exits;
	if (!packages[package].awake && now > packages[package].since_ns)
		*ret_asleep_ns += now - packages[package].since_ns;
	raw_spin_unlock_irqrestore(&sleep_lock, flags);
}
EXPORT_SYMBOL_GPL(simpmu_package_sleep);

void sim_machine_begin(u64 now)
{
	int i;

	for (i = 0; i < PACKAGES; i++)
		packages[i].since_ns = now;
}

void sim_machine_end(void)
{
	if (small)
		show_capacity(false);
}
