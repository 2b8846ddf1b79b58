/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and trees of traces. Nodes are reused, never given back: their number is bounded. */
#include <stdlib.h>
#include <string.h>
#include "traces_internal.h"

static struct node **bucket_of(const struct traces *t, uint64_t id)
{
	return &t->buckets[(id ^ id >> 22) & (t->n_buckets - 1)];
}

struct node *traces_find(const struct traces *t, uint64_t id)
{
	struct node *n = *bucket_of(t, id);

	while (n && n->span.id != id)
		n = n->hash_next;
	return n;
}

static void link_into(struct node **list, struct node *n)
{
	n->next = *list;
	if (n->next)
		n->next->prev = &n->next;
	n->prev = list;
	*list = n;
}

static void unlink_node(struct node *n)
{
	*n->prev = n->next;
	if (n->next)
		n->next->prev = n->prev;
}

struct node *traces_add(struct traces *t, uint64_t id)
{
	struct node *n = t->free_nodes, **bucket = bucket_of(t, id);

	if (n)
		t->free_nodes = n->hash_next;
	else if (t->stats.held < t->o.max_spans)
		n = malloc(sizeof(*n));
	if (!n) {
		t->stats.lost_spans++;
		return NULL;
	}
	memset(n, 0, sizeof(*n));
	n->span.id = id;
	n->sweep = t->sweep;
	n->hash_next = *bucket;
	*bucket = n;
	link_into(&t->loose, n);
	t->stats.held++;
	return n;
}

void traces_loosen(struct traces *t, struct node *n)
{
	if (!n->tree)
		return;
	n->tree->n--;
	n->tree->open -= !n->paid;
	n->tree = NULL;
	unlink_node(n);
	link_into(&t->loose, n);
}

void traces_drop(struct traces *t, struct node *n)
{
	struct node **at = bucket_of(t, n->span.id);

	while (*at != n)
		at = &(*at)->hash_next;
	*at = n->hash_next;
	if (n->tree) {
		n->tree->n--;
		n->tree->open -= !n->paid;
	}
	unlink_node(n);
	free(n->text);
	n->hash_next = t->free_nodes;
	t->free_nodes = n;
	t->stats.held--;
}

static char *put(char *to, const char *text)
{
	return stpcpy(to, text ? text : "") + 1;
}

static size_t length(const char *text)
{
	return (text ? strlen(text) : 0) + 1;
}

void traces_keep_text(struct node *n, const struct span *s)
{
	size_t size = length(s->exe) + length(s->cmdline) + length(s->symbol) + length(s->binary);
	char *text = malloc(size);

	if (!text)
		return; /* a span without text is better than none */
	free(n->text);
	n->text = text;
	n->text_size = size;
	text = put(text, s->exe);
	text = put(text, s->cmdline);
	text = put(text, s->symbol);
	put(text, s->binary);
}

void traces_name(struct traces *t, struct tree *tree)
{
	const struct cgroup *cg = t->o.cgroups ? cgroup_find(t->o.cgroups, tree->cgroup_id) : NULL;

	if (!cg)
		return;
	if (cg->names)
		names_set(&tree->names, cg->names);
	if (tree->path && strcmp(tree->path, cg->path) == 0)
		return;
	free(tree->path);
	tree->path = strdup(cg->path);
}

static struct tree *new_tree(struct traces *t, struct node *root)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return NULL;
	tree->root = root;
	tree->cgroup_id = root->span.cgroup_id;
	tree->begun_ns = root->span.start_ns;
	tree->next = t->trees;
	if (tree->next)
		tree->next->prev = &tree->next;
	tree->prev = &t->trees;
	t->trees = tree;
	t->stats.trees++;
	traces_name(t, tree);
	return tree;
}

static void drop_tree(struct traces *t, struct tree *tree)
{
	*tree->prev = tree->next;
	if (tree->next)
		tree->next->prev = tree->prev;
	names_put(tree->names);
	free(tree->path);
	free(tree);
	t->stats.trees--;
}

void traces_dissolve(struct traces *t, struct tree *tree)
{
	while (tree->nodes)
		traces_loosen(t, tree->nodes);
	drop_tree(t, tree);
}

void traces_free_tree(struct traces *t, struct tree *tree)
{
	while (tree->nodes)
		traces_drop(t, tree->nodes);
	drop_tree(t, tree);
}

static void join(struct tree *tree, struct node *n)
{
	unlink_node(n);
	link_into(&tree->nodes, n);
	n->tree = tree;
	tree->n++;
	tree->open += !n->paid;
}

/* Whom n is below in its cgroup; NULL = nobody. */
static struct node *above(const struct traces *t, const struct node *n)
{
	struct node *up = n->span.parent ? traces_find(t, n->span.parent) : NULL;

	if (!up && n->span.kind == SPAN_FUNCTION)
		up = traces_find(t, n->span.process); /* its caller has not returned yet */
	if (!up || up == n)
		return NULL;
	if (n->span.kind == SPAN_FUNCTION)
		return up;
	return up->span.kind == SPAN_PROCESS && up->span.cgroup_id == n->span.cgroup_id ? up : NULL;
}

/* The way up ends at a node with a tree, or at one that is to have one. `steps` bounds it: numbers of processes
 * come from the kernel, but nothing else rules out a circle. */
static void place(struct traces *t, struct node *n)
{
	uint32_t steps = t->stats.held;
	struct node *top = n, *up;
	struct tree *tree;

	while (!top->tree && steps-- && (up = above(t, top)))
		top = up;
	tree = top->tree;
	if (!tree && top->span.kind == SPAN_PROCESS) {
		tree = new_tree(t, top);
		if (tree)
			join(tree, top);
	}
	if (!tree) { /* no memory; or a call of a process that nobody knows */
		t->stats.lost_spans++;
		traces_drop(t, n);
		return;
	}
	for (; n && n != top && !n->tree; n = up) {
		up = above(t, n);
		join(tree, n);
	}
}

void traces_place(struct traces *t)
{
	while (t->loose)
		place(t, t->loose);
}
