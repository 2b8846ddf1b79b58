/* SPDX-License-Identifier: Apache-2.0 */
/* Identifiers are dense from 0: first metrics of the machine only, then the metrics of cgroups. A metric whose
 * event this machine does not count gets the nearest event, and a note. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include "base/array.h"
#include "model/event_find.h"
#include "vjoule.h"

#define ROW_OFFSET(field) offsetof(struct snap_row, field)
#define TIME "TASK_CLOCK"

void vjoule_note(struct encoder *e, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_add(&e->notes, text, strlen(text) + 1);
}

static struct vjoule_column *add_column(struct encoder *e, const char *name, enum vjoule_kind kind, unsigned index)
{
	struct vjoule_column *c = &e->columns[e->n_columns++];

	*c = (struct vjoule_column){ .kind = kind, .index = index };
	memcpy(c->name, name, strnlen(name, sizeof(c->name) - 1));
	c->offset = kind == VJOULE_CORE ? ROW_OFFSET(counters) + index * sizeof(uint64_t) : ROW_OFFSET(time_ns);
	return c;
}

/* A wanted metric, split at the first '=': the formula's name and our event. */
struct wanted {
	char name[SCHEMA_NAME_MAX];
	const char *event;
};

static int take_apart(const char *text, struct wanted *w, struct err *err)
{
	size_t len = strcspn(text, "=");

	if (!len || len >= sizeof(w->name) || (text[len] && !text[len + 1]))
		return err_set(err, -EINVAL,
			       "metrics: \"%s\" is no metric; write NAME or NAME=EVENT, the name shorter than %d bytes",
			       text, SCHEMA_NAME_MAX);
	memcpy(w->name, text, len);
	w->name[len] = '\0';
	w->event = text[len] ? text + len + 1 : text;
	return 0;
}

static int find_event(const struct event_set *set, const char *name)
{
	for (unsigned i = 0; i < set->n; i++)
		if (!strcasecmp(set->ev[i].name, name))
			return (int)i;
	return -1;
}

static int find_task_clock(const struct event_set *set)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->ev[i].kind == EVENT_TASK_CLOCK)
			return (int)i;
	return -1;
}

/* Finds the event, another name of it, or else cycles. Index in the set; -1 = only time is available, or time
 * was asked for. */
static int nearest(const struct event_set *set, const char *event)
{
	int found = find_event(set, event);

	if (found < 0 && event_is_misses(event))
		found = event_find_misses(set);
	if (found < 0 && strcasecmp(event, TIME) != 0)
		found = event_find_cycles(set);
	return found < 0 ? find_task_clock(set) : found;
}

static void add_metric(struct encoder *e, const struct wanted *w)
{
	const struct event_set *set = &e->schema->core;
	int i = nearest(set, w->event);
	bool time = i < 0 || set->ev[i].kind == EVENT_TASK_CLOCK;
	const char *from = i < 0 ? TIME : set->ev[i].name;

	add_column(e, w->name, time ? VJOULE_TIME : VJOULE_CORE, time ? 0 : (unsigned)i);
	if (strcasecmp(from, w->event) != 0)
		vjoule_note(e, "metric %s: %s stands in, the nearest that this machine counts", w->name, from);
}

static bool has_column(const struct encoder *e, unsigned from, const char *name)
{
	for (unsigned i = from; i < e->n_columns; i++)
		if (!strcmp(e->columns[i].name, name))
			return true;
	return false;
}

static int add_wanted(struct encoder *e, char *const *metrics, unsigned n, struct err *err)
{
	for (unsigned i = 0; i < n; i++) {
		struct wanted w;
		int rc = take_apart(metrics[i], &w, err);

		if (rc)
			return rc;
		if (vjoule_metrics(e) == VJOULE_METRICS)
			return err_set(err, -E2BIG, "metrics: more than %d; leave some out", VJOULE_METRICS);
		if (has_column(e, e->n_machine, w.name))
			return err_set(err, -EINVAL, "metrics: %s stands there twice; remove one", w.name);
		add_metric(e, &w);
	}
	return 0;
}

static void add_configured(struct encoder *e)
{
	const struct event_set *core = &e->schema->core;

	unsigned before = e->n_columns;

	for (unsigned i = 0; i < core->n; i++)
		if (!core->ev[i].added)
			add_column(e, core->ev[i].name,
				   core->ev[i].kind == EVENT_TASK_CLOCK ? VJOULE_TIME : VJOULE_CORE, i);
	if (e->n_columns == before)
		add_column(e, TIME, VJOULE_TIME, 0);
}

/* True when a cgroup metric will have this name: it is a system metric then anyway. */
static bool is_wanted(const struct encoder *e, const struct encode_options *o, const char *name)
{
	for (unsigned i = 0; i < o->n_metrics; i++) {
		size_t len = strcspn(o->metrics[i], "=");

		if (strlen(name) == len && !memcmp(name, o->metrics[i], len))
			return true;
	}
	for (unsigned i = 0; !o->n_metrics && i < e->schema->core.n; i++)
		if (!e->schema->core.ev[i].added && !strcmp(name, e->schema->core.ev[i].name))
			return true;
	return false;
}

static void add_machine(struct encoder *e, const struct encode_options *o)
{
	const struct schema *s = e->schema;
	bool package = false;

	for (unsigned i = 0; i < s->n_domains; i++)
		package |= s->domains[i].kind == DOMAIN_PACKAGE;
	if (package && !is_wanted(e, o, "RAPL_ENERGY_PKG"))
		add_column(e, "RAPL_ENERGY_PKG", VJOULE_RAPL, 0);
	for (unsigned i = 0; i < s->msr.n; i++)
		if (!is_wanted(e, o, s->msr.ev[i].name))
			add_column(e, s->msr.ev[i].name, VJOULE_MSR, i);
	e->n_machine = e->n_columns;
}

int vjoule_columns(struct encoder *e, const struct encode_options *o, struct err *err)
{
	/* the released formulas look for these exact names */
	static char cycles[] = "PERF_COUNT_HW_CPU_CYCLES", misses[] = "LLC_MISSES";
	static char *const v02[] = { cycles, misses };

	if (e->dialect == VJOULE_DOCUMENT)
		add_machine(e, o);
	if (o->n_metrics)
		return add_wanted(e, o->metrics, o->n_metrics, err);
	if (e->dialect == VJOULE_V02)
		return add_wanted(e, v02, 2, err);
	add_configured(e);
	return 0;
}

/* v0.2: what can be left out of a report, and when. simple_formula keeps a directory per cgroup. It removes
 * those that have been absent for some reports, in the order of their names, and ends when one is not empty. So
 * a name is sent with all names above it, up to "/"; those without counts get zeros. A name stays until the
 * report after the last one with a name below it. "/" always stays, because the formula's own files lie in it.
 *
 * The reader also loses long records. So the smallest consumers are folded into `/other` until the report fits;
 * a name is folded only after all names below it. */

/* The use of a row: energy as the formula split it, or time when energy is not split. */
static uint64_t use_of(const struct snapshot *s, uint32_t row)
{
	unsigned summed = schema_kinds_summed(s->schema);
	uint64_t use = 0;

	if (!s->formula[0] || !strcmp(s->formula, "none"))
		return s->rows[row].time_ns;
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		if (summed & DOMAIN_BIT(s->schema->domains[d].kind))
			use += *snapshot_energy(s, row, d);
	return use;
}

/* Fingerprint of the rows and their order. While it stays the same, the places stay the same. */
static uint64_t fingerprint(const struct encoder *e, const struct snapshot *s)
{
	uint64_t h = e->n_send * 4ull + e->extras[VJOULE_KERNEL].sent * 2ull + e->extras[VJOULE_OTHER].sent + 1;

	for (unsigned i = 0; i < e->n_send; i++) {
		const struct snap_row *r = &s->rows[e->send[i]];

		h = hash_word(hash_word(h, r->key | (uint64_t)r->generation << 32), r->renamed);
	}
	return h;
}

static bool is_row(const struct vjoule_place *p)
{
	return p->at < VJOULE_EXTRA_AT(VJOULE_EXTRAS - 1);
}

/* The extra of this place, or VJOULE_EXTRAS. */
static unsigned extra_of(const struct vjoule_place *p)
{
	return is_row(p) || p->at == VJOULE_NO_PLACE ? VJOULE_EXTRAS : VJOULE_EXTRA_AT(0) - p->at;
}

static bool has_counts(const struct encoder *e, const struct vjoule_place *p)
{
	unsigned extra = extra_of(p);

	return is_row(p) || (extra < VJOULE_EXTRAS && e->extras[extra].sent);
}

/* Computes from the leaves up what a name and all below it use, and whether the name is sent. */
static void climb(struct encoder *e, const struct snapshot *s)
{
	struct vjoule_tree *t = &e->tree;

	for (unsigned i = 0; i < t->n; i++) {
		t->v[i].use = is_row(&t->v[i]) ? use_of(s, e->send[t->v[i].at]) : 0;
		t->v[i].sent_below = t->v[i].now_below = false;
	}
	for (unsigned i = t->n; i-- > 0;) {
		struct vjoule_place *p = &t->v[i], *up = p->parent == VJOULE_NO_PLACE ? NULL : &t->v[p->parent];

		p->stays = p->sent && p->sent_below;
		p->now = !up || has_counts(e, p) || p->now_below || p->stays;
		if (p->stays)
			p->use = UINT64_MAX;
		if (!up)
			continue;
		up->sent_below |= p->sent || p->sent_below;
		up->now_below |= p->now;
		if (p->use > up->use)
			up->use = p->use;
	}
}

/* Counts the names that are sent without counts. */
static void keep_ghosts(struct encoder *e)
{
	e->n_ghosts = e->extras_kept = 0;
	e->ghosts_size = 0;
	for (unsigned i = 0; i < e->tree.n; i++) {
		struct vjoule_place *p = &e->tree.v[i];

		if (!p->now || has_counts(e, p))
			continue;
		if (extra_of(p) < VJOULE_EXTRAS)
			e->extras_kept |= 1u << extra_of(p);
		e->n_ghosts++;
		e->ghosts_size += vjoule_cgroup_size(e->dialect, p->len, vjoule_metrics(e));
	}
}

static void add_ghosts(struct encoder *e)
{
	e->n_cgroups += e->n_ghosts;
	e->size += e->ghosts_size;
	for (unsigned k = 0; k < VJOULE_EXTRAS; k++)
		e->extras[k].sent |= e->extras_kept >> k & 1;
}

/* With equal use the longer name counts as smaller, because it may lie below the other. */
static bool smaller(const struct vjoule_place *a, const struct vjoule_place *b)
{
	return a->use != b->use ? a->use < b->use : a->len > b->len;
}

static void sift_down(const struct vjoule_place *v, uint32_t *heap, unsigned n, unsigned i)
{
	uint32_t moved = heap[i];

	for (unsigned child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && smaller(&v[heap[child + 1]], &v[heap[child]]))
			child++;
		if (!smaller(&v[heap[child]], &v[moved]))
			break;
		heap[i] = heap[child];
	}
	heap[i] = moved;
}

static void fold_one(struct encoder *e, const struct snapshot *s, struct vjoule_place *p)
{
	e->size -= vjoule_cgroup_size(e->dialect, p->len, vjoule_metrics(e));
	e->n_cgroups--;
	p->now = false;
	if (!is_row(p))
		return;
	vjoule_add_row(e, s, e->send[p->at], e->extras[VJOULE_OTHER].values);
	e->send[p->at] = UINT32_MAX;
	e->stats.folded_rows++;
}

static void close_gaps(struct encoder *e)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < e->n_send; i++)
		if (e->send[i] != UINT32_MAX)
			e->send[kept++] = e->send[i];
	e->n_send = kept;
}

/* Folds the smallest first. A heap with the smallest on top avoids sorting all; qsort may allocate. */
static void fold(struct encoder *e, const struct snapshot *s, size_t room)
{
	struct vjoule_tree *t = &e->tree;
	unsigned n = 0;

	e->other_stays = true;
	if (!e->extras[VJOULE_OTHER].sent) {
		e->extras[VJOULE_OTHER].sent = true;
		e->size += vjoule_cgroup_size(e->dialect, strlen("/other"), vjoule_metrics(e));
		e->n_cgroups++;
	}
	for (uint32_t i = 1; i < t->n; i++) /* 0 is "/" */
		if (t->v[i].now && !t->v[i].stays && extra_of(&t->v[i]) == VJOULE_EXTRAS)
			e->ranked[n++] = i;
	for (unsigned i = n / 2; i-- > 0;)
		sift_down(t->v, e->ranked, n, i);
	while (e->size > room && n) {
		fold_one(e, s, &t->v[e->ranked[0]]);
		e->ranked[0] = e->ranked[--n];
		sift_down(t->v, e->ranked, n, 0);
	}
	close_gaps(e);
}

int vjoule_fit(struct encoder *e, const struct snapshot *s, size_t room)
{
	uint64_t print = fingerprint(e, s);
	bool too_long, same = true;
	int rc = 0;

	if (print != e->print) {
		e->settled = false;
		e->print = 0;
		rc = vjoule_tree_make(e, s);
		if (!rc)
			rc = ARRAY_ROOM(e->ranked, e->cap_ranked, e->tree.n);
		if (rc)
			return rc;
		e->print = print;
	}
	if (e->settled && e->size + e->ghosts_size <= room) {
		add_ghosts(e);
		return 0;
	}
	climb(e, s);
	keep_ghosts(e);
	add_ghosts(e);
	too_long = e->size > room;
	if (too_long)
		fold(e, s, room);
	for (unsigned i = 0; i < e->tree.n; i++) {
		struct vjoule_place *p = &e->tree.v[i];

		p->now |= has_counts(e, p) && !is_row(p); /* folding may have added `/other` */
		same &= p->sent == p->now;
		p->sent = p->now;
	}
	e->settled = same && !too_long;
	return 0;
}
