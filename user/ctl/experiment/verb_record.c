/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl record: runs a command and records it into an experiment tree. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "ctl/core/choice.h"
#include "ctl/core/janitor.h"
#include "ctl/core/verb.h"
#include "record.h"

#define FAILED 125 /* status of a failed recording; other statuses are those of the command */
#define REPEATS_MAX 100000
#define BASELINE_MAX_NS (24 * 3600 * NS_PER_S)
#define GPU_EVERY_NS (150 * NS_PER_MS) /* the pace of the original */
#define READING_EVERY_NS (250 * NS_PER_MS)
#define METERS_WAIT_NS (2 * NS_PER_S)
#define METERS_LOOK_NS (50 * NS_PER_MS)

enum {
	RECORD_ROOT,
	RECORD_EXPERIMENT,
	RECORD_BENCHMARK,
	RECORD_RUN,
	RECORD_REPEAT,
	RECORD_EVERY,
	RECORD_BASELINE,
	RECORD_GPU,
	RECORD_SAMPLES_FROM,
	RECORD_EXTERNAL_UNIT,
	RECORD_POWER_LIMIT,
	RECORD_APP_CLOCKS,
	RECORD_SWEEP,
	RECORD_RECOVER,
	RECORD_PRIVATE,
	RECORD_SOCKET,
};

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
	"total_power_samples.csv only when --samples-from asks for it, and system_info.json says so. That is said, and of every "
	"repetition what the original reader would stop at, leave out or take too little energy from.",
	"Limits need root and NVIDIA's driver. A guard process puts back what was set before, however this program ends.",
	"The running agent measures; where there is none, a private one is started and said.",
	"Exit status: that of the command (of the first repetition that failed, which is the last), 125 when it could not be "
	"recorded, 2 for a wrong option.",
	NULL,
};

static int read_every(struct record_plan *p, const char *text, struct err *err)
{
	uint64_t ns;

	p->gpu_every_ns = GPU_EVERY_NS;
	p->reading_every_ns = READING_EVERY_NS;
	if (!text)
		return 0;
	if (parse_duration_ns(text, &ns) != 0 || ns < 20 * NS_PER_MS || ns > 60 * NS_PER_S)
		return err_set(err, -EINVAL, "--every %.40s: no duration from 20ms to 60s; write one such as 100ms",
			       text);
	p->gpu_every_ns = p->reading_every_ns = ns;
	return 0;
}

static int read_baseline(struct record_plan *p, const char *text, struct err *err)
{
	if (text && (parse_duration_ns(text, &p->baseline_ns) != 0 || p->baseline_ns < NS_PER_S ||
		     p->baseline_ns > BASELINE_MAX_NS))
		return err_set(err, -EINVAL, "--baseline %.40s: no duration from 1s to 24h; write one such as 60s",
			       text);
	return 0;
}

static int read_settings(struct record_plan *p, const struct verb_call *call, struct err *err)
{
	const char *power = call->option[RECORD_POWER_LIMIT], *clocks = call->option[RECORD_APP_CLOCKS];
	const char *sweep = call->option[RECORD_SWEEP];
	struct record_setting *s = p->settings;
	char name[sizeof(s->name)];
	int rc = 0;

	if (sweep && (power || clocks))
		return err_set(err, -EINVAL,
			       "--sweep: it names the settings itself; leave --power-limit and --app-clocks out");
	if (sweep)
		return record_settings_sweep(sweep, p->settings, &p->n_settings, err);
	if (clocks)
		rc = record_setting_clocks(clocks, s, err);
	memcpy(name, s->name, sizeof(name));
	if (!rc && power)
		rc = record_setting_power(power, s, err);
	if (power && clocks && !rc)
		snprintf(s->name, sizeof(s->name), "%.24s,%uW", name, s->power_mw / 1000);
	p->n_settings = power || clocks;
	return rc;
}

/* Returns the name that the format document gives to a sweep of limits; NULL when the settings have limits of both
 * kinds or none. */
static const char *experiment_of(const struct record_plan *p)
{
	bool power = false, clocks = false;

	for (unsigned i = 0; i < p->n_settings; i++) {
		power |= p->settings[i].power_mw != 0;
		clocks |= p->settings[i].mem_mhz != 0;
	}
	return power == clocks ? NULL : power ? "power-limit" : "clock-limit";
}

static int need_name(const char *subject, const char *text, const char *example, struct err *err)
{
	if (!text)
		return err_set(err, -EINVAL, "%s is missing; write one such as %s %s", subject, subject, example);
	return recorder_name_check(subject, text, err);
}

static int read_names(struct record_plan *p, struct err *err)
{
	int rc = 0;

	if (!p->experiment)
		p->experiment = experiment_of(p);
	if (p->n_settings && p->run)
		return err_set(err, -EINVAL, "--run: with limits the run has their name, %s; leave it out",
			       p->settings[0].name);
	rc = need_name("--experiment", p->experiment, "training", err);
	if (!rc)
		rc = need_name("--benchmark", p->benchmark, "bert", err);
	if (!rc && !p->n_settings)
		rc = need_name("--run", p->run, "default", err);
	return rc;
}

static int read_choices(struct record_plan *p, const struct verb_call *call, struct err *err)
{
	static const char *const sources[] = { "gpu", "rapl", "cgroup", NULL }, *const units[] = { "mW", "10mW", NULL };
	int from = choice_word("record: --samples-from", call->option[RECORD_SAMPLES_FROM], sources, SAMPLES_GPU, err),
	    unit;

	if (from < 0)
		return from;
	unit = choice_word("record: --external-unit", call->option[RECORD_EXTERNAL_UNIT], units, 0, err);
	if (unit < 0)
		return unit;
	p->samples_from = (enum record_samples)from;
	p->external_uw = unit ? 10000 : 1000;
	return 0;
}

static int read_plan(struct record_plan *p, const struct verb_call *call, struct err *err)
{
	uint64_t repeats = 1;
	int rc;

	*p = (struct record_plan){
		.root = call->option[RECORD_ROOT],
		.experiment = call->option[RECORD_EXPERIMENT],
		.benchmark = call->option[RECORD_BENCHMARK],
		.run = call->option[RECORD_RUN],
		.gpus = call->option[RECORD_GPU],
		.socket = call->option[RECORD_SOCKET],
		.use_private = call->option[RECORD_PRIVATE],
		.command = call->n ? call->args : NULL,
	};
	if (!p->root || !*p->root)
		return err_set(err, -EINVAL, "--root is missing; name the directory of all experiments");
	if (call->option[RECORD_RECOVER])
		return p->command ?
			       err_set(err, -EINVAL, "--recover: it runs no command; leave %.60s out", p->command[0]) :
			       0;
	rc = read_every(p, call->option[RECORD_EVERY], err);
	if (!rc)
		rc = read_baseline(p, call->option[RECORD_BASELINE], err);
	if (!rc)
		rc = choice_number("record: --repeat", call->option[RECORD_REPEAT], choice_range(1, REPEATS_MAX),
				   &repeats, err);
	if (!rc)
		rc = read_choices(p, call, err);
	if (!rc)
		rc = read_settings(p, call, err);
	if (!rc)
		rc = read_names(p, err);
	if (!rc && !p->command)
		rc = err_set(err, -EINVAL, "no command; joulectl record --root DIR ... -- COMMAND");
	p->repeats = (unsigned)repeats;
	return rc;
}

/* A recording: the plan, the things that are open, and the current repetition. */
struct session {
	const struct record_plan *plan;
	struct record_kit kit;
	struct janitor *janitor;
	struct record_limits *limits; /* NULL = limits are not changed */
	struct record_outs outs;
	struct record_job job;
	struct record_result result;
	unsigned published;
};

/* The channels of a meter are known from its first value: an agent that began just now has not heard of all yet. */
static int devices(struct session *s, struct err *err)
{
	const uint64_t give_up_ns = clock_mono_ns() + METERS_WAIT_NS;
	struct record_devices *d = &s->outs.devices;
	int rc = record_devices_ask(s->kit.with.agent, 0, d, err);

	while (!rc && d->silent_meters && clock_mono_ns() < give_up_ns) {
		nanosleep(&(struct timespec){ .tv_nsec = METERS_LOOK_NS }, NULL);
		rc = record_devices_ask(s->kit.with.agent, 0, d, err);
	}
	if (!rc && d->silent_meters)
		log_warn(
			"record: %u power meter%s of the agent sent no value in %u s, and %s not in power-external.csv; see the "
			"agent's messages",
			d->silent_meters, d->silent_meters == 1 ? "" : "s", (unsigned)(METERS_WAIT_NS / NS_PER_S),
			d->silent_meters == 1 ? "is" : "are");
	return rc;
}

/* Where the agent splits no energy, the machine, GPUs, meters and counters are recorded all the same. */
static int check_split(const struct session *s, struct err *err)
{
	if (s->kit.with.facts.split)
		return 0;
	if (s->plan->samples_from == SAMPLES_CGROUP)
		return err_set(
			err, -ENODATA,
			"--samples-from cgroup: the agent gives no energy to cgroups (formula none); use --private, or set its formula");
	log_warn(
		"record: the agent gives no energy to cgroups (formula none), so there is no cgroup-power.csv; use --private, or set its formula");
	return 0;
}

static int set_up(struct session *s, struct err *err)
{
	const struct record_plan *plan = s->plan;
	const struct run_agent_wish wish = { .socket = plan->socket, .use_private = plan->use_private };
	struct record_kit *kit = &s->kit;
	char mount[RUN_PATH_MAX];
	int rc = run_agent_find(&kit->with, &wish, mount, err);

	if (!rc)
		rc = check_split(s, err);
	if (!rc)
		rc = run_place_find(mount, &kit->place, err);
	if (!rc)
		rc = janitor_start(run_place_sweep, &kit->place, -1, &s->janitor, err);
	if (!rc)
		rc = devices(s, err);
	if (!rc)
		rc = record_outs_choose(&s->outs, plan, err);
	if (!rc)
		record_outs_say(&s->outs);
	if (!rc && plan->n_settings)
		rc = record_outs_limit(&s->outs, plan->root, &s->limits, err);
	if (!rc)
		rc = run_signals_take(&kit->signals, err);
	return rc;
}

/* Runs one repetition. 0 = go on with the next; the exit status is in *ret. */
static int one(struct session *s, int *ret)
{
	struct err err = { 0 };
	int rc = record_repetition(&s->job, &s->kit, &s->outs, &s->result, &err);

	if (rc) {
		log_error("record: %s", err.text);
		*ret = FAILED;
		return rc;
	}
	*ret = run_exit_status(&s->result.end);
	if (s->result.end.not_started) {
		log_error("record: %.200s: %s", s->plan->command[0], strerrordesc_np(s->result.end.not_started));
		return -ECHILD;
	}
	rc = record_finish(&s->job, &s->kit, &s->outs, &s->result, &s->published);
	if (rc && !*ret)
		*ret = FAILED;
	return rc;
}

static int repeat(struct session *s, int *ret)
{
	int rc = 0;

	for (unsigned i = 0; i < s->plan->repeats && !rc; i++) {
		if (run_signals_look(&s->kit.signals))
			return -EINTR;
		s->job.number++;
		rc = one(s, ret);
	}
	return rc;
}

static int all_settings(struct session *s, int *ret)
{
	struct err err = { 0 };
	int rc = 0;

	for (unsigned i = 0; i < s->plan->n_settings && !rc; i++) {
		s->job.setting = &s->plan->settings[i];
		rc = record_limits_set(s->limits, s->job.setting, &err);
		if (rc) {
			log_error("record: %s", err.text);
			*ret = FAILED;
			return rc;
		}
		rc = repeat(s, ret);
	}
	return rc;
}

static int record_all(struct session *s)
{
	const struct record_plan *plan = s->plan;
	struct err err = { 0 };
	int status = FAILED, rc;

	if (plan->baseline_ns && record_baseline(plan, &s->kit, &s->outs, &err) != 0) {
		log_error("record: %s", err.text);
		return FAILED;
	}
	s->job = (struct record_job){ .plan = plan, .of = plan->repeats * (plan->n_settings ? plan->n_settings : 1) };
	rc = plan->n_settings ? all_settings(s, &status) : repeat(s, &status);
	if (rc == -EINTR)
		log_error("record: interrupted after %u repetitions; they are published", s->published);
	return rc && !status ? FAILED : status;
}

static int record(const struct record_plan *plan)
{
	struct session *s = calloc(1, sizeof(*s));
	struct err err = { 0 };
	int status = FAILED;

	if (!s) {
		log_error("record: out of memory; free some");
		return FAILED;
	}
	s->plan = plan;
	s->kit.terminal = isatty(STDERR_FILENO);
	run_descriptors_note(&s->kit.descriptors);
	if (!plan->n_settings && record_limits_left(plan->root))
		log_warn(
			"record: limits of a recording that was killed are still set; joulectl record --root %s --recover puts them back",
			plan->root);
	if (set_up(s, &err) != 0)
		log_error("record: %s", err.text);
	else
		status = record_all(s);
	if (record_limits_close(s->limits, &err) != 0) {
		log_error("record: %s", err.text);
		status = FAILED;
	}
	run_agent_close(&s->kit.with);
	janitor_dismiss(s->janitor);
	free(s);
	return status;
}

static int run(const struct verb_call *call)
{
	struct record_plan plan;
	struct err err = { 0 };

	if (read_plan(&plan, call, &err) != 0) {
		log_error("record: %s", err.text);
		return CTL_USAGE;
	}
	return call->option[RECORD_RECOVER] ? record_recover(&plan) : record(&plan);
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
