// SPDX-License-Identifier: GPL-2.0-only
/* Door 3: registers. Both /dev/cpu/N/msr and the kernel's intel_rapl_msr read by rdmsr_safe_on_cpu
 * and its 64-bit sister (arch/x86/lib/msr-smp.c); a probe at their entry answers for the RAPL ones.
 *
 * It returns for them by pointing ip at a function that only returns: that takes the caller's return
 * address from the stack as the real one would have, shadow or not. Where the probe sits on ftrace,
 * only one with a post_handler may change ip (kernel/kprobes.c, IPMODIFY). */
#include <linux/kprobes.h>
#include <linux/module.h>
#include "simrapl.h"

#define INTEL_UNIT 0x606
#define AMD_UNIT 0xc0010299
#define AMD_CORE 0xc001029a
#define AMD_PACKAGE 0xc001029b
#define PACKAGE_LIMIT 0x610
#define PACKAGE_INFO 0x614
#define REAL (-1)

static const struct {
	u32 reg;
	u8 kind;
} counters[] = {
	{ 0x611, RAPL_PACKAGE }, { 0x639, RAPL_CORE }, { 0x641, RAPL_UNCORE },
	{ 0x619, RAPL_DRAM },    { 0x64d, RAPL_PSYS }, { AMD_PACKAGE, RAPL_PACKAGE },
};

static noinline int answer(void)
{
	return 0;
}

static noinline int refuse(void)
{
	return -EIO;
}

static int read_domain(struct rapl_unit *u, enum rapl_kind kind, u64 *ret)
{
	if (!u->domain[kind].exists)
		return -EIO;
	*ret = model_raw(model_counter_pj(&u->domain[kind], DOOR_MSR)) & U32_MAX;
	return 0;
}

/* 0, -EIO, or REAL: not ours. */
static int read_register(struct rapl_unit *u, int cpu, u32 reg, u64 *ret)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		if (counters[i].reg == reg)
			return read_domain(u, counters[i].kind, ret);
	}
	switch (reg) {
	case INTEL_UNIT:
	case AMD_UNIT:
		*ret = 0xa0003 | (u64)settings.esu << 8; /* 2^-10 s, 2^-3 W as on most */
		return 0;
	case AMD_CORE:
		if (!u->domain[RAPL_CORE].exists)
			return -EIO;
		*ret = model_raw(model_core_counter_pj(cpu)) & U32_MAX;
		return 0;
	case PACKAGE_LIMIT:
		*ret = 0x0042816800dd8320; /* two limits, enabled */
		return 0;
	case PACKAGE_INFO:
		*ret = 0x00000320; /* 100 W */
		return 0;
	}
	return REAL;
}

static int pretend(struct pt_regs *regs, u64 *ret)
{
	int cpu = (int)regs->di, err;
	struct rapl_unit *u = cpu >= 0 && cpu < nr_cpu_ids && cpu_online(cpu) ? model_unit_of(cpu) : NULL;

	err = settings.msr && u ? read_register(u, cpu, (u32)regs->si, ret) : REAL;
	if (err == REAL)
		return REAL;
	if (settings.err)
		err = -EIO;
	regs->ip = (unsigned long)(err ? refuse : answer);
	return err;
}

/* (cpu, register, u32 *low, u32 *high) */
static int before32(struct kprobe *p, struct pt_regs *regs)
{
	u64 value = 0;
	int err = pretend(regs, &value);

	if (err == REAL)
		return 0;
	if (!err) {
		*(u32 *)regs->dx = (u32)value;
		*(u32 *)regs->cx = (u32)(value >> 32);
	}
	return 1;
}

/* (cpu, register, u64 *value) */
static int before64(struct kprobe *p, struct pt_regs *regs)
{
	u64 value = 0;
	int err = pretend(regs, &value);

	if (err == REAL)
		return 0;
	if (!err)
		*(u64 *)regs->dx = value;
	return 1;
}

static void after(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe probe32 = { .symbol_name = "rdmsr_safe_on_cpu", .pre_handler = before32, .post_handler = after };
static struct kprobe probe64 = { .symbol_name = "rdmsrl_safe_on_cpu", .pre_handler = before64, .post_handler = after };

int msr_register(void)
{
	int err = register_kprobe(&probe32);

	if (err)
		return err;
	err = register_kprobe(&probe64);
	if (err)
		unregister_kprobe(&probe32);
	return err;
}

void msr_unregister(void)
{
	unregister_kprobe(&probe64);
	unregister_kprobe(&probe32);
}
