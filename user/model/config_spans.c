// SPDX-License-Identifier: Apache-2.0
/* Keys below `spans:`. */
#include <string.h>
#include "../base/clock.h"
#include "config_keys.h"

#define AT(field) .offset = offsetof(struct config, field)
#define FN(field) .offset = offsetof(struct function_config, field)

static const char *refuse_binary(const char *s)
{
	return *s == '/' && strlen(s) < 1024 ? NULL : "an absolute path, shorter than 1024 bytes";
}

static const char *refuse_symbol(const char *s)
{
	return *s && strlen(s) < 256 ? NULL : "the name of a function or its offset in the file such as 0x1234";
}

/* Both keys or nothing. */
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
	.count_offset = offsetof(struct config, n_spans_functions),
	.line_offset = offsetof(struct function_config, line),
	.finish = function_finish,
};

const struct key config_spans_keys[] = {
	{ "processes", KEY_BOOL, AT(spans_processes), "false", NULL,
	  "Keep a span of every process, from fork to exit: command, exit code or signal, CPU time, faults, peak memory, energy. "
	  "An output of format zico asks for it too." },
	{ "functions", KEY_MAPS, AT(spans_functions), NULL, "none",
	  "Functions whose calls become spans below their process; at most 63. Needs the uprobe PMU.", .max = 63,
	  .sub = function_keys, .maps = &functions_maps },
	{ "budget", KEY_PERCENT, AT(spans_budget), "1%", NULL,
	  "Share of one CPU that the probe of one function may cost. Above it the probe is taken away and comes back for "
	  "short looks; what it sees is scaled up and marked estimated and partial.",
	  .max = 100 },
	{ "max-processes", KEY_COUNT, AT(spans_max), "16384", NULL,
	  "Processes alive at once that are kept; those that do not fit are counted as lost.", .min = 64,
	  .max = 1048576 },
	{ "trace-period", KEY_DURATION, AT(spans_period_ns), "10m", NULL,
	  "A tree of processes that lives on is handed over in parts of this length; the list of a ZICO collector holds no longer ones than 18 h.",
	  .min = 10 * NS_PER_S, .max = 64800 * NS_PER_S },
	{ "keep", KEY_BYTES, AT(spans_keep), "16MiB", NULL,
	  "Memory for traces that have ended, for GET /v1/spans and joulectl spans: about 15 spans in 16 KiB.",
	  .min = 64 << 10, .max = 1 << 30 },
	{ 0 }
};
