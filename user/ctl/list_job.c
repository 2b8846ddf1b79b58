/* SPDX-License-Identifier: Apache-2.0 */
#include "list_job.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/instant.h"
#include "base/text.h"
#include "encode/table.h"
#include "model/schema.h"
#include "ctl/core/agent_client.h"
#include "ctl/core/ask.h"
#include "ctl/top/top.h"

struct step_use { /* of a step, or of all */
	uint64_t uj[SCHEMA_MAX_DOMAINS], total_uj;
	unsigned quality;
	bool ended;
	long long from_ns, until_ns; /* of its points */
};

struct job {
	const json_t *doc;
	const char *since;
	size_t n_domains;
	bool in_total[SCHEMA_MAX_DOMAINS];
	struct step_use all;
};

static void add_point(const struct job *j, const json_t *point, struct step_use *u)
{
	long long end_ns = json_integer_value(json_array_get(point, 0));
	long long ns = json_integer_value(json_array_get(point, 1));
	const json_t *values = json_array_get(point, 3);

	for (size_t d = 0; d < j->n_domains; d++) {
		uint64_t uj = (uint64_t)json_integer_value(json_array_get(values, d));

		u->uj[d] += uj;
		u->total_uj += j->in_total[d] ? uj : 0;
	}
	u->quality |= quality_named(json_string_value(json_array_get(point, 2)));
	u->from_ns = u->from_ns && u->from_ns < end_ns - ns ? u->from_ns : end_ns - ns;
	u->until_ns = u->until_ns > end_ns ? u->until_ns : end_ns;
}

static struct step_use add_step(struct job *j, const json_t *series)
{
	struct step_use u = { .ended = ask_is(series, "ended") };
	const json_t *point;
	size_t i;

	json_array_foreach(json_object_get(series, "points"), i, point) {
		add_point(j, point, &u);
		add_point(j, point, &j->all);
	}
	j->all.ended = j->all.ended && u.ended;
	return u;
}

static void put_text(const struct step_use *u, const char *name)
{
	char joules[16];

	top_joules(joules, u->total_uj);
	printf("%9s%c  %s%s\n", joules, table_mark(u->quality), name, u->ended ? " (ended)" : "");
}

static void put_csv(const struct job *j, const struct step_use *u, const char *name)
{
	printf("%s,%" PRIu64, name, u->total_uj);
	for (size_t d = 0; d < j->n_domains; d++)
		printf(",%" PRIu64, u->uj[d]);
	printf(",%s,%s\n", quality_name(u->quality), u->ended ? "yes" : "no");
}

static void put_heads(const struct job *j, bool csv)
{
	char safe[256];

	printf(csv ? "step,energy_uj" : "%9s   %s\n", "JOULES", "STEP");
	for (size_t d = 0; csv && d < j->n_domains; d++) {
		text_escape(safe, sizeof(safe),
			    json_string_value(json_array_get(json_object_get(j->doc, "domains"), d)));
		printf(",%s_uj", safe);
	}
	if (csv)
		printf(",quality,ended\n");
}

/* Prints the times in which nothing was measured while the job ran. */
static void put_lost(const struct job *j)
{
	const json_t *e;
	double ns = 0;
	size_t i;

	json_array_foreach(json_object_get(j->doc, "lost"), i, e) {
		long long from = ask_number(e, "from_unix_ns"), until = ask_number(e, "until_unix_ns");

		if (from < j->all.until_ns && until > j->all.from_ns)
			ns += (double)(until - from);
	}
	if (ns > 0)
		printf("nothing is known for %.1f s of this time; joulectl history --since %s says when and why\n",
		       ns / 1e9, j->since);
}

static void print(struct job *j, const char *id, bool csv)
{
	const json_t *domains = json_object_get(j->doc, "domains"), *series;
	char name[256];
	size_t i;

	j->n_domains = json_array_size(domains) < SCHEMA_MAX_DOMAINS ? json_array_size(domains) : SCHEMA_MAX_DOMAINS;
	for (size_t d = 0; d < j->n_domains; d++)
		j->in_total[d] = json_is_true(json_array_get(json_object_get(j->doc, "in_total"), d));
	j->all.ended = true;
	put_heads(j, csv);
	json_array_foreach(json_object_get(j->doc, "series"), i, series) {
		struct step_use u = add_step(j, series);

		text_escape(name, sizeof(name), ask_text(series, "cgroup"));
		if (csv)
			put_csv(j, &u, name);
		else
			put_text(&u, name);
	}
	if (csv)
		return;
	snprintf(name, sizeof(name), "= job %s", id);
	put_text(&j->all, name);
	put_lost(j);
}

/* At most 144 points of a step up to 144 days: few enough for a thousand steps, fine enough to tell which gaps were in its
 * time. */
static const char *step_of(int64_t ns)
{
	const int64_t day_ns = 24 * 3600 * (int64_t)NS_PER_S;

	return ns <= day_ns ? "10m" : ns <= 6 * day_ns ? "1h" : ns <= 36 * day_ns ? "6h" : "24h";
}

int list_job_check(struct list_question *q, struct err *err)
{
	int64_t now_ns = clock_real_ns(), since_ns;

	if (!q->since)
		q->since = "-24h";
	if (instant_parse(q->since, now_ns, &since_ns) != 0)
		return err_set(err, -EINVAL,
			       "list: --since %.40s: no time; write Unix seconds, 2026-01-31T12:00:00Z or -30d",
			       q->since);
	q->step = step_of(now_ns - since_ns);
	return 0;
}

int list_job(const char *socket, const struct list_question *q, struct err *err)
{
	struct buf body = { 0 }, path = { 0 };
	struct job j = { .since = q->since };
	json_t *doc = NULL;
	int rc;

	buf_printf(&path, "/v1/history?job=%s&step=%s&since=", q->job, q->step);
	agent_escape(&path, q->since);
	buf_add_char(&path, '\0');
	rc = path.failed ? err_set(err, -ENOMEM, "out of memory; free some") :
			   ask_agent(socket, (const char *)path.data, &body, err);
	if (!rc && q->form == LIST_JSON) {
		ask_print(&body);
	} else if (!rc) {
		doc = ask_parse(&body, err);
		rc = doc ? 0 : err->code;
	}
	if (doc) {
		j.doc = doc;
		print(&j, q->job, q->form == LIST_CSV);
	}
	json_decref(doc);
	buf_free(&path);
	buf_free(&body);
	return rc;
}
