/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl audit: how right the split is on this machine, by experiment. */
#include "session.h"
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "ctl/core/choice.h"
#include "ctl/core/put.h"
#include "ctl/core/verb.h"

#define DURATION_NS (600 * NS_PER_S)
#define FREEZE_NS (50 * NS_PER_MS)
#define FREEZE_MIN_NS (10 * NS_PER_MS)
#define FREEZE_MAX_NS (100 * NS_PER_MS)
#define DUTY 0.001
#define DUTY_MAX 0.05
#define LOADS_LEAST_NS (10 * NS_PER_S)

enum {
	OPTION_CGROUP,
	OPTION_DURATION,
	OPTION_DUTY,
	OPTION_FREEZE,
	OPTION_CPUS,
	OPTION_SEED,
	OPTION_NOTE,
	OPTION_JSON,
	OPTION_PRIVATE,
	OPTION_SOCKET
};

static const struct verb_option options[] = {
	[OPTION_CGROUP] = { "cgroup", 0, "PATH...",
			    "freeze this cgroup for moments; several times; without it own loads run" },
	[OPTION_DURATION] = { "duration", 'd', "TIME", "how long; 10m unless given" },
	[OPTION_DUTY] = { "duty", 0, "PERCENT",
			  "part of its time that a cgroup is frozen at most, up to 5%; 0.1% unless given" },
	[OPTION_FREEZE] = { "freeze", 0, "TIME", "length of a freeze, 10ms to 100ms; 50ms unless given" },
	[OPTION_CPUS] = { "cpus", 0, "N", "processes of each own load; a quarter of the CPUs unless given" },
	[OPTION_SEED] = { "seed", 0, "N", "of the random instants; 1 unless given" },
	[OPTION_NOTE] = { "no-note", 0, NULL, "do not give the result to the agent" },
	[OPTION_JSON] = { "json", 'j', NULL, "one object" },
	[OPTION_PRIVATE] = { "private", 0, NULL, "a private agent, although one is running" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "of the agent; JOULED_SOCKET, or /run/jouled/jouled.sock" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Switches something on and off at random instants, reads what the machine draws more while it is on, and compares that with "
	"what the agent charges for it: a reading of the truth, whatever else the machine does. Says the bias and its 95 % interval "
	"per domain, and within how many percent the split is right here.",
	"Without --cgroup two loads of its own run by turns in cgroups of their own: one computes, one reads memory, alone and "
	"beside each other. They have the lowest priority (SCHED_IDLE) and take only time that nobody wants.",
	"With --cgroup the cgroups named are frozen (cgroup.freeze) for 50 ms at a time, at most 0.1 % of their time. Naming a cgroup is "
	"the consent; a user may name only those they own. The root, system.slice and other slices of the machine, cgroups of init, of "
	"container runtimes and of log-in daemons, those in which this joulectl runs, and its own session are always refused, and so is "
	"everything where there is no freezer of cgroup v2. A second process thaws when this one ends, even by kill -9.",
	"A freeze tells the marginal draw: what the machine would draw less without it. Own loads tell marginal and average apart.",
	"The result is given to the agent, whose status, history and metrics have it. Ctrl-C ends the audit with the result so far. "
	"Exit status: 0; 1 when it could not be made; 2 for a wrong option.",
	NULL,
};

static int read_duty(const char *text, double *ret, struct err *err)
{
	char number[32], shown[64];
	double v;
	size_t n;

	if (!text)
		return 0;
	n = strlen(text);
	snprintf(number, sizeof(number), "%.*s", (int)(n && text[n - 1] == '%' ? n - 1 : n), text);
	if (parse_double(number, &v) != 0 || !(v > 0) || v > 100 * DUTY_MAX)
		return err_set(err, -EINVAL, "audit: --duty %s: not above 0%% and up to 5%%; such as 0.1%%",
			       text_escape(shown, sizeof(shown), text));
	*ret = v / 100;
	return 0;
}

static int read_cgroups(const struct verb_call *call, struct audit_plan *p, struct err *err)
{
	if (call->n_several > FREEZER_MAX)
		return err_set(err, -EINVAL, "audit: --cgroup: at most %d; leave some out", FREEZER_MAX);
	for (; p->n_cgroups < call->n_several; p->n_cgroups++) {
		if (strlen(call->several[p->n_cgroups]) >= RUN_PATH_MAX || !*call->several[p->n_cgroups])
			return err_set(err, -EINVAL, "audit: --cgroup: no path; write it as joulectl list shows it");
		p->cgroup[p->n_cgroups] = strdup(call->several[p->n_cgroups]);
		if (!p->cgroup[p->n_cgroups])
			return err_set(err, -ENOMEM, "audit: out of memory; free some");
	}
	return 0;
}

static unsigned quarter_of_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 4 ? (unsigned)n / 4 : 1;
}

/* Checks that the time is enough for a word, and that the options belong to the experiment. */
static int check(const struct verb_call *call, const struct audit_plan *p, struct err *err)
{
	uint64_t least = LOADS_LEAST_NS;

	if (p->n_cgroups && call->option[OPTION_CPUS])
		return err_set(err, -EINVAL, "audit: --cpus: it is for loads of its own; leave it or --cgroup out");
	if (!p->n_cgroups && (call->option[OPTION_DUTY] || call->option[OPTION_FREEZE]))
		return err_set(
			err, -EINVAL,
			"audit: --duty and --freeze are for --cgroup; own loads are never frozen; leave them out");
	if (p->n_cgroups)
		least = (AUDIT_ROUNDS_LEAST + 1) * audit_slot_ns(p->freeze_ns + 5 * NS_PER_MS, p->duty);
	if (p->duration_ns < least)
		return err_set(err, -EINVAL, "audit: --duration: too short to tell anything; at least %llus%s",
			       (unsigned long long)(least / NS_PER_S + 1), p->n_cgroups ? ", or a higher --duty" : "");
	return 0;
}

static int read_plan(const struct verb_call *call, struct audit_plan *p, struct err *err)
{
	uint64_t cpus = quarter_of_cpus();
	int rc;

	*p = (struct audit_plan){ .duration_ns = DURATION_NS, .freeze_ns = FREEZE_NS, .seed = 1, .duty = DUTY };
	p->wish = (struct run_agent_wish){ .socket = call->option[OPTION_SOCKET],
					   .idle = "own",
					   .use_private = call->option[OPTION_PRIVATE] };
	p->quiet = !isatty(STDERR_FILENO);
	rc = choice_interval("audit: --duration", call->option[OPTION_DURATION], &p->duration_ns, err);
	if (!rc)
		rc = choice_interval("audit: --freeze", call->option[OPTION_FREEZE], &p->freeze_ns, err);
	if (!rc && (p->freeze_ns < FREEZE_MIN_NS || p->freeze_ns > FREEZE_MAX_NS))
		rc = err_set(err, -EINVAL, "audit: --freeze: not from 10ms to 100ms; longer freezes are felt");
	if (!rc)
		rc = read_duty(call->option[OPTION_DUTY], &p->duty, err);
	if (!rc)
		rc = choice_number("audit: --cpus", call->option[OPTION_CPUS], choice_range(1, 4096), &cpus, err);
	if (!rc)
		rc = choice_number("audit: --seed", call->option[OPTION_SEED], choice_range(0, UINT64_MAX), &p->seed,
				   err);
	p->cpus = (unsigned)cpus;
	if (!rc)
		rc = read_cgroups(call, p, err);
	return rc ? rc : check(call, p, err);
}

static void free_plan(struct audit_plan *p)
{
	for (unsigned i = 0; i < p->n_cgroups; i++)
		free(p->cgroup[i]);
}

static int make(struct audit_session *s, const struct audit_plan *p, struct audit *ret, struct err *err)
{
	int rc;

	audit_init(ret);
	ret->seed = p->seed;
	snprintf(ret->formula, sizeof(ret->formula), "%s", s->with.facts.formula);
	rc = p->n_cgroups ? audit_by_freezing(s, ret, err) : audit_by_loads(s, ret, err);
	ret->duration_ns = clock_mono_ns() - s->begin_ns;
	ret->time_ns = clock_real_ns();
	ret->ended_early |= audit_interrupted;
	audit_sum_up(ret);
	return rc;
}

static int print(const struct verb_call *call, const struct audit *a, struct err *err)
{
	struct buf b = { 0 };
	struct json j;
	int rc;

	if (call->option[OPTION_JSON]) {
		json_init(&j, &b);
		audit_json(&j, a);
		buf_add_char(&b, '\n');
	} else {
		audit_write_text(a, &b);
	}
	rc = put_file(NULL, &b, err);
	buf_free(&b);
	return rc;
}

/* Gives the result to the agent. A failure is said and no error: the result is printed. */
static void note(struct audit_session *s, const struct audit *a)
{
	struct buf b = { 0 }, answer = { 0 };
	struct err err = { 0 };
	struct json j;

	if (s->with.own || isnan(a->within))
		return; /* a private agent ends with this program */
	json_init(&j, &b);
	audit_json(&j, a);
	if (b.failed || agent_post_json(s->with.agent, "/v1/audit", &b, &answer, &err) != 0)
		log_warn("audit: the agent does not keep the result: %s", b.failed ? "out of memory" : err.text);
	buf_free(&b);
	buf_free(&answer);
}

static int run(const struct verb_call *call)
{
	static struct audit_session s;
	static struct audit a;
	struct audit_plan p;
	struct err err = { 0 };
	int rc = read_plan(call, &p, &err);

	if (rc) {
		log_error("%s", err.text);
		free_plan(&p);
		return CTL_USAGE;
	}
	rc = audit_session_open(&s, &p, &err);
	if (!rc)
		rc = make(&s, &p, &a, &err);
	if (!rc && !call->option[OPTION_NOTE])
		note(&s, &a);
	audit_session_close(&s);
	free_plan(&p);
	if (!rc)
		rc = print(call, &a, &err);
	if (rc)
		log_error("%s", err.text);
	return rc ? CTL_FAILED : CTL_OK;
}

const struct verb verb_audit = {
	.name = "audit",
	.synopsis = "",
	.help = "Says how right the split is on this machine, by experiment",
	.about = about,
	.options = options,
	.max_args = 0,
	.run = run,
};
