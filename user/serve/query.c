/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/instant.h"
#include "base/parse.h"
#include "base/text.h"
#include "encode/trace_json.h"
#include "model/job_path.h"

#define SHORTEST_NS (10 * NS_PER_MS)
#define LONGEST_NS (3600 * NS_PER_S)
#define STEP_MAX_NS (366 * 24 * 3600 * NS_PER_S)

static const char *const sorts[] = {
	[SORT_POWER] = "power", [SORT_ENERGY] = "energy", [SORT_CPU] = "cpu", [SORT_NAME] = "name"
};

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == len && strncmp(at, word, len) == 0)
			return true;
	return false;
}

static int set_sort(struct query *q, const char *value, struct err *err)
{
	for (unsigned i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++)
		if (strcmp(sorts[i], value) == 0) {
			q->sort = (enum query_sort)i;
			return 0;
		}
	return err_set(err, -EINVAL, "sort: unknown order; write power, energy, cpu or name");
}

static int set_count(uint64_t *to, const char *name, const char *value, struct err *err)
{
	if (parse_u64(value, to) != 0)
		return err_set(err, -EINVAL, "%s: \"%.40s\" is no whole number; write one such as 20", name, value);
	return 0;
}

static int set_interval(struct query *q, const char *value, struct err *err)
{
	uint64_t ns;

	if (parse_duration_ns(value, &ns) != 0 || ns < SHORTEST_NS || ns > LONGEST_NS)
		return err_set(err, -EINVAL,
			       "interval: \"%.40s\" is no duration from 10ms to 1h; write one such as 500ms", value);
	q->interval_ns = ns;
	return 0;
}

static int set_below(struct query *q, const char *value, struct err *err)
{
	if (value[0] != '/')
		return err_set(err, -EINVAL, "below: \"%.40s\" is no path of a cgroup; write one such as /system.slice",
			       value);
	q->below = value;
	return 0;
}

static int set_step(struct query *q, const char *value, struct err *err)
{
	uint64_t ns;

	if (parse_duration_ns(value, &ns) != 0 || ns < NS_PER_S || ns > STEP_MAX_NS)
		return err_set(err, -EINVAL, "step: \"%.40s\" is no duration from 1s to 366d; write one such as 1m",
			       value);
	q->step_ns = ns;
	return 0;
}

static int set_time(int64_t *to, const char *name, const char *value, const struct query *q, struct err *err)
{
	if (instant_parse(value, q->now_ns, to) != 0)
		return err_set(err, -EINVAL,
			       "%s: \"%.40s\" is no time; write Unix seconds, 2026-01-31T12:00:00Z or -1h", name,
			       value);
	return 0;
}

static int set_trace(struct query *q, const char *value, struct err *err)
{
	q->trace = value;
	return trace_uuid_ok(value) ?
		       0 :
		       err_set(err, -EINVAL, "trace: \"%.40s\" is no uuid of a trace; take one from a list of traces",
			       value);
}

static int set_job(struct query *q, const char *value, struct err *err)
{
	q->job = value;
	return job_id_ok(value) ?
		       0 :
		       err_set(err, -EINVAL, "job: \"%.40s\" is no number of a job; write one such as 4711", value);
}

static int set(struct query *q, const char *name, const char *value, struct err *err)
{
	if (strcmp(name, "sort") == 0)
		return set_sort(q, value, err);
	if (strcmp(name, "limit") == 0)
		return set_count(&q->limit, name, value, err);
	if (strcmp(name, "before") == 0)
		return set_count(&q->before, name, value, err);
	if (strcmp(name, "depth") == 0)
		return set_count(&q->depth, name, value, err);
	if (strcmp(name, "interval") == 0)
		return set_interval(q, value, err);
	if (strcmp(name, "below") == 0)
		return set_below(q, value, err);
	if (strcmp(name, "step") == 0)
		return set_step(q, value, err);
	if (strcmp(name, "since") == 0 || strcmp(name, "until") == 0)
		return set_time(name[0] == 's' ? &q->since_ns : &q->until_ns, name, value, q, err);
	if (strcmp(name, "cgroup") == 0) {
		q->cgroup = value;
		return value[0] == '/' ?
			       0 :
			       err_set(err, -EINVAL, "cgroup: \"%.40s\" is no path; write one such as /system.slice",
				       value);
	}
	if (strcmp(name, "job") == 0)
		return set_job(q, value, err);
	if (strcmp(name, "command") == 0) {
		q->command = value;
		return 0;
	}
	if (strcmp(name, "trace") == 0)
		return set_trace(q, value, err);
	if (strlen(value) >= sizeof(q->format))
		return err_set(err, -EINVAL, "format: unknown; write json, cbor, hwpc, power, table or vjoule");
	snprintf(q->format, sizeof(q->format), "%s", value);
	return 0;
}

int query_parse(struct query *q, const char *allowed, const struct query_args *args, struct err *err)
{
	const char *const *names = args->names, *const *values = args->values;
	char shown[64];

	*q = (struct query){ .limit = UINT64_MAX,
			     .before = UINT64_MAX,
			     .depth = UINT64_MAX,
			     .since_ns = INT64_MIN,
			     .until_ns = INT64_MIN };
	q->now_ns = clock_real_ns();
	for (unsigned i = 0; i < args->n; i++) {
		int rc = 0;

		text_escape(shown, sizeof(shown), names[i]);
		if (!has_word(allowed, names[i]))
			return *allowed ? err_set(err, -EINVAL, "%s: no parameter of this request; it knows %s", shown,
						  allowed) :
					  err_set(err, -EINVAL, "%s: this request takes no parameters; leave it out",
						  shown);
		for (unsigned k = 0; k < i && !rc; k++)
			if (strcmp(names[k], names[i]) == 0)
				rc = err_set(err, -EINVAL, "%s: given twice; leave one out", shown);
		if (!rc)
			rc = values[i] ? set(q, names[i], values[i], err) :
					 err_set(err, -EINVAL, "%s: no value; write %s=VALUE", shown, shown);
		if (rc)
			return rc;
	}
	return 0;
}
