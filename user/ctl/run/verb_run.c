/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl run: runs a command in a cgroup of its own and prints its energy and use. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "model/snapshot.h"
#include "ctl/core/janitor.h"
#include "ctl/core/put.h"
#include "run_reading.h"
#include "child.h"
#include "ctl/core/verb.h"

#define FAILED 125 /* status of a failed run, as of env(1) and timeout(1); other statuses are those of the command */
#define REPEATS_MAX 100000
#define LOOK_MS 20000

enum { OPTION_REPEAT, OPTION_JSON, OPTION_CSV, OPTION_OUTPUT, OPTION_IDLE, OPTION_PRIVATE, OPTION_SOCKET };

static const struct verb_option options[] = {
	[OPTION_REPEAT] = { "repeat", 'r', "N", "run it N times; mean, standard deviation and 95 % interval" },
	[OPTION_JSON] = { "json", 'j', NULL, "one JSON object" },
	[OPTION_CSV] = { "csv", 0, NULL, "a table with a line per run" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the figures there instead of to stderr; - is stdout" },
	[OPTION_IDLE] = { "idle", 0, "POLICY",
			  "idle energy: own (not included), by-time or by-share; as the agent does unless given" },
	[OPTION_PRIVATE] = { "private", 'p', NULL, "start a private agent although one is running" },
	[OPTION_SOCKET] = { "socket", 0, "PATH",
			    "of the agent; JOULED_SOCKET or /run/jouled/jouled.sock unless given" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Runs a command in a cgroup of its own and says what it and all its children used, to stderr: energy and power by "
	"domain, CPU time, counters, switches, peak memory, network traffic, elapsed time. A reading of the agent before and "
	"one after make it exact however short it was. All of it counts from the exec of the command: what it took to make its "
	"process, to move it and to find its file is joulectl's. What is behind the command's name is the command's own.",
	"Where no agent is running a private one is started, and said; so too when --idle asks for what the running one does not do.",
	"The cgroup is made in the one of the caller, for root below the mount of the hierarchy. Without root the caller's has to be "
	"delegated: systemd-run --user --scope -p Delegate=yes joulectl run ...",
	"The command keeps the process group and the terminal; signals sent to joulectl are passed on. Processes that still run when "
	"the command has ended are named, moved to the cgroup of joulectl and left alone. The cgroup is removed in any case.",
	"A value that is no plain measurement says so: estimated, multiplexed, partial, lost. Counters are lost where other programs "
	"(a second agent, perf) hold them all.",
	"Exit status: that of the command (of the first run that failed), 128 + N when signal N ended it, 127 when it was not found, "
	"126 when it could not be executed, 125 when joulectl could not measure it and did not start it, 2 for a wrong option.",
	"In JSON a single run is an object with exit_status, wall_ns, cpu_ns, energy_uj, power_w, counters, quality and more; with "
	"--repeat there is a list of these, runs, and statistics. A key that is not known is left out.",
	NULL,
};

struct session {
	const struct verb_call *call;
	struct run_agent with;
	struct janitor *janitor;
	struct run_place place;
	struct run_descriptors descriptors;
	struct run_signals signals;
	struct run_result *results;
	unsigned repeats, done;
	/* The fields below are of the current run. */
	struct run_cgroup cgroup;
	struct run_rows rows;
	struct run_machine before; /* the reading at which counting begins */
};

static int options_read(struct session *s, struct err *err)
{
	static const char *const words[] = { "own", "by-time", "by-share" };
	const char *repeat = s->call->option[OPTION_REPEAT], *idle = s->call->option[OPTION_IDLE];
	uint64_t n = 1;
	unsigned i = 0;

	if (repeat && (parse_u64(repeat, &n) != 0 || n < 1 || n > REPEATS_MAX))
		return err_set(err, -EINVAL, "--repeat %.40s: no number from 1 to %d; write one such as -r 5", repeat,
			       REPEATS_MAX);
	while (idle && i < 3 && strcmp(idle, words[i]) != 0)
		i++;
	if (i == 3)
		return err_set(err, -EINVAL, "--idle %.40s: no such policy; one of own, by-time, by-share", idle);
	if (s->call->option[OPTION_JSON] && s->call->option[OPTION_CSV])
		return err_set(err, -EINVAL, "--json and --csv: only one of them can be written; leave one out");
	if (!s->call->n)
		return err_set(err, -EINVAL, "no command; joulectl run -- sleep 1");
	s->repeats = (unsigned)n;
	s->results = calloc(s->repeats, sizeof(*s->results));
	return s->results ? 0 : err_set(err, -ENOMEM, "out of memory; ask for fewer repeats");
}

static int set_up(struct session *s, struct err *err)
{
	char mount[RUN_PATH_MAX];
	const struct run_agent_wish wish = { .socket = s->call->option[OPTION_SOCKET],
					     .idle = s->call->option[OPTION_IDLE],
					     .use_private = s->call->option[OPTION_PRIVATE] };
	int rc = run_agent_find(&s->with, &wish, mount, err);

	if (!rc)
		rc = run_place_find(mount, &s->place, err);
	if (!rc)
		rc = janitor_start(run_place_sweep, &s->place, -1, &s->janitor, err);
	return rc;
}

/* Reads while the command runs, because the agent keeps the values of ended cgroups for a while only. */
static int look_meanwhile(void *arg)
{
	struct session *s = arg;
	struct run_machine now;

	if (run_cgroup_has_children(&s->cgroup))
		run_reading_ask(s->with.agent, s->cgroup.path, &(struct run_reading){ &s->with.facts, &now, &s->rows },
				NULL);
	return LOOK_MS;
}

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_usec * 1000;
}

static void take_end(struct session *s, const struct run_end *e, struct run_result *r)
{
	r->exit_status = run_exit_status(e);
	if (e->not_started) {
		snprintf(r->error, sizeof(r->error), "%.200s: %s", s->call->args[0], strerrordesc_np(e->not_started));
		return;
	}
	r->started = true;
	r->signal = WIFSIGNALED(e->status) ? WTERMSIG(e->status) : 0;
	r->wall_ns = e->wall_ns;
	r->user_ns = timeval_ns(e->usage.ru_utime);
	r->system_ns = timeval_ns(e->usage.ru_stime);
	r->memory_of_cgroup = run_cgroup_memory_peak(&s->cgroup, &r->memory_peak);
	if (!r->memory_of_cgroup)
		r->memory_peak = (uint64_t)e->usage.ru_maxrss * 1024;
	run_cgroup_list_left(&s->cgroup, &r->left);
}

static void measure_end(struct session *s, struct run_result *r)
{
	struct run_machine after;
	struct err err = { 0 };

	if (run_reading_ask(s->with.agent, s->cgroup.path, &(struct run_reading){ &s->with.facts, &after, &s->rows },
			    &err) != 0) {
		snprintf(r->error, sizeof(r->error), "%s", err.text);
	} else if (!s->rows.n) {
		snprintf(r->error, sizeof(r->error),
			 "it does not report %s; look at its cgroups.include, exclude and max, or use --private",
			 s->cgroup.path);
	} else {
		run_result_fill(r, &s->with.facts, &s->rows, &s->before, &after);
	}
}

/* ready of struct run_watch: the command's process waits in the cgroup. The fork and the move are not counted. */
static int count_from_here(void *arg, struct err *err)
{
	struct session *s = arg;
	int rc = run_reading_ask(s->with.agent, s->cgroup.path,
				 &(struct run_reading){ &s->with.facts, &s->before, &s->rows }, err);

	run_rows_start(&s->rows);
	return rc;
}

/* Runs the command once. 0 = it ran, or exec failed; negative errno: no command was started. */
static int one_run(struct session *s, struct run_result *r, struct err *err)
{
	const struct run_watch watch = {
		.ready = count_from_here, .tick = look_meanwhile, .arg = s, .first_ms = LOOK_MS, .fd = -1
	};
	struct run_end end = { 0 };
	int rc = run_cgroup_make(&s->place, &s->cgroup, err);

	run_descriptors_guard(&s->descriptors);
	if (!rc)
		rc = run_child(&(struct run_command){ s->call->args, &s->cgroup, &s->signals }, &watch, &end, err);
	if (!rc) {
		take_end(s, &end, r);
		if (r->started)
			measure_end(s, r);
	}
	run_cgroup_remove(&s->cgroup);
	run_rows_free(&s->rows);
	return rc;
}

static int run_all(struct session *s, struct err *err)
{
	int rc = run_signals_take(&s->signals, err);

	if (rc)
		return rc;
	while (!rc && s->done < s->repeats && !s->signals.told) {
		rc = one_run(s, &s->results[s->done], err);
		if (!rc && !s->results[s->done++].started)
			break;
	}
	return rc;
}

static int report(const struct session *s, int fd)
{
	struct run_report r = { .command = s->call->args, .facts = &s->with.facts, .runs = s->results, .n = s->done };
	const struct run_result *last = &s->results[s->done - 1];
	struct buf b = { 0 };
	int rc;

	for (unsigned i = 0; i < s->done && !r.exit_status; i++)
		r.exit_status = s->results[i].exit_status;
	if (!last->started)
		log_error("run: %s", last->error);
	if (s->call->option[OPTION_JSON])
		run_write_json(&r, &b);
	else if (s->call->option[OPTION_CSV])
		run_write_csv(&r, &b);
	else if (last->started)
		run_write_text(&r, &b);
	rc = b.failed ? -ENOMEM : put_all(fd, b.data, b.len);
	buf_free(&b);
	if (!rc)
		return r.exit_status;
	log_error("run: %s: %s; the figures are lost",
		  s->call->option[OPTION_OUTPUT] ? s->call->option[OPTION_OUTPUT] : "stderr", strerrordesc_np(-rc));
	return FAILED;
}

static void tear_down(struct session *s)
{
	run_agent_close(&s->with);
	janitor_dismiss(s->janitor);
	free(s->results);
}

static int open_output(const struct verb_call *call)
{
	const char *name = call->option[OPTION_OUTPUT];

	if (!name)
		return STDERR_FILENO;
	if (strcmp(name, "-") == 0)
		return STDOUT_FILENO;
	return open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static int run(const struct verb_call *call)
{
	struct session s = { .call = call };
	struct err err = { 0 };
	int fd, status = FAILED, rc = options_read(&s, &err);

	run_descriptors_note(&s.descriptors);
	if (rc) {
		log_error("run: %s", err.text);
		return CTL_USAGE;
	}
	fd = open_output(call);
	if (fd < 0)
		rc = err_set(&err, -errno, "%.200s: %s; name another file", call->option[OPTION_OUTPUT],
			     strerror(errno));
	if (!rc)
		rc = set_up(&s, &err);
	if (!rc)
		rc = run_all(&s, &err);
	if (rc)
		log_error("run: %s", err.text);
	if (s.done)
		status = report(&s, fd);
	tear_down(&s);
	if (fd > STDERR_FILENO)
		close(fd);
	return rc ? FAILED : status;
}

const struct verb verb_run = {
	.name = "run",
	.synopsis = "[--] COMMAND [ARGUMENT]...",
	.help = "Runs a command and says how much energy it used",
	.about = about,
	.options = options,
	.max_args = 1,
	.command = true,
	.lost_status = FAILED,
	.run = run,
};
