// SPDX-License-Identifier: Apache-2.0
/* Keys below `gpu:` and `meters:`. */
#include <string.h>
#include "config_keys.h"

#define MS 1000000ull
#define AT(field) .offset = offsetof(struct config, field)
#define MT(field) .offset = offsetof(struct meter_config, field)

static const char *const mode_words[] = { "auto", "none", NULL };
static const char *const type_words[] = { "hwmon", "serial", "command", "fifo", "shelly", "tasmota", "dcmi", NULL };

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
	{ "mode", KEY_WORD, AT(gpu), "auto", NULL,
	  "NVIDIA GPUs through the driver's own library, AMD and Intel through sysfs; none asks no driver.",
	  mode_words },
	{ "library", KEY_STRING, AT(gpu_library), NULL, "libnvidia-ml.so.1 of the system",
	  "Path of NVIDIA's management library.", .refuse = refuse_path },
	{ "wake", KEY_BOOL, AT(gpu_wake), "false", NULL,
	  "Also ask GPUs that runtime power management has put to sleep, which wakes them." },
	{ "pace", KEY_DURATION, AT(gpu_pace_ns), "100ms", NULL, "Time between two looks at power and energy.",
	  .min = 10 * MS, .max = 60000 * MS },
	{ 0 }
};

static int meter_finish(void *elem, unsigned *lines, const struct origin *o, struct err *err)
{
	const struct meter_config *m = elem;
	const char *t = m->type;

	if (!t)
		return key_error(o, "type", err,
				 "is missing; one of hwmon, serial, command, fifo, shelly, tasmota, dcmi");
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
	  "shelly and tasmota (plugs, over HTTP), dcmi (the board's own management controller).",
	  type_words },
	{ "device", KEY_STRING, MT(device), NULL, "hwmon: every chip with power; dcmi: /dev/ipmi0",
	  "Where it is: a serial line, a FIFO, the name of an hwmon chip or its hwmonN.", .refuse = refuse_device },
	{ "url", KEY_STRING, MT(url), NULL, "none", "Address of a plug, without the path.", .refuse = refuse_url },
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
	.count_offset = offsetof(struct config, n_meters),
	.line_offset = offsetof(struct meter_config, line),
	.finish = meter_finish,
};
