/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as ZICO collectors take them: CBOR items behind tags (docs/formats/zico.md has every byte).
 * Strings and methods are defined once per collector session under small numbers, dense from 1; a
 * struct zico is that dictionary. Pure: no clock, no I/O. */
#ifndef JD_ENCODE_ZICO_H
#define JD_ENCODE_ZICO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/buf.h"
#include "../base/err.h"
#include "../model/span.h"

#define ZICO_TYPE_DEFAULT "PROCESS"
#define ZICO_TYPE_MAX 64 /* characters of a trace type that collectors take */
#define ZICO_BODY_MAX ((size_t)4 << 20) /* of one trace: base64 of it stays below their 8 MiB */
#define ZICO_ENVELOPE_TAG 0x7a69636f /* "zico" */

/* How a record that failed is flagged; without a flag every release takes it. */
enum zico_flags { ZICO_FLAGS_NONE, ZICO_FLAGS_TOKEN, ZICO_FLAGS_MASK };

/* A wire format, as a table. Tag 0 = the format has no such thing. */
struct zico_profile {
	const char *name;
	uint8_t string, method, agent_attribute;
	uint8_t record_big, record_little;
	uint8_t first_big, first_little; /* 0: the word stands without a tag */
	uint8_t last_big, last_little;
	uint8_t begin, attributes, exception, upward;
	bool typed_strings;
	bool words; /* ticks and ids in 8 bytes; otherwise ns and id as numbers */
	bool one_attribute; /* each attribute an item of its own, and ids bare */
	bool nested; /* lists and maps as values are known to be taken */
	unsigned max_exceptions; /* of one trace; 0 = any number */
	unsigned flags; /* bit per enum zico_flags that some of its releases take */
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
	const struct zico_attr *agent; /* sent with the agent data; those without value are left out */
	unsigned n_agent;
};

struct zico;

/* NULL when the name is none of them; i counts through all. */
const struct zico_profile *zico_profile(const char *name);
const char *zico_profile_name(unsigned i);

/* -EINVAL with err for a profile, flags or type that do not go together. o is not kept. */
int zico_new(const struct zico_options *o, struct zico **ret, struct err *err);
void zico_free(struct zico *z); /* NULL accepted */
/* A new collector session: it knows no definition yet. */
void zico_forget(struct zico *z);
/* Appends one trace to body and to agent what the collector has not been told yet: definitions that body
 * needs, and the first time the agent's attributes. They are told again until zico_told. What cannot be
 * sent as it is (-EINVAL: against the rules of span.h; -ERANGE: its clock is no time) says so in err.
 * A trace that is too large is cut: the deepest spans go first, and the top says how many. */
int zico_encode(struct zico *z, const struct trace *t, struct buf *agent, struct buf *body, struct err *err);
void zico_told(struct zico *z);
/* For files and sockets: an envelope in front of a trace that explains itself, all appended to out. */
int zico_enclose(struct zico *z, const struct trace *t, const uint8_t host[16], struct buf *out, struct err *err);

/* Is it a method descriptor of the JVM specification 4.3.3? A collector that was given another one shows
 * no trace at all any more. */
bool zico_signature_ok(const char *s);

#endif
