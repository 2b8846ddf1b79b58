/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration in sections, each for one part of the agent. One table of keys (keys.c) describes it: the YAML
 * file, the flags, --help, the manual page jouled.yaml(5) and every error message come from it. */
#ifndef JD_CONFIG_H
#define JD_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/grouping.h"
#include "model/schema.h"
#include "model/selection.h"
#include "base/err.h"

enum trigger_mode { TRIGGER_AUTO, TRIGGER_TP_BTF, TRIGGER_RAW_TP, TRIGGER_PERF_EVENT, TRIGGER_NONE };
enum rapl_mode { RAPL_AUTO, RAPL_POWERCAP, RAPL_PERF, RAPL_MSR, RAPL_NONE };
enum hierarchy_mode { HIERARCHY_AUTO, HIERARCHY_V2, HIERARCHY_V1 };
enum clock_mode { CLOCKMODE_SCHEDULER, CLOCKMODE_KTIME };
enum names_mode { NAMES_AUTO, NAMES_OFF };
enum estimate_mode { ESTIMATE_AUTO, ESTIMATE_OFF };
enum calibrate_mode { CALIBRATE_OFF, CALIBRATE_WALL };
enum filter_mode { FILTER_ON, FILTER_OFF, FILTER_LOG };

struct str_list {
	char **v;
	unsigned n;
	unsigned *line; /* of each entry in the file, 0 = not from there; NULL = of none */
};

/* The entries without their lines, for what outlives a configuration. 0 or -ENOMEM; *ret is to be freed in both cases. */
int str_list_copy(const struct str_list *from, struct str_list *ret);
void str_list_free(struct str_list *list); /* zeroed accepted */

/* Outputs to a server (http, https); NULL = not given. */
struct push_config {
	char *ca_file, *cert_file, *key_file; /* certificates, PEM */
	char *token_file, *user, *password_file;
	struct str_list config; /* of librdkafka, NAME=VALUE */
	uint64_t timeout_ns, spool_bytes, spool_age_ns;
};

/* format zico; NULL = the default of the place, or not given */
struct zico_config {
	char *profile; /* auto, document, zico-1.90, zico-1.90.6, zico-2 */
	char *endian; /* le, be */
	char *flags; /* none, 1.90.3, 1.90.4 */
	char *key, *app, *env, *trace_type;
	char *form; /* data, zdata, ldata */
	struct str_list attrs; /* NAME=VALUE */
};

/* One output: a format, a place, and its options (each allowed in YAML and in the URL's query). */
struct output_config {
	char *format; /* hwpc power vjoule table snapshot ...; null = nothing is encoded */
	char *to; /* URL without the query part; to a server that documents are pushed to, with what is the server's of it */
	uint64_t own_options; /* the rows of config_output_keys that the query part gave, a bit for each */
	uint64_t interval_ns; /* 0 = the global one */
	char *time; /* hwpc, power: ms | iso; NULL = default of the sink */
	char *file_format; /* hwpc, power: json | csv; never NULL */
	bool leaf_only;
	bool stand_ins, metadata; /* hwpc; default true */
	uint64_t queue_bytes;
	char *port_file;
	char *guest; /* snapshot: only the share of the virtual machine in this cgroup; NULL = everything */
	char *dialect; /* vjoule: document | v0.2; never NULL */
	struct str_list metrics; /* vjoule: NAME or NAME=EVENT; none = those of the dialect */
	struct str_list cgroups; /* patterns of this output, on top of cgroups.include; none = all */
	uint64_t max_clients; /* listening */
	uint64_t wait_ns; /* sockets, with --replay: how long the reader is waited for */
	bool waits; /* wait_ns was given */
	uint64_t limit; /* table: rows, 0 = fit */
	uint64_t keep_ns, top, max_series; /* openmetrics */
	char *by; /* openmetrics: a grouping; NULL = none */
	struct push_config push;
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
	char *type; /* hwmon, serial, command, fifo, shelly, tasmota, dcmi, redfish */
	char *device; /* serial, dcmi: device; fifo: path; hwmon: name of the chip or its hwmonN */
	char *url; /* shelly, tasmota, redfish */
	char *user, *password_file, *ca_file; /* redfish */
	struct str_list command; /* program and its arguments */
	struct str_list channels; /* hwmon: powerN or inN*currN, channel 0 first; none = all powerN */
	uint64_t pace_ns; /* 0 = the default of the type */
	unsigned line;
};

/* events: */
struct events_config {
	struct str_list core, msr;
};

/* cgroups: */
struct cgroups_config {
	struct str_list include, exclude; /* patterns of paths */
	enum hierarchy_mode hierarchy;
	enum names_mode names;
	uint64_t max; /* rows per CPU */
	uint64_t quota; /* rows one subtree below level 1 may take; 0 = a quarter of max */
};

/* kubelet: */
struct kubelet_config {
	char *url; /* NULL = it is not asked */
	char *token_file, *ca_file;
	bool insecure;
};

/* rapl, estimate and host */
struct energy_config {
	enum rapl_mode rapl;
	uint64_t rapl_poll_ns; /* 0 = as often as wraps need */
	bool cross_check;
	enum estimate_mode estimate;
	double estimate_idle_watts, estimate_max_watts; /* per core */
	enum calibrate_mode calibrate;
	char *host; /* in a virtual machine: the place where the host publishes its share; NULL = none */
};

/* gpu: */
struct gpu_config {
	char *mode; /* auto, none */
	char *library; /* libnvidia-ml; NULL = the system's */
	bool wake;
	uint64_t pace_ns;
};

/* meters: */
struct meters_config {
	struct meter_config *v;
	unsigned n;
};

/* spans: */
struct spans_config {
	bool processes;
	bool traces; /* no key: an output takes traces, which need spans of processes */
	struct function_config *functions;
	unsigned n_functions;
	double budget; /* share of one CPU */
	uint64_t max_processes;
	uint64_t period_ns; /* a living tree is cut this often */
};

/* profile: */
struct profile_config {
	uint64_t frequency_hz; /* 0 = nothing is profiled */
	struct str_list cgroups; /* patterns, on top of cgroups.include; none = all */
	uint64_t size; /* limit of the chunks on disk, bytes */
};

/* The machine that is measured, and its sources. */
struct machine_config {
	const char *file; /* of the configuration, for messages; borrowed, NULL = none */
	const char *state_dir; /* borrowed */
	char *sensor; /* its name */
	bool sensor_given; /* it was configured, not taken from the host's name */
	char *root; /* directory of a captured machine, or / */
	char *btf; /* NULL = the kernel's own */
	enum trigger_mode trigger;
	enum clock_mode clock;
	bool network, block;
	struct events_config events;
	struct cgroups_config cgroups;
	struct kubelet_config kubelet;
	struct energy_config energy;
	struct gpu_config gpu;
	struct meters_config meters;
	struct spans_config spans;
	struct profile_config profile;
};

/* formula, weight, idle and idle-watts: */
struct formula_config {
	char *name; /* share, model, none */
	char *weight; /* cycles, time, cycles-by-frequency */
	char *idle; /* own, by-time, by-share */
	double idle_watts[DOMAIN_KINDS]; /* NaN = learned */
};

/* outputs: */
struct outputs_config {
	struct output_config *v;
	unsigned n;
};

/* socket: */
struct socket_config {
	char *path; /* NULL = none */
	bool asked; /* by file or flag, not by default */
	char *group;
	char *others; /* none, coarse */
};

/* web: */
struct web_config {
	char *listen; /* NULL = no page on a port */
	char *token_file;
	bool open;
};

/* history: */
struct history_config {
	char *path; /* NULL = none */
	uint64_t keep_ns, size;
};

/* metrics: */
struct metrics_config {
	uint64_t keep_ns, top, max_series;
	char *by; /* a grouping; NULL = none */
};

/* The query server and the data that it keeps. */
struct serving_config {
	struct socket_config socket;
	struct web_config web;
	struct history_config history;
	struct metrics_config metrics;
	char *price, *carbon; /* of a kWh: a number; a number of grams or a path; NULL = none */
	uint64_t trace_bytes; /* spans.keep: of traces for /v1/spans */
};

/* seccomp and landlock */
struct sandbox_config {
	enum filter_mode seccomp;
	bool landlock;
};

/* Settings that only the command line has. */
struct program_config {
	char *file; /* the file read, or NULL */
	char *replay; /* a recording instead of the machine; NULL = none */
	bool check, quiet, verbose, version, help;
};

struct config {
	uint64_t interval_ns;
	uint64_t count; /* -n; 0 = for ever */
	char *state_dir;
	int64_t first_real_ns; /* no key: time of the first report of a replay; 0 = now */
	struct machine_config machine;
	struct formula_config formula;
	struct outputs_config outputs;
	struct serving_config serving;
	struct sandbox_config sandbox;
	struct program_config program;
};

/* The action that the command line asks for. */
enum config_action { ACTION_RUN, ACTION_CHECK, ACTION_DOCTOR, ACTION_VERSION, ACTION_HELP };

/* Defaults, then the file (-c or the default path where it exists), then the flags.
 * On failure err holds one line with file and line number of the offending key, or the flag. A reload calls it again.
 * 0, or -EINVAL for bad content, or the errno of an unreadable file. */
int config_load(int argc, char **argv, struct config **ret, enum config_action *ret_action, struct err *err);
void config_free(struct config *c); /* NULL accepted */

/* The rules of the cgroups that are reported. They borrow from c. */
static inline struct selection_rules config_rules(const struct cgroups_config *c)
{
	return (struct selection_rules){
		.include = c->include.v,
		.n_include = c->include.n,
		.exclude = c->exclude.v,
		.n_exclude = c->exclude.n,
	};
}

/* The grouping that a checked text of the configuration means; NULL = none. */
static inline struct grouping config_grouping(const char *by)
{
	struct grouping g = { .kind = GROUP_NONE };

	if (by)
		grouping_parse(by, &g);
	return g;
}

/* True when events.core is not configured: no flag sets it, and names from a file know their line. */
static inline bool config_default_events(const struct config *c)
{
	const struct str_list *core = &c->machine.events.core;

	return core->n && !core->line[0];
}

/* Prints, for each output that is pushed, what of its URL goes to the server and what jouled takes (--check). */
void config_print_pushed(const struct config *c);
/* Prints, a line each, the words that may stand at the end of a command line of n words; @file = a path. */
void config_complete(int n, char **words);
void config_print_help(void); /* --help, from the table, to stdout */
void config_print_keys_man(void); /* the table as roff for jouled.yaml(5), to stdout */
void config_print_flags_man(void); /* the flags as roff for jouled(8), to stdout */

#endif
