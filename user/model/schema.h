/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of the columns of a reading and a snapshot: counters, CPUs, energy domains. Fixed for the life of the
 * process except CPUs online and domain quality, which each snapshot carries. */
#ifndef JD_SCHEMA_H
#define JD_SCHEMA_H
#include <stdbool.h>
#include <stdint.h>

#define SCHEMA_MAX_EVENTS 8
#define SCHEMA_MAX_MSR 8
#define SCHEMA_MAX_DOMAINS 64
#define SCHEMA_NAME_MAX 96
#define SCHEMA_CORE_TYPES 4 /* kinds of cores that are told apart */

/* Quality of a value: a set, empty = measured. quality_name() gives the worst one's word. */
enum quality {
	QUALITY_MEASURED = 0,
	QUALITY_WRAPPED = 1 << 0, /* a wrap was corrected; exact */
	QUALITY_MULTIPLEXED = 1 << 1, /* scaled: the event shared the PMU */
	QUALITY_ESTIMATED = 1 << 2,
	QUALITY_STALE = 1 << 3, /* the source did not answer; last good total repeated */
	QUALITY_PARTIAL = 1 << 4, /* part of the interval is missing */
	QUALITY_LOST = 1 << 5, /* there is no usable value */
};
const char *quality_name(unsigned quality); /* "measured" ... "lost" */
extern const struct field_words quality_words; /* for tables of fields */

/* The source of an event's counts. */
enum event_kind {
	EVENT_PERF, /* a perf event per CPU */
	EVENT_TASK_CLOCK, /* the row's own time: no perf event needed */
	EVENT_ABSENT, /* known, but not on this machine: it has no column and is reported by name */
	EVENT_SIBLING_BUSY, /* ns of the row's own time during which the other threads of its core were busy: their sum */
	EVENT_IDLE_EXITS, /* times that an idle CPU woke up for the row */
	EVENT_OTHERS_BUSY, /* ns of the row's own time, times the CPUs of the machine that were busy beside it */
	EVENT_KINDS
};
/* Counted by the switch program itself, without a perf event. */
static inline bool event_of_switches(enum event_kind kind)
{
	return kind == EVENT_SIBLING_BUSY || kind == EVENT_IDLE_EXITS || kind == EVENT_OTHERS_BUSY;
}
/* What counts an event, for people: "perf", "CPU time", "the switch program". */
const char *event_source_word(enum event_kind kind);

struct event_desc {
	char name[SCHEMA_NAME_MAX]; /* exactly as configured */
	enum event_kind kind;
	bool added; /* for the formula, not configured: reports of named events leave it out */
	uint32_t type; /* perf_event_attr, kind PERF: first PMU */
	uint64_t config, config1, config2;
	char pmu[32]; /* sysfs PMU name, "" for generic types */
	uint8_t cpus_only_known; /* 1: only CPUs in `cpus` have it, by any encoding (one kind of core, uncore cpumask) */
	uint8_t cpus[1024 / 8]; /* bitmap, when cpus_only_known */
	char reason[160]; /* ABSENT or TASK_CLOCK stand-in: why, in words */
};

/* On a hybrid machine an event has several encodings, each for CPUs of its own: v[0..n) are all of
 * them; event_desc repeats how v[0] counts, and has the CPUs of all. n = 0 where there is only the one in event_desc. See event_on_cpu(). */
struct event_variant {
	uint32_t type;
	uint64_t config, config1, config2;
	uint8_t cpus[1024 / 8];
};
struct event_variants {
	unsigned n;
	struct event_variant v[4];
};
/* The encoding of event e on `cpu`: 0, or -ENODEV where that CPU does not have it. v may be NULL. */
int event_on_cpu(const struct event_desc *e, const struct event_variants *v, unsigned cpu, struct event_variant *ret);

struct event_set {
	unsigned n;
	struct event_desc ev[SCHEMA_MAX_EVENTS];
};

struct cpu_desc {
	uint16_t cpu; /* kernel's number; schema.cpus is indexed by it */
	_Atomic uint16_t package, die, core; /* the measuring thread writes, as CPUs come; others read */
	_Atomic bool present; /* the same */
	uint8_t core_type; /* 0 = the fastest cores, or all of them; at most SCHEMA_CORE_TYPES - 1 */
};

unsigned
quality_named(const char *word); /* PARTIAL for NULL and unknown words: there is no reason to trust the value */

enum domain_kind {
	DOMAIN_PACKAGE,
	DOMAIN_CORE,
	DOMAIN_UNCORE,
	DOMAIN_DRAM,
	DOMAIN_PSYS,
	DOMAIN_GPU,
	DOMAIN_EXTERNAL,
	DOMAIN_WALL, /* what the machine draws at the wall, as it was calibrated */
	DOMAIN_KINDS
};
const char *domain_kind_name(enum domain_kind kind); /* "package", "core", ... */
enum domain_kind
domain_kind_of(const char *name); /* of "package-0-die-1", "psys", "gpu"; DOMAIN_KINDS = none of ours */
#define DOMAIN_BIT(kind) (1u << (kind))
/* The one rule for every sum over domains. Returns those of `kinds` (DOMAIN_BIT each) that are added up to the machine,
 * so that nothing counts twice: package (core and uncore are parts of it), dram and gpu beside it. Without a package:
 * psys alone, which holds them all; then core and uncore, with dram and gpu; then external meters; then any kind there
 * is. The wall counts where there is nothing else, for it holds what the others say. Only meters are added to meters: each stands for the machine, or for one of its plugs. */
unsigned domain_kinds_summed(unsigned kinds);
/* The same for n names: sets ret[i] for those that are added up. Unknown names count only where there are no others,
 * and then only the first. */
void domain_names_summed(const char *const *names, unsigned n, bool *ret);

enum energy_interface {
	ENERGY_NONE,
	ENERGY_POWERCAP,
	ENERGY_PERF,
	ENERGY_MSR,
	ENERGY_ESTIMATE,
	ENERGY_REPLAY,
	ENERGY_NVML,
	ENERGY_HWMON,
	ENERGY_METER,
	ENERGY_HOST, /* a virtual machine's share, as its host tells it */
	ENERGY_CALIBRATION, /* worked out from other domains, as a meter once taught */
	ENERGY_INTERFACES
};
const char *energy_interface_name(enum energy_interface i); /* "powercap" ... */

struct domain_desc {
	enum domain_kind kind;
	uint16_t package; /* physical package id; psys: package whose zone it is, usually 0; gpu and external: its number */
	uint16_t die; /* 0 unless the machine has several dies with own counters */
	bool has_die;
	enum energy_interface interface;
	bool idle_known; /* the source knows the idle power: estimate */
	uint64_t idle_uw; /* idle power with all CPUs of the domain online */
	char name[64]; /* "package-0", "package-0-die-1", "dram-0", "psys", "gpu-0" ...: unique */
	char id[96]; /* gpu: UUID or PCI address; external: where the meter is; else "" */
	char reason[200]; /* why this interface was taken */
};

struct schema {
	char sensor[256]; /* sensor name */
	char boot_id[40];
	struct event_set core; /* counters kept per row; kind ABSENT ones are not in it */
	const struct event_variants *core_variants; /* [core.n] of a live machine; NULL = not known */
	struct event_set msr; /* machine-wide counters read at a flush */
	unsigned n_cpus; /* possible CPUs; cpus[0..n_cpus) */
	struct cpu_desc *cpus;
	unsigned n_online; /* of them online at the start; 0 = not known (a recording) */
	unsigned n_packages; /* highest package id + 1 */
	unsigned n_core_types; /* highest core_type + 1; 0 = not known, like 1 */
	unsigned n_domains;
	struct domain_desc domains[SCHEMA_MAX_DOMAINS];
	bool multiplexed; /* counters are scaled */
	bool irq_separate; /* the kernel tells irq or steal time apart from tasks */
	bool cpufreq; /* CPUs tell their frequency */
	bool idle_merged; /* trigger perf_event or none: root and idle are one row */
	char trigger[16]; /* the trigger in use: tp_btf raw_tp perf_event none replay */
	char clock[16]; /* "scheduler" or "ktime" */
};

unsigned schema_kinds_summed(const struct schema *s); /* domain_kinds_summed of its domains */
bool schema_has_wall(const struct schema *s);

static inline bool schema_sums(const struct schema *s, unsigned domain)
{
	return schema_kinds_summed(s) & DOMAIN_BIT(s->domains[domain].kind);
}

#endif
