// SPDX-License-Identifier: GPL-2.0-only
/* Parameters. */
#include <linux/module.h>
#include <linux/suspend.h>
#include "simpmu.h"
#include "simrapl.h"

struct rapl_settings settings = {
	.busy_mw = 1500,
	.instruction_pj = 1000,
	.reference_pj = 2000,
	.miss_pj = 20000,
	.class_permille = { 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000 },
	.idle_mw = { [RAPL_CORE] = 1000, [RAPL_UNCORE] = 500, [RAPL_PACKAGE] = 4000, [RAPL_DRAM] = 800, [RAPL_PSYS] = 3000 },
	.smt_permille = 2000,
	.small_permille = 1000,
	.first_waker_pays = true,
	.leak_ms = 5000,
	.quantum_us = 1000,
	.esu = 14,
	.msr = true,
};

static bool powercap = true, perf = true, ready;
static uint domains = 31, packages, dies = 1, seed = 1;
static ulong start_uj = 1000000;
static DEFINE_MUTEX(write_lock);

/* Everything until now happened under the old value. */
static int set_settled(const char *val, const struct kernel_param *kp,
		       int (*set)(const char *, const struct kernel_param *))
{
	int err;

	mutex_lock(&write_lock);
	if (ready)
		model_settle();
	err = set(val, kp);
	simpmu_set_neighbours(settings.saturate_permille != 0);
	mutex_unlock(&write_lock);
	return err;
}

static int set_uint(const char *val, const struct kernel_param *kp)
{
	return set_settled(val, kp, param_set_uint);
}

static int set_int(const char *val, const struct kernel_param *kp)
{
	return set_settled(val, kp, param_set_int);
}

static int set_flag(const char *val, const struct kernel_param *kp)
{
	return set_settled(val, kp, param_set_bool);
}

static const struct kernel_param_ops uint_ops = { .set = set_uint, .get = param_get_uint };
static const struct kernel_param_ops int_ops = { .set = set_int, .get = param_get_int };
static const struct kernel_param_ops flag_ops = { .set = set_flag, .get = param_get_bool };
#define NUMBER(name) module_param_cb(name, &uint_ops, &settings.name, 0644)
#define SIGNED(name) module_param_cb(name, &int_ops, &settings.name, 0644)
#define FLAG(name) module_param_cb(name, &flag_ops, &settings.name, 0644)
#define IDLE(name, kind) module_param_cb(name, &uint_ops, &settings.idle_mw[kind], 0644)

NUMBER(busy_mw);
NUMBER(cycle_pj);
NUMBER(instruction_pj);
NUMBER(hidden_pj);
NUMBER(reference_pj);
NUMBER(miss_pj);
SIGNED(square_permille);
SIGNED(saturate_permille);
NUMBER(smt_permille);
NUMBER(small_permille);
NUMBER(exit_nj);
NUMBER(sleep_mw);
NUMBER(sleep_exit_nj);
FLAG(first_waker_pays);
NUMBER(queue_permille);
NUMBER(leak_permille);
NUMBER(leak_ms);
IDLE(core_idle_mw, RAPL_CORE);
IDLE(uncore_idle_mw, RAPL_UNCORE);
IDLE(package_idle_mw, RAPL_PACKAGE);
IDLE(dram_idle_mw, RAPL_DRAM);
IDLE(psys_idle_mw, RAPL_PSYS);
NUMBER(noise_permille);
NUMBER(quantum_us);
FLAG(stop);
FLAG(freeze);
FLAG(err);
FLAG(resume_reset);
FLAG(msr);
module_param_named(esu, settings.esu, uint, 0444);
module_param_named(range_uj, settings.range_uj, uint, 0444);
module_param_named(mirror, settings.mirror, bool, 0444);
module_param_array_named(step_permille, settings.step_permille, uint, NULL, 0644);
module_param_array_named(step_mv, settings.step_mv, uint, &settings.n_steps, 0644);
module_param_array_named(class_permille, settings.class_permille, uint, NULL, 0644);
module_param(powercap, bool, 0444);
module_param(perf, bool, 0444);
module_param(dies, uint, 0444);
module_param(domains, uint, 0444);
module_param(packages, uint, 0444);
module_param(start_uj, ulong, 0444);

static int set_seed(const char *val, const struct kernel_param *kp)
{
	int err = param_set_uint(val, kp);

	if (!err)
		model_seed(seed);
	return err;
}

static const struct kernel_param_ops seed_ops = { .set = set_seed, .get = param_get_uint };
module_param_cb(seed, &seed_ops, &seed, 0644);

static int set_inject(const char *val, const struct kernel_param *kp)
{
	int err = ready ? 0 : -EINVAL;

	while (!err && val) {
		err = model_inject(val);
		val = strchr(val, ',');
		if (val)
			val++;
	}
	return err;
}

static const struct kernel_param_ops inject_ops = { .set = set_inject };
module_param_cb(inject, &inject_ops, NULL, 0200);

static int on_sleep(struct notifier_block *nb, unsigned long what, void *unused)
{
	if (what == PM_POST_SUSPEND && settings.resume_reset)
		model_reset_counters();
	return NOTIFY_OK;
}

static struct notifier_block sleep_block = { .notifier_call = on_sleep };

static int open_doors(void)
{
	int err = powercap ? zones_register() : 0;

	if (err)
		return err;
	err = perf ? power_pmu_register() : 0;
	if (err)
		goto out_zones;
	err = msr_register();
	if (!err)
		return 0;
	if (perf)
		power_pmu_unregister();
out_zones:
	if (powercap)
		zones_unregister();
	return err;
}

static int __init simrapl_init(void)
{
	int err = settings.esu > 31 || settings.range_uj > S32_MAX || packages > RAPL_UNITS ? -EINVAL : 0;

	if (!err)
		err = model_init(packages, dies, domains, start_uj);
	if (err)
		return err;
	model_seed(seed);
	simpmu_set_charge(model_charge);
	ready = true;
	err = proc_publish();
	if (err)
		goto out_charge;
	err = register_pm_notifier(&sleep_block);
	if (err)
		goto out_proc;
	err = open_doors();
	if (!err)
		return 0;
	unregister_pm_notifier(&sleep_block);
out_proc:
	proc_hide();
out_charge:
	simpmu_set_charge(NULL);
	return err;
}

static void __exit simrapl_exit(void)
{
	msr_unregister();
	if (perf)
		power_pmu_unregister();
	if (powercap)
		zones_unregister();
	unregister_pm_notifier(&sleep_block);
	proc_hide();
	simpmu_set_neighbours(false);
	simpmu_set_charge(NULL);
}

module_init(simrapl_init);
module_exit(simrapl_exit);
MODULE_DESCRIPTION("Simulated RAPL: powercap, perf and registers over one energy model");
MODULE_LICENSE("GPL");
