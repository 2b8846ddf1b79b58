/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of traces*.c: traces.c takes spans and sweeps, traces_tree.c keeps nodes and trees, traces_part.c makes a
 * trace of a tree. */
#ifndef JD_TRACES_INTERNAL_H
#define JD_TRACES_INTERNAL_H
#include "naming.h"
#include "traces.h"

struct tree;

struct node {
	struct node *hash_next;
	struct node *next, **prev; /* in its tree, or among those without one */
	struct tree *tree;
	uint64_t sweep; /* that knew it last */
	bool finished, paid;
	uint64_t seen_ns; /* CPU time that was looked at */
	uint64_t base_ns; /* of it, before this part */
	uint64_t owed_ns; /* of it, without energy so far */
	uint64_t look_ns; /* time of the last look */
	uint64_t before_ns, from_ns; /* of the last two that were paid for */
	char *text; /* exe, cmdline, symbol, binary, each with its NUL; NULL = none was kept */
	size_t text_size;
	char comm[SPAN_COMM_MAX];
	struct span span; /* text pointers: not valid; start, energy and quality of this part */
	/* while a part is made */
	struct node *up, *child, *last_child, *sibling;
	uint64_t left_ns; /* of its CPU time, not yet given to functions */
	uint64_t below_ns; /* CPU time of the functions it called */
};

struct tree {
	struct tree *next, **prev;
	struct node *nodes, *root;
	uint32_t n, open; /* nodes; of these not paid yet */
	uint32_t part;
	uint64_t begun_ns, cgroup_id;
	bool due;
	struct names *names;
	char *path;
};

struct traces {
	struct traces_options o;
	struct traces_stats stats;
	struct node **buckets, *free_nodes, *loose;
	uint32_t n_buckets;
	struct tree *trees;
	struct node **order; /* scratch of traces_part.c */
	uint32_t cap_order;
	uint64_t sweep, now_ns, until_ns;
	bool all;
};

/* traces_tree.c */
struct node *traces_find(const struct traces *t, uint64_t id);
struct node *traces_add(struct traces *t, uint64_t id); /* loose; NULL = no room, counted */
void traces_drop(struct traces *t, struct node *n);
void traces_keep_text(struct node *n, const struct span *s);
void traces_loosen(struct traces *t, struct node *n); /* out of its tree */
/* Every loose node to its tree, which is made where it is the root of one. */
void traces_place(struct traces *t);
void traces_dissolve(struct traces *t, struct tree *tree); /* its nodes are loose then */
void traces_name(struct traces *t, struct tree *tree); /* path and names, once they are known */
void traces_free_tree(struct traces *t, struct tree *tree); /* and its nodes */

/* traces_part.c: hands over what the tree has. */
void traces_make(struct traces *t, struct tree *tree, bool last);

#endif
