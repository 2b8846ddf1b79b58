/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and trees of struct traces, which owns them. A node is a span that is not handed over yet. A tree has the nodes
 * of one trace. A node without a tree is loose. trees.c keeps them, traces.c makes traces of them. */
#ifndef JD_TRACES_TREES_H
#define JD_TRACES_TREES_H
#include "base/hash.h"
#include "model/naming.h"
#include "traces.h"

struct tree;

struct node {
	uint32_t at; /* in `nodes` */
	struct node *next, **prev; /* in its tree, or among those without one */
	struct tree *tree;
	uint64_t sweep; /* number of the last sweep that knew it */
	bool finished, paid;
	uint64_t seen_ns; /* CPU time at the last look */
	uint64_t base_ns; /* part of seen_ns: before this part of the trace */
	uint64_t owed_ns; /* part of seen_ns: without energy so far */
	uint64_t look_ns; /* time of the last look */
	uint64_t before_ns, from_ns; /* begin and end of the time that was paid last */
	char *text; /* exe, cmdline, symbol, binary, each with its NUL; NULL = none was kept */
	size_t text_size;
	char comm[SPAN_COMM_MAX];
	struct span span; /* text pointers: not valid; start, energy and quality of this part */
	/* while a part is made */
	struct node *up, *child, *last_child, *sibling;
	uint64_t left_ns; /* CPU time in this part that is not yet given to functions */
	uint64_t below_ns; /* CPU time of the functions it called */
};

struct tree {
	struct tree *next, **prev;
	struct node *nodes, *root;
	uint32_t n, open; /* nodes; those of them that are not paid yet */
	uint32_t part;
	uint8_t uuid[16]; /* of its first part; zero = none was made */
	uint64_t begun_ns, cgroup_id;
	bool due;
	struct names *names;
	char *path;
};

struct traces {
	struct traces_options o;
	struct traces_stats stats;
	struct node **nodes; /* stats.held of them, and behind these up to n_nodes free ones */
	uint32_t n_nodes, cap_nodes;
	struct hash by_id;
	struct node *loose;
	struct tree *trees;
	struct node **order; /* scratch of traces.c */
	uint32_t cap_order;
	uint64_t sweep, now_ns, until_ns;
	bool all;
	uint64_t summed; /* bits of the domains that a span's energy is summed over */
};

/* The node of the span with this id; NULL = none is held. */
struct node *traces_find(const struct traces *t, uint64_t id);
/* A new loose node with this id, else zeroed. NULL = no room or no memory, counted as a lost span. */
struct node *traces_add(struct traces *t, uint64_t id);
/* Takes a node out of its tree and out of the held ones. Its memory is used again. */
void traces_drop(struct traces *t, struct node *n);
/* Copies the texts of s into n. Without memory n keeps its text of before. */
void traces_keep_text(struct node *n, const struct span *s);
/* Takes n out of its tree. A loose node stays as it is. */
void traces_loosen(struct traces *t, struct node *n);
/* Moves every loose node into its tree. A root of a cgroup gets a new tree. A node that finds no tree is dropped and
 * counted as a lost span. */
void traces_place(struct traces *t);
/* Frees a tree; its nodes are loose then. */
void traces_dissolve(struct traces *t, struct tree *tree);
/* Copies path and names of the tree's cgroup, once they are known. */
void traces_name(struct traces *t, struct tree *tree);
/* Frees a tree and drops its nodes. */
void traces_free_tree(struct traces *t, struct tree *tree);

#endif
