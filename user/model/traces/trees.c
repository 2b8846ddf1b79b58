/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and trees of traces. Nodes are reused, never given back: their number is bounded. */
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "trees.h"

struct node *traces_find(const struct traces *t, uint64_t id)
{
	uint32_t at = hash_find(&t->by_id, id);

	return at == HASH_NONE ? NULL : t->nodes[at];
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

/* Makes a free node. Nodes held and free ones stand in t->nodes, the held ones first. */
static bool make_node(struct traces *t)
{
	struct node *n;

	if (t->n_nodes >= t->o.max_spans || ARRAY_ROOM(t->nodes, t->cap_nodes, t->n_nodes + 1) ||
	    hash_reserve(&t->by_id, t->n_nodes + 1))
		return false;
	n = malloc(sizeof(*n));
	if (n)
		t->nodes[t->n_nodes++] = n;
	return n != NULL;
}

struct node *traces_add(struct traces *t, uint64_t id)
{
	struct node *n;

	if (t->stats.held == t->n_nodes && !make_node(t)) {
		t->stats.lost_spans++;
		return NULL;
	}
	n = t->nodes[t->stats.held];
	memset(n, 0, sizeof(*n));
	n->at = t->stats.held++;
	n->span.id = id;
	n->sweep = t->sweep;
	hash_add(&t->by_id, id, n->at);
	link_into(&t->loose, n);
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
	struct node *last = t->nodes[--t->stats.held];

	hash_remove(&t->by_id, n->span.id, n->at);
	if (last != n)
		hash_move(&t->by_id, last->span.id, last->at, n->at);
	if (n->tree) {
		n->tree->n--;
		n->tree->open -= !n->paid;
	}
	unlink_node(n);
	free(n->text);
	t->nodes[n->at] = last;
	last->at = n->at;
	t->nodes[t->stats.held] = n;
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

/* Returns the node that n is below in its cgroup; NULL = none. */
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

/* Puts a loose node into its tree. The way up ends at a node with a tree, or at one that is to have one. `steps` bounds
 * it: numbers of processes come from the kernel, but nothing else rules out a circle. */
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
	if (!tree) { /* no memory; or a call of an unknown process */
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
