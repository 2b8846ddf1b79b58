/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl record: a command, measured into an experiment tree. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "janitor.h"
#include "record.h"
#include "record_options.h"

#define FAILED 125 /* of ours; other statuses are the command's */

static const struct verb_option options[] = {
	[RECORD_ROOT] = { "root", 0, "DIR", "directory of all experiments; made where it is missing" },
	[RECORD_EXPERIMENT] = { "experiment", 0, "NAME", "power-limit or clock-limit with limits unless given" },
	[RECORD_BENCHMARK] = { "benchmark", 0, "NAME", "what is run; one per GPU (NAME-gpuN) with several" },
	[RECORD_RUN] = { "run", 0, "NAME", "with which settings; limits have a name of their own" },
	[RECORD_REPEAT] = { "repeat", 'r', "N", "so many repetitions" },
	[RECORD_EVERY] = { "every", 0, "DURATION",
			   "between two rows; 150ms of GPUs and 250ms of the rest unless given" },
	[RECORD_BASELINE] = { "baseline", 0, "DURATION",
			      "first record the idle machine, into EXPERIMENT/_baseline (-gpuN with several GPUs)" },
	[RECORD_GPU] = { "gpu", 0, "UUID", "which GPU, by UUID, PCI address or gpu-N; several with commas; none" },
	[RECORD_SAMPLES_FROM] = { "samples-from", 0, "SOURCE",
				  "total_power_samples.csv of gpu, rapl or cgroup; gpu unless given" },
	[RECORD_EXTERNAL_UNIT] = { "external-unit", 0, "UNIT",
				   "of power-external.csv: mW, or 10mW as the original tooling reads it" },
	[RECORD_POWER_LIMIT] = { "power-limit", 0, "WATTS", "set this power limit while it runs" },
	[RECORD_APP_CLOCKS] = { "app-clocks", 0, "MEM,GPU", "set these application clocks, in MHz, while it runs" },
	[RECORD_SWEEP] = { "sweep", 0, "SETTINGS",
			   "one run after the other, \"150W 200W\" or \"877MHz,1065MHz 877MHz,1222MHz\"" },
	[RECORD_RECOVER] = { "recover", 0, NULL, "publish what a recording that was cut off has left" },
	[RECORD_PRIVATE] = { "private", 'p', NULL, "start a private agent although one is running" },
	[RECORD_SOCKET] = { "socket", 0, "PATH",
			    "of the agent; JOULED_SOCKET or /run/jouled/jouled.sock unless given" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Runs a command in a cgroup of its own, N times, and writes power, clocks, utilisation and samples of a GPU, external "
	"power, energy of the machine and of the cgroup, counters and events below DIR/EXPERIMENT/BENCHMARK/RUN/REPETITION, in "
	"the files of documents/data-model.rst (docs/formats/experiment.md). The program inside may add events with joulectl mark.",
	"Files grow in a directory that readers pass over, and are renamed to their place when the repetition is whole: so long "
	"nothing is published. A command that fails, a signal, a full disk or kill -9 leave that directory, at most a second "
	"short; joulectl record --root DIR --recover publishes it.",
	"Without a GPU there is no gpu-power.csv, and readers that want one pass the repetition over; RAPL is written as "
	"total_power_samples.csv only when --samples-from asks for it, and system_info.json says so.",
	"Limits need root and NVIDIA's driver. A guard process puts back what was set before, however this program ends.",
	"The running agent measures; where there is none, a private one is started and said.",
	"Exit status: that of the command (of the first repetition that failed, which is the last), 125 when it could not be "
	"recorded, 2 for a wrong option.",
	NULL,
};

static int set_up(struct record_session *s, struct err *err)
{
	const struct run_agent_wish wish = { .socket = s->o->socket, .use_private = s->o->use_private };
	char mount[RUN_PATH_MAX];
	int code = run_agent_find(&s->with, &wish, mount, err);

	if (!code)
		code = run_place_find(mount, &s->place, err);
	if (!code)
		code = janitor_start(run_place_sweep, &s->place, &s->janitor, err);
	if (!code)
		code = record_devices_ask(s->with.agent, 0, &s->devices, err);
	if (!code)
		code = record_gpus_choose(s, err);
	if (!code && s->o->n_settings)
		code = record_gpus_limit(s, err);
	if (!code)
		code = run_signals_take(&s->signals, err);
	return code;
}

/* 0 = go on; the exit status is in ret. */
static int one(struct record_session *s, int *ret, struct err *err)
{
	int code = record_repetition(s, err);

	if (code) {
		log_error("record: %s", err->text);
		*ret = FAILED;
		return code;
	}
	if (s->end.not_started) {
		log_error("record: %.200s: %s", s->o->command[0], strerrordesc_np(s->end.not_started));
		*ret = run_exit_status(&s->end);
		return -ECHILD;
	}
	*ret = run_exit_status(&s->end);
	code = record_finish(s, err);
	if (code && !*ret)
		*ret = FAILED;
	return code;
}

static int repeat(struct record_session *s, int *ret, struct err *err)
{
	int code = 0;

	for (unsigned i = 0; i < s->o->repeats && !code; i++) {
		if (run_signals_look(&s->signals))
			return -EINTR;
		s->number++;
		code = one(s, ret, err);
	}
	return code;
}

static int all_settings(struct record_session *s, int *ret, struct err *err)
{
	int code = 0;

	for (unsigned i = 0; i < s->o->n_settings && !code; i++) {
		s->setting = &s->o->settings[i];
		code = record_limits_set(s->limits, s->setting, err);
		if (code) {
			log_error("record: %s", err->text);
			*ret = FAILED;
			return code;
		}
		code = repeat(s, ret, err);
	}
	return code;
}

static int record_all(struct record_session *s)
{
	struct err err = { 0 };
	int ret = FAILED, code = 0;

	if (s->o->baseline_ns)
		code = record_baseline(s, &err);
	if (code) {
		log_error("record: %s", err.text);
		return FAILED;
	}
	s->number = 0;
	s->of = s->o->repeats * (s->o->n_settings ? s->o->n_settings : 1);
	code = s->o->n_settings ? all_settings(s, &ret, &err) : repeat(s, &ret, &err);
	if (code == -EINTR)
		log_error("record: interrupted after %u repetitions; they are published", s->published);
	return code && !ret ? FAILED : ret;
}

static void tear_down(struct record_session *s)
{
	run_agent_close(&s->with);
	janitor_dismiss(s->janitor);
}

static int record(const struct record_options *o)
{
	struct record_session *s = calloc(1, sizeof(*s));
	struct err err = { 0 };
	int status = FAILED, code;

	if (!s) {
		log_error("record: out of memory; free some");
		return FAILED;
	}
	s->o = o;
	s->terminal = isatty(STDERR_FILENO);
	run_descriptors_note(&s->descriptors);
	if (!o->n_settings && record_limits_left(o->root))
		log_warn(
			"record: limits of a recording that was killed are still set; joulectl record --root %s --recover puts them back",
			o->root);
	code = set_up(s, &err);
	if (code)
		log_error("record: %s", err.text);
	else
		status = record_all(s);
	if (record_limits_close(s->limits, &err) != 0) {
		log_error("record: %s", err.text);
		status = FAILED;
	}
	tear_down(s);
	free(s);
	return status;
}

static int run(const struct verb_call *call)
{
	struct record_options o;
	struct err err = { 0 };

	if (record_options_read(&o, call, &err) != 0) {
		log_error("record: %s", err.text);
		return CTL_USAGE;
	}
	return call->option[RECORD_RECOVER] ? record_recover(&o) : record(&o);
}

const struct verb verb_record = {
	.name = "record",
	.synopsis = "--root DIR --experiment NAME --benchmark NAME --run NAME [--] COMMAND [ARGUMENT]...",
	.help = "Runs a command and records it into an experiment tree",
	.about = about,
	.options = options,
	.max_args = 1,
	.command = true,
	.run = run,
};
