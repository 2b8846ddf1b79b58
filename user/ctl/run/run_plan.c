/* SPDX-License-Identifier: Apache-2.0 */
#include "run_plan.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"
#include "ctl/core/choice.h"

#define WARMUP_MAX 1000
#define ROUNDS_OF_COMPARISON 10
#define ROUNDS_OF_GATE 40 /* at most; the gate ends the runs when it can tell */
#define FAIL 0.02

const struct verb_option run_options[RUN_OPTIONS + 1] = {
	[RUN_OPTION_REPEAT] = { "repeat", 'r', "N",
				"run it N times; mean, median, spread and 95 % interval; with --vs 10 unless given" },
	[RUN_OPTION_VS] = { "vs", 0, "COMMAND...",
			    "compare with this command, a string; up to 7 times; runs are interleaved in random order" },
	[RUN_OPTION_UNTIL] = { "until", 0, "PERCENT",
			       "run until half the interval of the mean is below this part of it, at most -r times (1000)" },
	[RUN_OPTION_WARMUP] = { "warmup", 'w', "N", "run each command N times before, unmeasured" },
	[RUN_OPTION_SETUP] = { "setup", 0, "SHELL-COMMAND", "run this before all; unmeasured" },
	[RUN_OPTION_PREPARE] = { "prepare", 0, "SHELL-COMMAND",
				 "run this before each run; unmeasured; JOULED_SIDE is A, B ..." },
	[RUN_OPTION_CLEANUP] = { "cleanup", 0, "SHELL-COMMAND", "run this after all; unmeasured" },
	[RUN_OPTION_INPUT] = { "input", 0, "FILE",
			       "standard input of every run; - is that of joulectl, read once; of several runs /dev/null "
			       "unless given" },
	[RUN_OPTION_SEED] = { "seed", 0, "N", "of the random order and the intervals; another each time unless given" },
	[RUN_OPTION_FIGURE] = { "figure", 0, "NAME",
				"what the answer is about: energy (default), time, cpu, or the name of a counter" },
	[RUN_OPTION_SAVE] = { "save", 0, "FILE", "write the runs of the command there, for --against" },
	[RUN_OPTION_AGAINST] = { "against", 0, "FILE", "judge the command against runs that --save wrote" },
	[RUN_OPTION_BASE_CMD] = { "base-cmd", 0, "COMMAND",
				  "judge the command against this one, which runs by turns with it" },
	[RUN_OPTION_FAIL] = { "fail", 0, "PERCENT", "the change that the verdict is about; 2% unless given" },
	[RUN_OPTION_JUNIT] = { "junit", 0, "FILE", "write the verdict there as JUnit XML" },
	[RUN_OPTION_BADGE] = { "badge", 0, "FILE", "write the verdict there as a small picture, SVG" },
	[RUN_OPTION_HYPERFINE] = { "hyperfine", 0, "FILE", "write the figures there as hyperfine --export-json does" },
	[RUN_OPTION_PLOT] = { "plot", 0, "FILE", "write a picture of all runs there, SVG" },
	[RUN_OPTION_JSON] = { "json", 'j', NULL, "one JSON object" },
	[RUN_OPTION_CSV] = { "csv", 0, NULL, "a table with a line per run" },
	[RUN_OPTION_MARKDOWN] = { "markdown", 0, NULL, "a Markdown table with a line per command" },
	[RUN_OPTION_OUTPUT] = { "output", 'o', "FILE", "write the figures there instead of to stderr; - is stdout" },
	[RUN_OPTION_IDLE] = { "idle", 0, "POLICY",
			      "idle energy: own (not included), by-time or by-share; as the agent does unless given" },
	[RUN_OPTION_EVENTS] = { "events", 'e', "EVENTS",
				"counters, with commas between; starts a private agent that reads no configuration" },
	[RUN_OPTION_PRIVATE] = { "private", 'p', NULL, "start a private agent although one is running" },
	[RUN_OPTION_SOCKET] = { "socket", 0, "PATH",
				"of the agent; JOULED_SOCKET or /run/jouled/jouled.sock unless given" },
	[RUN_OPTION_PRICE] = { "price", 0, "N", "of a kWh, for costs; default the configuration's price" },
	[RUN_OPTION_CARBON] = { "carbon", 0, "N|FILE",
				"grams of CO2 per kWh, or a file with lines TIME,GRAMS; default the configuration's carbon, as it is now" },
	[RUN_OPTION_PID] = { "pid", 0, "PID", "measure this process, which already runs, instead of a command" },
	[RUN_OPTION_CGROUP] = { "cgroup", 0, "/PATH", "measure this cgroup and those below it instead of a command" },
	[RUN_OPTION_DURATION] = { "duration", 'd', "TIME",
				  "how long to measure --pid or --cgroup; until Ctrl-C or its end unless given" },
	{ NULL, 0, NULL, NULL },
};

/* Is the word a command line for the shell? A file of that name is no command line. */
static bool is_command_line(const char *word)
{
	return word[strcspn(word, " \t\n|&;<>()$")] && access(word, F_OK) != 0;
}

/* Options go on behind a word that is a whole command line, and behind a word where --vs stands among those after it. */
bool run_plan_goes_on(int argc, char **argv)
{
	if (is_command_line(argv[0]))
		return true;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--vs") == 0 || strncmp(argv[i], "--vs=", 5) == 0)
			return true;
	return false;
}

static int read_side(struct run_side *s, char **words, struct err *err)
{
	struct buf b = { 0 };

	for (char **w = words; *w; w++) {
		buf_add_str(&b, w == words ? "" : " ");
		buf_add_str(&b, *w);
	}
	buf_add_char(&b, '\0');
	if (b.failed)
		return err_set(err, -ENOMEM, "out of memory; free some");
	s->text = (char *)b.data;
	s->words = s->argv = words;
	if (!*s->text)
		return err_set(err, -EINVAL, "a command is empty; joulectl run -- sleep 1");
	if (words[1] || !is_command_line(words[0]))
		return 0;
	s->shell[0] = "sh";
	s->shell[1] = "-c";
	s->shell[2] = words[0];
	s->argv = s->shell;
	return 0;
}

/* A side that is one string. */
static int read_string(struct run_side *s, const char *text, struct err *err)
{
	s->string[0] = (char *)text;
	return read_side(s, s->string, err);
}

static void tell_shell(const struct run_plan *p)
{
	char shown[200];

	for (unsigned i = 0; i < p->n_sides; i++)
		if (p->side[i].argv == p->side[i].shell)
			dprintf(STDERR_FILENO, "joulectl: '%s' runs through /bin/sh, whose work is counted with it\n",
				text_escape(shown, sizeof(shown), p->side[i].text));
}

static int read_sides(const struct verb_call *call, struct run_plan *p, struct err *err)
{
	int rc;

	if (!call->n)
		return err_set(err, -EINVAL, "no command; joulectl run -- sleep 1");
	if (call->n_several >= SERIES_SIDES_MAX)
		return err_set(err, -EINVAL, "--vs: more than %d commands to compare with; leave some out",
			       SERIES_SIDES_MAX - 1);
	if (call->option[RUN_OPTION_BASE_CMD]) {
		p->base_runs = true;
		rc = read_string(&p->side[p->n_sides++], call->option[RUN_OPTION_BASE_CMD], err);
		if (rc)
			return rc;
	}
	rc = call->n > 1 ? read_side(&p->side[p->n_sides++], call->args, err) :
			   read_string(&p->side[p->n_sides++], call->args[0], err);
	for (unsigned i = 0; !rc && i < call->n_several; i++)
		rc = read_string(&p->side[p->n_sides++], call->several[i], err);
	if (!rc)
		tell_shell(p);
	return rc;
}

/* Reads "2%" or "2". */
static int read_percent(const char *subject, const char *text, double *ret, struct err *err)
{
	char number[32];
	size_t len = text ? strlen(text) : 0;
	double v;

	if (!text)
		return 0;
	snprintf(number, sizeof(number), "%.*s", (int)(len && text[len - 1] == '%' ? len - 1 : len), text);
	if (len >= sizeof(number) || parse_double(number, &v) != 0 || v < 0.01 || v > 100)
		return err_set(err, -EINVAL, "%s %.40s: no percentage from 0.01 to 100; write one such as 2%%", subject,
			       text);
	*ret = v / 100;
	return 0;
}

static int read_rounds(const struct verb_call *call, struct run_plan *p, struct err *err)
{
	const char *repeat = call->option[RUN_OPTION_REPEAT];
	bool until = call->option[RUN_OPTION_UNTIL];
	uint64_t max = p->n_sides > 1 || p->gate ? RUN_ROUNDS_MAX : RUN_REPEATS_MAX;
	uint64_t n = until          ? RUN_ROUNDS_MAX :
		     p->gate        ? ROUNDS_OF_GATE :
		     p->n_sides > 1 ? ROUNDS_OF_COMPARISON :
				      1,
		 warmup = 0;
	int rc = choice_number("--repeat", repeat, choice_range(1, max), &n, err);

	if (!rc)
		rc = choice_number("--warmup", call->option[RUN_OPTION_WARMUP], choice_range(0, WARMUP_MAX), &warmup,
				   err);
	if (!rc)
		rc = read_percent("--until", call->option[RUN_OPTION_UNTIL], &p->until, err);
	p->rounds = (unsigned)n;
	p->warmup = (unsigned)warmup;
	return rc;
}

static int read_gate(const struct verb_call *call, struct run_plan *p, struct err *err)
{
	static const struct {
		const char *word, *metric;
	} figures[] = { { "energy", "energy_total_uj" }, { "time", "wall_ns" }, { "cpu", "cpu_ns" } };
	const char *const needs[] = { call->option[RUN_OPTION_FAIL], call->option[RUN_OPTION_JUNIT],
				      call->option[RUN_OPTION_BADGE] };

	p->figure = call->option[RUN_OPTION_FIGURE];
	for (unsigned i = 0; p->figure && i < 3; i++)
		if (strcmp(p->figure, figures[i].word) == 0)
			p->figure = figures[i].metric;
	p->against = call->option[RUN_OPTION_AGAINST];
	p->save = call->option[RUN_OPTION_SAVE];
	p->gate = p->against || call->option[RUN_OPTION_BASE_CMD];
	for (unsigned i = 0; i < 3 && !p->gate; i++)
		if (needs[i])
			return err_set(
				err, -EINVAL,
				"--fail, --junit and --badge: nothing to judge against; give --base-cmd or --against");
	if (p->gate && call->n_several)
		return err_set(err, -EINVAL, "--vs: the gate judges one command; leave --vs out, or the gate");
	if (p->save && call->n_several)
		return err_set(err, -EINVAL, "--save: it saves the runs of one command; leave --vs out");
	if (p->gate && call->option[RUN_OPTION_UNTIL])
		return err_set(err, -EINVAL, "--until: the gate ends the runs when it can tell; leave --until out");
	p->fail = FAIL;
	return read_percent("--fail", call->option[RUN_OPTION_FAIL], &p->fail, err);
}

int run_plan_read_forms(const struct verb_call *call, struct err *err)
{
	static const char *const words[] = { "own", "by-time", "by-share", NULL };
	unsigned forms = !!call->option[RUN_OPTION_JSON] + !!call->option[RUN_OPTION_CSV] +
			 !!call->option[RUN_OPTION_MARKDOWN];

	if (forms > 1)
		return err_set(err, -EINVAL,
			       "--json, --csv and --markdown: only one of them can be written; leave the others out");
	if (call->option[RUN_OPTION_EVENTS] && (!*call->option[RUN_OPTION_EVENTS] || call->option[RUN_OPTION_SOCKET]))
		return err_set(err, -EINVAL,
			       "--events: it names counters of a private agent, such as -e CYCLES,INSTRUCTIONS; leave "
			       "--socket out");
	return choice_word("--idle", call->option[RUN_OPTION_IDLE], words, 0, err) < 0 ? -EINVAL : 0;
}

int run_plan_read(const struct verb_call *call, struct run_plan *ret, struct err *err)
{
	int rc = run_plan_read_forms(call, err);

	ret->prepare = call->option[RUN_OPTION_PREPARE];
	ret->cleanup = call->option[RUN_OPTION_CLEANUP];
	ret->setup = call->option[RUN_OPTION_SETUP];
	ret->input = call->option[RUN_OPTION_INPUT];
	if (!rc)
		rc = read_gate(call, ret, err);
	if (!rc)
		rc = read_sides(call, ret, err);
	if (!rc)
		rc = read_rounds(call, ret, err);
	if (!rc && getrandom(&ret->seed, sizeof(ret->seed), 0) == (ssize_t)sizeof(ret->seed))
		ret->seed %= 1000000; /* short enough to be typed again */
	if (!rc)
		rc = choice_number("--seed", call->option[RUN_OPTION_SEED], choice_range(0, UINT64_MAX), &ret->seed,
				   err);
	return rc;
}

void run_plan_free(struct run_plan *p)
{
	for (unsigned i = 0; i < p->n_sides; i++)
		free(p->side[i].text);
}
