/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of zico*.c. */
#ifndef JD_ENCODE_ZICO_INTERNAL_H
#define JD_ENCODE_ZICO_INTERNAL_H
#include "zico.h"

#define ZICO_NONE UINT32_MAX
#define ZICO_DEPTH_MAX 256 /* records within each other */
#define ZICO_TEXT_MAX 4096 /* of one value */
#define ZICO_REFERENCE 6 /* tag of a string's number */

enum zico_string { ZICO_TEXT = 0, ZICO_CLASS = 5, ZICO_METHOD = 6, ZICO_SIGNATURE = 8 };

/* One kind of definition: found by content, told in the order of their numbers. */
struct zico_table {
	uint32_t *slots, n_slots; /* numbers by hash, 0 = free */
	uint32_t n, told; /* numbers are 1..n */
};

struct zico_names {
	struct zico_table strings, methods;
	struct buf bytes; /* texts with their NUL */
	struct buf string_rows, method_rows;
	bool failed; /* out of memory: what was returned since is no number */
};

struct zico_string_row {
	uint32_t at;
	uint8_t type;
};
struct zico_method_row {
	uint32_t class_id, name_id, signature_id;
};

/* What a span is in this trace, beside itself. */
struct zico_node {
	uint32_t parent, first, last, next; /* indices, ZICO_NONE */
	uint32_t depth;
	uint64_t calls; /* itself and all below, also those that are cut */
	bool kept, fails; /* fails: and its exception has room */
	uint32_t exception; /* number, once it is written */
	uint32_t cause; /* index of the failed child that ended last */
	uint32_t killed; /* index of the killed child that was written last */
};

struct zico {
	const struct zico_profile *profile;
	bool big;
	enum zico_flags flags;
	char type[ZICO_TYPE_MAX * 4 + 1];
	size_t body_max;
	struct zico_attr *agent;
	unsigned n_agent;
	bool agent_told;
	struct zico_names names;
	/* of the trace that is being written */
	const struct trace *t;
	struct buf nodes, index; /* struct zico_node each; hash of span ids */
	struct buf pairs, text; /* attributes that wait for their number; a text being cleaned */
	uint32_t n_pairs;
	uint64_t base_ns; /* instant of tick 0 */
	bool started_earlier; /* spans began before that */
	uint32_t n_kept, n_fails, n_unsaid, n_exceptions;
	uint64_t killed_uj, left_out_uj;
	bool killed_any; /* killed_uj is known */
	uint32_t killed_last; /* index of the killed span that was written last */
};

/* zico_names.c: numbers; 0 when there is no memory, and names.failed. */
uint32_t zico_string_id(struct zico *z, enum zico_string type, const char *text);
uint32_t zico_method_id(struct zico *z, const struct span *s);
uint32_t zico_class_id(struct zico *z, const struct span *s);
uint32_t zico_name_id(struct zico *z, const struct span *s);
void zico_names_forget(struct zico_names *n);
void zico_names_free(struct zico_names *n);
const char *zico_text_of(const struct zico_names *n, uint32_t id);

/* zico_text.c: into z->text, NUL-terminated; never empty. */
const char *zico_clean_value(struct zico *z, const char *s);
const char *zico_clean_class(struct zico *z, const struct span *s);
const char *zico_clean_name(struct zico *z, const struct span *s);

/* zico_tree.c */
static inline struct zico_node *zico_node(const struct zico *z, uint32_t i)
{
	return (struct zico_node *)z->nodes.data + i;
}
int zico_tree(struct zico *z); /* nodes of z->t, all kept; 0 or -ENOMEM, -EINVAL */
void zico_tree_keep(struct zico *z, uint32_t n); /* the n that are least deep */
bool zico_killed(const struct span *s);
bool zico_failed(const struct span *s);

/* zico_values.c: attributes; ready once zico_attrs_end. */
void zico_attr(struct zico *z, struct buf *out, const char *key, const char *value);
void zico_attrs_end(struct zico *z, struct buf *out);
void zico_span_attrs(struct zico *z, uint32_t i, struct buf *out);
void zico_closing_attrs(struct zico *z, uint32_t i, struct buf *out);
void zico_upward_attrs(struct zico *z, uint32_t i, struct buf *out);

/* zico_exception.c */
void zico_exception(struct zico *z, uint32_t i, struct buf *out);
void zico_exit_text(const struct span *s, char *dst, size_t size);

/* zico_record.c: the record of spans[0] and all that are kept below. */
void zico_records(struct zico *z, struct buf *out);

#endif
