/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "totals.h"

void totals_add_counts(uint64_t *fixed, const struct snap_row *r, unsigned n_events)
{
	fixed[TOTAL_TIME] += r->time_ns;
	fixed[TOTAL_SWITCHES] += r->switches;
	for (unsigned i = 0; i < TRAFFIC_VALUES; i++)
		fixed[TOTAL_TRAFFIC + i] += traffic_const(&r->traffic)[i];
	for (unsigned i = 0; i < n_events; i++)
		fixed[TOTAL_FIXED + i] += r->counters[i];
}

static void add_values(const struct totals *t, uint64_t *v, const struct snapshot *s, unsigned row)
{
	unsigned n = t->schema->n_domains;

	for (unsigned d = 0; d < n; d++)
		v[d] += *snapshot_energy(s, row, d);
	totals_add_counts(v + n, &s->rows[row], t->schema->core.n);
}

/* True when the row adds something. Most cgroups are idle. */
static bool moves(const struct snapshot *s, unsigned row)
{
	const struct snap_row *r = &s->rows[row];
	uint64_t any = r->time_ns | r->switches | traffic_any(&r->traffic, 0, TRAFFIC_VALUES);

	for (unsigned d = 0; d < s->schema->n_domains; d++)
		any |= *snapshot_energy(s, row, d);
	for (unsigned i = 0; i < s->schema->core.n; i++)
		any |= r->counters[i];
	return any;
}

#define RANGE_MAX_NJ 0x1p62 /* of an interval: a recording of a stranger may hold any numbers */

/* A group, or a path that two cgroups had, is a sum. */
static void add_range(const struct totals *t, struct total_row *r, const struct snapshot *s, unsigned row)
{
	if (r->told != t->adds)
		r->last_uj = r->last_range_uj = 0;
	r->told = t->adds;
	for (unsigned d = 0; d < t->schema->n_domains; d++) {
		double uj = (double)*snapshot_energy(s, row, d);
		uint32_t ppm = *snapshot_uncertainty(s, row, d);

		if (!schema_sums(t->schema, d) || !(uj > 0))
			continue;
		r->last_uj += uj;
		r->last_range_uj += ppm == SNAPSHOT_UNKNOWN ? (double)NAN : uj * ppm / 1e6;
		if (ppm == SNAPSHOT_UNKNOWN)
			continue;
		r->ranged_uj += *snapshot_energy(s, row, d);
		r->range_nj += (uint64_t)fmin(uj * ppm / 1e3, RANGE_MAX_NJ);
	}
}

double totals_range(const struct totals *t, unsigned row)
{
	const struct total_row *r = &t->rows[row];

	return r->told == t->adds && r->last_uj > 0 ? r->last_range_uj / r->last_uj : (double)NAN;
}

static void add_row(struct totals *t, const struct snapshot *s, unsigned row, bool selected)
{
	const struct snap_row *from = &s->rows[row];
	uint32_t at = totals_place(t, from, selected);
	struct total_row *r = &t->rows[at];
	unsigned was = r->quality, energy_quality = snapshot_row_energy_quality(s, row);

	r->quality = r->seen == t->adds ? r->quality | from->quality : from->quality;
	r->energy_quality = r->seen == t->adds ? r->energy_quality | energy_quality : energy_quality;
	r->ever |= from->quality;
	add_values(t, totals_row(t, at), s, row);
	add_range(t, r, s, row);
	if (at < TOTAL_FIRST_CGROUP || r->quality != was || moves(s, row))
		r->changed = t->adds;
	if (at < TOTAL_FIRST_CGROUP) {
		r->seen = t->adds; /* more rows may come to it */
		return;
	}
	/* two cgroups had this path within the interval: take the names of the living one; a group keeps its own */
	if (!t->options.by.kind && (!from->ended || (from->names && r->seen != t->adds)))
		totals_call(t, at, from->names, t->adds);
	if (!r->shown) {
		add_values(t, totals_row(t, ROW_OTHER), s, row);
		add_values(t, &t->hidden[(size_t)at * totals_width(t)], s, row);
	}
	totals_met(t, at);
	if (!from->ended)
		r->seen = t->adds;
	/* a group that lives by cgroups shorter than an interval ends anew each time */
	if (!from->ended || t->options.by.kind)
		totals_alive(t, at);
}

static unsigned worst(unsigned quality)
{
	unsigned i = TOTALS_QUALITIES - 1;

	while (i && !(quality & (1u << (i - 1))))
		i--;
	return i;
}

static bool is_price(const struct snap_price *p)
{
	bool is = p->per_second > 0;

	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		is |= p->per_count[i] > 0;
	return is;
}

static void add_machine(struct totals *t, const struct snapshot *s)
{
	for (unsigned d = 0; d < t->schema->n_domains; d++) {
		struct total_domain *to = &t->domains[d];

		to->energy_uj += s->domains[d].energy_uj;
		to->idle_uj += s->domains[d].idle_uj + *snapshot_energy(s, ROW_IDLE, d);
		to->residual_uj += s->domains[d].residual_uj;
		to->intervals[worst(s->domains[d].quality)]++;
		to->quality = s->domains[d].quality | s->domains[d].share_quality;
		to->idle_power_uw = s->domains[d].idle_power_uw;
		to->idle_quality = s->domains[d].idle_quality;
		if (is_price(&s->domains[d].price))
			to->price = s->domains[d].price;
	}
	for (unsigned i = 0; i < t->schema->n_cpus; i++) {
		t->busy_ns += s->cpus[i].busy_ns;
		t->idle_ns += s->cpus[i].idle_ns;
		t->irq_steal_ns += s->cpus[i].irq_steal_ns;
		t->offline_ns += s->cpus[i].offline_ns;
		for (unsigned k = 0; k < t->schema->msr.n; k++)
			t->msr[k] += s->cpus[i].msr[k];
	}
	t->losses.folded += s->losses.folded;
	t->losses.lost_reads += s->losses.lost_reads;
	t->losses.lost_events += s->losses.lost_events;
	t->losses.missed_switches += s->losses.missed_switches;
}

/* The value to rank rows by: energy, or processor time when energy is not split. */
static uint64_t rank(const struct totals *t, uint32_t row)
{
	const uint64_t *v = totals_row(t, row);
	unsigned summed = schema_kinds_summed(t->schema);
	uint64_t sum = 0;

	for (unsigned d = 0; d < t->schema->n_domains; d++)
		sum += summed & DOMAIN_BIT(t->schema->domains[d].kind) ? v[d] : 0;
	return t->schema->n_domains && strcmp(t->formula, "none") != 0 ? sum : v[totals_column(t, TOTAL_TIME)];
}

/* Stops showing a row that lives on: what was shown so far is retired, and what comes goes into `other`. */
static void hide(struct totals *t, uint32_t row)
{
	size_t at = (size_t)row * totals_width(t);

	totals_retire(t, row);
	memcpy(&t->hidden[at], &t->values[at], totals_width(t) * sizeof(uint64_t));
}

void totals_trim(struct totals *t)
{
	while (t->options.top && t->n_shown > t->options.top) {
		uint32_t least = TOTALS_NONE;

		for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++)
			if (t->rows[i].shown && (least == TOTALS_NONE || rank(t, i) < rank(t, least)))
				least = i;
		hide(t, least);
	}
}

/* Exchanges at most one shown row per interval, and only for a clear difference, so that rows do not come and
 * go. */
static void choose_shown(struct totals *t)
{
	uint32_t least = TOTALS_NONE, most = TOTALS_NONE;
	uint64_t low = UINT64_MAX, high = 0, v;

	for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++) {
		if (!t->rows[i].used)
			continue;
		v = rank(t, i);
		if (t->rows[i].shown && v < low) {
			low = v;
			least = i;
		} else if (!t->rows[i].shown && !t->rows[i].ended && v >= high) {
			high = v;
			most = i;
		}
	}
	if (most == TOTALS_NONE || (t->n_shown >= t->options.top && high / 5 <= low / 4))
		return;
	if (t->n_shown >= t->options.top)
		hide(t, least);
	t->rows[most].shown = true;
	t->rows[most].changed = t->adds;
	t->n_shown++;
}

/* Drops excess ended rows: subtrees with most of them lose most. Without memory for the choice, the oldest go. */
static void drop_excess(struct totals *t)
{
	struct fair *f = &t->fair;

	if (fair_reserve(f, t->n_ended) != 0) {
		while (t->n_ended > TOTALS_ENDED_MAX)
			totals_drop(t, t->ended_first);
		return;
	}
	for (uint32_t i = t->ended_first; i != TOTALS_NONE; i = t->rows[i].ended_next)
		fair_add(f, t->rows[i].name, t->rows[i].ended_ns, i);
	fair_choose(f, TOTALS_ENDED_MAX);
	for (uint32_t i = 0; i < f->n; i++)
		if (!f->items[i].kept)
			totals_drop(t, f->items[i].index);
}

static void follow_ends(struct totals *t)
{
	for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++)
		if (t->rows[i].used && !t->rows[i].ended && t->rows[i].seen != t->adds)
			totals_end(t, i);
	while (t->reselected && t->n_ended)
		totals_drop(t, t->ended_first);
	t->reselected = false;
	t->added = true;
	while (t->n_ended && t->mono_ns - t->rows[t->ended_first].ended_ns >= t->options.keep_ns)
		totals_drop(t, t->ended_first);
	if (t->n_ended > TOTALS_ENDED_MAX)
		drop_excess(t);
}

void totals_add(struct totals *t, const struct snapshot *s, const bool *selected)
{
	if (!t->adds++)
		t->start_ns = s->start_ns;
	t->mono_ns = s->end_ns;
	t->real_ns = s->end_real_ns;
	memcpy(t->formula, s->formula, sizeof(t->formula));
	t->idle_policy = s->idle_policy;
	for (unsigned i = 0; i < s->n_rows; i++)
		add_row(t, s, i, selection_shows(selected, s, i));
	add_machine(t, s);
	follow_ends(t);
	if (t->options.top)
		choose_shown(t);
	if (t->view)
		totals_add(t->view, s, selected);
}

/* The table owns each name separately; a copy has all names in the buffer `names`. */
void totals_free(struct totals *t)
{
	if (!t)
		return;
	for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++) {
		if (t->keys && t->rows[i].used)
			free((char *)t->rows[i].name);
		names_put(t->rows[i].names);
	}
	totals_free(t->view);
	free(t->view);
	free(t->rows);
	free(t->values);
	free(t->hidden);
	free(t->retired);
	hash_free(&t->by_name);
	totals_free_keys(t);
	buf_free(&t->names);
	fair_free(&t->fair);
	*t = (struct totals){ 0 };
}

static int reserve(struct totals *t, unsigned rows, size_t width, bool hidden)
{
	const unsigned cap = array_step(rows);

	if (rows <= t->cap_rows && (!hidden || t->hidden))
		return 0;
	if (!cap || ARRAY_RESIZE(t->rows, cap) || ARRAY_RESIZE(t->values, cap * width) ||
	    (hidden && ARRAY_RESIZE(t->hidden, cap * width)))
		return -ENOMEM;
	if (!t->retired && !(t->retired = calloc(width, sizeof(uint64_t))))
		return -ENOMEM;
	t->cap_rows = cap;
	return 0;
}

/* The buffer may move while it grows, so offsets are stored first. */
static int copy_names(struct totals *dst)
{
	size_t at = 0;

	buf_reset(&dst->names);
	for (unsigned i = 0; i < dst->n_rows; i++)
		buf_add(&dst->names, dst->rows[i].name, strlen(dst->rows[i].name) + 1);
	if (dst->names.failed)
		return -ENOMEM;
	for (unsigned i = 0; i < dst->n_rows; i++) {
		dst->rows[i].name = (char *)dst->names.data + at;
		at += strlen(dst->rows[i].name) + 1;
	}
	return 0;
}

static void copy_rest(struct totals *dst, const struct totals *src)
{
	dst->adds = src->adds;
	dst->start_ns = src->start_ns;
	dst->mono_ns = src->mono_ns;
	dst->real_ns = src->real_ns;
	memcpy(dst->formula, src->formula, sizeof(dst->formula));
	dst->idle_policy = src->idle_policy;
	dst->n_shown = src->n_shown;
	dst->n_ended = src->n_ended;
	memcpy(dst->domains, src->domains, src->schema->n_domains * sizeof(src->domains[0]));
	memcpy(dst->retired, src->retired, totals_width(src) * sizeof(uint64_t));
	dst->busy_ns = src->busy_ns;
	dst->idle_ns = src->idle_ns;
	dst->irq_steal_ns = src->irq_steal_ns;
	dst->offline_ns = src->offline_ns;
	memcpy(dst->msr, src->msr, sizeof(dst->msr));
	dst->losses = src->losses;
}

int totals_copy(struct totals *dst, const struct totals *src)
{
	size_t width;

	dst->schema = src->schema;
	dst->options = src->options;
	width = totals_width(src);
	for (unsigned i = 0; i < dst->n_rows; i++)
		names_put(dst->rows[i].names);
	dst->n_rows = 0;
	if (reserve(dst, src->n_rows, width, src->hidden))
		return -ENOMEM;
	for (unsigned i = 0; i < src->n_rows; i++) {
		if (!src->rows[i].used)
			continue;
		dst->rows[dst->n_rows] = src->rows[i];
		names_get(src->rows[i].names);
		memcpy(&dst->values[dst->n_rows * width], &src->values[i * width], width * sizeof(uint64_t));
		if (src->hidden)
			memcpy(&dst->hidden[dst->n_rows * width], &src->hidden[i * width], width * sizeof(uint64_t));
		dst->n_rows++;
	}
	copy_rest(dst, src);
	if (copy_names(dst) != 0)
		return -ENOMEM;
	if (src->view && !dst->view && !(dst->view = calloc(1, sizeof(*dst->view))))
		return -ENOMEM;
	return src->view ? totals_copy(dst->view, src->view) : 0;
}

void totals_name_late(struct totals *t, uint64_t id, struct names *n)
{
	for (uint32_t i = t->ended_first; i != TOTALS_NONE; i = t->rows[i].ended_next)
		if (t->rows[i].id == id)
			totals_call(t, i, n, t->adds);
}
