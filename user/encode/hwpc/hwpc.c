/* SPDX-License-Identifier: Apache-2.0 */
/* HWPC reports as the hwpc-sensor of PowerAPI sends them (docs/formats/hwpc.md). In JSON one tick is a line for the
 * machine and a line per target, all with the same timestamp:
 *
 *	{"timestamp":MS,"sensor":S,"target":"all","groups":{
 *	    "rapl":{SOCKET:{CPU:{"RAPL_ENERGY_PKG":N,...,"time_enabled":NS,"time_running":NS}},...},
 *	    "msr":{SOCKET:{CPU:{"TSC":N,"APERF":N,"MPERF":N,...}}}}}
 *	{"timestamp":MS,"sensor":S,"target":"/a/b","groups":{"core":{SOCKET:{CPU:{EVENT:N,...}}}}}
 *
 * Values are increments; energy is in 2^-32 J. "metadata" follows, with the same keys in every report. When it is
 * switched off, the ISO form has an empty object. CSV has one encoder, and so one file, per group. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/clock.h"
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

/* The sensor's name becomes part of an actor's name, which PowerAPI splits at an apostrophe. */
static int take_sensor(struct encoder *e, const struct encode_options *o, struct err *err)
{
	int rc = target_sensor(o->sensor ? o->sensor : e->schema->sensor, o->csv, e->sensor, err);

	if (!rc && strchr(e->sensor, '\''))
		rc = err_set(err, -EINVAL,
			     "sensor %s: an apostrophe ends PowerAPI formulas; choose another sensor:", e->sensor);
	return rc;
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

/* The event sets are those of the schema, which stays for the life of the process. A formula that has learnt
 * one set ends when it meets another. */
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
		if (!core->ev[i].added)
			add_event(&e->core, core->ev[i].name,
				  core->ev[i].kind == EVENT_TASK_CLOCK ? HWPC_SOURCE_TIME : (int)i);
	if (!e->core.n)
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
	int rc;

	if (!e)
		return err_set(err, -ENOMEM, "hwpc: out of memory; free some");
	e->schema = s;
	e->iso = o->iso_time;
	e->leaf_only = o->leaf_only;
	e->stand_ins = o->stand_ins;
	e->metadata = !o->no_metadata;
	for (unsigned i = 0; i < s->n_domains; i++)
		e->csv_stand_in |= s->domains[i].interface == ENERGY_ESTIMATE ||
				   s->domains[i].interface == ENERGY_REPLAY;
	take_events(e);
	rc = choose_form(e, o, err);
	if (!rc)
		rc = take_sensor(e, o, err);
	if (!rc)
		rc = check_events(e, err);
	if (!rc && reserve(e))
		rc = err_set(err, -ENOMEM, "hwpc: out of memory; free some");
	if (rc) {
		hwpc_destroy(e);
		return rc;
	}
	*ret = e;
	return 0;
}

static int hwpc_preamble(struct encoder *e, const struct schema *s, struct buf *out)
{
	return e->form == HWPC_JSON ? 0 : hwpc_csv_header(e, out);
}

static int hwpc_plan(struct encoder *e, const struct snapshot *s);

static void hwpc_sent(struct encoder *e);

static int hwpc_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	size_t start = out->len;
	int rc;

	e->shown = shown;
	rc = hwpc_plan(e, s);

	if (rc <= 0)
		return rc;
	rc = e->form == HWPC_JSON ? hwpc_json(e, s, out) : hwpc_csv(e, s, out);
	if (rc || out->failed) {
		out->len = start;
		return rc ? rc : -ENOMEM;
	}
	hwpc_sent(e);
	return 0;
}

static const struct encoder_stats *hwpc_stats(const struct encoder *e)
{
	return &e->stats;
}

/* When reports have no metadata, notes report the stand-ins. */
static const char *hwpc_note(const struct encoder *e, unsigned i)
{
	bool tell = e->form == HWPC_JSON && !e->metadata && e->stand_ins, msr = tell && e->aperf < 0;

	if (msr && i-- == 0)
		return "msr: APERF and MPERF are stand-ins, both equal, and metadata=false does not tell it in the reports";
	return tell && e->csv_stand_in && i == 0 ?
		       "rapl: the package energy may be an estimate, and metadata=false does not tell it in the reports" :
		       NULL;
}

const struct encoder_ops encode_hwpc = {
	.name = "hwpc",
	.create = hwpc_create,
	.preamble = hwpc_preamble,
	.encode = hwpc_encode,
	.stats = hwpc_stats,
	.note = hwpc_note,
	.destroy = hwpc_destroy,
};

/* Decides whether a tick is sent. A formula of the PowerAPI family does not skip an incomplete report: it ends
 * (docs/formats/hwpc.md, "What is withheld"). So a tick is sent whole or not at all. */

#define LATE_NUM 3 /* interval > 3/2 of nominal: the formula divides by the nominal one */
#define LATE_DEN 2
#define SUSPEND_NS NS_PER_MS /* a smaller gap is the time between reading the two clocks */
/* Package frequency = base x APERF / MPERF must fall into one of 100 layers of 100 MHz. With the default base
 * of 2100 MHz that is 0.048 to 4.76; these limits lie a little inside. */
#define RATIO_MIN 0.05
#define RATIO_MAX 4.7

static int withhold(struct encoder *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int withhold(struct encoder *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->stats.reason, sizeof(e->stats.reason), fmt, ap);
	va_end(ap);
	e->stats.withheld_ticks++;
	return 0;
}

static int check_time(struct encoder *e, const struct snapshot *s)
{
	uint64_t length = s->end_ns - s->start_ns;
	int64_t ms = s->end_real_ns / (int64_t)NS_PER_MS;

	if (s->suspended_ns > SUSPEND_NS)
		return withhold(e, "interval: the machine was suspended for %llu ms of it",
				(unsigned long long)(s->suspended_ns / NS_PER_MS));
	if (s->missed)
		return withhold(e, "interval: %llu deadlines were missed before it", (unsigned long long)s->missed);
	if (s->nominal_ns && length / LATE_NUM > s->nominal_ns / LATE_DEN)
		return withhold(e, "interval: %llu ms instead of %llu ms", (unsigned long long)(length / NS_PER_MS),
				(unsigned long long)(s->nominal_ns / NS_PER_MS));
	if (s->end_real_ns < 0)
		return withhold(e, "timestamp: the clock stands before 1970");
	if (e->any_sent && (ms == e->last_ms || (ms < e->last_ms && e->form != HWPC_JSON)))
		return withhold(e, "timestamp: the clock was set back to or before the tick sent last");
	e->ms = ms;
	return 1;
}

static void find_sockets(struct encoder *e, const struct snapshot *s)
{
	e->n_sockets = 0;
	for (unsigned i = 0; i < e->schema->n_cpus; i++) {
		uint16_t package = e->schema->cpus[i].package;
		unsigned n = 0;

		if (!hwpc_cpu_used(&s->cpus[i]) || package >= e->schema->n_packages)
			continue;
		while (n < e->n_sockets && e->sockets[n].package != package)
			n++;
		if (n < e->n_sockets)
			continue;
		e->sockets[n] = (struct hwpc_socket){ .package = package, .first_cpu = (uint16_t)i };
		e->n_sockets++;
	}
}

static int add_domain(struct encoder *e, const struct snapshot *s, unsigned i)
{
	const struct domain_desc *desc = &e->schema->domains[i];
	const struct snap_domain *d = &s->domains[i];
	int kind = hwpc_rapl_kind(desc->kind);
	unsigned bad = d->quality & (QUALITY_LOST | QUALITY_STALE | QUALITY_PARTIAL);

	if (desc->interface == ENERGY_HOST && kind >= 0 && e->n_sockets > 1)
		return withhold(
			e,
			"%s: the host tells it for the whole virtual machine, which has %u sockets; give it one with all "
			"its CPUs, or use another format",
			desc->name, e->n_sockets);
	for (unsigned n = 0; kind >= 0 && n < e->n_sockets; n++) {
		struct hwpc_socket *socket = &e->sockets[n];

		if (!hwpc_of_package(desc, socket->package))
			continue;
		if (bad || d->end_ns <= d->start_ns)
			return withhold(e, "%s: its energy is %s in this interval", desc->name,
					quality_name(bad ? bad : QUALITY_STALE));
		if ((d->quality & QUALITY_ESTIMATED) && !e->stand_ins)
			return withhold(e, "%s: its energy is estimated; allow stand-ins to send it", desc->name);
		socket->has |= 1u << kind;
		socket->energy_q32[kind] += d->energy_q32;
		if (kind == HWPC_PKG || !(socket->has & (1u << HWPC_PKG)))
			socket->time_ns = d->end_ns - d->start_ns;
		e->rapl_quality |= d->quality;
	}
	return 1;
}

static int check_energy(struct encoder *e, const struct snapshot *s)
{
	e->rapl_quality = 0;
	for (unsigned i = 0; i < e->schema->n_domains; i++) {
		int sent = add_domain(e, s, i);

		if (sent <= 0)
			return sent;
	}
	e->rapl_stand_in = e->rapl_quality & QUALITY_ESTIMATED;
	for (unsigned n = 0; n < e->n_sockets; n++)
		if (!(e->sockets[n].has & (1u << HWPC_PKG)))
			return withhold(e, "socket %u: no package energy; see jouled doctor for what is missing",
					e->sockets[n].package);
	return e->n_sockets ? 1 : withhold(e, "machine: no CPU online");
}

static int check_ratio(struct encoder *e, const struct snapshot *s, const struct hwpc_socket *socket)
{
	double aperf = 0, mperf = 0;

	for (unsigned i = 0; i < e->schema->n_cpus; i++) {
		if (e->schema->cpus[i].package != socket->package || !hwpc_cpu_used(&s->cpus[i]))
			continue;
		if ((s->cpus[i].quality & QUALITY_LOST) || (s->cpus[i].msr_enabled_ns && !s->cpus[i].msr_running_ns))
			return withhold(e, "cpu %u: its msr counters are lost in this interval", i);
		if (e->aperf < 0)
			continue;
		aperf += (double)s->cpus[i].msr[e->aperf];
		mperf += (double)s->cpus[i].msr[e->mperf];
	}
	/* the whole package slept: both are 0, which readers take as "no frequency in this tick" */
	if (mperf + aperf > 0 && (aperf < RATIO_MIN * mperf || aperf > RATIO_MAX * mperf))
		return withhold(e, "socket %u: APERF / MPERF of %.0f / %.0f is no frequency", socket->package, aperf,
				mperf);
	return 1;
}

static int check_msr(struct encoder *e, const struct snapshot *s)
{
	int sent = 1;

	if (e->aperf < 0 && !e->stand_ins)
		return withhold(e, "msr: no APERF and MPERF on this machine; allow stand-ins to send without");
	for (unsigned n = 0; n < e->n_sockets && sent > 0; n++)
		sent = check_ratio(e, s, &e->sockets[n]);
	return sent;
}

/* True when no cell of the row has a usable counter. The formula would take the zeros for idleness. */
static bool all_lost(const struct encoder *e, const struct snapshot *s, uint32_t row)
{
	uint64_t counted = 0, time = 0;
	unsigned quality = 0;

	for (; row != TARGET_NONE; row = e->targets.rows[row].next) {
		const struct snap_row *r = &s->rows[row];

		time += r->time_ns;
		quality |= r->quality;
		for (unsigned i = 0; i < e->core.n; i++)
			counted |= e->core.source[i] >= 0 ? r->counters[e->core.source[i]] : 0;
		if (r->n_cells && !(r->quality & (QUALITY_LOST | QUALITY_PARTIAL)))
			return false;
	}
	/* TASK_CLOCK needs no counter: every row has it */
	for (unsigned i = 0; i < e->core.n; i++)
		if (e->core.source[i] == HWPC_SOURCE_TIME)
			return false;
	return (quality & (QUALITY_LOST | QUALITY_PARTIAL)) && time && !counted;
}

static bool wanted(struct encoder *e, const struct snapshot *s, uint32_t i)
{
	const struct snap_row *row = &s->rows[i];
	unsigned flags = e->targets.rows[i].flags;

	switch (row->kind) {
	case ROW_KERNEL:
		return !e->leaf_only;
	case ROW_OTHER:
		e->other_seen |= row->time_ns || row->n_cells;
		return !e->leaf_only && e->other_seen;
	case ROW_CGROUP:
		if (!selection_shows(e->shown, s, i) || (flags & TARGET_JOINED))
			return false;
		return !e->leaf_only || (!(flags & TARGET_INNER) && strcmp(row->path, "/") != 0);
	default:
		return false;
	}
}

static void leave_out(struct encoder *e, const struct snapshot *s, uint32_t row, const char *why)
{
	snprintf(e->stats.reason, sizeof(e->stats.reason), "cgroup %llu: %s", (unsigned long long)s->rows[row].id, why);
	e->left_out++;
}

static int choose_targets(struct encoder *e, const struct snapshot *s)
{
	char last[100];
	int rc = targets_update(&e->targets, s, e->leaf_only);

	if (rc)
		return rc;
	if (ARRAY_ROOM(e->send, e->cap_send, s->n_rows) != 0)
		return -ENOMEM;
	e->n_send = e->renamed = e->left_out = 0;
	for (uint32_t i = 0; i < s->n_rows; i++) {
		if (!wanted(e, s, i))
			continue;
		if (e->targets.rows[i].flags & TARGET_REFUSED)
			leave_out(e, s, i, "its path does not begin with a slash");
		else if ((s->rows[i].quality || e->targets.rows[i].next != TARGET_NONE) && all_lost(e, s, i))
			leave_out(e, s, i, "none of its counters could be read");
		else
			e->send[e->n_send++] = i;
	}
	e->stats.withheld_rows += e->left_out;
	if (e->n_send)
		return 1;
	snprintf(last, sizeof(last), "%.99s", e->left_out ? e->stats.reason : "");
	return withhold(e, "targets: none besides all%s%s", *last ? "; " : "", last);
}

/* Decides which rows of this tick are sent. 1 = send, 0 = withheld (counted, with reason), negative errno. */
static int hwpc_plan(struct encoder *e, const struct snapshot *s)
{
	int sent = check_time(e, s);

	if (sent <= 0)
		return sent;
	find_sockets(e, s);
	sent = check_energy(e, s);
	if (sent > 0)
		sent = check_msr(e, s);
	return sent > 0 ? choose_targets(e, s) : sent;
}

/* Adds the tick's counts to the statistics. Called once the tick is appended for certain. */
static void hwpc_sent(struct encoder *e)
{
	e->any_sent = true;
	e->last_ms = e->ms;
	e->stats.renamed_rows += e->renamed;
}

/* The values of one (group, socket, cpu); both forms write the same. */

const char *const hwpc_rapl_names[HWPC_RAPL_KINDS] = {
	[HWPC_PKG] = "RAPL_ENERGY_PKG", [HWPC_DRAM] = "RAPL_ENERGY_DRAM", [HWPC_CORES] = "RAPL_ENERGY_CORES",
	[HWPC_GPU] = "RAPL_ENERGY_GPU", [HWPC_PSYS] = "RAPL_ENERGY_PSYS",
};

int hwpc_rapl_kind(enum domain_kind kind)
{
	switch (kind) {
	case DOMAIN_PACKAGE:
		return HWPC_PKG;
	case DOMAIN_DRAM:
		return HWPC_DRAM;
	case DOMAIN_CORE:
		return HWPC_CORES;
	case DOMAIN_UNCORE:
		return HWPC_GPU;
	case DOMAIN_PSYS:
		return HWPC_PSYS;
	default:
		return -1; /* not RAPL */
	}
}

void hwpc_core_values(const struct encoder *e, const struct snap_cell *c, uint64_t v[HWPC_VALUES])
{
	for (unsigned i = 0; i < e->core.n; i++)
		v[i] = e->core.source[i] >= 0 ? c->counters[e->core.source[i]] : c->time_ns;
	v[HWPC_ENABLED] = c->enabled_ns;
	v[HWPC_RUNNING] = c->running_ns;
	v[HWPC_STAND_IN] = 0;
}

void hwpc_msr_values(const struct encoder *e, const struct snap_cpu *c, uint64_t v[HWPC_VALUES])
{
	/* stand-in APERF = MPERF = TSC, as the metadata say; also when the TSC value is 0 */
	uint64_t clock = e->tsc >= 0 ? c->msr[e->tsc] : c->elapsed_ns;

	for (unsigned i = 0; i < e->msr.n; i++)
		v[i] = e->msr.source[i] >= 0 ? c->msr[e->msr.source[i]] : clock;
	v[HWPC_ENABLED] = e->schema->msr.n ? c->msr_enabled_ns : c->elapsed_ns;
	v[HWPC_RUNNING] = e->schema->msr.n ? c->msr_running_ns : c->elapsed_ns;
	v[HWPC_STAND_IN] = e->aperf < 0;
}

void hwpc_rapl_values(const struct encoder *e, const struct hwpc_socket *socket, uint64_t v[HWPC_VALUES])
{
	memcpy(v, socket->energy_q32, sizeof(socket->energy_q32));
	v[HWPC_ENABLED] = v[HWPC_RUNNING] = socket->time_ns;
	v[HWPC_STAND_IN] = e->rapl_stand_in;
}

static void join_cell(struct encoder *e, const struct snap_cell *c, unsigned *n)
{
	struct snap_cell *to;

	if (c->cpu >= e->schema->n_cpus)
		return;
	if (!e->joined_at[c->cpu]) {
		e->joined[*n] = *c;
		e->joined_at[c->cpu] = ++*n;
		return;
	}
	to = &e->joined[e->joined_at[c->cpu] - 1];
	to->time_ns += c->time_ns;
	to->enabled_ns += c->enabled_ns;
	to->running_ns += c->running_ns;
	to->quality |= c->quality;
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		to->counters[i] += c->counters[i];
}

/* A lost cell beside good ones makes the target partial, because some of it was counted. */
static unsigned together(unsigned quality)
{
	return quality & QUALITY_LOST ? (quality & ~(unsigned)QUALITY_LOST) | QUALITY_PARTIAL : quality;
}

const struct snap_cell *hwpc_cells(struct encoder *e, const struct snapshot *s, uint32_t row, unsigned *ret_n,
				   unsigned *ret_quality)
{
	const struct snap_row *r = &s->rows[row];
	unsigned n = 0, quality = 0;

	if (e->targets.rows[row].next == TARGET_NONE) {
		*ret_n = r->n_cells;
		*ret_quality = together(r->quality);
		return s->cells + r->first_cell;
	}
	memset(e->joined_at, 0, e->schema->n_cpus * sizeof(*e->joined_at));
	for (; row != TARGET_NONE; row = e->targets.rows[row].next) {
		r = &s->rows[row];
		quality |= r->quality;
		for (unsigned i = 0; i < r->n_cells; i++)
			join_cell(e, &s->cells[r->first_cell + i], &n);
	}
	*ret_n = n;
	*ret_quality = together(quality);
	return e->joined;
}
