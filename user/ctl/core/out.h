/* SPDX-License-Identifier: Apache-2.0 */
/* Records as text for people or as JSON for programs. One call serves both, so that they cannot drift apart. JSON has
 * one object per line. In text a record is a line, and its contents are indented below it. Strings from outside are
 * escaped: control characters and bytes that are not UTF-8 are never printed. */
#ifndef JD_CTL_OUT_H
#define JD_CTL_OUT_H
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/format/fields.h"
#include "base/format/json.h"

#define OUT_RECORD_MAX (24u << 20) /* bytes of one record, where out_spill is not used */

struct out {
	bool json;
	int (*write)(void *arg, const void *p, size_t n); /* writes all n bytes; 0 or negative errno */
	void *arg;
	uint64_t records;
	/* private */
	struct buf buf;
	size_t whole; /* bytes of buf that are whole records, to be written */
	struct json j;
	int depth;
	bool fresh; /* text: the line is still empty */
	bool closed; /* text: a container has ended, so the next value begins a line */
};

void out_init(struct out *o, bool json, int (*write)(void *arg, const void *p, size_t n), void *arg);
void out_free(struct out *o);

/* Begins a record: {"format":"vjoule","kind":"report","record":2,"offset":60, ... record counts from 1; offset is its
 * place in the input. */
void out_record(struct out *o, const char *format, const char *kind, uint64_t offset);
/* Ends the record. 0; -EFBIG: it is larger than OUT_RECORD_MAX, and no byte of it is written; -ENOMEM. */
int out_record_end(struct out *o);
/* Writes the begun part of a record that is known to be valid, when that part is large. 0 or negative errno. */
int out_spill(struct out *o);
/* Drops the record that was begun. */
void out_drop(struct out *o);
/* Writes the whole records. 0 or negative errno. */
int out_flush(struct out *o);

/* key is NULL in lists. o NULL: no output, for a pass that only checks. */
void out_map(struct out *o, const char *key);
void out_map_end(struct out *o);
void out_list(struct out *o, const char *key);
void out_list_end(struct out *o);
void out_str(struct out *o, const char *key, const char *s);
void out_u64(struct out *o, const char *key, uint64_t v);
void out_i64(struct out *o, const char *key, int64_t v);
void out_double(struct out *o, const char *key, double v);
void out_float(struct out *o, const char *key, float v); /* the shortest text that reads back as v */
void out_bool(struct out *o, const char *key, bool v);
void out_null(struct out *o, const char *key);
/* Adds all words of a set of bits: "wrapped+estimated". An empty set has a word of its own. */
void out_words(struct out *o, const char *key, const struct field_words *w, unsigned v);
/* Adds the fields of obj that are shown in the form `in`. */
void out_fields(struct out *o, const struct fields *t, const void *obj, unsigned in);
/* Bytes as hexadecimal digits. */
void out_hex(struct out *o, const char *key, const void *p, size_t n);
/* An element of a list of metrics: {"id":3,"name":"TSC","value":1}, in text TSC=1; name NULL: #3=1. */
void out_metric(struct out *o, int64_t id, const char *name, int64_t value);
/* A string by its id: {"ref":5,"text":"nginx"}, in text nginx; text NULL: #5. */
void out_reference(struct out *o, const char *key, uint64_t id, const char *text);

#endif
