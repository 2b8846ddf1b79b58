/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../base/clock.h"
#include "../base/parse.h"
#include "choice.h"
#include "record.h"
#include "record_options.h"

#define REPEATS_MAX 100000
#define BASELINE_MAX_NS (24 * 3600 * NS_PER_S)

static int read_every(struct record_options *o, const char *text, struct err *err)
{
	uint64_t ns;

	o->gpu_every_ns = RECORD_GPU_EVERY_NS;
	o->reading_every_ns = RECORD_READING_EVERY_NS;
	if (!text)
		return 0;
	if (parse_duration_ns(text, &ns) != 0 || ns < 20 * NS_PER_MS || ns > 60 * NS_PER_S)
		return err_set(err, -EINVAL, "--every %.40s: no duration from 20ms to 60s; write one such as 100ms",
			       text);
	o->gpu_every_ns = o->reading_every_ns = ns;
	return 0;
}

static int read_baseline(struct record_options *o, const char *text, struct err *err)
{
	if (text && (parse_duration_ns(text, &o->baseline_ns) != 0 || o->baseline_ns < NS_PER_S ||
		     o->baseline_ns > BASELINE_MAX_NS))
		return err_set(err, -EINVAL, "--baseline %.40s: no duration from 1s to 24h; write one such as 60s",
			       text);
	return 0;
}

static int read_settings(struct record_options *o, const struct verb_call *call, struct err *err)
{
	const char *power = call->option[RECORD_POWER_LIMIT], *clocks = call->option[RECORD_APP_CLOCKS];
	const char *sweep = call->option[RECORD_SWEEP];
	struct record_setting *s = o->settings;
	char name[sizeof(s->name)];
	int code = 0;

	if (sweep && (power || clocks))
		return err_set(err, -EINVAL,
			       "--sweep: it names the settings itself; leave --power-limit and --app-clocks out");
	if (sweep)
		return record_settings_sweep(sweep, o->settings, &o->n_settings, err);
	if (clocks)
		code = record_setting_clocks(clocks, s, err);
	memcpy(name, s->name, sizeof(name));
	if (!code && power)
		code = record_setting_power(power, s, err);
	if (power && clocks && !code)
		snprintf(s->name, sizeof(s->name), "%.24s,%uW", name, s->power_mw / 1000);
	o->n_settings = power || clocks;
	return code;
}

/* The experiments of the document; NULL when the settings are of both kinds. */
static const char *experiment_of(const struct record_options *o)
{
	bool power = false, clocks = false;

	for (unsigned i = 0; i < o->n_settings; i++) {
		power |= o->settings[i].power_mw != 0;
		clocks |= o->settings[i].mem_mhz != 0;
	}
	return power == clocks ? NULL : power ? "power-limit" : "clock-limit";
}

static int need_name(const char *subject, const char *text, const char *example, struct err *err)
{
	if (!text)
		return err_set(err, -EINVAL, "%s is missing; write one such as %s %s", subject, subject, example);
	return recorder_name_check(subject, text, err);
}

static int read_names(struct record_options *o, struct err *err)
{
	int code = 0;

	if (!o->experiment)
		o->experiment = experiment_of(o);
	if (o->n_settings && o->run)
		return err_set(err, -EINVAL, "--run: with limits the run has their name, %s; leave it out",
			       o->settings[0].name);
	code = need_name("--experiment", o->experiment, "training", err);
	if (!code)
		code = need_name("--benchmark", o->benchmark, "bert", err);
	if (!code && !o->n_settings)
		code = need_name("--run", o->run, "default", err);
	return code;
}

static int read_choices(struct record_options *o, const struct verb_call *call, struct err *err)
{
	static const char *const sources[] = { "gpu", "rapl", "cgroup", NULL }, *const units[] = { "mW", "10mW", NULL };
	int from = choice_word("record: --samples-from", call->option[RECORD_SAMPLES_FROM], sources, SAMPLES_GPU, err),
	    unit;

	if (from < 0)
		return from;
	unit = choice_word("record: --external-unit", call->option[RECORD_EXTERNAL_UNIT], units, 0, err);
	if (unit < 0)
		return unit;
	o->samples_from = (enum record_samples)from;
	o->external_uw = unit ? 10000 : 1000;
	return 0;
}

int record_options_read(struct record_options *o, const struct verb_call *call, struct err *err)
{
	uint64_t repeats = 1;
	int code;

	*o = (struct record_options){
		.root = call->option[RECORD_ROOT],
		.experiment = call->option[RECORD_EXPERIMENT],
		.benchmark = call->option[RECORD_BENCHMARK],
		.run = call->option[RECORD_RUN],
		.gpus = call->option[RECORD_GPU],
		.socket = call->option[RECORD_SOCKET],
		.use_private = call->option[RECORD_PRIVATE],
		.command = call->n ? call->args : NULL,
	};
	if (!o->root || !*o->root)
		return err_set(err, -EINVAL, "--root is missing; name the directory of all experiments");
	if (call->option[RECORD_RECOVER])
		return o->command ?
			       err_set(err, -EINVAL, "--recover: it runs no command; leave %.60s out", o->command[0]) :
			       0;
	code = read_every(o, call->option[RECORD_EVERY], err);
	if (!code)
		code = read_baseline(o, call->option[RECORD_BASELINE], err);
	if (!code)
		code = choice_number("record: --repeat", call->option[RECORD_REPEAT], 1, REPEATS_MAX, &repeats, err);
	if (!code)
		code = read_choices(o, call, err);
	if (!code)
		code = read_settings(o, call, err);
	if (!code)
		code = read_names(o, err);
	if (!code && !o->command)
		code = err_set(err, -EINVAL, "no command; joulectl record --root DIR ... -- COMMAND");
	o->repeats = (unsigned)repeats;
	return code;
}
