/* SPDX-License-Identifier: Apache-2.0 */
/* What of a tick may be sent. A formula of the PowerAPI family does not skip a report that lacks
 * something, it ends (docs/formats/hwpc.md, "What is withheld"): so a tick is sent whole or not. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "hwpc.h"

#define LATE_NUM 3 /* interval > 3/2 of nominal: the formula divides by the nominal one */
#define LATE_DEN 2
#define SUSPEND_NS NS_PER_MS /* less is the distance between reading the two clocks */
/* Package frequency = base x APERF / MPERF must fall into one of 100 layers of 100 MHz. With the
 * default base of 2100 MHz that is 0.048 to 4.76; a little inside. */
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
	/* all of it asleep: both 0, which readers take as "no frequency in this tick" */
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

/* All of its cells without a usable counter: the formula would take the zeros for idleness. */
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
	/* TASK_CLOCK needs no counter: it is there whenever the row is */
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
		if (!row->selected || (flags & TARGET_JOINED))
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
	int err = targets_update(&e->targets, s, e->leaf_only);

	if (err)
		return err;
	if (s->n_rows > e->cap_send) {
		uint32_t *p = realloc(e->send, (size_t)(s->n_rows + s->n_rows / 2) * sizeof(*p));

		if (!p)
			return -ENOMEM;
		e->send = p;
		e->cap_send = s->n_rows + s->n_rows / 2;
	}
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

int hwpc_plan(struct encoder *e, const struct snapshot *s)
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

void hwpc_sent(struct encoder *e)
{
	e->any_sent = true;
	e->last_ms = e->ms;
	e->stats.renamed_rows += e->renamed;
}
