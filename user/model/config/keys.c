/* SPDX-License-Identifier: Apache-2.0 */
/* The one table: file, flags, --help, manual pages and messages are made from it. */
#include <string.h>
#include "base/parse.h"
#include "base/text.h"
#include "keys.h"

#define MS 1000000ull
#define HOUR (3600000ull * MS)
#define DAY (24 * HOUR)
#define AT(field) .offset = offsetof(struct config, field)
#define OUT(field) .offset = offsetof(struct output_config, field)

static const char *const trigger_words[] = { "auto", "tp_btf", "raw_tp", "perf_event", "none", NULL };
static const char *const clock_words[] = { "scheduler", "ktime", NULL };
static const char *const hierarchy_words[] = { "auto", "v2", "v1", NULL };
static const char *const names_words[] = { "auto", "off", NULL };
static const char *const rapl_words[] = { "auto", "powercap", "perf", "msr", "none", NULL };
static const char *const estimate_words[] = { "auto", "off", NULL };
static const char *const calibrate_words[] = { "off", "wall", NULL };
static const char *const filter_words[] = { "on", "off", "log", NULL };
static const char *const formula_words[] = { "share", "model", "auto", "none", NULL };
static const char *const weight_words[] = { "cycles", "time", "cycles-by-frequency", NULL };
static const char *const idle_words[] = { "own", "by-time", "by-share", NULL };
static const char *const time_words[] = { "ms", "iso", NULL };
static const char *const dialect_words[] = { "document", "v0.2", NULL };
static const char *const profile_words[] = { "auto", "document", "zico-1.90", "zico-1.90.6", "zico-2", NULL };
static const char *const endian_words[] = { "le", "be", NULL };
static const char *const flags_words[] = { "none", "1.90.3", "1.90.4", NULL };
static const char *const form_words[] = { "data", "zdata", "ldata", NULL };
static const char *const file_format_words[] = { "json", "csv", NULL };

static const char *refuse_empty(const char *s)
{
	return *s ? NULL : "a text that is not empty";
}

static const char *refuse_pattern(const char *s)
{
	return *s == '/' || *s == '*' ? NULL : "a pattern that starts with / or *, such as /system.slice/**";
}

static const char *refuse_event(const char *s)
{
	if (!*s || strlen(s) >= SCHEMA_NAME_MAX || s[strcspn(s, " \t\n\r\"'\\")])
		return "an event name such as INSTRUCTIONS or cpu/event=0xc0/, shorter than 96 bytes";
	return NULL;
}

/* Refuses the root and patterns for all below it, so that a guest learns nothing of others. */
static const char *refuse_guest(const char *s)
{
	return *s == '/' && s[1] && !strchr("/*?", s[1]) && s[strlen(s) - 1] != '/' && strlen(s) < 4000 ?
		       NULL :
		       "the cgroup of one virtual machine, such as /machine.slice/machine-qemu\\x2d*\\x2dweb.scope";
}

static const char *refuse_host(const char *s)
{
	return *s == '/' || strncmp(s, "vsock://", 8) == 0 || strncmp(s, "unix:///", 8) == 0 ?
		       NULL :
		       "vsock://2:PORT, unix:///PATH or a device such as /dev/virtio-ports/org.jouled.0";
}

/* NAME or NAME=EVENT. */
static const char *refuse_metric(const char *s)
{
	const char *wanted = "NAME or NAME=EVENT, such as PERF_COUNT_HW_CPU_CYCLES=CYCLES, each shorter than 96 bytes";
	char name[SCHEMA_NAME_MAX];
	size_t len = strcspn(s, "=");

	if (!len || len >= sizeof(name))
		return wanted;
	memcpy(name, s, len);
	name[len] = '\0';
	return refuse_event(name) || (s[len] && refuse_event(s + len + 1)) ? wanted : NULL;
}

/* Refuses names that readers cannot take. An apostrophe ends SmartWatts at the creation of its formula; comma, quote
 * and backslash would break rows of CSV; PowerAPI cannot make a file name of a longer one (docs/formats/hwpc.md). */
static const char *refuse_sensor(const char *s)
{
	size_t len = strlen(s);

	if (!len || len > 200)
		return "a name of 1 to 200 bytes";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f || strchr("'\",\\", s[i]))
			return "a name without apostrophe, quote, comma, backslash and control bytes";
	for (size_t n; len; s += n, len -= n) {
		n = text_utf8_len((const unsigned char *)s, len);
		if (!n || (n == 3 && !memcmp(s, "\xef\xbf\xbd", 3)))
			return "a name in UTF-8, without the character U+FFFD";
	}
	return NULL;
}

/* A colon would end the name in what is sent (RFC 7617). */
static const char *refuse_user(const char *s)
{
	return *s && strlen(s) <= 200 && !s[strcspn(s, ":\n\r")] ? NULL : "a name of 1 to 200 bytes without a colon";
}

static const char *refuse_attr(const char *s)
{
	const char *is = strchr(s, '=');

	return is && is > s && is[1] ? NULL : "NAME=VALUE";
}

/* Refuses a longer type, because collectors answer it with an error. */
static const char *refuse_trace_type(const char *s)
{
	return *s && strlen(s) <= 64 ? NULL : "a text of 1 to 64 bytes";
}

/* A setting of librdkafka. What is secret comes from a file: all who see the command line or the status would see it. */
static const char *refuse_kafka(const char *s)
{
	static const char *const secret[] = { "password", "secret", ".pem", "sasl.oauthbearer.config" };
	const size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789._");

	if (!n || s[n] != '=' || !s[n + 1])
		return "NAME=VALUE, where NAME is a setting of librdkafka";
	if (strncmp(s, "bootstrap.servers=", 18) == 0 || strncmp(s, "metadata.broker.list=", 21) == 0)
		return "the brokers in the URL";
	for (unsigned i = 0; i < sizeof(secret) / sizeof(secret[0]); i++) {
		const char *at = strstr(s, secret[i]);

		if (at && at < s + n && strncmp(s + n, "=file:/", 7) != 0)
			return "file:/PATH of a file that holds the secret";
	}
	return NULL;
}

static const struct key cgroups_keys[] = {
	{ "include", KEY_LIST, AT(machine.cgroups.include), "/**", NULL,
	  "Cgroups that are reported: patterns of paths below the mount, where * stays within a name and ** does not. "
	  "Energy is split over all cgroups, reported or not. The others are named in no output, answer, trace or store.",
	  .max = 256, .refuse = refuse_pattern },
	{ "exclude", KEY_LIST, AT(machine.cgroups.exclude), NULL, "none",
	  "Patterns of cgroups that are not reported although they are included.", .max = 256,
	  .refuse = refuse_pattern },
	{ "hierarchy", KEY_ENUM, AT(machine.cgroups.hierarchy), "auto", NULL,
	  "Which hierarchy is accounted: v2, the perf_event hierarchy of v1, or the first of the two that is in use.",
	  hierarchy_words },
	{ "names", KEY_ENUM, AT(machine.cgroups.names), "auto", NULL,
	  "Names of pods, containers, machines and units beside the paths, from local files of their runtimes.",
	  names_words },
	{ "max", KEY_COUNT, AT(machine.cgroups.max), "4096", NULL,
	  "Rows per possible CPU. What does not fit is counted for the nearest ancestor that has a row.", .min = 8,
	  .max = 262144 },
	{ "quota", KEY_COUNT, AT(machine.cgroups.quota), "0", "a quarter of max",
	  "Rows that one subtree of the second level may take, half of it one of the third and so on to the fifth, so that nobody "
	  "pushes the others out.",
	  .max = 262144 },
	{ 0 }
};

static const struct key events_keys[] = {
	{ "core", KEY_LIST, AT(machine.events.core), "CYCLES, INSTRUCTIONS, LLC_MISSES", NULL,
	  "Counters kept per cgroup and CPU, at most 8: libpfm4 names, pmu/event/, or CYCLES, INSTRUCTIONS, LLC_MISSES, "
	  "TASK_CLOCK. Each takes a hardware counter, except TASK_CLOCK (time), SIBLING_BUSY (time beside a busy thread of the same "
	  "core), IDLE_EXITS (times that an idle CPU woke up for it) and OTHERS_BUSY (time x the CPUs busy beside it); the last three "
	  "are added by themselves where the formula is model and events.core is not configured.",
	  .max = SCHEMA_MAX_EVENTS, .refuse = refuse_event },
	{ "msr", KEY_LIST, AT(machine.events.msr), "TSC, APERF, MPERF", NULL,
	  "Counters of the msr PMU kept for the whole machine, at most 8.", .max = SCHEMA_MAX_MSR,
	  .refuse = refuse_event },
	{ 0 }
};

#define IDLE_WATTS(kind, word) \
	{ \
		word, KEY_WATTS, .offset = offsetof(struct config, formula.idle_watts) + (kind) * sizeof(double), \
				 .def_doc = "learned", .help = "Idle power of one " word " domain in watts.", \
				 .max = 10000 \
	}

static const struct key idle_watts_keys[] = { IDLE_WATTS(DOMAIN_PACKAGE, "package"),
					      IDLE_WATTS(DOMAIN_CORE, "core"),
					      IDLE_WATTS(DOMAIN_UNCORE, "uncore"),
					      IDLE_WATTS(DOMAIN_DRAM, "dram"),
					      IDLE_WATTS(DOMAIN_PSYS, "psys"),
					      IDLE_WATTS(DOMAIN_GPU, "gpu"),
					      { 0 } };

static const char *const others_words[] = { "none", "coarse", NULL };

static const struct key access_keys[] = {
	{ "others", KEY_WORD, AT(serving.socket.others), "none", NULL,
	  "Users outside the group: none of them may connect, or they see totals of their own cgroups in steps of 1 s and "
	  "1 mJ and nothing else.",
	  others_words },
	{ 0 }
};

#define BY_HELP \
	"Groups in place of cgroups: namespace, pod, container, job, unit, slice, or depth N for the first N names of the path. A " \
	"cgroup's energy stays with its group when it ends; what has no such name is the group unnamed. top counts groups then."
#define MAX_SERIES_HELP \
	"Series that the page has at most, those of the machine and of ended cgroups too: top is lowered to what fits. The " \
	"machine's own and one row have to."

static const char *refuse_by(const char *s)
{
	struct grouping g;

	return grouping_parse(s, &g) ? NULL : GROUPING_WANTED;
}

static const struct key metrics_keys[] = {
	{ "keep", KEY_DURATION, AT(serving.metrics.keep_ns), "5m", NULL,
	  "How long the final value of an ended cgroup is shown.", .max = DAY },
	{ "top", KEY_COUNT, AT(serving.metrics.top), "0", "all",
	  "Cgroups shown in /metrics; what the others get is counted for other.", .max = 100000 },
	{ "by", KEY_STRING, AT(serving.metrics.by), NULL, "each cgroup for itself", BY_HELP, .refuse = refuse_by },
	{ "max-series", KEY_COUNT, AT(serving.metrics.max_series), "0", "no bound", MAX_SERIES_HELP, .max = 10000000 },
	{ 0 }
};

/* Without an address it is the loopback address. */
static const char *refuse_listen(const char *s)
{
	const char *colon = strrchr(s, ':'), *port = colon ? colon + 1 : s;
	uint64_t n;

	if (!*port || port[strspn(port, "0123456789")] || parse_u64(port, &n) != 0 || n > 65535)
		return "ADDRESS:PORT or PORT, such as 127.0.0.1:8480, [::1]:8480 or 8480, a port of at most 65535";
	return NULL;
}

static const char *refuse_price(const char *s)
{
	double v;

	return parse_double(s, &v) == 0 && v >= 0 ? NULL : "a number of at least 0, such as 0.32";
}

static const char *refuse_carbon(const char *s)
{
	double v;

	return *s == '/' || (parse_double(s, &v) == 0 && v >= 0) ?
		       NULL :
		       "grams of CO2 per kWh, such as 350, or the absolute path of a file with lines TIME,GRAMS";
}

static const struct key web_keys[] = {
	{ "listen", KEY_STRING, AT(serving.web.listen), NULL, "none",
	  "ADDRESS:PORT of a page of live watts for browsers, with the reading requests of the query socket beside it; 127.0.0.1 "
	  "unless an address is given.",
	  .refuse = refuse_listen, .flag = "web", .arg = "ADDRESS:PORT" },
	{ "token-file", KEY_STRING, AT(serving.web.token_file), "/run/jouled/web.token", NULL,
	  "The file that gets the secret which opens the page, http://ADDRESS:PORT/?token=SECRET, or as Authorization: Bearer; new "
	  "at every start, to be read by those who may use the query socket.",
	  .refuse = refuse_empty },
	{ "open", KEY_BOOL, AT(serving.web.open), "false", NULL,
	  "Whoever reaches the port sees all, without the secret: energy at full resolution is a side channel." },
	{ 0 }
};

static const struct key socket_keys[] = { { "path", KEY_STRING, AT(serving.socket.path), NULL, CONFIG_DEFAULT_SOCKET,
					    "The query socket, or none.", .refuse = refuse_empty, .flag = "socket",
					    .arg = "PATH|none" },
					  { "group", KEY_STRING, AT(serving.socket.group), "jouled", NULL,
					    "Group whose members may connect to it.", .refuse = refuse_empty },
					  { "access", KEY_MAP, .help = "What others may do.", .sub = access_keys },
					  { 0 } };

static const struct key history_keys[] = {
	{ "path", KEY_STRING, AT(serving.history.path), NULL, "history.db in state-dir", "The file, or none.",
	  .refuse = refuse_empty },
	{ "keep", KEY_DURATION, AT(serving.history.keep_ns), "7d", NULL,
	  "How long points of a minute are kept; those of a second stay for an hour, those of an hour for a year.",
	  .min = HOUR, .max = 366 * DAY },
	{ "size", KEY_BYTES, AT(serving.history.size), "256MiB", NULL,
	  "Limit of the file; beyond it the oldest points go.", .min = 4ull << 20, .max = 1ull << 40 },
	{ 0 }
};

static const struct key profile_keys[] = {
	{ "frequency", KEY_COUNT, AT(machine.profile.frequency_hz), "0", "off",
	  "Samples a second and CPU, for the energy of each function (joulectl profile, GET /v1/profile); 19 costs next to nothing. "
	  "A rate that divides the kernel's tick (100, 250, 1000) meets programs always at the same place of their turn.",
	  .max = 1000 },
	{ "cgroups", KEY_LIST, AT(machine.profile.cgroups), NULL, "all that are included",
	  "Cgroups that are profiled: patterns, on top of cgroups.include and exclude.", .max = 256,
	  .refuse = refuse_pattern },
	{ "size", KEY_BYTES, AT(machine.profile.size), "64MiB", NULL,
	  "Limit of the last hour's chunks below state-dir/profile; beyond it the oldest go.", .min = 1ull << 20,
	  .max = 1ull << 40 },
	{ 0 }
};

const struct key config_output_keys[] = {
	{ "format", KEY_WORD, OUT(format), NULL, "required",
	  "What is written: hwpc and power reports of PowerAPI, vjoule reports for vJoule formulas, openmetrics for "
	  "Prometheus, the same series pushed by remote-write, by OpenTelemetry's otlp or in influx line protocol, traces for zico or by OpenTelemetry's otlp-traces, the continuous profile for pprof or by OpenTelemetry's otlp-profiles, a table to read, a snapshot recording to replay; null measures and throws away.",
	  .word = output_format_name },
	{ "to", KEY_STRING, OUT(to), NULL, "required",
	  "Where it goes: stdout:, file:///PATH, tcp://HOST:PORT, tcp-listen://ADDRESS:PORT, unix:///PATH, "
	  "unix-listen:///PATH, vsock-listen://any:PORT (snapshot, for virtual machines), http-listen://ADDRESS:PORT (openmetrics), http:// and https://HOST:PORT (zico, otlp, otlp-traces, otlp-profiles, and with a path influx, remote-write and pprof), kafka://BROKER/TOPIC (hwpc, power, vjoule, snapshot, influx, otlp, otlp-traces) or null:. The other options may follow after ? as name=value, joined by &; those that are "
	  "lists once for each entry.",
	  .refuse = refuse_empty },
	{ "interval", KEY_DURATION, OUT(interval_ns), NULL, "the global one",
	  "An interval of its own; profiles have none.", .min = 10 * MS, .max = HOUR },
	{ "cgroups", KEY_LIST, OUT(cgroups), NULL, "all that are included",
	  "Cgroups of this output: patterns, on top of cgroups.include and exclude.", .max = 256,
	  .refuse = refuse_pattern },
	{ "time", KEY_WORD, OUT(time), NULL, "ms to sockets and in CSV, iso elsewhere",
	  "Timestamps as milliseconds since 1970 or as UTC text.", time_words },
	{ "file-format", KEY_WORD, OUT(file_format), "json", NULL,
	  "JSON lines, or CSV; for hwpc one CSV file per group in the directory of the URL.", file_format_words },
	{ "leaf-only", KEY_BOOL, OUT(leaf_only), "false", NULL,
	  "Only cgroups without children are targets, as with hwpc-sensor." },
	{ "stand-ins", KEY_BOOL, OUT(stand_ins), "true", NULL,
	  "Where the machine lacks APERF and MPERF or RAPL, send stand-ins named in the metadata; false withholds "
	  "the report." },
	{ "metadata", KEY_BOOL, OUT(metadata), "true", NULL,
	  "Tell quality and stand-ins in the metadata of every report, always under the same keys; false sends no metadata, as "
	  "hwpc-sensor does." },
	{ "dialect", KEY_WORD, OUT(dialect), "document", NULL,
	  "Layout of vJoule's documentation, or that of its released formulas.", dialect_words },
	{ "metrics", KEY_LIST, OUT(metrics), NULL,
	  "events.core; with dialect v0.2 PERF_COUNT_HW_CPU_CYCLES and LLC_MISSES",
	  "Metrics of a cgroup as NAME=EVENT: the name that a formula looks for and one of events.core (NAME alone where they "
	  "are the same). What this machine does not count is filled by the nearest counter, and said.",
	  .max = 16, .refuse = refuse_metric },
	{ "queue", KEY_BYTES, OUT(queue_bytes), "4MiB", NULL,
	  "Bytes that may wait for a slow reader; what does not fit is dropped and counted. A client of a listening output "
	  "is closed then.",
	  .min = 65536, .max = 1ull << 30 },
	{ "guest", KEY_STRING, OUT(guest), NULL, "none",
	  "Cgroup of one virtual machine, or a pattern of it: the output gives the totals of its subtree alone, to jouled in that "
	  "machine. To unix-listen and vsock-listen://CID:PORT; with vsock-listen://any:PORT every guest is known by its CID.",
	  .refuse = refuse_guest },
	{ "port-file", KEY_STRING, OUT(port_file), NULL, "none",
	  "File that gets the port number of a tcp-listen or http-listen output.", .refuse = refuse_empty },
	{ "max-clients", KEY_COUNT, OUT(max_clients), "512", NULL,
	  "Clients that a listening output serves at once; more are turned away.", .min = 1, .max = 8192 },
	{ "wait", KEY_DURATION, OUT(wait_ns), "1m", NULL,
	  "To a socket, with --replay: how long its reader is waited for before the first report, a first client where it listens, "
	  "a connection where it connects. What no reader got is lost: one line and the exit status say so.",
	  .max = DAY },
	{ "limit", KEY_COUNT, OUT(limit), "0", "as many as fit", "Rows of a table.", .max = 100000 },
	{ "keep", KEY_DURATION, OUT(keep_ns), "5m", NULL,
	  "How long the final value of an ended cgroup is shown; for http-listen see metrics.", .max = DAY },
	{ "top", KEY_COUNT, OUT(top), "0", "all",
	  "Cgroups that are shown; what the others get is counted for other; for http-listen see metrics.",
	  .max = 100000 },
	{ "by", KEY_STRING, OUT(by), NULL, "each cgroup for itself", BY_HELP, .refuse = refuse_by },
	{ "max-series", KEY_COUNT, OUT(max_series), "0", "no bound", MAX_SERIES_HELP, .max = 10000000 },
	{ "profile", KEY_WORD, OUT(zico.profile), NULL, "auto to a collector, document to files and sockets",
	  "What the ZICO collector understands, by its release; auto asks it.", profile_words },
	{ "endian", KEY_WORD, OUT(zico.endian), "le", NULL, "Byte order of ticks.", endian_words },
	{ "flags", KEY_WORD, OUT(zico.flags), "none", NULL,
	  "How records of failed processes are flagged: as collectors up to 1.90.3 or from 1.90.4 on read it; both take none.",
	  flags_words },
	{ "key", KEY_STRING, OUT(zico.key), "zorka", NULL, "Registration key of the collector.",
	  .refuse = refuse_empty },
	{ "app", KEY_STRING, OUT(zico.app), NULL, "the collector's", "Application under which the host is registered.",
	  .refuse = refuse_empty },
	{ "env", KEY_STRING, OUT(zico.env), NULL, "the collector's", "Environment under which the host is registered.",
	  .refuse = refuse_empty },
	{ "attrs", KEY_LIST, OUT(zico.attrs), NULL, "none",
	  "Attributes of the host as NAME=VALUE, beside its kernel, packages and energy sources.", .max = 16,
	  .refuse = refuse_attr },
	{ "trace-type", KEY_STRING, OUT(zico.trace_type), "PROCESS", NULL,
	  "Type of the traces; collectors have a line of the list for each.", .refuse = refuse_trace_type },
	{ "form", KEY_WORD, OUT(zico.form), "zdata", NULL,
	  "Field of agent data with profile document: as it is, by zlib, or as an LZ4 frame.", form_words },
	{ "ca-file", KEY_STRING, OUT(push.ca_file), NULL, "the system's",
	  "Authorities that may have signed the server's certificate, PEM.", .refuse = refuse_empty },
	{ "cert-file", KEY_STRING, OUT(push.cert_file), NULL, "none",
	  "Certificate that the server is shown, PEM. It is read again when it changes, as all files of a connection are.",
	  .refuse = refuse_empty },
	{ "key-file", KEY_STRING, OUT(push.key_file), NULL, "cert-file", "The key of cert-file, PEM.",
	  .refuse = refuse_empty },
	{ "token-file", KEY_STRING, OUT(push.token_file), NULL, "none",
	  "File with the token that the server is sent, as Authorization: Bearer, or Token for /api/v2/ of InfluxDB. It is read for "
	  "each request.",
	  .refuse = refuse_empty },
	{ "user", KEY_STRING, OUT(push.user), NULL, "none", "User that the server is sent, with password-file.",
	  .refuse = refuse_user },
	{ "password-file", KEY_STRING, OUT(push.password_file), NULL, "none",
	  "File with the password of user. It is read for each request.", .refuse = refuse_empty },
	{ "timeout", KEY_DURATION, OUT(push.timeout_ns), "60s", NULL, "How long one request may take.", .min = 100 * MS,
	  .max = HOUR },
	{ "config", KEY_LIST, OUT(push.config), NULL, "none",
	  "To kafka://: settings of librdkafka as NAME=VALUE, in the URL as config.NAME=VALUE. A value file:/PATH is read from that "
	  "file, which secrets must be.",
	  .max = 64, .refuse = refuse_kafka, .hidden = true },
	{ "spool-size", KEY_BYTES, OUT(push.spool_bytes), "256MiB", NULL,
	  "Bytes on disk that may wait for the server; the oldest are dropped first.", .min = 65536,
	  .max = 1ull << 40 },
	{ "spool-age", KEY_DURATION, OUT(push.spool_age_ns), "35d", NULL,
	  "How long documents wait on disk for the server.", .min = 1000 * MS, .max = 3660 * DAY },
	{ 0 }
};

static const struct key_maps outputs_maps = {
	.elem_size = sizeof(struct output_config),
	.count_offset = offsetof(struct config, outputs.n),
	.line_offset = offsetof(struct output_config, line),
	.finish = output_finish,
};

const struct key config_keys[] = {
	{ "config", KEY_STRING, AT(program.file), NULL, "/etc/jouled/jouled.yaml where it exists",
	  "The configuration file.", .refuse = refuse_empty, .flag = "config", .arg = "FILE", .letter = 'c',
	  .flag_only = true },
	{ "sensor", KEY_STRING, AT(machine.sensor), NULL, "the host name",
	  "Name of this machine in reports; with --replay in place of the recording's.", .refuse = refuse_sensor,
	  .flag = "sensor", .arg = "NAME" },
	{ "interval", KEY_DURATION, AT(interval_ns), "1s", NULL, "Time between two reports, 10ms to 1h.",
	  .min = 10 * MS, .max = HOUR, .flag = "interval", .arg = "D", .letter = 'i' },
	{ "count", KEY_COUNT, AT(count), NULL, "for ever", "Stop after N intervals.", .min = 1, .max = 1ull << 62,
	  .flag = "count", .arg = "N", .letter = 'n', .flag_only = true },
	{ "outputs", KEY_MAPS, AT(outputs.v), NULL, "one table on stdout",
	  "Who gets the reports. On the command line FORMAT=URL?OPTION=VALUE&..., repeatable; it replaces those of the file.",
	  .max = 64, .sub = config_output_keys, .maps = &outputs_maps, .flag = "output", .arg = "FORMAT=URL",
	  .letter = 'o' },
	{ "cgroups", KEY_MAP, .help = "Which cgroups are kept and reported.", .sub = cgroups_keys },
	{ "kubelet", KEY_MAP, .help = "The node's kubelet, asked when no local file names a pod or container.",
	  .sub = config_kubelet_keys },
	{ "trigger", KEY_ENUM, AT(machine.trigger), "auto", NULL,
	  "What counts a switch: auto takes the first of tp_btf and raw_tp with which a switch is seen. perf_event merges "
	  "root and idle; none runs no program and takes CPU time from cpu.stat.",
	  trigger_words, .flag = "trigger", .arg = "auto|tp_btf|raw_tp|perf_event|none" },
	{ "clock", KEY_ENUM, AT(machine.clock), "scheduler", NULL,
	  "Stamps of the scheduler, which equal cpu.stat, or ktime where those cannot be read.", clock_words },
	{ "events", KEY_MAP, .help = "Which counters are read.", .sub = events_keys },
	{ "network", KEY_BOOL, AT(machine.network), "true", NULL, "Bytes and packets per cgroup (v2 only)." },
	{ "block", KEY_BOOL, AT(machine.block), "true", NULL, "Bytes and requests of block devices per cgroup." },
	{ "rapl", KEY_ENUM, AT(machine.energy.rapl), "auto", NULL,
	  "Interface of the energy counters; auto takes, per domain, the first that answers.", rapl_words,
	  .flag = "rapl", .arg = "auto|powercap|perf|msr|none" },
	{ "rapl-poll", KEY_DURATION, AT(machine.energy.rapl_poll_ns), NULL, "as often as wraps need",
	  "Time between two looks at the energy counters within an interval.", .min = 1 * MS, .max = HOUR },
	{ "host", KEY_STRING, AT(machine.energy.host), NULL, "none",
	  "In a virtual machine: where its host tells what of the energy is this machine's, vsock://2:PORT, unix:///PATH or a "
	  "virtio-serial port as /dev/virtio-ports/NAME. Instead of rapl.",
	  .refuse = refuse_host, .flag = "host", .arg = "PLACE" },
	{ "cross-check", KEY_BOOL, AT(machine.energy.cross_check), "false", NULL,
	  "Read two interfaces and warn when they differ by more than 0.5 percent." },
	{ "estimate", KEY_ENUM, AT(machine.energy.estimate), "auto", NULL,
	  "Where there is no energy counter, watts from CPU time, every value marked estimated.", estimate_words,
	  .flag = "estimate", .arg = "auto|off" },
	{ "estimate-idle-watts", KEY_WATTS, AT(machine.energy.estimate_idle_watts), "1.5", NULL,
	  "Estimated power of an idle core; the default is a rough figure for servers.", .max = 1000 },
	{ "estimate-max-watts", KEY_WATTS, AT(machine.energy.estimate_max_watts), "8", NULL,
	  "Estimated power of a core under full load, idle power included; the default is a rough figure for servers.",
	  .max = 1000 },
	{ "calibrate", KEY_ENUM, AT(machine.energy.calibrate), "off", NULL,
	  "wall: a domain wall-0 of what the machine draws at the wall, learned beside the power meters and kept in wall.csv in "
	  "state-dir, so that it is estimated without them too; what the supply loses and fans, disks and network draw are rows.",
	  calibrate_words },
	{ "gpu", KEY_MAP, .help = "GPUs as energy domains; off for none.", .sub = config_gpu_keys, .off = "mode" },
	{ "meters", KEY_MAPS, AT(machine.meters.v), NULL, "none",
	  "Power meters outside the CPU, each a domain external-N with channels d0c0, d0c1 and so on; at most 10.",
	  .max = 10, .sub = config_meter_keys, .maps = &config_meters_maps },
	{ "formula", KEY_WORD, AT(formula.name), "share", NULL,
	  "How energy is split. share: by one weight. model: by what each counter is learned to cost. auto: by the one of these that the "
	  "last audit found better here or, without an audit, that better predicts power that it has not learned from. none: not at all.",
	  formula_words, .flag = "formula", .arg = "share|model|auto|none" },
	{ "weight", KEY_WORD, AT(formula.weight), "cycles", NULL, "What package and core energy is split by.",
	  weight_words },
	{ "idle", KEY_WORD, AT(formula.idle), "own", NULL,
	  "Who pays for idle power: a row of its own, all cgroups by CPU time, or all by their share.", idle_words,
	  .flag = "idle", .arg = "own|by-time|by-share" },
	{ "idle-watts", KEY_MAP, .help = "Idle power per domain, instead of learning it.", .sub = idle_watts_keys },
	{ "socket", KEY_MAP, .help = "The query socket.", .sub = socket_keys },
	{ "web", KEY_MAP, .help = "The page in the browser; see also joulectl web, which needs none of this.",
	  .sub = web_keys },
	{ "history", KEY_MAP,
	  .help = "What the query socket answers about the past, and what its totals go on from after a restart; "
		  "off for none.",
	  .sub = history_keys, .off = "path" },
	{ "price", KEY_STRING, AT(serving.price), NULL, "none",
	  "Price of a kWh, for costs in joulectl history and run, metrics and the page.", .refuse = refuse_price },
	{ "carbon", KEY_STRING, AT(serving.carbon), NULL, "none",
	  "Grams of CO2 per kWh for the same, or a file with lines TIME,GRAMS in order of time (TIME in RFC 3339 or Unix seconds), each "
	  "good until the next one's time. It is read again when it changes; while it cannot be read, what was read before holds.",
	  .refuse = refuse_carbon },
	{ "spans", KEY_MAP, .help = "What ran: processes and calls of functions.", .sub = config_spans_keys },
	{ "profile", KEY_MAP, .help = "Which functions spend the energy, always; the last hour is kept.",
	  .sub = profile_keys },
	{ "metrics", KEY_MAP, .help = "The page /metrics, of the query socket and of outputs to http-listen.",
	  .sub = metrics_keys },
	{ "seccomp", KEY_ENUM, AT(sandbox.seccomp), "on", NULL,
	  "Once all is open, system calls that jouled has no use for are refused and named in a warning; log names them and "
	  "lets them through.",
	  filter_words },
	{ "landlock", KEY_BOOL, AT(sandbox.landlock), "true", NULL,
	  "Once all is open, files are written only below the directories of this configuration, where the kernel has Landlock. "
	  "Not with spans.functions and profile, whose programs lie in other containers." },
	{ "state-dir", KEY_STRING, AT(state_dir), "/var/lib/jouled", NULL, "Directory of what outlives the program.",
	  .refuse = refuse_empty, .flag = "state-dir", .arg = "DIR" },
	{ "root", KEY_STRING, AT(machine.root), "/", NULL, "A captured machine's /proc and /sys instead of this one's.",
	  .refuse = refuse_empty, .flag = "root", .arg = "DIR", .flag_only = true },
	{ "replay", KEY_STRING, AT(program.replay), NULL, "none",
	  "A recording instead of this machine; - is standard input. Needs no privileges.", .refuse = refuse_empty,
	  .flag = "replay", .arg = "FILE", .flag_only = true },
	{ "btf", KEY_STRING, AT(machine.btf), NULL, "the kernel's own",
	  "Type information of the running kernel from a file (trigger raw_tp).", .refuse = refuse_empty, .flag = "btf",
	  .arg = "FILE", .flag_only = true },
	{ "check", KEY_BOOL, AT(program.check), NULL, "",
	  "Check the configuration and say what is wrong, without starting.", .flag = "check", .flag_only = true },
	{ "version", KEY_BOOL, AT(program.version), NULL, "", "Print the version.", .flag = "version", .letter = 'V',
	  .flag_only = true },
	{ "help", KEY_BOOL, AT(program.help), NULL, "", "Print this.", .flag = "help", .letter = 'h',
	  .flag_only = true },
	{ "quiet", KEY_BOOL, AT(program.quiet), NULL, "", "Only errors on stderr.", .flag = "quiet", .letter = 'q',
	  .flag_only = true },
	{ "verbose", KEY_BOOL, AT(program.verbose), NULL, "", "Say more on stderr.", .flag = "verbose", .letter = 'v',
	  .flag_only = true },
	{ 0 }
};
