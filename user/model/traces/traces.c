/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/array.h"
#include "trees.h"

#define PERIOD_NS (600 * 1000000000ull)
#define MAX_SPANS 32768
#define PART_SPANS 1024
#define OWED_NS 20000
#define LATE_SWEEPS 5 /* sweeps that a span waits whose end is later than all known energy */

/* A bit for each domain whose energy counts by the rule of span_energy_uj. */
static uint64_t summed_domains(const struct schema *s)
{
	const char *names[SCHEMA_MAX_DOMAINS];
	struct trace t = { .n_domains = s->n_domains, .domains = names };
	uint64_t bits = 0, uj;

	for (unsigned d = 0; d < s->n_domains; d++)
		names[d] = s->domains[d].name;
	for (unsigned d = 0; d < s->n_domains; d++) {
		struct span one = { .n_domains = s->n_domains };

		one.energy_uj[d] = 1;
		if (span_energy_uj(&t, &one, &uj) && uj)
			bits |= 1ull << d;
	}
	return bits;
}

struct traces *traces_new(const struct traces_options *o)
{
	struct traces *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->o = *o;
	t->summed = summed_domains(o->schema);
	t->o.period_ns = o->period_ns ? o->period_ns : PERIOD_NS;
	t->o.max_spans = o->max_spans ? o->max_spans : MAX_SPANS;
	t->o.part_spans = o->part_spans ? o->part_spans : PART_SPANS;
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
	for (uint32_t i = 0; i < t->n_nodes; i++)
		free(t->nodes[i]);
	free(t->nodes);
	hash_free(&t->by_id);
	free(t->order);
	free(t);
}

/* Called when a process has gone to another cgroup: its use so far is not of the new one. */
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

/* Copies the present values of the source. Values that are counted here stay: start, energy and its quality. */
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

/* Adds a node for a new span. The CPU time of a process that is older than the agent has no energy before the first
 * look, so its span begins here. */
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

/* Charges `cpu_ns` that n used in a time. Returns the CPU time for which there was no energy. */
static uint64_t charge(struct traces *t, struct node *n, uint64_t from_ns, uint64_t until_ns, uint64_t cpu_ns)
{
	const struct span_use use = { n->span.cgroup_id, from_ns, until_ns, cpu_ns };

	return cpu_ns ? t->o.charge(t->o.ctx, &use, n->span.energy_uj, &n->span.energy_quality) : 0;
}

/* Pays for the CPU time that n used in [from, until] and for the time that it still owes. */
static void pay(struct traces *t, struct node *n, uint64_t used_ns, uint64_t until_ns)
{
	uint64_t want;

	if (until_ns < n->from_ns)
		until_ns = n->from_ns;
	want = charge(t, n, n->from_ns, until_ns, used_ns + n->owed_ns);
	if (n->before_ns < n->from_ns) /* counters and clocks are not read in one moment */
		want = charge(t, n, n->before_ns, n->from_ns, want);
	n->owed_ns = want;
	n->before_ns = n->from_ns;
	n->from_ns = until_ns;
}

/* Takes energy for the CPU time since the last look. A process is looked at a little later than its cgroup was. Its CPU
 * time between the two is of the next interval, where others do not pay for it. */
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

/* Ends a process that the source no longer knows although its end was not told: the source had no room for it. */
static void give_up(struct traces *t, struct node *n)
{
	n->finished = true;
	n->span.end = SPAN_UNKNOWN;
	n->span.end_ns = t->now_ns > n->span.start_ns ? t->now_ns : n->span.start_ns;
	n->span.quality |= QUALITY_LOST;
	n->span.cpu_ns = n->seen_ns;
}

/* Takes the last energy of a finished span. It is PARTIAL when more than a hundredth of its CPU time has no energy;
 * OWED_NS allows for the difference of clocks. */
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

/* Begins the next part of a tree where this one ended. It has the spans that live, below each other or below the
 * root. */
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

/* Spans that one sweep hands over: the readings wait for it. The rest comes with the next sweeps. The portion grows
 * with the spans that are held. */
static uint64_t portion(const struct traces *t)
{
	uint64_t least = 2 * (uint64_t)t->o.part_spans, part = t->stats.held / 4;

	return part > least ? part : least;
}

/* Energy of all spans that are not handed over yet. */
static uint64_t open_uj(const struct traces *t)
{
	uint64_t sum = 0;

	for (const struct tree *tree = t->trees; tree; tree = tree->next)
		for (const struct node *n = tree->nodes; n; n = n->next)
			for (uint64_t left = t->summed; left; left &= left - 1)
				sum += n->span.energy_uj[__builtin_ctzll(left)];
	return sum;
}

static void traces_make(struct traces *t, struct tree *tree, bool last);

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
	t->stats.open_uj = open_uj(t);
}

struct traces_stats traces_figures(const struct traces *t)
{
	return t->stats;
}

/* Makes a trace of a tree: spans are ordered, energy of functions is taken from their processes, and all of it is
 * copied to one piece of memory. */

struct piece { /* one malloc: this, the spans, the texts */
	struct trace t; /* first member: callers hold a pointer to it */
	const char *domains[SCHEMA_MAX_DOMAINS], *interfaces[SCHEMA_MAX_DOMAINS];
};

/* False when a span has ended but is not paid yet: it is of the next part. */
static bool is_in(const struct node *n)
{
	return n->paid || !n->finished;
}

/* Processes first, by start; a parent is older than its child. */
static int by_age(const void *a, const void *b)
{
	const struct span *x = &(*(struct node *const *)a)->span, *y = &(*(struct node *const *)b)->span;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->start_boot_ns != y->start_boot_ns)
		return x->start_boot_ns < y->start_boot_ns ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static uint32_t collect(struct traces *t, struct tree *tree)
{
	uint32_t n = 0;

	for (struct node *at = tree->nodes; at; at = at->next) {
		at->up = at->child = at->last_child = at->sibling = NULL;
		at->left_ns = (at->finished ? at->span.cpu_ns : at->seen_ns) - at->base_ns;
		at->below_ns = 0;
		if (at == tree->root || !is_in(at))
			continue;
		t->order[1 + n++] = at;
	}
	t->order[0] = tree->root;
	qsort(t->order + 1, n, sizeof(*t->order), by_age);
	return n + 1;
}

/* Returns the node with this id if it is in this part and stands before n, else NULL. */
static struct node *elder(struct traces *t, struct tree *tree, uint64_t id, struct node *n)
{
	struct node *up = traces_find(t, id);

	return up && up->tree == tree && is_in(up) && (up == tree->root || by_age(&up, &n) < 0) ? up : NULL;
}

/* Hangs node i below its parent, a call without one below its process, else below the root. Only older nodes are taken,
 * so there are no circles. */
static void hang(struct traces *t, struct tree *tree, uint32_t i)
{
	struct node *n = t->order[i], *up = elder(t, tree, n->span.parent, n);

	if (!up && n->span.kind == SPAN_FUNCTION)
		up = elder(t, tree, n->span.process, n);
	if (!up)
		up = tree->root;
	n->up = up;
	if (up->last_child)
		up->last_child->sibling = n;
	else
		up->child = n;
	up->last_child = n;
}

/* Cuts a call to the time of its part. The time before the cut is taken off its duration. The CPU time before the cut
 * gets no energy here, because its process paid for it in the part before. The number of calls and the times inside
 * them stay. */
static void clip(struct node *f)
{
	const uint64_t was_ns = f->span.end_ns - f->span.start_ns;
	const struct span *p;
	uint64_t cut_ns;
	struct node *at = f->up;

	while (at->span.kind == SPAN_FUNCTION)
		at = at->up;
	p = &at->span;
	f->left_ns = f->span.cpu_ns;
	if (f->span.start_ns < p->start_ns) {
		cut_ns = p->start_ns - f->span.start_ns;
		f->span.start_ns = p->start_ns;
		f->span.start_real_ns += (int64_t)cut_ns;
		if (f->span.end_ns < p->start_ns)
			f->span.end_ns = p->start_ns;
		f->left_ns = cut_ns < was_ns ?
				     (uint64_t)((unsigned __int128)f->span.cpu_ns * (was_ns - cut_ns) / was_ns) :
				     0;
		f->span.quality |= QUALITY_PARTIAL;
	}
	if (f->up->span.kind == SPAN_FUNCTION)
		f->up->below_ns += f->left_ns;
}

/* Gives a function energy for its own CPU time at the rate of its process, and never more than the process has left. */
static void share(struct traces *t, struct node *f)
{
	struct node *p = f->up;
	uint64_t own = f->left_ns > f->below_ns ? f->left_ns - f->below_ns : 0;

	while (p->span.kind == SPAN_FUNCTION)
		p = p->up;
	f->span.energy_quality = p->span.energy_quality | f->span.quality;
	if (own > p->left_ns) {
		own = p->left_ns;
		f->span.energy_quality |= QUALITY_PARTIAL;
	}
	for (unsigned d = 0; d < t->o.schema->n_domains && own; d++) {
		f->span.energy_uj[d] = (uint64_t)((unsigned __int128)p->span.energy_uj[d] * own / p->left_ns);
		p->span.energy_uj[d] -= f->span.energy_uj[d];
	}
	p->left_ns -= own;
}

/* The next node in preorder, by the links and without recursion. */
static struct node *follow(struct node *n)
{
	if (n->child)
		return n->child;
	while (n && !n->sibling)
		n = n->up;
	return n ? n->sibling : NULL;
}

static const char *copy_text(char **to, const char *text)
{
	char *at = *to;

	*to = stpcpy(at, text) + 1;
	return at;
}

static void copy_span(struct traces *t, const struct node *n, const char *path, struct span *s, char **to)
{
	static const char nothing[4];
	const char *text = n->text ? n->text : nothing;
	const char **fields[] = { &s->exe, &s->cmdline, &s->symbol, &s->binary };

	*s = n->span;
	s->parent = n->up ? n->up->span.id : 0;
	s->n_domains = t->o.schema->n_domains;
	s->cpu_ns = (n->finished ? n->span.cpu_ns : n->seen_ns) - n->base_ns;
	if (!n->finished) {
		s->end = SPAN_CUT;
		s->end_ns = t->now_ns > s->start_ns ? t->now_ns : s->start_ns;
	}
	s->cgroup = path;
	s->comm = copy_text(to, n->comm);
	for (unsigned i = 0; i < 4; i++) {
		*fields[i] = copy_text(to, text);
		text += strlen(text) + 1;
	}
}

static void make_uuid(const struct traces *t, struct tree *tree)
{
	static const uint8_t none[16];

	if (memcmp(tree->uuid, none, sizeof(none)) != 0)
		return;
	/* without random bytes (a kernel that is just up) time and pid are unique enough on this machine */
	if (getrandom(tree->uuid, sizeof(tree->uuid), GRND_NONBLOCK) != (ssize_t)sizeof(tree->uuid)) {
		memcpy(tree->uuid, &t->now_ns, sizeof(t->now_ns));
		memcpy(tree->uuid + 8, &tree->root->span.id, sizeof(uint64_t));
	}
	tree->uuid[6] = (uint8_t)((tree->uuid[6] & 0x0f) | 0x40); /* RFC 4122, 4.4 */
	tree->uuid[8] = (uint8_t)((tree->uuid[8] & 0x3f) | 0x80);
}

static void copy_head(struct traces *t, struct tree *tree, struct piece *p, char **to)
{
	const struct schema *s = t->o.schema;
	struct trace *tr = &p->t;

	tr->sensor = s->sensor;
	tr->boot_id = s->boot_id;
	tr->n_domains = s->n_domains;
	tr->domains = p->domains;
	tr->interfaces = p->interfaces;
	for (unsigned d = 0; d < s->n_domains; d++) {
		p->domains[d] = s->domains[d].name;
		p->interfaces[d] = energy_interface_name(s->domains[d].interface);
	}
	tr->pod = copy_text(to, names_text(tree->names, NAME_POD));
	tr->pod_namespace = copy_text(to, names_text(tree->names, NAME_NAMESPACE));
	tr->container = copy_text(to, names_text(tree->names, NAME_CONTAINER));
	tr->unit = copy_text(to, names_text(tree->names, NAME_UNIT));
	make_uuid(t, tree);
	memcpy(tr->uuid, tree->uuid, sizeof(tr->uuid));
	trace_part_uuid(tr, tree->part, tr->uuid);
	tr->part = tree->part;
}

static size_t text_bytes(const struct traces *t, const struct tree *tree, const char *path, uint32_t n)
{
	size_t size = strlen(path) + 1;

	for (enum name_field f = 0; f < NAME_FIELDS; f++)
		size += strlen(names_text(tree->names, f)) + 1;
	for (uint32_t i = 0; i < n; i++)
		size += strlen(t->order[i]->comm) + 1 + (t->order[i]->text ? t->order[i]->text_size : 4);
	return size;
}

/* Makes a trace of the tree and hands it over. */
static void traces_make(struct traces *t, struct tree *tree, bool last)
{
	char none[32], *to;
	const char *path = tree->path ? tree->path : none;
	struct piece *p = NULL;
	uint32_t n = 0, i = 0;

	/* as in cgroup.h, for one whose path was never known */
	snprintf(none, sizeof(none), "/?%llu", (unsigned long long)tree->cgroup_id);
	if (ARRAY_ROOM(t->order, t->cap_order, tree->n) == 0) {
		n = collect(t, tree);
		p = calloc(1, sizeof(*p) + n * sizeof(struct span) + text_bytes(t, tree, path, n));
	}
	if (!p) {
		t->stats.lost_spans += tree->n;
		return;
	}
	for (uint32_t k = 1; k < n; k++)
		hang(t, tree, k);
	for (uint32_t k = 1; k < n; k++)
		if (t->order[k]->span.kind == SPAN_FUNCTION)
			clip(t->order[k]);
	for (uint32_t k = 1; k < n; k++)
		if (t->order[k]->span.kind == SPAN_FUNCTION)
			share(t, t->order[k]);
	p->t.spans = (struct span *)(p + 1);
	p->t.n_spans = n;
	to = (char *)(p->t.spans + n);
	copy_head(t, tree, p, &to);
	p->t.last = last;
	path = copy_text(&to, path);
	for (struct node *at = tree->root; at; at = follow(at))
		copy_span(t, at, path, &p->t.spans[i++], &to);
	t->stats.traces++;
	t->stats.cut += !last;
	t->stats.spans += n;
	t->o.ready(t->o.ctx, &p->t);
}
