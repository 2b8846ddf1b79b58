/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "traces_internal.h"

#define PERIOD_NS (600 * 1000000000ull)
#define MAX_SPANS 32768
#define PART_SPANS 1024
#define OWED_NS 20000
#define LATE_SWEEPS 5 /* an end later than all energy is waited for so long */

struct traces *traces_new(const struct traces_options *o)
{
	struct traces *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->o = *o;
	t->o.period_ns = o->period_ns ? o->period_ns : PERIOD_NS;
	t->o.max_spans = o->max_spans ? o->max_spans : MAX_SPANS;
	t->o.part_spans = o->part_spans ? o->part_spans : PART_SPANS;
	for (t->n_buckets = 64; t->n_buckets < t->o.max_spans; t->n_buckets *= 2)
		;
	t->buckets = calloc(t->n_buckets, sizeof(*t->buckets));
	if (!t->buckets) {
		traces_free(t);
		return NULL;
	}
	return t;
}

void traces_free(struct traces *t)
{
	if (!t)
		return;
	while (t->trees)
		traces_free_tree(t, t->trees);
	while (t->loose)
		traces_drop(t, t->loose);
	for (struct node *n = t->free_nodes, *next; n; n = next) {
		next = n->hash_next;
		free(n);
	}
	free(t->order);
	free(t->buckets);
	free(t);
}

/* A process went to another cgroup: what it used so far is not of that one. */
static void move(struct traces *t, struct node *n, uint64_t cgroup_id)
{
	struct tree *tree = n->tree;

	if (tree && tree->root == n)
		traces_dissolve(t, tree);
	else
		traces_loosen(t, n);
	n->span.cgroup_id = cgroup_id;
	n->base_ns = n->seen_ns;
	n->owed_ns = 0;
	memset(n->span.energy_uj, 0, sizeof(n->span.energy_uj));
	n->span.energy_quality = QUALITY_PARTIAL;
}

/* What the source knows now, but not what was counted here. */
static void update(struct traces *t, struct node *n, const struct span *s)
{
	struct span was = n->span;

	if (s->cgroup_id != was.cgroup_id)
		move(t, n, s->cgroup_id);
	was = n->span;
	n->span = *s;
	memcpy(n->comm, s->comm, strnlen(s->comm, sizeof(n->comm) - 1) + 1);
	n->comm[sizeof(n->comm) - 1] = '\0';
	n->span.start_ns = was.start_ns;
	n->span.start_real_ns = was.start_real_ns;
	memcpy(n->span.energy_uj, was.energy_uj, sizeof(was.energy_uj));
	n->span.energy_quality = was.energy_quality;
	n->span.n_domains = t->o.schema->n_domains;
}

/* What one that is older than the agent used before the first look has no energy: its span begins here. */
static struct node *enter(struct traces *t, const struct span *s)
{
	struct node *n = traces_add(t, s->id);

	if (!n)
		return NULL;
	n->span = *s;
	memset(n->span.energy_uj, 0, sizeof(n->span.energy_uj));
	n->span.energy_quality = 0;
	if (s->seen_running && s->kind == SPAN_PROCESS && t->now_ns > s->start_ns) {
		n->seen_ns = n->base_ns = s->end == SPAN_CUT ? s->cpu_ns : 0;
		n->span.start_ns = t->now_ns;
		n->span.start_real_ns += (int64_t)(t->now_ns - s->start_ns);
	}
	n->from_ns = n->before_ns = n->look_ns = n->span.start_ns;
	return n;
}

void traces_finished(struct traces *t, const struct span *s)
{
	struct node *n = traces_find(t, s->id);

	if (!n)
		n = enter(t, s);
	if (!n)
		return;
	update(t, n, s);
	traces_keep_text(n, s);
	n->finished = true;
	n->sweep = t->sweep;
	if (s->moved)
		n->span.energy_quality |= QUALITY_PARTIAL;
	if (n->span.end_ns < n->span.start_ns)
		n->span.end_ns = n->span.start_ns;
}

void traces_begin(struct traces *t, uint64_t now_ns, uint64_t until_ns, bool all)
{
	t->sweep++;
	t->now_ns = now_ns;
	t->until_ns = until_ns;
	t->all = all;
	for (struct tree *tree = t->trees; tree; tree = tree->next) {
		tree->due = all || now_ns - tree->begun_ns >= t->o.period_ns || tree->n - tree->open >= t->o.part_spans;
		traces_name(t, tree);
	}
}

/* Pays for what n used in [from, until] and what it still owes. */
static void pay(struct traces *t, struct node *n, uint64_t used_ns, uint64_t until_ns)
{
	uint64_t want = used_ns + n->owed_ns;
	const uint64_t id = n->span.cgroup_id;

	if (until_ns < n->from_ns)
		until_ns = n->from_ns;
	if (want)
		want = t->o.charge(t->o.ctx, id, n->from_ns, until_ns, want, n->span.energy_uj,
				   &n->span.energy_quality);
	if (want && n->before_ns < n->from_ns) /* counters and clocks are not read in one moment */
		want = t->o.charge(t->o.ctx, id, n->before_ns, n->from_ns, want, n->span.energy_uj,
				   &n->span.energy_quality);
	n->owed_ns = want;
	n->before_ns = n->from_ns;
	n->from_ns = until_ns;
}

/* A process is looked at a little later than its cgroup was: what it used meanwhile is of the next interval, where others
 * do not pay for it. */
static void look(struct traces *t, struct node *n, uint64_t cpu_ns)
{
	uint64_t used = cpu_ns - n->seen_ns, window = t->now_ns > n->look_ns ? t->now_ns - n->look_ns : 1;
	uint64_t late = t->now_ns > t->until_ns ? t->now_ns - t->until_ns : 0;
	uint64_t held = (uint64_t)((unsigned __int128)used * (late < window ? late : window) / window);

	pay(t, n, used - held, t->until_ns);
	n->owed_ns += held;
	n->seen_ns = cpu_ns;
	n->look_ns = t->now_ns;
}

void traces_known(struct traces *t, const struct span *s)
{
	struct node *n = traces_find(t, s->id);

	if (!n)
		n = enter(t, s);
	if (!n || n->finished)
		return;
	n->sweep = t->sweep;
	if (s->end != SPAN_CUT)
		return; /* its own figures come with its end */
	update(t, n, s);
	if (!(s->quality & QUALITY_STALE) && s->cpu_ns >= n->seen_ns)
		look(t, n, s->cpu_ns);
	if (n->tree && n->tree->due)
		traces_keep_text(n, s);
}

/* Of a process nothing is known any more, and its end was not told: there was no room for it in the source. */
static void give_up(struct traces *t, struct node *n)
{
	n->finished = true;
	n->span.end = SPAN_UNKNOWN;
	n->span.end_ns = t->now_ns > n->span.start_ns ? t->now_ns : n->span.start_ns;
	n->span.quality |= QUALITY_LOST;
	n->span.cpu_ns = n->seen_ns;
}

/* The last bill. More than a hundredth without energy is worth a word, but for what clocks differ. */
static void settle(struct traces *t, struct node *n)
{
	uint64_t used = n->span.cpu_ns > n->seen_ns ? n->span.cpu_ns - n->seen_ns : 0, part;

	if (n->span.end_ns > t->until_ns && n->sweep + LATE_SWEEPS > t->sweep && !t->all)
		return; /* its last interval is still to come */
	if (n->span.kind == SPAN_PROCESS) {
		pay(t, n, used, n->span.end_ns);
		n->seen_ns += used;
		part = n->seen_ns - n->base_ns;
		if (n->owed_ns > OWED_NS + part / 100)
			n->span.energy_quality |= QUALITY_PARTIAL;
	}
	n->paid = true;
	n->tree->open--;
}

static void settle_tree(struct traces *t, struct tree *tree)
{
	for (struct node *n = tree->nodes; n; n = n->next) {
		if (!n->finished && n->sweep != t->sweep && n->span.kind == SPAN_PROCESS)
			give_up(t, n);
		if (n->finished && !n->paid)
			settle(t, n);
	}
}

/* The next part begins where this one ended: with those that live, below each other or below the root. */
static void go_on(struct traces *t, struct tree *tree)
{
	const bool rooted = !tree->root->paid;
	const uint64_t root = tree->root->span.id;

	for (struct node *n = tree->nodes, *next; n; n = next) {
		next = n->next;
		if (n->paid) {
			traces_drop(t, n);
			continue;
		}
		if (n->finished) /* not paid yet: it is of the next part */
			continue;
		n->span.start_real_ns += (int64_t)(t->now_ns - n->span.start_ns);
		n->span.start_ns = t->now_ns;
		n->base_ns = n->seen_ns;
		n->span.energy_quality = 0;
		memset(n->span.energy_uj, 0, sizeof(n->span.energy_uj));
		free(n->text);
		n->text = NULL;
	}
	for (struct node *n = tree->nodes; n && rooted; n = n->next)
		if (n != tree->root && !traces_find(t, n->span.parent))
			n->span.parent = root;
	tree->part++;
	tree->begun_ns = t->now_ns;
	tree->due = false;
	if (!rooted)
		traces_dissolve(t, tree);
}

/* Spans that one sweep hands over: the readings wait for it. What is left comes with the next ones, more at a time the
 * more it is. */
static uint64_t portion(const struct traces *t)
{
	uint64_t least = 2 * (uint64_t)t->o.part_spans, part = t->stats.held / 4;

	return part > least ? part : least;
}

void traces_end(struct traces *t)
{
	uint64_t until;

	traces_place(t);
	until = t->all ? UINT64_MAX : t->stats.spans + portion(t);
	for (struct tree *tree = t->trees, *next; tree; tree = next) {
		next = tree->next;
		settle_tree(t, tree);
		if (t->stats.spans >= until)
			continue;
		if (!tree->open) {
			traces_make(t, tree, true);
			traces_free_tree(t, tree);
		} else if (tree->due && (tree->root->paid || !tree->root->finished)) {
			traces_make(t, tree, tree->root->paid);
			go_on(t, tree);
		}
	}
}

struct traces_stats traces_figures(const struct traces *t)
{
	return t->stats;
}
