/* SPDX-License-Identifier: Apache-2.0 */
/* Traces for ZICO collectors: CBOR items behind tags (docs/formats/zico.md describes every byte). Strings and
 * methods are defined once per collector session under small numbers, dense from 1; a struct zico is that
 * dictionary. It uses no clock and does no I/O. */
#ifndef JD_ENCODE_ZICO_H
#define JD_ENCODE_ZICO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "model/span.h"

#define ZICO_TYPE_DEFAULT "PROCESS"
#define ZICO_TYPE_MAX 64 /* characters of a trace type, limit of the collectors */
#define ZICO_BODY_MAX ((size_t)4 << 20) /* of one trace; its base64 stays below the collectors' 8 MiB */
#define ZICO_ENVELOPE_TAG 0x7a69636f /* "zico" */

/* How a failed record is flagged. Every release accepts a record without a flag. */
enum zico_flags { ZICO_FLAGS_NONE, ZICO_FLAGS_TOKEN, ZICO_FLAGS_MASK };

/* A wire format as a table. Tag 0 = the format does not have this item. */
struct zico_profile {
	const char *name;
	uint8_t string, method, agent_attribute;
	uint8_t record_big, record_little;
	uint8_t first_big, first_little; /* 0: the word has no tag */
	uint8_t last_big, last_little;
	uint8_t begin, attributes, exception, upward;
	bool typed_strings;
	bool words; /* ticks and ids as words of 8 bytes; else ns and id as numbers */
	bool one_attribute; /* each attribute is an item of its own, and ids are bare */
	bool nested; /* lists and maps are known to be accepted as values */
	unsigned max_exceptions; /* per trace; 0 = any number */
	unsigned flags; /* bit per enum zico_flags that some of its releases accept */
	/* Bytes of the collector's database columns: host; application and environment; attributes. 0 = not
	 * registered, or no known limit. A longer value makes every registration fail. */
	unsigned name_max, app_max, attribute_max;
};

struct zico_attr {
	const char *key, *value;
};

struct zico_options {
	const char *profile; /* "document", "zico-1.90", "zico-1.90.6", "zico-2" */
	bool big_endian;
	enum zico_flags flags;
	const char *type; /* trace type; NULL = ZICO_TYPE_DEFAULT */
	size_t body_max; /* 0 = ZICO_BODY_MAX */
	const struct zico_attr *agent; /* sent with the agent data; attributes without a value are left out */
	unsigned n_agent;
};

struct zico;

/* zico_profile: NULL for an unknown name. zico_profile_name: name number i, NULL after the last. */
const struct zico_profile *zico_profile(const char *name);
const char *zico_profile_name(unsigned i);

/* 0 or -ENOMEM; -EINVAL with err when profile, flags and type do not go together. o is not kept. */
int zico_new(const struct zico_options *o, struct zico **ret, struct err *err);
void zico_free(struct zico *z); /* NULL accepted */
/* Begins a new collector session, which knows no definition yet. */
void zico_forget(struct zico *z);
/* Appends one trace to body. Appends to agent the definitions that body needs and the collector does not have yet,
 * and the first time the agent's attributes. Each call repeats these until zico_told. A trace that cannot be sent
 * gives an errno with err: -EINVAL when it breaks the rules of span.h, -ERANGE when its clock is no valid time. A
 * trace that is too large is cut: the deepest spans go first, and the top span says how many. */
int zico_encode(struct zico *z, const struct trace *t, struct buf *agent, struct buf *body, struct err *err);
void zico_told(struct zico *z);
/* For files and sockets: appends an envelope and a self-contained trace to out. */
int zico_enclose(struct zico *z, const struct trace *t, const uint8_t host[16], struct buf *out, struct err *err);

/* True for a method descriptor as in JVM specification 4.3.3. A collector that was given anything else no
 * longer shows any trace. */
bool zico_signature_ok(const char *s);

/* Inside of encode/zico. */

#define ZICO_NONE UINT32_MAX
#define ZICO_DEPTH_MAX 256 /* nesting of records */
#define ZICO_TEXT_MAX 4096 /* bytes of one value */
#define ZICO_REFERENCE 6 /* tag of a string's number */

enum zico_string { ZICO_TEXT = 0, ZICO_CLASS = 5, ZICO_METHOD = 6, ZICO_SIGNATURE = 8 };

/* One kind of definition. Entries are found by content and told in the order of their numbers. */
struct zico_table {
	struct hash by_content;
	uint32_t n, told; /* numbers are 1..n */
};

struct zico_names {
	struct zico_table strings, methods;
	struct buf bytes; /* texts with their NUL */
	struct buf string_rows, method_rows;
	bool failed; /* out of memory: numbers returned since then are invalid */
};

struct zico_string_row {
	uint32_t at;
	uint8_t type;
};
struct zico_method_row {
	uint32_t class_id, name_id, signature_id;
};

/* A span within its trace. */
struct zico_node {
	uint32_t parent, first, last, next; /* indices, ZICO_NONE */
	uint32_t depth;
	uint64_t calls; /* of itself and all below, with those that are cut */
	bool kept, fails; /* fails: it failed, and its exception has room */
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
	struct buf nodes; /* struct zico_node each */
	struct hash by_id; /* spans */
	struct buf pairs, text; /* attributes until their count is known; a text being cleaned */
	uint32_t n_pairs;
	uint64_t base_ns; /* instant of tick 0 */
	bool started_earlier; /* some spans began before base_ns */
	uint32_t n_kept, n_fails, n_unsaid, n_exceptions;
	uint64_t killed_uj, left_out_uj;
	bool killed_any; /* killed_uj is known */
	uint32_t killed_last; /* index of the killed span that was written last */
};

/* dictionary.c: numbers. 0 when there is no memory; names.failed is set then. */
uint32_t zico_string_id(struct zico *z, enum zico_string type, const char *text);
uint32_t zico_method_id(struct zico *z, const struct span *s);
uint32_t zico_class_id(struct zico *z, const struct span *s);
uint32_t zico_name_id(struct zico *z, const struct span *s);
void zico_names_forget(struct zico_names *n);
void zico_names_free(struct zico_names *n);
const char *zico_text_of(const struct zico_names *n, uint32_t id);

/* values.c: cleaned text in z->text, NUL-terminated and never empty. */
const char *zico_clean_value(struct zico *z, const char *s);
const char *zico_clean_class(struct zico *z, const struct span *s);
const char *zico_clean_name(struct zico *z, const struct span *s);

/* trace_tree.c */
static inline struct zico_node *zico_node(const struct zico *z, uint32_t i)
{
	return (struct zico_node *)z->nodes.data + i;
}
int zico_tree(struct zico *z); /* makes the nodes of z->t, all kept; 0, -ENOMEM, -EINVAL */
void zico_tree_keep(struct zico *z, uint32_t n); /* keeps the n least deep spans */
bool zico_killed(const struct span *s);

/* values.c: write attributes. */
void zico_attr(struct zico *z, struct buf *out, const char *key, const char *value);
void zico_span_attrs(struct zico *z, uint32_t i, struct buf *out);
void zico_closing_attrs(struct zico *z, uint32_t i, struct buf *out);
void zico_upward_attrs(struct zico *z, uint32_t i, struct buf *out);

/* exception.c */
void zico_exception(struct zico *z, uint32_t i, struct buf *out);
void zico_exit_text(const struct span *s, char *dst, size_t size);

/* trace_tree.c: appends the record of spans[0] with all kept spans below it. */
void zico_records(struct zico *z, struct buf *out);

#endif
