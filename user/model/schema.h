/* SPDX-License-Identifier: Apache-2.0 */
/* What the columns of a reading and a snapshot mean: counters, CPUs, energy domains. Fixed for
 * the life of the process except CPUs online and domain quality, which each snapshot carries. */
#ifndef JD_SCHEMA_H
#define JD_SCHEMA_H
#include <stdbool.h>
#include <stdint.h>

#define SCHEMA_MAX_EVENTS 8
#define SCHEMA_MAX_MSR 8
#define SCHEMA_MAX_DOMAINS 64
#define SCHEMA_NAME_MAX 96

/* Quality of a value: a set, empty = measured. quality_name() gives the worst one's word. */
enum quality {
	QUALITY_MEASURED = 0,
	QUALITY_WRAPPED = 1 << 0, /* a wrap was corrected; exact */
	QUALITY_MULTIPLEXED = 1 << 1, /* scaled: the event shared the PMU */
	QUALITY_ESTIMATED = 1 << 2,
	QUALITY_STALE = 1 << 3, /* the source did not answer; last good total repeated */
	QUALITY_PARTIAL = 1 << 4, /* part of the interval is missing */
	QUALITY_LOST = 1 << 5, /* nothing usable */
};
const char *quality_name(unsigned quality); /* "measured" ... "lost" */

/* Where an event's number comes from. */
enum event_kind {
	EVENT_PERF, /* a perf event per CPU */
	EVENT_TASK_CLOCK, /* the row's own time: no perf event needed */
	EVENT_ABSENT, /* known, not on this machine: degraded by name, no column */
};

struct event_desc {
	char name[SCHEMA_NAME_MAX]; /* exactly as configured */
	enum event_kind kind;
	uint32_t type; /* perf_event_attr, kind PERF: first PMU */
	uint64_t config, config1, config2;
	char pmu[32]; /* sysfs PMU name, "" for generic types */
	uint8_t cpus_only_known; /* 1: only CPUs in `cpus` have it (hybrid, uncore cpumask) */
	uint8_t cpus[1024 / 8]; /* bitmap, when cpus_only_known */
	char reason[160]; /* ABSENT or TASK_CLOCK stand-in: why, in words */
};

struct event_set {
	unsigned n;
	struct event_desc ev[SCHEMA_MAX_EVENTS];
};

struct cpu_desc {
	uint16_t cpu; /* kernel's number; schema.cpus is indexed by it */
	uint16_t package, die, core;
	bool present;
};

enum domain_kind {
	DOMAIN_PACKAGE,
	DOMAIN_CORE,
	DOMAIN_UNCORE,
	DOMAIN_DRAM,
	DOMAIN_PSYS,
	DOMAIN_GPU,
	DOMAIN_EXTERNAL,
	DOMAIN_KINDS
};
const char *domain_kind_name(enum domain_kind kind); /* "package", "core", ... */

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
	ENERGY_HOST /* a virtual machine's share, as its host tells it */
};
const char *energy_interface_name(enum energy_interface i); /* "powercap" ... */

struct domain_desc {
	enum domain_kind kind;
	uint16_t package; /* physical package id; psys: package whose zone it is, usually 0; gpu and external: its number */
	uint16_t die; /* 0 unless the machine has several dies with own counters */
	bool has_die;
	enum energy_interface interface;
	bool idle_known; /* the source knows what it draws with nothing to do: estimate */
	uint64_t idle_uw; /* that, with all its CPUs online */
	char name[64]; /* "package-0", "package-0-die-1", "dram-0", "psys", "gpu-0" ...: unique */
	char id[96]; /* gpu: UUID or PCI address; external: where the meter is; else "" */
	char reason[200]; /* why this interface was taken */
};

struct schema {
	char sensor[256]; /* sensor name */
	char boot_id[40];
	struct event_set core; /* counters kept per row; kind ABSENT ones are not in it */
	struct event_set msr; /* machine-wide counters read at a flush */
	unsigned n_cpus; /* possible CPUs; cpus[0..n_cpus) */
	struct cpu_desc *cpus;
	unsigned n_online; /* of them online at the start; 0 = not known (a recording) */
	unsigned n_packages; /* highest package id + 1 */
	unsigned n_domains;
	struct domain_desc domains[SCHEMA_MAX_DOMAINS];
	bool multiplexed; /* counters are scaled */
	bool irq_separate; /* the kernel tells irq or steal time apart from tasks */
	bool cpufreq; /* CPUs tell their frequency */
	bool idle_merged; /* trigger perf_event or none: root and idle are one row */
	char trigger[16]; /* the trigger in use: tp_btf raw_tp perf_event none replay */
	char clock[16]; /* "scheduler" or "ktime" */
};

#endif
