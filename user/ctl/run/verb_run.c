/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl run: runs a command in a cgroup of its own and prints its energy and use. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "ctl/core/put.h"
#include "ctl/core/verb.h"
#include "run_attached.h"
#include "run_gate.h"
#include "run_rounds.h"

#define FAILED 125 /* status of a failed run, as of env(1) and timeout(1); other statuses are those of the command */

static const char *const about[] = {
	"Runs a command in a cgroup of its own and says what it and all its children used, to stderr: energy and power by "
	"domain, CPU time, counters, switches, peak memory, network traffic, bytes of block devices, elapsed time. A reading of the agent before and "
	"one after make it exact however short it was. All of it counts from the exec of the command: what it took to make its "
	"process, to move it and to find its file is joulectl's. What is behind the command's name is the command's own.",
	"Where no agent is running a private one is started, and said; so too when --idle asks for what the running one does not do.",
	"The cgroup is made in the one of the caller, for root below the mount of the hierarchy. Without root the caller's has to be "
	"delegated: systemd-run --user --scope -p Delegate=yes joulectl run ...",
	"The command keeps the process group and the terminal; signals sent to joulectl are passed on. Processes that still run when "
	"the command has ended are named, moved to the cgroup of joulectl and left alone. The cgroup is removed in any case.",
	"A value that is no plain measurement says so: estimated, multiplexed, partial, lost. Counters are lost where other programs "
	"(a second agent, perf) hold them all.",
	"A command that is one string with a space runs through /bin/sh, unless there is a file of that name; joulectl says so. Options "
	"may stand behind such a string, and behind a word that --vs follows.",
	"With --vs the commands run by turns: each once a round, in random order, so that what changes on the machine changes for all of "
	"them. The answer is a ratio of means with its 95 % interval, by bootstrap over the rounds: B uses 1.42 x (1.38 to 1.46) the "
	"energy of A. Where there is no energy, it is about CPU time. The seed of the order and of the bootstrap is told; --seed repeats "
	"both. On a terminal a line shows the run and the time left.",
	"The gate: --base-cmd OLD runs by turns with the command, at most -r 40 rounds, until a change of --fail 2% is told from none, with "
	"at most 1 % false alarms whenever it stops. --against FILE takes the runs that --save wrote instead, if machine, frequency, "
	"formula, domains, events, figure and quality are the same. The verdict is better, same, worse, cannot tell, or refused. Exit status "
	"of the gate: 0 better or same, 1 worse, 2 cannot tell, 3 refused, 125 not measured.",
	"--cgroup /PATH and --pid PID measure what already runs, for -d 30s, or until Ctrl-C or its end. A cgroup is the sum of its row and "
	"of those below it, ended ones too. A process has the row of its cgroup if it is alone there; else the part of the row that is "
	"its part of the CPU time, marked estimated. The output says which (by: rows, row, cpu-share). Its children are not counted.",
	"Exit status otherwise: that of the command (of the first run that failed), 128 + N when signal N ended it, 127 when it was not found, "
	"126 when it could not be executed, 125 when joulectl could not measure it and did not start it, 2 for a wrong option.",
	"In JSON a single run is an object with exit_status, wall_ns, cpu_ns, energy_uj, power_w, counters, quality and more; with "
	"--repeat there is a list of these, runs, and statistics; with --vs a list of commands, sides, and one of comparisons. A key "
	"that is not known is left out.",
	NULL,
};

/* The report of a command alone. */
static void write_one(const struct verb_call *call, const struct run_comparison *c, struct buf *b)
{
	const struct run_report *r = &c->side[0];

	if (call->option[RUN_OPTION_JSON]) {
		run_write_json(r, b);
	} else if (call->option[RUN_OPTION_CSV]) {
		run_write_csv(r, b);
	} else if (call->option[RUN_OPTION_MARKDOWN]) {
		series_write_markdown(c->series, b);
	} else if (r->runs[r->n - 1].started) {
		run_write_text(r, b);
		if (r->n > 1) {
			series_write_spread(c->series, b);
			buf_printf(b, "\n Input of every run: %s.\n\n", c->input);
		}
	}
}

static void add_verdict(const struct run_comparison *c, const char *before, const char *after, struct buf *b)
{
	if (!c->gate)
		return;
	buf_add_str(b, before);
	gate_write_sentence(c->gate, b);
	buf_add_str(b, after);
}

static void write_many(const struct verb_call *call, const struct run_comparison *c, struct buf *b)
{
	const struct series *s = c->series;

	if (call->option[RUN_OPTION_JSON]) {
		run_write_comparison_json(c, b);
	} else if (call->option[RUN_OPTION_CSV]) {
		run_write_comparison_csv(c, b);
	} else if (call->option[RUN_OPTION_MARKDOWN]) {
		add_verdict(c, "**", "**\n\n", b);
		series_write_markdown(s, b);
	} else if (s->n_rounds) {
		series_write_text(s, b);
		add_verdict(c, " ", "\n", b);
		buf_printf(b, " %u round%s in random order (seed %llu). Input of every run: %s.\n", s->n_rounds,
			   s->n_rounds == 1 ? "" : "s", (unsigned long long)s->seed, c->input);
		for (unsigned k = 0; k < c->n_sides; k++)
			run_write_notes(&c->side[k], k == 0, b);
		buf_add_char(b, '\n');
	}
}

/* Says which command could not be started, or that none did all its runs. */
static void tell_failures(const struct run_comparison *c)
{
	for (unsigned k = 0; k < c->n_sides; k++) {
		const struct run_report *r = &c->side[k];

		if (r->n && !r->runs[r->n - 1].started)
			log_error("run: %s", r->runs[r->n - 1].error);
	}
}

static int exit_status(const struct run_comparison *c)
{
	int status = 0;

	for (unsigned k = 0; k < c->n_sides && !status; k++)
		status = c->side[k].exit_status;
	return status;
}

/* Writes the further files that were asked for. 0, or negative errno with err. */
static int write_files(const struct verb_call *call, const struct run_comparison *c, struct err *err)
{
	const char *const path[] = { call->option[RUN_OPTION_JUNIT], call->option[RUN_OPTION_BADGE],
				     call->option[RUN_OPTION_HYPERFINE], call->option[RUN_OPTION_PLOT] };
	int rc = 0;

	for (unsigned i = 0; i < 4 && !rc; i++) {
		struct buf b = { 0 };

		if (!path[i])
			continue;
		if (i == 3)
			series_write_plot(c->series, &b);
		else if (i == 2)
			gate_write_hyperfine(c->series, &b);
		else
			(i ? gate_write_badge : gate_write_junit)(c->gate, &b);
		rc = put_file(path[i], &b, err);
		buf_free(&b);
	}
	if (!rc && call->option[RUN_OPTION_SAVE])
		rc = run_gate_save(call->option[RUN_OPTION_SAVE], c, err);
	return rc;
}

static int report(const struct verb_call *call, const struct run_rounds *r, struct run_gate *gate, int fd)
{
	const char *output = call->option[RUN_OPTION_OUTPUT];
	struct run_comparison c;
	struct series s;
	struct buf b = { 0 };
	struct err err = { 0 };
	int rc = run_rounds_compare(r, &c, &s), status;

	tell_failures(&c);
	if (!rc && r->plan.gate) {
		run_gate_judge(gate, &r->plan, &c);
		c.gate = &gate->gate;
	}
	status = c.gate ? gate_status(c.gate) : exit_status(&c);
	if (!rc && write_files(call, &c, &err)) {
		log_error("run: %s", err.text);
		status = FAILED;
	}
	if (!rc && (c.n_sides > 1 || c.gate))
		write_many(call, &c, &b);
	else if (!rc)
		write_one(call, &c, &b);
	if (!rc)
		rc = b.failed ? -ENOMEM : put_all(fd, b.data, b.len);
	buf_free(&b);
	series_free(&s);
	if (!rc)
		return status;
	err_write(&err, rc, output ? output : "stderr", "the figures are lost");
	log_error("run: %s", err.text);
	return FAILED;
}

static int open_output(const struct verb_call *call)
{
	const char *name = call->option[RUN_OPTION_OUTPUT];

	if (!name)
		return STDERR_FILENO;
	if (strcmp(name, "-") == 0)
		return STDOUT_FILENO;
	return open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

/* 0, or -EINVAL with err: there is no figure of the name that --figure gave. */
static int look_for_figure(const struct run_rounds *r, struct err *err)
{
	struct run_comparison c;
	struct series s;
	char all[300] = "";
	int rc = run_rounds_compare(r, &c, &s) || !r->plan.figure ? 0 : -EINVAL;

	for (unsigned m = 0; m < s.n_metrics && rc; m++) {
		size_t at = strlen(all);

		snprintf(all + at, sizeof(all) - at, "%s%s", at ? ", " : "", s.metric[m].name);
		rc = strcmp(s.metric[m].name, r->plan.figure) == 0 ? 0 : rc;
	}
	series_free(&s);
	return rc ? err_set(err, rc, "--figure %.100s: not measured here; one of %s", r->plan.figure, all) : 0;
}

static struct run_agent_wish wish_of(const struct verb_call *call)
{
	return (struct run_agent_wish){ .socket = call->option[RUN_OPTION_SOCKET],
					.idle = call->option[RUN_OPTION_IDLE],
					.events = call->option[RUN_OPTION_EVENTS],
					.use_private = call->option[RUN_OPTION_PRIVATE] };
}

/* Reads what the command line says of costs. 0, or -EINVAL or another errno with err. */
static int read_cost(const struct verb_call *call, struct cost *ret, struct err *err)
{
	const char *price = call->option[RUN_OPTION_PRICE], *carbon = call->option[RUN_OPTION_CARBON];
	int rc = price ? cost_set_price(ret, price, err) : 0;

	return rc || !carbon ? rc : cost_set_carbon(ret, carbon, err);
}

/* Takes from the agent what the command line does not say. */
static void complete_cost(struct cost *c, const struct run_facts *f)
{
	if (!cost_has_price(c) && f->has_price)
		c->price = f->price;
	if (!cost_has_carbon(c) && f->has_carbon)
		c->g_per_kwh = f->carbon_g;
}

/* Measures and reports. */
static int run_planned(const struct verb_call *call, struct run_rounds *r, struct run_gate *gate, struct cost *cost)
{
	const struct run_agent_wish wish = wish_of(call);
	struct err err = { 0 };
	int fd = open_output(call), rc = 0, status = FAILED;

	if (r->plan.gate) {
		r->enough = run_gate_enough;
		r->arg = gate;
	}

	if (fd < 0)
		rc = err_write(&err, -errno, call->option[RUN_OPTION_OUTPUT], NULL);
	if (!rc)
		rc = run_gate_open(gate, &r->plan, &err);
	if (!rc)
		rc = run_measure_open(&r->measure, &wish, &err);
	complete_cost(cost, &r->measure.with.facts);
	if (!rc)
		rc = look_for_figure(r, &err);
	if (!rc)
		rc = run_rounds_run(r, &err);
	if (rc)
		log_error("run: %s", err.text);
	if (r->n_rounds && r->done[r->order[0]])
		status = report(call, r, gate, fd);
	run_measure_close(&r->measure);
	if (fd > STDERR_FILENO)
		close(fd);
	return rc ? FAILED : status;
}

static int report_attached(const struct verb_call *call, const struct run_attached_end *end, const struct cost *cost,
			   int fd)
{
	const struct run_report r = {
		.attached = &end->what, .text = "", .facts = &end->facts, .cost = cost, .runs = &end->result, .n = 1
	};
	struct buf b = { 0 };
	struct err err = { 0 };
	int rc;

	if (call->option[RUN_OPTION_JSON])
		run_write_json(&r, &b);
	else if (call->option[RUN_OPTION_CSV])
		run_write_csv(&r, &b);
	else
		run_write_text(&r, &b);
	rc = b.failed ? -ENOMEM : put_all(fd, b.data, b.len);
	buf_free(&b);
	if (rc) {
		err_write(&err, rc, "output", "the figures are lost");
		log_error("run: %s", err.text);
	}
	return rc ? FAILED : CTL_OK;
}

/* Measures what already runs. */
static int run_attached(const struct verb_call *call, struct cost *cost)
{
	const struct run_agent_wish wish = wish_of(call);
	struct run_attached_plan plan = { 0 };
	struct run_attached_end end = { 0 };
	struct err err = { 0 };
	int status = FAILED, fd;

	if (run_attached_read(call, &plan, &err) != 0) {
		log_error("run: %s", err.text);
		return CTL_USAGE;
	}
	fd = open_output(call);
	if (fd < 0)
		err_write(&err, -errno, call->option[RUN_OPTION_OUTPUT], NULL);
	if (fd < 0)
		log_error("run: %s", err.text);
	else if (run_attached_measure(&plan, &wish, &end, &err) != 0)
		log_error("run: %s", err.text);
	else {
		complete_cost(cost, &end.facts);
		status = report_attached(call, &end, cost, fd);
	}
	if (fd > STDERR_FILENO)
		close(fd);
	return status;
}

static int run_commands(const struct verb_call *call, struct cost *cost)
{
	struct run_rounds r = { .cost = cost, .input_fd = -1 };
	struct run_gate gate = { 0 };
	struct err err = { 0 };
	int status = CTL_USAGE;

	run_descriptors_note(&r.measure.descriptors);
	if (run_plan_read(call, &r.plan, &err) != 0)
		log_error("run: %s", err.text);
	else
		status = run_planned(call, &r, &gate, cost);
	run_rounds_free(&r);
	run_gate_free(&gate);
	run_plan_free(&r.plan);
	return status;
}

static int run(const struct verb_call *call)
{
	struct cost cost;
	struct err err = { 0 };
	int status = CTL_USAGE;

	cost_init(&cost);
	if (read_cost(call, &cost, &err) != 0)
		log_error("run: %s", err.text);
	else
		status = (run_attached_asked(call) ? run_attached : run_commands)(call, &cost);
	cost_free(&cost);
	return status;
}

const struct verb verb_run = {
	.name = "run",
	.synopsis = "[--] COMMAND [ARGUMENT]... | --pid PID | --cgroup /PATH",
	.help = "Runs commands, says how much energy they used, and compares them",
	.about = about,
	.options = run_options,
	.max_args = 1,
	.command = true,
	.goes_on = run_plan_goes_on,
	.lost_status = FAILED,
	.run = run,
};
