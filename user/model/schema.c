/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "base/format/fields.h"
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

const struct field_words quality_words = { quality_name, 6, true };

const char *event_source_word(enum event_kind kind)
{
	return kind == EVENT_TASK_CLOCK ? "CPU time" : event_of_switches(kind) ? "the switch program" : "perf";
}

unsigned quality_named(const char *word)
{
	if (word && strcmp(word, quality_name(QUALITY_MEASURED)) == 0)
		return QUALITY_MEASURED;
	for (unsigned bit = QUALITY_WRAPPED; word && bit <= QUALITY_LOST; bit <<= 1)
		if (strcmp(word, quality_name(bit)) == 0)
			return bit;
	return QUALITY_PARTIAL;
}

const char *domain_kind_name(enum domain_kind kind)
{
	static const char *const names[DOMAIN_KINDS] = {
		[DOMAIN_PACKAGE] = "package",   [DOMAIN_CORE] = "core", [DOMAIN_UNCORE] = "uncore",
		[DOMAIN_DRAM] = "dram",         [DOMAIN_PSYS] = "psys", [DOMAIN_GPU] = "gpu",
		[DOMAIN_EXTERNAL] = "external", [DOMAIN_WALL] = "wall",
	};

	return (unsigned)kind < DOMAIN_KINDS ? names[kind] : "unknown";
}

enum domain_kind domain_kind_of(const char *name)
{
	enum domain_kind k = 0;

	for (; k < DOMAIN_KINDS; k++) {
		size_t n = strlen(domain_kind_name(k));

		if (strncmp(name, domain_kind_name(k), n) == 0 &&
		    (!name[n] || (name[n] == '-' && name[n + 1] >= '0' && name[n + 1] <= '9')))
			break;
	}
	return k;
}

unsigned domain_kinds_summed(unsigned kinds)
{
	const unsigned beside = DOMAIN_BIT(DOMAIN_DRAM) | DOMAIN_BIT(DOMAIN_GPU);
	const unsigned parts = DOMAIN_BIT(DOMAIN_CORE) | DOMAIN_BIT(DOMAIN_UNCORE);

	if (kinds & DOMAIN_BIT(DOMAIN_PACKAGE))
		return kinds & (DOMAIN_BIT(DOMAIN_PACKAGE) | beside);
	if (kinds & DOMAIN_BIT(DOMAIN_PSYS))
		return DOMAIN_BIT(DOMAIN_PSYS);
	if (kinds & parts)
		return kinds & (parts | beside);
	if (kinds & DOMAIN_BIT(DOMAIN_EXTERNAL))
		return DOMAIN_BIT(DOMAIN_EXTERNAL);
	return kinds & beside ? kinds & beside : kinds & DOMAIN_BIT(DOMAIN_WALL);
}

unsigned schema_kinds_summed(const struct schema *s)
{
	unsigned kinds = 0;

	for (unsigned d = 0; d < s->n_domains; d++)
		kinds |= DOMAIN_BIT(s->domains[d].kind);
	return domain_kinds_summed(kinds);
}

bool schema_has_wall(const struct schema *s)
{
	for (unsigned d = 0; d < s->n_domains; d++)
		if (s->domains[d].kind == DOMAIN_WALL)
			return true;
	return false;
}

void domain_names_summed(const char *const *names, unsigned n, bool *ret)
{
	unsigned kinds = 0, summed;

	for (unsigned i = 0; i < n; i++)
		kinds |= DOMAIN_BIT(domain_kind_of(names[i]));
	summed = domain_kinds_summed(kinds);
	for (unsigned i = 0; i < n; i++)
		ret[i] = summed ? (summed & DOMAIN_BIT(domain_kind_of(names[i]))) != 0 : i == 0;
}

const char *energy_interface_name(enum energy_interface i)
{
	static const char *const names[] = {
		[ENERGY_NONE] = "none",
		[ENERGY_POWERCAP] = "powercap",
		[ENERGY_PERF] = "perf",
		[ENERGY_MSR] = "msr",
		[ENERGY_ESTIMATE] = "estimate",
		[ENERGY_REPLAY] = "replay",
		[ENERGY_NVML] = "nvml",
		[ENERGY_HWMON] = "hwmon",
		[ENERGY_METER] = "meter",
		[ENERGY_HOST] = "host",
		[ENERGY_CALIBRATION] = "calibration",
	};

	return (unsigned)i < sizeof(names) / sizeof(names[0]) ? names[i] : "unknown";
}

static bool has_cpu(const uint8_t *bits, unsigned cpu)
{
	return cpu < 1024 && bits[cpu / 8] >> cpu % 8 & 1;
}

int event_on_cpu(const struct event_desc *e, const struct event_variants *v, unsigned cpu, struct event_variant *ret)
{
	const bool several = v && v->n > 1;

	if (!several && (!e->cpus_only_known || has_cpu(e->cpus, cpu))) {
		*ret = (struct event_variant){
			.type = e->type, .config = e->config, .config1 = e->config1, .config2 = e->config2
		};
		memcpy(ret->cpus, e->cpus, sizeof(ret->cpus));
		return 0;
	}
	for (unsigned i = 0; several && i < v->n; i++) {
		if (has_cpu(v->v[i].cpus, cpu)) {
			*ret = v->v[i];
			return 0;
		}
	}
	return -ENODEV;
}
