// SPDX-License-Identifier: Apache-2.0
/* Keys below `gpu:` and `meters:`. */
#include <string.h>
#include "base/clock.h"
#include "keys.h"

#define MS 1000000ull
#define AT(field) .offset = offsetof(struct config, field)
#define MT(field) .offset = offsetof(struct meter_config, field)

static const char *const mode_words[] = { "auto", "none", NULL };
static const char *const type_words[] = { "hwmon",   "serial", "command", "fifo", "shelly",
					  "tasmota", "dcmi",   "redfish", NULL };

static const char *refuse_path(const char *s)
{
	return *s == '/' && strlen(s) < 1024 ? NULL : "an absolute path, shorter than 1024 bytes";
}

static const char *refuse_device(const char *s)
{
	return *s && strlen(s) < 1024 ? NULL : "a device, path or chip, shorter than 1024 bytes";
}

static const char *refuse_url(const char *s)
{
	if ((strncmp(s, "http://", 7) == 0 || strncmp(s, "https://", 8) == 0) && strlen(s) < 512 && s[7])
		return NULL;
	return "http://HOST or https://HOST, shorter than 512 bytes";
}

static const char *refuse_user_name(const char *s)
{
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f || *p == ':')
			return "a name without a colon and control bytes";
	return *s && strlen(s) < 128 ? NULL : "a name shorter than 128 bytes";
}

static const char *refuse_empty(const char *s)
{
	return *s ? NULL : "a text that is not empty";
}

/* powerN or inN*currN. */
static const char *refuse_channel(const char *s)
{
	static const char *const wanted = "powerN or inN*currN, such as power1 or in1*curr1";
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_*");

	if (s[n] || n > 48 || (strncmp(s, "power", 5) != 0 && (strncmp(s, "in", 2) != 0 || !strstr(s, "*curr"))))
		return wanted;
	return NULL;
}

const struct key config_gpu_keys[] = {
	{ "mode", KEY_WORD, AT(machine.gpu.mode), "auto", NULL,
	  "NVIDIA GPUs through the driver's own library, AMD and Intel through sysfs; none asks no driver.",
	  mode_words },
	{ "library", KEY_STRING, AT(machine.gpu.library), NULL, "libnvidia-ml.so.1 of the system",
	  "Path of NVIDIA's management library.", .refuse = refuse_path },
	{ "wake", KEY_BOOL, AT(machine.gpu.wake), "false", NULL,
	  "Also ask GPUs that runtime power management has put to sleep, which wakes them." },
	{ "pace", KEY_DURATION, AT(machine.gpu.pace_ns), "100ms", NULL, "Time between two looks at power and energy.",
	  .min = 10 * MS, .max = 60000 * MS },
	{ 0 }
};

/* The line of a key of a meter. */
static unsigned line_of(const unsigned *lines, const char *name)
{
	return lines[key_find(config_meter_keys, name, false) - config_meter_keys];
}

/* A password goes nowhere in the clear, and to nobody who shows no certificate. */
static int redfish_finish(const struct meter_config *m, const unsigned *lines, const struct origin *o, struct err *err)
{
	struct origin at = *o;

	if (!m->url)
		return key_error(o, "url", err,
				 "is missing; where does the controller answer, such as https://192.0.2.8");
	at.line = line_of(lines, "url");
	if (strncmp(m->url, "https://", 8) != 0 || m->url[8 + strcspn(m->url + 8, "@?#")])
		return key_error(&at, "url", err, "is no https://HOST[:PORT]; Redfish is asked over TLS alone");
	at.line = line_of(lines, m->user ? "user" : "password-file");
	if (!m->user != !m->password_file)
		return key_error(&at, m->user ? "user" : "password-file", err,
				 "without the other; give user and password-file");
	return 0;
}

static int meter_finish(void *elem, unsigned *lines, const struct origin *o, struct err *err)
{
	const struct meter_config *m = elem;
	const char *t = m->type;
	struct origin at = *o;

	if (!t)
		return key_error(o, "type", err,
				 "is missing; one of hwmon, serial, command, fifo, shelly, tasmota, dcmi, redfish");
	if (strcmp(t, "redfish") == 0)
		return redfish_finish(m, lines, o, err);
	if (m->user || m->password_file || m->ca_file) {
		const char *key = m->user ? "user" : m->password_file ? "password-file" : "ca-file";

		at.line = line_of(lines, key);
		return key_error(&at, key, err, "is of type redfish alone; leave it out");
	}
	if ((strcmp(t, "shelly") == 0 || strcmp(t, "tasmota") == 0) && !m->url)
		return key_error(o, "url", err, "is missing; where does the plug answer, such as http://192.0.2.7");
	if (strcmp(t, "command") == 0 && !m->command.n)
		return key_error(o, "command", err, "is missing; a program and its arguments as a list");
	if ((strcmp(t, "serial") == 0 || strcmp(t, "fifo") == 0) && !m->device)
		return key_error(o, "device", err, "is missing; such as /dev/ttyACM0, or the path of the FIFO");
	return 0;
}

const struct key config_meter_keys[] = {
	{ "type", KEY_WORD, MT(type), NULL, "required",
	  "hwmon (sensors of the kernel, ACPI power meters too), serial (MCP39F511N), command or fifo (lines d0c0=WATTS), "
	  "shelly and tasmota (plugs, over HTTP), dcmi (the board's own management controller), redfish (the same over HTTPS).",
	  type_words },
	{ "device", KEY_STRING, MT(device), NULL, "hwmon: every chip with power; dcmi: /dev/ipmi0",
	  "Where it is: a serial line, a FIFO, the name of an hwmon chip or its hwmonN.", .refuse = refuse_device },
	{ "url", KEY_STRING, MT(url), NULL, "none",
	  "Address of a plug or, with https, of a Redfish service, without the path.", .refuse = refuse_url },
	{ "user", KEY_STRING, MT(user), NULL, "none", "redfish: user that it is asked as, with password-file.",
	  .refuse = refuse_user_name },
	{ "password-file", KEY_STRING, MT(password_file), NULL, "none",
	  "redfish: file with the password of user. It is read for each request.", .refuse = refuse_path },
	{ "ca-file", KEY_STRING, MT(ca_file), NULL, "the system's",
	  "redfish: authority that signed its certificate, or that certificate itself, PEM; no others are believed.",
	  .refuse = refuse_path },
	{ "command", KEY_LIST, MT(command), NULL, "none",
	  "Program and arguments, run without a shell; it prints lines for as long as it runs.", .max = 32,
	  .refuse = refuse_empty },
	{ "channels", KEY_LIST, MT(channels), NULL, "every powerN of the chip",
	  "Sensors of an hwmon chip, the first is channel 0: powerN, or inN*currN where it tells volts and amperes only.",
	  .max = 10, .refuse = refuse_channel },
	{ "pace", KEY_DURATION, MT(pace_ns), NULL, "serial 20ms, hwmon 100ms, others 1s", "Time between two looks.",
	  .min = 10 * MS, .max = 3600000 * MS },
	{ 0 }
};

const struct key_maps config_meters_maps = {
	.elem_size = sizeof(struct meter_config),
	.count_offset = offsetof(struct config, machine.meters.n),
	.line_offset = offsetof(struct meter_config, line),
	.finish = meter_finish,
};

/* Keys below `kubelet:`. */

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

static const char *kubelet_refuse_path(const char *s)
{
	return *s == '/' && strlen(s) < 1024 ? NULL : "an absolute path, shorter than 1024 bytes";
}

/* Takes addresses of the kubelet itself, without a path. */
static const char *kubelet_refuse_url(const char *s)
{
	size_t scheme = strncmp(s, "https://", 8) == 0 ? 8 : strncmp(s, "http://", 7) == 0 ? 7 : 0, len = strlen(s);

	if (!scheme || len >= 512 || !s[scheme] || s[scheme + strcspn(s + scheme, "/@?# \t\"\\")])
		return "https://HOST:PORT, such as https://127.0.0.1:10250, shorter than 512 bytes";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f)
			return "https://HOST:PORT without other than ASCII";
	return NULL;
}

const struct key config_kubelet_keys[] = {
	{ "url", KEY_STRING, AT(machine.kubelet.url), NULL, "none",
	  "The kubelet of this node, asked for the names of pods and containers that no local file has: https://HOST:PORT. Over "
	  "http://, the read-only port, no token is sent.",
	  .refuse = kubelet_refuse_url, .flag = "kubelet", .arg = "URL" },
	{ "token-file", KEY_STRING, AT(machine.kubelet.token_file), ACCOUNT "token", NULL,
	  "The token it is asked with, read anew for each request.", .refuse = kubelet_refuse_path },
	{ "ca-file", KEY_STRING, AT(machine.kubelet.ca_file), ACCOUNT "ca.crt", NULL,
	  "Authorities that may have signed its certificate; no others are believed.", .refuse = kubelet_refuse_path },
	{ "insecure", KEY_BOOL, AT(machine.kubelet.insecure), "false", NULL,
	  "Believe any certificate, as kubelets sign their own unless they are told otherwise: who can answer in its place is "
	  "sent the token and says what pods are called." },
	{ 0 }
};

/* Keys below `spans:`. */

#define FN(field) .offset = offsetof(struct function_config, field)

static const char *refuse_binary(const char *s)
{
	return *s == '/' && strlen(s) < 1024 ? NULL : "an absolute path, shorter than 1024 bytes";
}

static const char *refuse_symbol(const char *s)
{
	return *s && strlen(s) < 256 ? NULL : "the name of a function or its offset in the file such as 0x1234";
}

/* Both keys are required. */
static int function_finish(void *elem, unsigned *lines, const struct origin *o, struct err *err)
{
	const struct function_config *f = elem;

	if (!f->binary)
		return key_error(o, "binary", err, "is missing; name the file that holds the function");
	if (!f->symbol)
		return key_error(o, "symbol", err, "is missing; name the function or its offset");
	return 0;
}

static const struct key function_keys[] = {
	{ "binary", KEY_STRING, FN(binary), NULL, "required",
	  "Program or library that holds the function. Copies at the same path in containers are probed too.",
	  .refuse = refuse_binary },
	{ "symbol", KEY_STRING, FN(symbol), NULL, "required",
	  "Its name in the symbol tables, or its offset in the file as 0x1234.", .refuse = refuse_symbol },
	{ 0 }
};

static const struct key_maps functions_maps = {
	.elem_size = sizeof(struct function_config),
	.count_offset = offsetof(struct config, machine.spans.n_functions),
	.line_offset = offsetof(struct function_config, line),
	.finish = function_finish,
};

const struct key config_spans_keys[] = {
	{ "processes", KEY_BOOL, AT(machine.spans.processes), "false", NULL,
	  "Keep a span of every process, from fork to exit: command, exit code or signal, CPU time, faults, peak memory, energy. "
	  "An output of format zico asks for it too." },
	{ "functions", KEY_MAPS, AT(machine.spans.functions), NULL, "none",
	  "Functions whose calls become spans below their process; at most 63. Needs the uprobe PMU.", .max = 63,
	  .sub = function_keys, .maps = &functions_maps },
	{ "budget", KEY_PERCENT, AT(machine.spans.budget), "1%", NULL,
	  "Share of one CPU that the probe of one function may cost. Above it the probe is taken away and comes back for "
	  "short looks; what it sees is scaled up and marked estimated and partial.",
	  .max = 100 },
	{ "max-processes", KEY_COUNT, AT(machine.spans.max_processes), "16384", NULL,
	  "Processes alive at once that are kept; those that do not fit are counted as lost.", .min = 64,
	  .max = 1048576 },
	{ "trace-period", KEY_DURATION, AT(machine.spans.period_ns), "10m", NULL,
	  "A tree of processes that lives on is handed over in parts of this length; the list of a ZICO collector holds no longer ones than 18 h.",
	  .min = 10 * NS_PER_S, .max = 64800 * NS_PER_S },
	{ "keep", KEY_BYTES, AT(serving.trace_bytes), "16MiB", NULL,
	  "Memory for traces that have ended, for GET /v1/spans and joulectl spans: about 15 spans in 16 KiB.",
	  .min = 64 << 10, .max = 1 << 30 },
	{ 0 }
};
