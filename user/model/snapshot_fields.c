/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot_fields.h"

static const char *event_kind_word(unsigned v)
{
	static const char *const names[] = {
		"perf", "task-clock", "absent", "sibling-busy", "idle-exits", "others-busy"
	};

	return names[v < EVENT_KINDS ? v : EVENT_ABSENT];
}

static const char *domain_kind_word(unsigned v)
{
	return domain_kind_name((enum domain_kind)v);
}

static const char *interface_word(unsigned v)
{
	return energy_interface_name((enum energy_interface)v);
}

static const char *policy_word(unsigned v)
{
	return idle_policy_name((enum idle_policy)v);
}

static const char *row_kind_word(unsigned v)
{
	return row_kind_name((enum row_kind)v);
}

static const struct field_words event_kinds = { event_kind_word, EVENT_KINDS, false };
static const struct field_words domain_kinds = { domain_kind_word, DOMAIN_KINDS, false };
static const struct field_words interfaces = { interface_word, ENERGY_INTERFACES, false };
const struct field_words idle_policies = { policy_word, IDLE_BY_SHARE + 1, false };
static const struct field_words row_kinds = { row_kind_word, ROW_KINDS, false };

#define RECORDED (IN_RECORDING | IN_DECODED)
#define SPLIT (IN_SPLIT | IN_DECODED)

static const struct field schema_rows[] = {
	FIELD(schema, sensor, .in = RECORDED, .what = "a sensor's name"),
	FIELD(schema, boot_id, .in = RECORDED, .what = "a boot id"),
	FIELD(schema, trigger, .in = RECORDED, .what = "a trigger"),
	FIELD(schema, clock, .in = RECORDED, .what = "a clock"),
	FIELD(schema, multiplexed, .in = RECORDED, .what = "true or false"),
	FIELD(schema, irq_separate, .in = RECORDED, .what = "true or false"),
	FIELD(schema, idle_merged, .in = RECORDED, .what = "true or false"),
	FIELD_AS("packages", schema, n_packages, .in = IN_PLACES | IN_DECODED, .max = 65536,
		 .what = "a number of packages"),
};
const struct fields schema_fields = FIELDS(schema_rows);

static const struct field event_rows[] = {
	FIELD(event_desc, name, .in = RECORDED, .what = "an event's name"),
	FIELD(event_desc, kind, .in = RECORDED, .words = &event_kinds, .what = "an event's kind"),
	FIELD(event_desc, added, .in = RECORDED, .how = FIELD_SOME, .what = "true or false"),
	FIELD(event_desc, pmu, .in = IN_PERF),
	FIELD(event_desc, type, .in = IN_RECORDING | IN_PERF, .what = "an event's type"),
	FIELD(event_desc, config, .in = IN_RECORDING | IN_PERF, .what = "an event's config"),
	FIELD(event_desc, config1, .in = IN_RECORDING | IN_PERF, .what = "an event's config1"),
	FIELD(event_desc, config2, .in = IN_RECORDING | IN_PERF, .what = "an event's config2"),
	FIELD(event_desc, pmu, .in = IN_RECORDING, .what = "a PMU's name"),
	FIELD(event_desc, reason, .in = RECORDED, .what = "an event's reason"),
};
const struct fields event_fields = FIELDS(event_rows);

static const struct field domain_desc_rows[] = {
	FIELD(domain_desc, name, .in = IN_DECODED | IN_JSON),
	FIELD(domain_desc, kind, .in = RECORDED | IN_JSON, .words = &domain_kinds, .how = FIELD_SPELLED,
	      .what = "a kind of domain"),
	FIELD(domain_desc, package, .in = RECORDED | IN_JSON_END, .what = "a package"),
	FIELD(domain_desc, die, .in = IN_DIE, .what = "a die"),
	FIELD(domain_desc, id, .in = IN_JSON_END, .how = FIELD_SOME),
	FIELD(domain_desc, interface, .in = RECORDED | IN_JSON_END, .words = &interfaces, .how = FIELD_SPELLED,
	      .what = "an energy interface"),
	FIELD(domain_desc, name, .in = IN_RECORDING, .what = "a domain's name"),
	FIELD(domain_desc, reason, .in = RECORDED, .what = "a domain's reason"),
	FIELD(domain_desc, id, .in = RECORDED, .how = FIELD_SOME, .what = "a domain's id"),
	FIELD(domain_desc, idle_uw, .in = IN_IDLE, .what = "a power"),
};
const struct fields domain_desc_fields = FIELDS(domain_desc_rows);

static const struct field snapshot_rows[] = {
	FIELD(snapshot, number, .in = RECORDED | IN_JSON),
	FIELD_AS("time_ns", snapshot, end_real_ns, .in = IN_JSON),
	FIELD(snapshot, start_ns, .in = RECORDED),
	FIELD(snapshot, end_ns, .in = RECORDED),
	FIELD_AS("monotonic_ns", snapshot, end_ns, .in = IN_JSON),
	FIELD_LENGTH_OF("interval_ns", snapshot, start_ns, end_ns, .in = IN_JSON),
	FIELD(snapshot, suspended_ns, .in = IN_RECORDING),
	FIELD(snapshot, end_real_ns, .in = RECORDED, .what = "a time"),
	FIELD(snapshot, suspended_ns, .in = IN_DECODED),
	FIELD(snapshot, nominal_ns, .in = RECORDED),
	FIELD_AS("nominal_interval_ns", snapshot, nominal_ns, .in = IN_JSON),
	FIELD(snapshot, missed, .in = RECORDED),
	FIELD_AS("missed_intervals", snapshot, missed, .in = IN_JSON),
	FIELD_AS("audit_formula", snapshot, audit.formula, .in = RECORDED, .how = FIELD_SOME,
		 .what = "a formula's name"),
	FIELD_AS("audit_better", snapshot, audit.better, .in = RECORDED, .how = FIELD_SOME, .what = "a formula's name"),
	FIELD(snapshot, skew_ns, .in = RECORDED | IN_JSON, .how = FIELD_SOME, .what = "a time"),
	FIELD(snapshot, suspended_ns, .in = IN_JSON),
	FIELD(snapshot, formula, .in = SPLIT | IN_JSON, .what = "a formula's name"),
	FIELD(snapshot, idle_policy, .in = SPLIT, .words = &idle_policies, .how = FIELD_SPELLED,
	      .what = "own, by-time or by-share"),
	FIELD_AS("idle", snapshot, idle_policy, .in = IN_JSON, .words = &idle_policies),
};
const struct fields snapshot_fields = FIELDS(snapshot_rows);

static const struct field losses_rows[] = {
	FIELD(losses, folded, .in = RECORDED | IN_JSON, .what = "a loss"),
	FIELD(losses, lost_reads, .in = RECORDED, .what = "a loss"),
	FIELD(losses, lost_events, .in = RECORDED, .what = "a loss"),
	FIELD(losses, missed_switches, .in = RECORDED, .what = "a loss"),
	FIELD_AS("counter_reads", losses, lost_reads, .in = IN_JSON),
	FIELD_AS("lifecycle_events", losses, lost_events, .in = IN_JSON),
	FIELD_AS("switches_mended", losses, missed_switches, .in = IN_JSON),
};
const struct fields losses_fields = FIELDS(losses_rows);

#define WORK_PRICE(name) \
	FIELD_AS(#name, snap_domain, work.name, .in = RECORDED, .how = FIELD_SOME, .what = "a price of work")
static const struct field snap_domain_rows[] = {
	FIELD(snap_domain, quality, .in = IN_DECODED | IN_JSON, .words = &quality_words),
	FIELD(snap_domain, start_ns, .in = RECORDED),
	FIELD(snap_domain, end_ns, .in = RECORDED),
	FIELD(snap_domain, quality, .in = IN_RECORDING),
	FIELD_LENGTH_OF("interval_ns", snap_domain, start_ns, end_ns, .in = IN_JSON),
	FIELD(snap_domain, energy_uj, .in = RECORDED | IN_JSON),
	FIELD(snap_domain, energy_q32, .in = RECORDED),
	FIELD(snap_domain, uncertainty_ppm, .in = RECORDED, .how = FIELD_SOME, .what = "an uncertainty"),
	FIELD(snap_domain, audit_ppm, .in = RECORDED, .how = FIELD_SOME, .max = SNAP_AUDIT_MOST_PPM,
	      .what = "an uncertainty"),
	WORK_PRICE(read_byte_q32),
	WORK_PRICE(write_byte_q32),
	WORK_PRICE(request_q32),
	WORK_PRICE(network_byte_q32),
	WORK_PRICE(packet_q32),
	FIELD(snap_domain, idle_uj, .in = SPLIT | IN_JSON),
	FIELD(snap_domain, residual_uj, .in = SPLIT | IN_JSON),
	FIELD(snap_domain, idle_power_uw, .in = SPLIT | IN_JSON_END),
	FIELD(snap_domain, idle_quality, .in = SPLIT | IN_JSON_END, .words = &quality_words),
	FIELD(snap_domain, share_quality, .in = SPLIT, .words = &quality_words),
	FIELD(snap_domain, scale, .in = SPLIT, .what = "a scale"),
	FIELD(snap_domain, uncertainty, .in = SPLIT, .what = "an uncertainty"),
	FIELD(snap_domain, idle_uncertainty, .in = SPLIT, .what = "an uncertainty"),
};
const struct fields snap_domain_fields = FIELDS(snap_domain_rows);

#define CPU_RECORDED (IN_RECORDING | IN_DECODED | IN_JSON)
static const struct field snap_cpu_rows[] = {
	FIELD(snap_cpu, online, .in = IN_DECODED | IN_JSON),
	FIELD(snap_cpu, quality, .in = CPU_RECORDED, .key = 2, .words = &quality_words, .what = "flags or quality"),
	FIELD(snap_cpu, elapsed_ns, .in = RECORDED, .key = 3, .what = "a time"),
	FIELD(snap_cpu, busy_ns, .in = IN_JSON),
	FIELD(snap_cpu, idle_ns, .in = CPU_RECORDED, .key = 4, .what = "a time"),
	FIELD(snap_cpu, irq_steal_ns, .in = CPU_RECORDED, .key = 5, .what = "a time"),
	FIELD(snap_cpu, offline_ns, .in = CPU_RECORDED, .key = 6, .what = "a time"),
	FIELD(snap_cpu, busy_ns, .in = RECORDED, .key = 7, .what = "a time"),
	FIELD(snap_cpu, msr_enabled_ns, .in = RECORDED, .key = 9, .what = "a time"),
	FIELD(snap_cpu, msr_running_ns, .in = RECORDED, .key = 10, .what = "a time"),
};
const struct fields snap_cpu_fields = FIELDS(snap_cpu_rows);

static const struct field snap_row_rows[] = {
	FIELD(snap_row, kind, .in = RECORDED, .key = RF_KIND, .words = &row_kinds, .what = "a kind of row"),
	FIELD(snap_row, path, .in = IN_DECODED),
	FIELD(snap_row, id, .in = RECORDED, .key = RF_ID, .what = "a cgroup's id"),
	FIELD(snap_row, key, .in = RECORDED, .key = RF_KEY, .max = RECORDING_MAX_KEY - 1, .what = "a row's key"),
	FIELD(snap_row, generation, .in = RECORDED, .key = RF_GENERATION, .what = "a generation"),
	FIELD(snap_row, level, .in = RECORDED, .key = RF_LEVEL, .what = "a level"),
	FIELD(snap_row, ended, .in = IN_DECODED),
	FIELD(snap_row, selected, .in = IN_DECODED),
	FIELD(snap_row, quality, .in = RECORDED, .key = RF_QUALITY, .words = &quality_words, .what = "a quality"),
	FIELD(snap_row, time_ns, .in = RECORDED, .key = RF_TIME_NS, .what = "a time"),
	FIELD(snap_row, switches, .in = RECORDED, .key = RF_SWITCHES, .what = "a number of switches"),
	FIELD(snap_row, enabled_ns, .in = RECORDED, .key = RF_ENABLED_NS, .what = "a time enabled"),
	FIELD(snap_row, running_ns, .in = RECORDED, .key = RF_RUNNING_NS, .what = "a time running"),
};
const struct fields snap_row_fields = FIELDS(snap_row_rows);

static const struct field snap_cell_rows[] = {
	FIELD(snap_cell, cpu),        FIELD(snap_cell, quality, .words = &quality_words),
	FIELD(snap_cell, time_ns),    FIELD(snap_cell, switches),
	FIELD(snap_cell, enabled_ns), FIELD(snap_cell, running_ns),
};
const struct fields snap_cell_fields = FIELDS(snap_cell_rows);
