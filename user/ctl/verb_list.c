/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl list: cgroups with their energy since the agent first saw them and in the last interval. The lines below
 * the cgroups hold the rest: all lines together are the energy of the machine. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/format/csv.h"
#include "base/log.h"
#include "encode/table.h"
#include "model/job_path.h"
#include "model/naming.h"
#include "ctl/core/agent_client.h"
#include "ctl/core/ask.h"
#include "ctl/core/choice.h"
#include "ctl/core/put.h"
#include "ctl/top/top.h"
#include "ctl/core/verb.h"
#include "list_job.h"

enum {
	OPTION_SORT,
	OPTION_LIMIT,
	OPTION_DEPTH,
	OPTION_ACTIVE,
	OPTION_ALL,
	OPTION_JOB,
	OPTION_SINCE,
	OPTION_CSV,
	OPTION_JSON,
	OPTION_SOCKET
};

static const struct verb_option options[] = {
	[OPTION_SORT] = { "sort", 's', "COLUMN", "power (default), energy, cpu or name" },
	[OPTION_LIMIT] = { "limit", 'l', "N", "at most N cgroups; the rest is summed" },
	[OPTION_DEPTH] = { "depth", 'd', "N", "at most N levels below the path; the rest is summed" },
	[OPTION_ACTIVE] = { "active", 'a', NULL, "only cgroups that used CPU time or energy in the last interval" },
	[OPTION_ALL] = { "all", 'A', NULL, "also cgroups that have ended and used nothing in the last interval" },
	[OPTION_JOB] = { "job", 0, "ID",
			 "the steps of a batch job on this machine, of the last day, also when it has ended" },
	[OPTION_SINCE] = { "since", 0, "TIME",
			   "of --job: from there on; -24h unless given, or -30d, 2026-01-31T12:00:00Z, Unix seconds" },
	[OPTION_CSV] = { "csv", 0, NULL, "a line per cgroup, with every domain, in watts and microjoules" },
	[OPTION_JSON] = { "json", 'j', NULL, "as the agent tells it" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "of the agent; JOULED_SOCKET, or /run/jouled/jouled.sock" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Prints what each cgroup used: watts and CPU of the last interval, joules and CPU time since the agent first saw "
	"it. PATH takes those at and below it. Values are a cgroup's own, without what is below it. Pods, containers and "
	"machines have their names before the path.",
	"Cgroups that have ended and used nothing in the last interval have one line together, unless --all is given.",
	"--job takes the energy of the steps of a Slurm job from the agent's history: what its cgroups used in the last 24 h, "
	"or since --since, before and after a restart of the agent, too. A job that ran longer needs --since.",
	"READ, WRITTEN and I/O are bytes and requests of block devices since the agent first saw the cgroup, where there were any; "
	"--csv has those of the network, too.",
	"W+- says how far the watts may be off, in either direction, nine times in ten; nothing where the formula does not say.",
	"The last lines are what no cgroup has: kernel threads, interrupts, idle, residual, cgroups that are gone. Energy "
	"is that of the domains that the last line names, which hold none of each other; --json has every domain.",
	NULL,
};

static const char *const sorts[] = { "power", "energy", "cpu", "name", NULL };

enum shown { SHOWN_USUAL, SHOWN_ACTIVE, SHOWN_ALL };

struct ledger {
	enum shown shown;
	const json_t *domains; /* array of the answer */
	unsigned summed; /* kinds of domains that are added up */
	bool split; /* the formula gives energy to cgroups */
	double seconds; /* of the last interval */
	bool block; /* a block device worked for somebody: columns say for whom */
	char mark; /* of the machine's energy, for sums without a quality of their own */
};

static bool is_summed(const struct ledger *l, const char *domain)
{
	return l->summed & DOMAIN_BIT(domain_kind_of(domain));
}

/* Returns the mark of the worst quality under `key` among the domains that are added up. */
static char machine_mark(const struct ledger *l, const char *key)
{
	unsigned quality = 0;
	const json_t *d;
	size_t i;

	json_array_foreach(l->domains, i, d)
		if (is_summed(l, ask_text(d, "name")))
			quality |= quality_named(ask_text(d, key));
	return table_mark(quality);
}

static void open_ledger(struct ledger *l, const json_t *doc)
{
	unsigned kinds = 0;
	const json_t *d;
	size_t i;

	l->domains = json_object_get(doc, "domains");
	l->split = json_array_size(l->domains) > 0;
	l->seconds = (double)ask_number(doc, "last_interval_ns") / 1e9;
	json_array_foreach(l->domains, i, d)
		kinds |= DOMAIN_BIT(domain_kind_of(ask_text(d, "name")));
	l->summed = domain_kinds_summed(kinds);
	l->mark = machine_mark(l, "quality");
}

/* Returns the sum of {"package-0":1, ...} over the domains that are added up. */
static double sum(const struct ledger *l, const json_t *by_domain)
{
	double total = 0;
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)by_domain, key, v)
		total += is_summed(l, key) ? json_number_value(v) : 0;
	return total;
}

/* Work of block devices since the agent first saw a cgroup. */
struct block_work {
	bool any;
	uint64_t read_bytes, write_bytes, requests;
};

static void add_block(struct block_work *w, const json_t *total)
{
	if (!json_object_get(total, "read_bytes"))
		return;
	w->any = true;
	w->read_bytes += (uint64_t)ask_number(total, "read_bytes");
	w->write_bytes += (uint64_t)ask_number(total, "write_bytes");
	w->requests += (uint64_t)ask_number(total, "read_requests") + (uint64_t)ask_number(total, "write_requests") +
		       (uint64_t)ask_number(total, "discard_requests");
}

/* Nothing, for whom no device worked. */
static void put_block(const struct ledger *l, const struct block_work *w)
{
	char read[16] = "", written[16] = "", requests[16] = "";

	if (!l->block)
		return;
	if (w->any) {
		table_rate(read, (double)w->read_bytes);
		table_rate(written, (double)w->write_bytes);
		table_rate(requests, (double)w->requests);
	}
	printf("%8s%8s%8s", read, written, requests);
}

static void put_line(const struct ledger *l, double watts, double uj, char mark, const char *name)
{
	char w[16] = "-", j[16] = "-";

	if (l->split) {
		table_watts(w, watts);
		top_joules(j, (uint64_t)uj);
	}
	printf("%8s%c%9s%c", w, l->split ? mark : ' ', j, l->split ? mark : ' ');
	if (!name)
		return;
	printf("%8s%11s%8s", "", "", "");
	put_block(l, &(struct block_work){ 0 });
	printf("  %s\n", name);
}

/* "3.1%" of the watts either way, or "". */
static const char *range(const json_t *e, char buf[static 16])
{
	const json_t *uncertainty = json_object_get(e, "last_uncertainty");

	*buf = '\0';
	if (json_is_number(uncertainty))
		snprintf(buf, 16, "%.*f%%", json_number_value(uncertainty) < 0.0995 ? 1 : 0,
			 fmin(100 * json_number_value(uncertainty), 9999));
	return buf;
}

static void put_use(const struct ledger *l, const json_t *e, const char *title, const char *name)
{
	const json_t *last = json_object_get(e, "last"), *total = json_object_get(e, "total");
	const char *quality = ask_text(e, "energy_quality");
	struct block_work work = { 0 };
	char mark = *quality == '?' ? l->mark : table_mark(quality_named(quality)), time[16], pm[16];

	top_seconds(time, (uint64_t)ask_number(total, "cpu_ns"));
	put_line(l, sum(l, json_object_get(last, "power_w")), sum(l, json_object_get(total, "energy_uj")), mark, NULL);
	printf("%8.1f%11s%8s", l->seconds > 0 ? (double)ask_number(last, "cpu_ns") / 1e7 / l->seconds : 0.0, time,
	       range(e, pm));
	add_block(&work, total);
	put_block(l, &work);
	printf("  %s%s%s%s\n", title ? title : "", title ? "  " : "", name, ask_is(e, "ended") ? " (ended)" : "");
}

/* Returns the name that people use for the cgroup, safe to print; NULL = there is none besides its path. */
static char *title_of(const json_t *names)
{
	char title[3 * (NAMING_TEXT_MAX + 1)];
	struct names_draft d = { 0 };
	struct names *n;
	char *clean;

	for (enum name_field f = 0; f < NAME_FIELDS; f++)
		d.field[f] = json_string_value(json_object_get(names, name_field_key(f)));
	n = names_new(&d);
	clean = top_entitled(n) && names_title(n, title, sizeof(title)) > 0 ? top_clean(title) : NULL;
	names_put(n);
	return clean;
}

/* True when the row used CPU time or energy in the last interval. */
static bool is_active(const struct ledger *l, const json_t *e)
{
	const json_t *last = json_object_get(e, "last");

	return ask_number(last, "cpu_ns") > 0 || sum(l, json_object_get(last, "energy_uj")) > 0;
}

static bool is_hidden(const struct ledger *l, const json_t *e)
{
	return l->shown != SHOWN_ALL && !is_active(l, e) && (l->shown == SHOWN_ACTIVE || ask_is(e, "ended"));
}

/* Prints the sum of the rows that put_rows leaves out, so that all lines together remain the machine. */
static void put_hidden(const struct ledger *l, const json_t *list)
{
	struct block_work work = { 0 };
	double uj = 0, cpu_ns = 0;
	char time[16];
	size_t i, n = 0;
	const json_t *e;

	json_array_foreach(list, i, e) {
		const json_t *total = json_object_get(e, "total");

		if (!is_hidden(l, e))
			continue;
		uj += sum(l, json_object_get(total, "energy_uj"));
		cpu_ns += (double)ask_number(total, "cpu_ns");
		add_block(&work, total);
		n++;
	}
	if (!n)
		return;
	put_line(l, 0, uj, l->mark, NULL);
	top_seconds(time, (uint64_t)cpu_ns);
	printf("%8.1f%11s%8s", 0.0, time, "");
	put_block(l, &work);
	printf("  (%zu that %s; --all names them)\n", n,
	       l->shown == SHOWN_ACTIVE ? "used nothing now" :
	       n == 1                   ? "has ended" :
					  "have ended");
}

static void put_rows(const struct ledger *l, const json_t *list, const char *key)
{
	const json_t *e;
	size_t i;

	json_array_foreach(list, i, e) {
		const char *path = json_string_value(json_object_get(e, key));
		bool special = strcmp(key, "name") == 0;
		char *name, *title;

		if (special ? !ask_number(json_object_get(e, "total"), "cpu_ns") : is_hidden(l, e))
			continue;
		name = top_clean(path ? path : "?");
		title = title_of(json_object_get(e, "names"));
		put_use(l, e, title, name ? name : "?");
		free(title);
		free(name);
	}
}

/* Prints a part of the machine that no cgroup holds (idle, residual, ended cgroups), over the domains that are added
 * up. */
static void put_machine_part(const struct ledger *l, const char *what, const char *key)
{
	bool idle = strcmp(key, "idle_uj") == 0;
	double uj[2] = { 0 };
	const json_t *d;
	size_t i;

	json_array_foreach(l->domains, i, d) {
		if (!is_summed(l, ask_text(d, "name")))
			continue;
		uj[0] += (double)ask_number(json_object_get(d, "last"), key);
		uj[1] += (double)ask_number(json_object_get(d, "total"), key);
	}
	if (l->split && (uj[1] > 0 || uj[0] > 0))
		put_line(l, l->seconds > 0 ? uj[0] / 1e6 / l->seconds : 0, uj[1],
			 machine_mark(l, idle ? "idle_quality" : "quality"), what);
}

/* Writes the label of the sum: "= the machine (package-0 + dram-0)". */
static void name_machine(const struct ledger *l, char *dst, size_t size)
{
	size_t at = (size_t)snprintf(dst, size, "= the machine ("), i, n = 0;
	const json_t *d;

	json_array_foreach(l->domains, i, d)
		if (is_summed(l, ask_text(d, "name")) && at < size) {
			char *name = top_clean(ask_text(d, "name"));

			at += (size_t)snprintf(dst + at, size - at, "%s%.60s", n++ ? " + " : "", name ? name : "?");
			free(name);
		}
	if (at < size)
		snprintf(dst + at, size - at, ")");
}

static void csv_values(struct buf *b, const json_t *by_domain)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)by_domain, key, v) {
		if (json_is_integer(v))
			buf_printf(b, ",%lld", (long long)json_integer_value(v));
		else if (json_is_real(v))
			buf_printf(b, ",%.6f", json_real_value(v));
		else
			buf_add_char(b, ',');
	}
}

static void csv_heads(struct buf *b, const json_t *domains, const char *unit)
{
	const json_t *d;
	size_t i;

	json_array_foreach(domains, i, d) {
		char head[128];

		snprintf(head, sizeof(head), "%.100s_%s", ask_text(d, "name"), unit);
		buf_add_char(b, ',');
		csv_add_cell(b, head);
	}
}

/* What networks and block devices did, as the agent names it; a cell is empty where nothing is known. */
static const char *const work_columns[] = { "rx_bytes",      "rx_packets",      "tx_bytes",    "tx_packets",
					    "read_bytes",    "read_requests",   "write_bytes", "write_requests",
					    "discard_bytes", "discard_requests" };
#define WORK_COLUMNS (sizeof(work_columns) / sizeof(work_columns[0]))

static void csv_work(struct buf *b, const json_t *total)
{
	for (size_t i = 0; i < WORK_COLUMNS; i++)
		if (json_object_get(total, work_columns[i]))
			buf_printf(b, ",%lld", ask_number(total, work_columns[i]));
		else
			buf_add_char(b, ',');
}

static void csv_row(struct buf *b, const json_t *e, const char *key)
{
	const char *path = json_string_value(json_object_get(e, key));
	const json_t *last = json_object_get(e, "last"), *total = json_object_get(e, "total");
	char *name = top_clean(path ? path : key), *title = title_of(json_object_get(e, "names"));

	csv_add_cell(b, name ? name : "?");
	buf_add_char(b, ',');
	csv_add_cell(b, title ? title : "");
	buf_printf(b, ",%d,%s,%lld,%lld", ask_is(e, "ended"),
		   json_object_get(e, "energy_quality") ? ask_text(e, "energy_quality") : "",
		   ask_number(last, "cpu_ns"), ask_number(total, "cpu_ns"));
	csv_values(b, json_object_get(last, "power_w"));
	csv_values(b, json_object_get(total, "energy_uj"));
	csv_work(b, total);
	buf_add_char(b, '\n');
	free(name);
	free(title);
}

/* Writes the label of `other`: the cgroups that the answer leaves out, and what is not selected. "" = it holds nothing. */
static void name_other(const json_t *other, char *dst, size_t size)
{
	const json_t *total = json_object_get(other, "total");
	long long cgroups = ask_number(other, "cgroups");
	bool any = ask_number(total, "cpu_ns") > 0;
	const char *key;
	json_t *v;

	json_object_foreach(json_object_get(total, "energy_uj"), key, v)
		any = any || json_integer_value(v) > 0;
	*dst = '\0';
	if (cgroups)
		snprintf(dst, size, "(%lld more)", cgroups);
	else if (any)
		snprintf(dst, size, "(not selected)");
}

/* Writes the rows that the table would show, and `other` and the special rows: no sums besides those. */
static int print_csv(const json_t *doc, enum shown shown)
{
	const json_t *special = json_object_get(doc, "special"), *list = json_object_get(doc, "cgroups"), *e;
	const json_t *other = json_object_get(doc, "other");
	struct ledger l = { .shown = shown };
	struct buf b = { 0 };
	char more[64];
	size_t i;
	int rc;

	open_ledger(&l, doc);
	name_other(other, more, sizeof(more));
	buf_add_str(&b, "cgroup,title,ended,quality,last_cpu_ns,cpu_ns");
	csv_heads(&b, l.domains, "w");
	csv_heads(&b, l.domains, "uj");
	for (size_t k = 0; k < WORK_COLUMNS; k++)
		buf_printf(&b, ",%s", work_columns[k]);
	buf_add_char(&b, '\n');
	json_array_foreach(list, i, e)
		if (!is_hidden(&l, e))
			csv_row(&b, e, "path");
	json_array_foreach(special, i, e)
		csv_row(&b, e, "name");
	if (*more)
		csv_row(&b, other, ask_number(other, "cgroups") ? "(more)" : more);
	rc = b.failed ? -ENOMEM : put_all(STDOUT_FILENO, b.data, b.len);
	buf_free(&b);
	return rc;
}

static bool any_block(const json_t *list)
{
	struct block_work work = { 0 };
	const json_t *e;
	size_t i;

	json_array_foreach(list, i, e)
		add_block(&work, json_object_get(e, "total"));
	return work.any;
}

static void print_list(const json_t *doc, enum shown shown)
{
	const json_t *other = json_object_get(doc, "other");
	struct ledger l = { .shown = shown };
	char more[64], machine[256];

	open_ledger(&l, doc);
	l.block = any_block(json_object_get(doc, "cgroups")) || any_block(json_object_get(doc, "special"));
	printf("%8s %9s %8s%11s%8s%s  %s\n", "WATTS", "JOULES", "CPU%", "CPU TIME", "W+-",
	       l.block ? "    READ WRITTEN     I/O" : "", "CGROUP");
	put_rows(&l, json_object_get(doc, "cgroups"), "path");
	put_hidden(&l, json_object_get(doc, "cgroups"));
	name_other(other, more, sizeof(more));
	if (*more)
		put_use(&l, other, NULL, more);
	put_rows(&l, json_object_get(doc, "special"), "name");
	put_machine_part(&l, "(idle)", "idle_uj");
	put_machine_part(&l, "(residual)", "residual_uj");
	put_machine_part(&l, "(cgroups that are gone)", "retired_uj");
	name_machine(&l, machine, sizeof(machine));
	put_machine_part(&l, machine, "energy_uj");
	if (!l.split)
		printf("no energy source, or none for you: counters only; joulectl doctor says why\n");
}

/* Builds the route from the options. 0 or -EINVAL with err. */
static int make_path(const struct verb_call *call, struct buf *path, struct err *err)
{
	int sort = choice_word("list: --sort", call->option[OPTION_SORT], sorts, 0, err);
	uint64_t limit = 0, depth = UINT64_MAX;

	if (call->option[OPTION_ACTIVE] && call->option[OPTION_ALL])
		return err_set(err, -EINVAL, "list: --active and --all: one of them; leave the other out");
	if (call->option[OPTION_SINCE])
		return err_set(err, -EINVAL, "list: --since: it is for --job; give --job ID, or see joulectl history");
	if (call->option[OPTION_JSON] && call->option[OPTION_CSV])
		return err_set(err, -EINVAL, "list: --json and --csv: one of them; leave the other out");
	if (sort < 0 ||
	    choice_number("list: --limit", call->option[OPTION_LIMIT], choice_range(1, 1000000), &limit, err) ||
	    choice_number("list: --depth", call->option[OPTION_DEPTH], choice_range(0, 4096), &depth, err))
		return -EINVAL;
	buf_add_str(path, "/v1/cgroups");
	if (call->n) {
		buf_add_str(path, "/");
		agent_escape(path, call->args[0] + strspn(call->args[0], "/"));
	}
	buf_printf(path, "?sort=%s", sorts[sort]);
	if (limit)
		buf_printf(path, "&limit=%llu", (unsigned long long)limit);
	if (depth != UINT64_MAX)
		buf_printf(path, "&depth=%llu", (unsigned long long)depth);
	buf_add(path, "", 1);
	return path->failed ? err_set(err, -EINVAL, "list: PATH is too long") : 0;
}

static int answer(const struct verb_call *call, const char *path, struct err *err)
{
	enum shown shown = call->option[OPTION_ACTIVE] ? SHOWN_ACTIVE :
			   call->option[OPTION_ALL]    ? SHOWN_ALL :
							 SHOWN_USUAL;
	struct buf body = { 0 };
	json_t *doc = NULL;
	int rc = ask_agent(call->option[OPTION_SOCKET], path, &body, err);

	if (!rc && call->option[OPTION_JSON]) {
		ask_print(&body);
	} else if (!rc) {
		doc = ask_parse(&body, err);
		rc = doc ? 0 : err->code;
	}
	if (doc && call->option[OPTION_CSV])
		rc = print_csv(doc, shown) ? err_set(err, -ENOMEM, "out of memory; take fewer with --limit") : 0;
	else if (doc)
		print_list(doc, shown);
	json_decref(doc);
	buf_free(&body);
	return rc;
}

/* The options that --job does not go with are about cgroups of this moment. */
static int check_job(const struct verb_call *call, struct err *err)
{
	static const int others[] = { OPTION_SORT, OPTION_LIMIT, OPTION_DEPTH, OPTION_ACTIVE, OPTION_ALL };
	bool wrong = call->n > 0 || (call->option[OPTION_CSV] && call->option[OPTION_JSON]);

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		wrong = wrong || call->option[others[i]];
	if (wrong)
		return err_set(err, -EINVAL,
			       "list: --job: goes with --since, --json or --csv alone; leave PATH and the others out");
	if (!job_id_ok(call->option[OPTION_JOB]))
		return err_set(err, -EINVAL, "list: --job: no number of a job; write one such as 4711");
	return 0;
}

static int run_job(const struct verb_call *call)
{
	struct list_question q = { .job = call->option[OPTION_JOB],
				   .since = call->option[OPTION_SINCE],
				   .form = call->option[OPTION_JSON] ? LIST_JSON :
					   call->option[OPTION_CSV]  ? LIST_CSV :
								       LIST_TEXT };
	struct err err = { 0 };
	int rc = check_job(call, &err);

	if (!rc)
		rc = list_job_check(&q, &err);

	if (rc) {
		log_error("%s", err.text);
		return CTL_USAGE;
	}
	rc = list_job(call->option[OPTION_SOCKET], &q, &err);
	if (rc)
		log_error("list: %s", err.text);
	return rc ? CTL_FAILED : CTL_OK;
}

static int run(const struct verb_call *call)
{
	struct buf path = { .limit = 8192 };
	struct err err = { 0 };
	int rc;

	setlocale(LC_CTYPE, "");
	top_text_init();
	if (call->option[OPTION_JOB])
		return run_job(call);
	rc = make_path(call, &path, &err);
	if (rc) {
		log_error("%s", err.text);
		buf_free(&path);
		return CTL_USAGE;
	}
	rc = answer(call, (const char *)path.data, &err);
	if (rc)
		log_error("list: %s", err.text);
	buf_free(&path);
	return rc ? CTL_FAILED : CTL_OK;
}

const struct verb verb_list = {
	.name = "list",
	.synopsis = "[PATH]",
	.help = "Lists cgroups with their energy, in all and in the last interval",
	.about = about,
	.options = options,
	.max_args = 1,
	.run = run,
};
