/* SPDX-License-Identifier: Apache-2.0 */
/* HWPC reports as the hwpc-sensor of PowerAPI sends them (docs/formats/hwpc.md). One tick is, in
 * JSON, a line for the machine and a line per target, all with one timestamp:
 *
 *	{"timestamp":MS,"sensor":S,"target":"all","groups":{
 *	    "rapl":{SOCKET:{CPU:{"RAPL_ENERGY_PKG":N,...,"time_enabled":NS,"time_running":NS}},...},
 *	    "msr":{SOCKET:{CPU:{"TSC":N,"APERF":N,"MPERF":N,...}}}}}
 *	{"timestamp":MS,"sensor":S,"target":"/a/b","groups":{"core":{SOCKET:{CPU:{EVENT:N,...}}}}}
 *
 * Values are increments; energy is in 2^-32 J. "metadata" follows where there is something to say
 * and always in the ISO form. CSV is one encoder, hence one file, per group. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "hwpc.h"

static int choose_form(struct encoder *e, const struct encode_options *o, struct err *err)
{
	static const char *const groups[] = {
		[HWPC_CSV_RAPL] = "rapl", [HWPC_CSV_MSR] = "msr", [HWPC_CSV_CORE] = "core"
	};

	if (!o->csv)
		return 0;
	if (o->iso_time)
		return err_set(err, -EINVAL, "hwpc: CSV has integer milliseconds only; leave out time=iso");
	for (int i = HWPC_CSV_RAPL; i <= HWPC_CSV_CORE; i++) {
		if (o->csv_group && !strcmp(o->csv_group, groups[i])) {
			e->form = (enum hwpc_form)i;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "hwpc: CSV has the groups rapl, msr and core, not %s; open one output per group",
		       o->csv_group ? o->csv_group : "none");
}

/* The sensor's name becomes part of an actor's name, taken apart where there is an apostrophe. */
static int take_sensor(struct encoder *e, const struct encode_options *o, struct err *err)
{
	int code = target_sensor(o, e->schema, e->sensor, err);

	if (!code && strchr(e->sensor, '\''))
		code = err_set(err, -EINVAL,
			       "sensor %s: an apostrophe ends PowerAPI formulas; choose another sensor:", e->sensor);
	return code;
}

static void add_event(struct hwpc_group *g, const char *name, int source)
{
	memcpy(g->names[g->n], name, strnlen(name, SCHEMA_NAME_MAX - 1));
	g->source[g->n++] = source;
}

static int find_event(const struct event_set *set, const char *name)
{
	for (unsigned i = 0; i < set->n; i++)
		if (!strcmp(set->ev[i].name, name))
			return (int)i;
	return -1;
}

/* The event sets are those of the schema, which lives as long as the process: a formula that has
 * learnt one set ends when it meets another. */
static void take_events(struct encoder *e)
{
	const struct event_set *msr = &e->schema->msr, *core = &e->schema->core;

	e->tsc = find_event(msr, "TSC");
	e->aperf = find_event(msr, "APERF");
	e->mperf = find_event(msr, "MPERF");
	if (e->aperf < 0 || e->mperf < 0)
		e->aperf = e->mperf = -1;
	for (unsigned i = 0; i < msr->n; i++)
		if (e->aperf >= 0 || (strcmp(msr->ev[i].name, "APERF") && strcmp(msr->ev[i].name, "MPERF")))
			add_event(&e->msr, msr->ev[i].name, (int)i);
	if (e->aperf < 0) {
		add_event(&e->msr, "APERF", HWPC_SOURCE_CLOCK);
		add_event(&e->msr, "MPERF", HWPC_SOURCE_CLOCK);
	}
	for (unsigned i = 0; i < core->n; i++)
		add_event(&e->core, core->ev[i].name, core->ev[i].kind == EVENT_TASK_CLOCK ? HWPC_SOURCE_TIME : (int)i);
	if (!core->n)
		add_event(&e->core, "TASK_CLOCK", HWPC_SOURCE_TIME);
}

static int check_events(const struct encoder *e, struct err *err)
{
	const struct hwpc_group *groups[] = { &e->msr, &e->core };

	for (unsigned g = 0; g < 2; g++)
		for (unsigned i = 0; i < groups[g]->n; i++)
			if (!target_text_ok(groups[g]->names[i], e->form != HWPC_JSON))
				return err_set(err, -EINVAL, "event %s: its name cannot stand in %s",
					       groups[g]->names[i],
					       e->form != HWPC_JSON ? "CSV; use file-format=json" : "JSON");
	return 0;
}

static void hwpc_destroy(struct encoder *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < HWPC_EVENTS; i++)
		free(e->core_keys[i].text);
	targets_free(&e->targets);
	buf_free(&e->head);
	buf_free(&e->tail);
	free(e->send);
	free(e->sockets);
	free(e->joined);
	free(e->joined_at);
	free(e);
}

static int reserve(struct encoder *e)
{
	const struct schema *s = e->schema;

	e->sockets = calloc(s->n_packages + 1, sizeof(*e->sockets));
	e->joined = calloc(s->n_cpus + 1, sizeof(*e->joined));
	e->joined_at = calloc(s->n_cpus + 1, sizeof(*e->joined_at));
	if (!e->sockets || !e->joined || !e->joined_at)
		return -ENOMEM;
	return hwpc_json_create(e);
}

static int hwpc_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));
	int code;

	if (!e)
		return err_set(err, -ENOMEM, "hwpc: out of memory");
	e->schema = s;
	e->iso = o->iso_time;
	e->leaf_only = o->leaf_only;
	e->stand_ins = o->stand_ins;
	for (unsigned i = 0; i < s->n_domains; i++)
		e->csv_stand_in |= s->domains[i].interface == ENERGY_ESTIMATE ||
				   s->domains[i].interface == ENERGY_REPLAY;
	take_events(e);
	code = choose_form(e, o, err);
	if (!code)
		code = take_sensor(e, o, err);
	if (!code)
		code = check_events(e, err);
	if (!code && reserve(e))
		code = err_set(err, -ENOMEM, "hwpc: out of memory");
	if (code) {
		hwpc_destroy(e);
		return code;
	}
	*ret = e;
	return 0;
}

static int hwpc_preamble(struct encoder *e, const struct schema *s, struct buf *out)
{
	return e->form == HWPC_JSON ? 0 : hwpc_csv_header(e, out);
}

static int hwpc_encode(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	size_t start = out->len;
	int code = hwpc_plan(e, s);

	if (code <= 0)
		return code;
	code = e->form == HWPC_JSON ? hwpc_json(e, s, out) : hwpc_csv(e, s, out);
	if (code || out->failed) {
		out->len = start;
		return code ? code : -ENOMEM;
	}
	hwpc_sent(e);
	return 0;
}

static const struct encoder_stats *hwpc_stats(const struct encoder *e)
{
	return &e->stats;
}

const struct encoder_ops encode_hwpc = {
	.name = "hwpc",
	.help = "PowerAPI hardware counter reports, JSON lines or CSV",
	.create = hwpc_create,
	.preamble = hwpc_preamble,
	.encode = hwpc_encode,
	.stats = hwpc_stats,
	.destroy = hwpc_destroy,
};
