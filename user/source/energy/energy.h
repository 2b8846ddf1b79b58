/* SPDX-License-Identifier: Apache-2.0 */
/* Energy domains: powercap, perf and MSR behind one table, joined by `rapl` (auto per domain,
 * cross-check, poll pace), and `estimate` where there is none. Rules: formats/rapl in docs. */
#ifndef JD_ENERGY_H
#define JD_ENERGY_H
#include "base/err.h"
#include "base/fsroot.h"
#include "model/config/config.h"
#include "model/reading.h"
#include "source/counters/events.h"

enum energy_state { ENERGY_OK, ENERGY_ABSENT, ENERGY_DENIED, ENERGY_BROKEN };
const char *energy_state_name(enum energy_state s); /* "ok", "absent", "denied", "broken" */

/* One domain as one interface offers it. */
struct energy_probe {
	enum domain_kind kind;
	uint16_t package, die;
	bool has_die;
	enum energy_state state;
	char name[64]; /* unique name as in domain_desc */
	char subject[128]; /* file, event or register: "intel-rapl:0:2 (dram)" */
	char reason[200]; /* reason and remedy where it is not ok, or "" */
	uint64_t uj_num, uj_den; /* microjoules = units * num / den */
	uint64_t wrap_units; /* counter modulus in units; 0 = 2^64 */
	int cpu; /* CPU to read on, -1 = any; first part's when there are several */
	unsigned parts; /* counters whose sum is the domain: 1, or AMD's physical cores */
	uint32_t restarts; /* +1 when a part was reopened: its counts meanwhile are lost */
};

struct energy_source;
struct energy_source_ops {
	enum energy_interface interface;
	/* Probes; result in probes (n <= SCHEMA_MAX_DOMAINS). State of the whole interface and its
	 * reason too, so that an absent driver and a denied file are told apart. */
	int (*open)(const struct fsroot *root, const struct perf_seam *seam, const struct schema *s,
		    struct energy_source **ret, struct err *err);
	unsigned (*probes)(const struct energy_source *e, const struct energy_probe **ret);
	enum energy_state (*state)(const struct energy_source *e, const char **ret_reason);
	/* Line i of the findings while probing (unknown zone, doubled counter), NULL after the last. */
	const char *(*note)(const struct energy_source *e, unsigned i);
	/* Raw counter of a part of probe i. 0 or -errno (-EIO, -EACCES, -ENODEV; -ENXIO: its CPUs are
	 * offline). No allocation, no open. */
	int (*read)(struct energy_source *e, unsigned i, unsigned part, uint64_t *ret_units);
	/* Before a read that failed is tried again: probe i may be found in another place now. NULL = never. */
	void (*reopen)(struct energy_source *e, unsigned i);
	/* CPUs came or went: reopen the counters on them. */
	void (*hotplug)(struct energy_source *e, const uint8_t *online, unsigned n);
	void (*close)(struct energy_source *e);
};
extern const struct energy_source_ops energy_powercap, energy_perf, energy_msr, energy_null;

/* All of them together. */
struct rapl;
struct rapl_options {
	const struct fsroot *root; /* it and the seam are borrowed */
	const struct perf_seam *seam;
	enum rapl_mode mode;
	bool cross_check;
	uint64_t poll_ns;
	double max_watts; /* 0 = default bound per package */
};

/* Adds its domains to the schema (n_domains, domains[]). No RAPL at all is not an error: 0 domains. */
int rapl_open(const struct rapl_options *o, struct schema *s, struct rapl **ret, struct err *err);
/* Reads every domain and adds wrap-corrected increments to r->domains. now = CLOCK_MONOTONIC. */
void rapl_read(struct rapl *rp, struct reading *r, uint64_t now_ns, uint64_t boot_ns);
/* Between readings: samples the counters so that no wrap is missed. Call when due. */
void rapl_poll(struct rapl *rp, uint64_t now_ns, uint64_t boot_ns);
uint64_t rapl_poll_interval_ns(const struct rapl *rp); /* 0 = not needed */
/* Looks at the counters so far, and looks left out because the one before came too late. Nothing is lost by that
 * unless a counter wraps twice, which is told apart (dropped, partial). */
struct rapl_looks {
	uint64_t n, left_out;
};
struct rapl_looks rapl_looks(const struct rapl *rp);
void rapl_hotplug(struct rapl *rp, const uint8_t *online, unsigned n);
/* For doctor and status: every interface's probes with state and reason, chosen or not. */
unsigned rapl_interfaces(const struct rapl *rp, const struct energy_source_ops **ret_ops,
			 struct energy_source **ret_src, unsigned max);
/* Warnings that appeared since the last call (cross-check beyond 0.5 %, resets, refused deltas):
 * one line each; false when there is none. */
bool rapl_next_warning(struct rapl *rp, char *ret_text, size_t size);
void rapl_close(struct rapl *rp);

/* Exact accumulator, one per counter; pure, the heart of the property tests. */
struct energy_accumulator {
	uint64_t prev_raw, prev_ns, prev_boot_ns;
	bool have_prev;
	uint64_t modulus; /* in units; 0 = 2^64 */
	double max_units_per_ns; /* > 0; a larger rate is refused: reset, suspend or module reload */
	uint64_t units; /* cumulative */
	uint64_t wraps, resets, dropped;
};
/* Adds raw read at now; returns the units added (0 after a reset). A step back is a wrap when the time awake (now)
 * allows its energy, else a reset; a step forward too large for the time that passed (boot, suspend included) is
 * dropped. 10 ms and a unit are allowed on top of that time, because counters move in steps. At most one wrap per
 * call can be told. */
uint64_t energy_accumulate(struct energy_accumulator *a, uint64_t raw, uint64_t now_ns, uint64_t boot_ns);

/* Estimate: package domains from busy and idle time per CPU, every value marked estimated. */
struct estimate;
int estimate_open(struct schema *s, double idle_watts_per_core, double max_watts_per_core, struct estimate **ret);
/* After the counters were read: integrates r->cpus and the cells' time. */
void estimate_read(struct estimate *e, struct reading *r);
void estimate_close(struct estimate *e);

#endif
