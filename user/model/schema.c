/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"

const char *quality_name(unsigned quality)
{
	/* Worst first: one word has to stand for the set. */
	static const struct {
		unsigned flag;
		const char *name;
	} words[] = {
		{ QUALITY_LOST, "lost" },
		{ QUALITY_PARTIAL, "partial" },
		{ QUALITY_STALE, "stale" },
		{ QUALITY_ESTIMATED, "estimated" },
		{ QUALITY_MULTIPLEXED, "multiplexed" },
		{ QUALITY_WRAPPED, "wrapped" },
	};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (quality & words[i].flag)
			return words[i].name;
	return "measured";
}

const char *domain_kind_name(enum domain_kind kind)
{
	static const char *const names[DOMAIN_KINDS] = {
		[DOMAIN_PACKAGE] = "package",   [DOMAIN_CORE] = "core", [DOMAIN_UNCORE] = "uncore",
		[DOMAIN_DRAM] = "dram",         [DOMAIN_PSYS] = "psys", [DOMAIN_GPU] = "gpu",
		[DOMAIN_EXTERNAL] = "external",
	};

	return (unsigned)kind < DOMAIN_KINDS ? names[kind] : "unknown";
}

const char *energy_interface_name(enum energy_interface i)
{
	static const char *const names[] = {
		[ENERGY_NONE] = "none", [ENERGY_POWERCAP] = "powercap", [ENERGY_PERF] = "perf",
		[ENERGY_MSR] = "msr",   [ENERGY_ESTIMATE] = "estimate", [ENERGY_REPLAY] = "replay",
		[ENERGY_NVML] = "nvml", [ENERGY_HWMON] = "hwmon",       [ENERGY_METER] = "meter",
		[ENERGY_HOST] = "host",
	};

	return (unsigned)i < sizeof(names) / sizeof(names[0]) ? names[i] : "unknown";
}
