/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl profile: energy by code. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/parse.h"
#include "base/clock.h"
#include "ctl/core/choice.h"
#include "ctl/core/put.h"
#include "ctl/core/verb.h"
#include "profile_diff.h"
#include "profile_report.h"
#include "profile_session.h"
#include "profile/moments.h"
#include "profile_symbolize.h"

#define TOP 30
#define RATE_MAX 1000
#define DURATION_MAX_NS (3600 * NS_PER_S)

enum {
	OPTION_CGROUP,
	OPTION_PID,
	OPTION_DURATION,
	OPTION_FREQUENCY,
	OPTION_DOMAIN,
	OPTION_OUTPUT,
	OPTION_DEBUG_DIR,
	OPTION_NO_SYMBOLS,
	OPTION_SYMBOLIZE,
	OPTION_DEBUGINFOD,
	OPTION_DIFF,
	OPTION_PER,
	OPTION_PRIVATE,
	OPTION_SOCKET,
};

static const struct verb_option options[] = {
	[OPTION_CGROUP] = { "cgroup", 0, "/PATH", "only this cgroup and those below it" },
	[OPTION_PID] = { "pid", 'p', "PID", "only this process" },
	[OPTION_DURATION] = { "duration", 'd', "TIME", "how long: 100ms to 1h; 10s unless given; not with a command" },
	[OPTION_FREQUENCY] = { "frequency", 'F', "HZ", "samples a second and CPU, 1 to 1000; 99 unless given" },
	[OPTION_DOMAIN] = { "domain", 0, "NAME", "energy of this domain alone, as package-0" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE",
			    "FILE.svg, .folded, .pb.gz, .speedscope.json or .firefox.json; a table on standard output unless given" },
	[OPTION_DEBUG_DIR] = { "debug-dir", 0, "DIR[:DIR]",
			       "where DIR/.build-id/xx/yy.debug has a program's symbols; /usr/lib/debug unless given" },
	[OPTION_NO_SYMBOLS] = { "no-symbols", 0, NULL,
				"read no names: code is [file+0xOFFSET]; name it later, also elsewhere, with --symbolize" },
	[OPTION_SYMBOLIZE] = { "symbolize", 0, "FILE",
			       "name the code of FILE.pb.gz by the files of this machine that have its build ids; needs -o" },
	[OPTION_DEBUGINFOD] = { "debuginfod", 0, "URL[,URL]",
				"with --symbolize: ask these servers for symbols that are not here" },
	[OPTION_DIFF] = { "diff", 0, "A B", "compare two .folded files, A before and B after, instead of profiling" },
	[OPTION_PER] = { "per", 0, "N[,M]",
			 "with --diff: energy for a unit of work, of which A did N and B did M (N unless given)" },
	[OPTION_PRIVATE] = { "private", 0, NULL, "start a private agent even where one is running" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "socket of the agent" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Says which functions spend the energy. The kernel samples the stacks of every CPU by its clock, and each second the energy "
	"that the agent's ledger gives a cgroup is split over the samples of that cgroup, in whole microjoules: its stacks and "
	"[no sample] add up to its row, in every domain. Without --cgroup, --pid or a command it is the whole machine.",
	"A command runs in a cgroup of its own, as with joulectl run. Where no agent is running a private one is started, and said.",
	"Stacks of user space are found by the rules that compilers leave in programs (.eh_frame), elsewhere by frame pointers. A "
	"stack that does not reach the program's start is marked [truncated]. Names come from symbol tables, from /tmp/perf-PID.map of the process, and for the "
	"kernel from /proc/kallsyms ([k]). Files of processes are read by a process without rights.",
	"A .folded file has a stack a line, from its cgroup on, and microjoules. A .svg file is a flame graph. A .pb.gz file "
	"is for pprof: samples, CPU time and microjoules of each domain; a .speedscope.json file has a profile of "
	"each domain; a .firefox.json file is for the Firefox Profiler: stacks of each process over time, and the power of each domain as a track. For commands and "
	"configured functions by each call, see joulectl flame.",
	"--diff A B compares two .folded files: a table of the functions that changed most, with -o x.svg a flame graph of B in "
	"which red used more than in A and blue less, with -o x.folded the stacks with both energies. Cgroups are left out, because each run has its own. --per 1000,1200 "
	"says that A did 1000 units of work and B 1200, and compares the energy of one. It needs no rights and no agent.",
	"--no-symbols -o x.pb.gz reads no symbols, so that the profiled machine needs none and spends no time on them: a place is a file, its build "
	"id and an offset. --symbolize x.pb.gz -o y.pb.gz (or -o y.folded) adds functions, lines and functions that were compiled in, where "
	"a file has that build id: that of the same path, or DIR/.build-id/xx/yy.debug. What is not found stays [file+0xOFFSET] and is told. "
	"--debuginfod URL asks servers of debuginfod for more, and keeps their files in $XDG_CACHE_HOME/jouled; DEBUGINFOD_URLS alone asks nobody. "
	"The kernel is named on the same machine before it is started anew. It needs no agent, and rights only for the kernel's names.",
	"It needs root, or CAP_PERFMON and CAP_SYS_PTRACE. Exit status: that of the command; 125 when it could not be profiled.",
	NULL,
};

#define FAILED 125

struct question {
	struct profile_session session;
	struct profile_report report;
	struct moments moments; /* of a form with a time axis */
	uint64_t duration_ns;
	int (*write)(const struct profile_report *r, struct buf *out);
};

static int write_table(const struct profile_report *r, struct buf *out)
{
	return profile_table(r, TOP, out);
}

static int write_pprof(const struct profile_report *r, struct buf *out)
{
	return profile_pprof(r, "joulectl " JOULED_VERSION, out);
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);

	return n > m && strcmp(s + n - m, end) == 0;
}

static int read_output(const char *name, struct question *q, struct err *err)
{
	q->write = write_table;
	if (!name || strcmp(name, "-") == 0)
		return 0;
	if (ends_with(name, ".folded"))
		q->write = profile_folded;
	else if (ends_with(name, ".svg"))
		q->write = profile_flame;
	else if (ends_with(name, ".pb.gz"))
		q->write = write_pprof;
	else if (ends_with(name, ".speedscope.json"))
		q->write = profile_speedscope;
	else if (ends_with(name, ".firefox.json"))
		q->write = profile_firefox;
	else if (!ends_with(name, ".txt"))
		return err_set(
			err, -EINVAL,
			"profile: --output %.200s: what form is it? end it with .folded, .svg, .pb.gz, .speedscope.json, .firefox.json or .txt",
			name);
	return 0;
}

/* What would be known only once all the time has gone. */
static int check_early(const struct verb_call *call, const struct question *q, struct err *err)
{
	const char *name = call->option[OPTION_OUTPUT];

	if (q->session.p.pid && kill(q->session.p.pid, 0) != 0 && errno == ESRCH)
		return err_set(err, -ESRCH, "profile: --pid %d: there is no such process; ps shows them",
			       q->session.p.pid);
	return name && strcmp(name, "-") != 0 ? put_check(name, err) : 0;
}

static int read_question(const struct verb_call *call, struct question *q, struct err *err)
{
	uint64_t rate = 99, pid = 0;
	int rc = choice_number("profile: --frequency", call->option[OPTION_FREQUENCY], choice_range(1, RATE_MAX), &rate,
			       err);

	if (!rc)
		rc = choice_number("profile: --pid", call->option[OPTION_PID], choice_range(1, 1 << 22), &pid, err);
	q->duration_ns = 10 * NS_PER_S;
	if (!rc && call->option[OPTION_DURATION] &&
	    (parse_duration_ns(call->option[OPTION_DURATION], &q->duration_ns) || q->duration_ns < 100 * NS_PER_MS ||
	     q->duration_ns > DURATION_MAX_NS))
		rc = err_set(err, -EINVAL, "profile: --duration %.100s: not from 100ms to 1h; -d 30s",
			     call->option[OPTION_DURATION]);
	q->session.p.rate_hz = (unsigned)rate;
	q->session.p.pid = (int)pid;
	q->session.p.cgroup = call->option[OPTION_CGROUP];
	if (!rc && q->session.p.cgroup && q->session.p.cgroup[0] != '/')
		rc = err_set(err, -EINVAL, "profile: --cgroup %.200s: a path begins with /; joulectl list shows them",
			     q->session.p.cgroup);
	q->session.names.debug_dirs = call->option[OPTION_DEBUG_DIR];
	if (!rc && q->session.names.debug_dirs && q->session.names.debug_dirs[0] != '/')
		rc = err_set(err, -EINVAL, "profile: --debug-dir %.200s: a path begins with /",
			     q->session.names.debug_dirs);
	q->session.names.no_names = call->option[OPTION_NO_SYMBOLS];
	if (!rc && q->session.names.no_names && q->session.names.debug_dirs)
		rc = err_set(err, -EINVAL,
			     "profile: --debug-dir: --no-symbols reads none; give it with --symbolize instead");
	if (!rc && call->option[OPTION_DEBUGINFOD])
		rc = err_set(
			err, -EINVAL,
			"profile: --debuginfod: servers are asked with --symbolize only; profile with --no-symbols before");
	if (!rc && call->option[OPTION_PER])
		rc = err_set(err, -EINVAL, "profile: --per: it compares two files; give --diff A B with it");
	if (!rc && call->n && (q->session.p.cgroup || pid || call->option[OPTION_DURATION]))
		rc = err_set(
			err, -EINVAL,
			"profile: a command has its own cgroup and time; leave out --cgroup, --pid and --duration");
	rc = rc ? rc : read_output(call->option[OPTION_OUTPUT], q, err);
	return rc ? rc : check_early(call, q, err);
}

/* Finds the domain by its name. */
static int read_domain(const char *name, struct question *q, struct err *err)
{
	struct profile *f = &q->session.p;

	q->report = (struct profile_report){ f, PROFILE_ALL_DOMAINS };
	for (unsigned d = 0; name && d < f->n_domains; d++)
		if (strcmp(f->domain[d].name, name) == 0)
			q->report.domain = (int)d;
	if (name && q->report.domain == PROFILE_ALL_DOMAINS)
		return err_set(err, -EINVAL, "profile: --domain %.100s: there is none; joulectl status lists them",
			       name);
	for (unsigned d = 0; name && d < f->n_domains; d++)
		f->priced.beside[d] = (int)d != q->report.domain;
	if (q->write == profile_firefox) {
		q->moments.of = q->report;
		q->session.p.moments = &q->moments;
	}
	return 0;
}

/* Is there anything to show? A question that nothing answers is an error, not an empty table. */
static int check(const struct question *q, struct err *err)
{
	const struct profile *s = &q->session.p;

	if (!s->n_domains)
		return err_set(err, -ENODATA, "profile: the agent has no energy; see joulectl doctor");
	for (uint32_t i = 0; i < s->stacks.n; i++)
		if (profile_wants_stack(s, i))
			return 0;
	for (uint32_t i = 0; i < s->shares.n_rows && !s->pid; i++)
		if (profile_wants_row(s, &s->shares.rows[i]) && profile_none_uj(&q->report, &s->shares.rows[i]))
			return 0;
	return err_set(err, -ENODATA, "profile: nothing that was asked for ran; look at joulectl list, or take longer");
}

static int report(const struct verb_call *call, const struct question *q, struct err *err)
{
	const char *name = call->option[OPTION_OUTPUT];
	struct buf out = { 0 };
	int rc = check(q, err);

	if (!rc && (rc = q->write(&q->report, &out)) != 0)
		err_set(err, rc,
			rc == -ENODATA ? "profile: what ran used no energy yet; take longer" :
					 "profile: out of memory; profile a cgroup, or for a shorter time");
	if (!rc && q->moments.late_uj)
		log_warn("profile: more than %u stacks and seconds: %llu microjoules of later ones stand at the end",
			 MOMENT_SHARES_MAX, (unsigned long long)q->moments.late_uj);
	if (!rc)
		rc = put_file(name && strcmp(name, "-") != 0 ? name : NULL, &out, err);
	buf_free(&out);
	return rc;
}

static int read_work(const char *text, double ret[2], struct err *err)
{
	char one[64];
	const char *comma = text ? strchr(text, ',') : NULL;
	int rc = 0;

	if (!text)
		return 0;
	snprintf(one, sizeof(one), "%.*s", comma ? (int)(comma - text) : 63, text);
	rc = parse_double(one, &ret[0]) || !(ret[0] > 0);
	ret[1] = ret[0];
	if (!rc && comma)
		rc = parse_double(comma + 1, &ret[1]) || !(ret[1] > 0);
	return rc ? err_set(err, -EINVAL, "profile: --per %.100s: not a number above 0, or two; --per 1000,1200",
			    text) :
		    0;
}

/* What asks for a profile that is taken now, and has no meaning for files. */
static int refuse_taking(const struct verb_call *call, const char *because, struct err *err)
{
	static const unsigned not_with[] = { OPTION_CGROUP, OPTION_PID,     OPTION_DURATION, OPTION_FREQUENCY,
					     OPTION_DOMAIN, OPTION_PRIVATE, OPTION_SOCKET,   OPTION_NO_SYMBOLS };

	for (unsigned i = 0; i < sizeof(not_with) / sizeof(not_with[0]); i++)
		if (call->option[not_with[i]])
			return err_set(err, -EINVAL, "profile: --%s: %s; leave one out", options[not_with[i]].name,
				       because);
	return 0;
}

static int read_diff(const struct verb_call *call, struct profile_diff *d, struct err *err)
{
	const char *name = call->option[OPTION_OUTPUT];

	*d = (struct profile_diff){ .path = { call->several[0], call->several[1] }, .top = TOP };
	if (refuse_taking(call, "--diff compares files as they are", err) != 0)
		return -EINVAL;
	if (call->option[OPTION_DEBUG_DIR] || call->option[OPTION_DEBUGINFOD])
		return err_set(err, -EINVAL, "profile: --%s: --diff compares files as they are; leave one out",
			       options[call->option[OPTION_DEBUG_DIR] ? OPTION_DEBUG_DIR : OPTION_DEBUGINFOD].name);
	if (call->n)
		return err_set(err, -EINVAL, "profile: --diff takes two files and no command; leave out %.100s",
			       call->args[0]);
	if (name && ends_with(name, ".folded"))
		d->form = PROFILE_DIFF_FOLDED;
	else if (name && ends_with(name, ".svg"))
		d->form = PROFILE_DIFF_FLAME;
	else if (name && strcmp(name, "-") != 0 && !ends_with(name, ".txt"))
		return err_set(err, -EINVAL,
			       "profile: --output %.200s: what form is it? end it with .svg, .folded or .txt", name);
	return read_work(call->option[OPTION_PER], d->work, err);
}

static int diff(const struct verb_call *call)
{
	const char *name = call->option[OPTION_OUTPUT];
	struct profile_diff d;
	struct buf out = { 0 };
	struct err err = { 0 };
	int rc = read_diff(call, &d, &err);

	if (rc) {
		log_error("%s", err.text);
		return CTL_USAGE;
	}
	rc = profile_diff(&d, &out, &err);
	if (!rc)
		rc = put_file(name && strcmp(name, "-") != 0 ? name : NULL, &out, &err);
	if (rc)
		log_error("%s", err.text);
	buf_free(&out);
	return rc ? FAILED : CTL_OK;
}

static int read_symbolize(const struct verb_call *call, struct err *err)
{
	const char *name = call->option[OPTION_OUTPUT], *dirs = call->option[OPTION_DEBUG_DIR];

	if (refuse_taking(call, "--symbolize names a file as it is", err) != 0)
		return -EINVAL;
	if (call->option[OPTION_DIFF] || call->option[OPTION_PER])
		return err_set(err, -EINVAL,
			       "profile: --symbolize and --diff are two questions; write .folded files first");
	if (call->n)
		return err_set(err, -EINVAL, "profile: --symbolize takes one file and no command; leave out %.100s",
			       call->args[0]);
	if (dirs && dirs[0] != '/')
		return err_set(err, -EINVAL, "profile: --debug-dir %.200s: a path begins with /", dirs);
	if (!name || (!ends_with(name, ".pb.gz") && !ends_with(name, ".folded")))
		return err_set(err, -EINVAL, "profile: --symbolize: where to? give -o FILE.pb.gz or -o FILE.folded");
	return 0;
}

static int symbolize(const struct verb_call *call)
{
	const char *name = call->option[OPTION_OUTPUT];
	struct buf out = { 0 };
	struct err err = { 0 };
	int rc = read_symbolize(call, &err);

	if (rc) {
		log_error("%s", err.text);
		return CTL_USAGE;
	}
	rc = profile_symbolize(&(struct symbolize_question){ .path = call->option[OPTION_SYMBOLIZE],
							     .debug_dirs = call->option[OPTION_DEBUG_DIR],
							     .servers = call->option[OPTION_DEBUGINFOD],
							     .folded = ends_with(name, ".folded") },
			       &out, &err);
	if (!rc)
		rc = put_file(name, &out, &err);
	if (rc)
		log_error("%s", err.text);
	buf_free(&out);
	return rc ? FAILED : CTL_OK;
}

static int run(const struct verb_call *call)
{
	static struct question q;
	const struct run_agent_wish wish = { .socket = call->option[OPTION_SOCKET],
					     .use_private = call->option[OPTION_PRIVATE] };
	struct run_descriptors descriptors;
	struct run_signals signals = { 0 };
	struct run_end end = { 0 };
	struct err err = { 0 };
	int rc;

	if (call->option[OPTION_SYMBOLIZE])
		return symbolize(call);
	if (call->option[OPTION_DIFF])
		return diff(call);
	run_descriptors_note(&descriptors);
	if (read_question(call, &q, &err) != 0) {
		log_error("%s", err.text);
		return CTL_USAGE;
	}
	rc = profile_open(&q.session, &wish, &err);
	if (!rc)
		rc = read_domain(call->option[OPTION_DOMAIN], &q, &err);
	if (!rc)
		rc = run_signals_take(&signals, &err);
	run_descriptors_guard(&descriptors);
	if (!rc)
		rc = call->n ? profile_command(&q.session, call->args, &signals, &end, &err) :
			       profile_for(&q.session, q.duration_ns, &signals, &err);
	if (!rc)
		rc = report(call, &q, &err);
	if (rc)
		log_error("%s", err.text);
	profile_close(&q.session);
	moments_free(&q.moments);
	return rc ? FAILED : call->n ? run_exit_status(&end) : CTL_OK;
}

const struct verb verb_profile = {
	.name = "profile",
	.synopsis = "[--] [COMMAND [ARGUMENT]...]",
	.help = "Says which functions spend the energy",
	.about = about,
	.options = options,
	.max_args = 1,
	.command = true,
	.lost_status = FAILED,
	.run = run,
};
