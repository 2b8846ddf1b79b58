/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration, and the one table of keys from which YAML parsing, flags, --help, the man
 * page jouled.yaml(5) and every error message come. A later feature adds rows to the table. */
#ifndef JD_CONFIG_H
#define JD_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "schema.h"
#include "../base/err.h"

enum trigger_mode { TRIGGER_AUTO, TRIGGER_TP_BTF, TRIGGER_RAW_TP, TRIGGER_PERF_EVENT, TRIGGER_NONE };
enum rapl_mode { RAPL_AUTO, RAPL_POWERCAP, RAPL_PERF, RAPL_MSR, RAPL_NONE };
enum hierarchy_mode { HIERARCHY_AUTO, HIERARCHY_V2, HIERARCHY_V1 };
enum clock_mode { CLOCKMODE_SCHEDULER, CLOCKMODE_KTIME };
enum names_mode { NAMES_AUTO, NAMES_OFF };
enum estimate_mode { ESTIMATE_AUTO, ESTIMATE_OFF };
enum filter_mode { FILTER_ON, FILTER_OFF, FILTER_LOG };

struct str_list {
	char **v;
	unsigned n;
};

/* format zico; NULL = the default of the place, or not given */
struct zico_config {
	char *profile; /* auto, document, zico-1.90, zico-1.90.6, zico-2 */
	char *endian; /* le, be */
	char *flags; /* none, 1.90.3, 1.90.4 */
	char *key, *app, *env, *trace_type, *ca_file;
	char *form; /* data, zdata, ldata */
	struct str_list attrs; /* NAME=VALUE */
	uint64_t spool_bytes, spool_age_ns;
};

/* One output: a format, a place, and its options (each allowed in YAML and in the URL's query). */
struct output_config {
	char *format; /* hwpc power vjoule table snapshot ...; null = nothing is encoded */
	char *to; /* URL without the query part */
	uint64_t interval_ns; /* 0 = the global one */
	char *time; /* hwpc, power: ms | iso; NULL = default of the sink */
	char *file_format; /* hwpc, power: json | csv; never NULL */
	bool leaf_only;
	bool stand_ins; /* default true */
	uint64_t queue_bytes;
	char *port_file;
	char *guest; /* snapshot: of this machine's cgroup, its share alone; NULL = everything */
	char *dialect; /* vjoule: document | v0.2; never NULL */
	struct str_list metrics; /* vjoule: NAME or NAME=EVENT; none = those of the dialect */
	struct str_list cgroups; /* patterns of this output, on top of cgroups.include; none = all */
	uint64_t max_clients; /* listening */
	uint64_t limit; /* table: rows, 0 = fit */
	uint64_t keep_ns, top; /* openmetrics */
	struct zico_config zico;
	unsigned line; /* in the YAML, 0 = from a flag */
};

/* A probed function. */
struct function_config {
	char *binary, *symbol;
	unsigned line;
};

/* A power meter; NULL = not given */
struct meter_config {
	char *type; /* hwmon, serial, command, fifo, shelly, tasmota, dcmi */
	char *device; /* serial, dcmi: device; fifo: path; hwmon: name of the chip or its hwmonN */
	char *url; /* shelly, tasmota */
	struct str_list command; /* program and its arguments */
	struct str_list channels; /* hwmon: powerN or inN*currN, channel 0 first; none = all powerN */
	uint64_t pace_ns; /* 0 = what suits the type */
	unsigned line;
};

struct config {
	char *sensor;
	uint64_t interval_ns;
	uint64_t count; /* -n; 0 = for ever */
	struct str_list cgroups_include, cgroups_exclude;
	enum hierarchy_mode hierarchy;
	enum names_mode cgroups_names;
	char *kubelet, *kubelet_token_file, *kubelet_ca_file; /* kubelet NULL = not asked */
	bool kubelet_insecure;
	uint64_t max_cgroups; /* rows per CPU, default 4096 */
	uint64_t cgroup_quota; /* rows one subtree below level 1 may take; 0 = a quarter of max */
	enum trigger_mode trigger;
	enum clock_mode clock;
	struct str_list events_core, events_msr;
	bool network;
	enum rapl_mode rapl;
	uint64_t rapl_poll_ns; /* 0 = as often as wraps need */
	bool cross_check;
	enum estimate_mode estimate;
	char *host; /* where this virtual machine is told its share; NULL = nowhere */
	double estimate_idle_watts, estimate_max_watts; /* per core (documented defaults) */
	char *formula; /* share, model, none */
	char *weight; /* cycles, time, cycles-by-frequency */
	char *idle; /* own, by-time, by-share */
	double idle_watts[DOMAIN_KINDS]; /* NaN = learned */
	char *gpu; /* auto, off */
	char *gpu_library; /* libnvidia-ml; NULL = the system's */
	bool gpu_wake;
	uint64_t gpu_pace_ns;
	struct meter_config *meters;
	unsigned n_meters;
	struct output_config *outputs;
	unsigned n_outputs;
	/* program */
	enum filter_mode seccomp;
	bool landlock;
	char *config_path; /* file read, or NULL */
	char *root, *replay, *btf, *state_dir;
	char *socket, *socket_group; /* socket NULL = none */
	bool socket_asked; /* by file or flag, not by default */
	char *socket_others; /* none, coarse */
	bool spans_processes;
	struct function_config *spans_functions;
	unsigned n_spans_functions;
	double spans_budget; /* share of one CPU */
	uint64_t spans_max;
	uint64_t spans_period_ns; /* a living tree is cut this often */
	uint64_t spans_keep; /* bytes of traces for /v1/spans */
	uint64_t metrics_keep_ns, metrics_top;
	char *history; /* path; NULL = none */
	uint64_t history_keep_ns, history_size;
	char *web_listen, *web_token_file; /* web_listen NULL = no page on a port */
	bool web_open;
	bool check, quiet, verbose, version, help;
};

/* What the command line asked for besides a normal start. */
enum config_action { ACTION_RUN, ACTION_CHECK, ACTION_DOCTOR, ACTION_VERSION, ACTION_HELP };

/* Defaults, then the file (-c or the default path where it exists), then the flags.
 * On failure err holds one line with file and line number of the offending key, or the flag.
 * 0, or -EINVAL for bad content, or the errno of an unreadable file. */
int config_load(int argc, char **argv, struct config **ret, enum config_action *ret_action, struct err *err);
/* The same for SIGHUP: same argv, file read anew. */
void config_free(struct config *c);

void config_print_help(void); /* --help, from the table, to stdout */
void config_print_keys_man(void); /* the table as roff for jouled.yaml(5), to stdout */
void config_print_flags_man(void); /* the flags as roff for jouled(8), to stdout */

#endif
