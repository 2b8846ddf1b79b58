/* SPDX-License-Identifier: Apache-2.0 */
/* A trace of what a tree has: ordered, energy of functions taken from their processes, all of it copied to one piece of
 * memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "traces_internal.h"

struct piece { /* one malloc: this, the spans, the texts */
	struct trace t; /* first: what callers hold */
	const char *domains[SCHEMA_MAX_DOMAINS], *interfaces[SCHEMA_MAX_DOMAINS];
};

/* Not paid though it ended: of the next part. */
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

static bool make_room(struct traces *t, uint32_t n)
{
	struct node **p = n > t->cap_order ? realloc(t->order, n * sizeof(*p)) : t->order;

	if (!p)
		return false;
	if (n > t->cap_order)
		t->cap_order = n;
	t->order = p;
	return true;
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

/* A node of this part that stands before n; NULL = it does not. */
static struct node *elder(struct traces *t, struct tree *tree, uint64_t id, struct node *n)
{
	struct node *up = traces_find(t, id);

	return up && up->tree == tree && is_in(up) && (up == tree->root || by_age(&up, &n) < 0) ? up : NULL;
}

/* Below its parent, a call also below its process, else below the root: no circles. */
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
	if (n->span.kind == SPAN_FUNCTION && up->span.kind == SPAN_FUNCTION)
		up->below_ns += n->span.cpu_ns;
}

/* A function's own CPU time at the rate of its process, and never more than that has left. */
static void share(struct traces *t, struct node *f)
{
	struct node *p = f->up;
	uint64_t own = f->span.cpu_ns > f->below_ns ? f->span.cpu_ns - f->below_ns : 0;

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

/* Preorder over the links, without recursion. */
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

static void copy_head(struct traces *t, const struct tree *tree, struct piece *p, char **to)
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
	tr->part = tree->part;
	/* without random bytes (a kernel that is just up) time and pid are unique enough on this machine */
	if (getrandom(tr->uuid, sizeof(tr->uuid), GRND_NONBLOCK) != (ssize_t)sizeof(tr->uuid)) {
		memcpy(tr->uuid, &t->now_ns, sizeof(t->now_ns));
		memcpy(tr->uuid + 8, &tree->root->span.id, sizeof(uint64_t));
	}
	tr->uuid[6] = (uint8_t)((tr->uuid[6] & 0x0f) | 0x40); /* RFC 4122, 4.4 */
	tr->uuid[8] = (uint8_t)((tr->uuid[8] & 0x3f) | 0x80);
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

void traces_make(struct traces *t, struct tree *tree, bool last)
{
	char none[32], *to;
	const char *path = tree->path ? tree->path : none;
	struct piece *p = NULL;
	uint32_t n = 0, i = 0;

	/* as in cgroup.h, for one whose path was never known */
	snprintf(none, sizeof(none), "/?%llu", (unsigned long long)tree->cgroup_id);
	if (make_room(t, tree->n)) {
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
