/* SPDX-License-Identifier: Apache-2.0 */
/* Records as people or programs read them: one call serves text and JSON, so that they cannot drift
 * apart. JSON is one object a line. In text a record is a line, what it contains is indented below it.
 * Strings from outside are escaped: control characters and bytes that are not UTF-8 never come out. */
#ifndef JD_CTL_OUT_H
#define JD_CTL_OUT_H
#include <stdbool.h>
#include <stdint.h>
#include "../base/buf.h"
#include "../base/json.h"

#define OUT_RECORD_MAX (24u << 20) /* text of one record that is not spilled */

struct out {
	bool json;
	int (*write)(void *arg, const void *p, size_t n); /* all of it: 0 or negative errno */
	void *arg;
	uint64_t records;
	/* inside */
	struct buf buf;
	size_t whole; /* of buf: whole records, to be written */
	struct json j;
	int depth;
	bool fresh; /* text: nothing stands on this line yet */
	bool closed; /* text: a container ended, the next value begins a line */
};

void out_init(struct out *o, bool json, int (*write)(void *arg, const void *p, size_t n), void *arg);
void out_free(struct out *o);

/* {"format":"vjoule","kind":"report","record":2,"offset":60, ...; number and place in the input */
void out_record(struct out *o, const char *format, const char *kind, uint64_t offset);
/* 0, -EFBIG: larger than OUT_RECORD_MAX (nothing of it is written), -ENOMEM. */
int out_record_end(struct out *o);
/* Writes what there is of a record that is known to be good, when it is much. 0 or negative errno. */
int out_spill(struct out *o);
/* Forgets the record that was begun. */
void out_drop(struct out *o);
/* Writes the whole records. 0 or negative errno. */
int out_flush(struct out *o);

/* key is NULL in lists; o NULL: nowhere, for a pass that only checks. */
void out_map(struct out *o, const char *key);
void out_map_end(struct out *o);
void out_list(struct out *o, const char *key);
void out_list_end(struct out *o);
void out_str(struct out *o, const char *key, const char *s);
void out_u64(struct out *o, const char *key, uint64_t v);
void out_i64(struct out *o, const char *key, int64_t v);
void out_double(struct out *o, const char *key, double v);
void out_float(struct out *o, const char *key, float v); /* shortest text that reads back */
void out_bool(struct out *o, const char *key, bool v);
void out_null(struct out *o, const char *key);
/* Bytes as hexadecimal digits. */
void out_hex(struct out *o, const char *key, const void *p, size_t n);
/* An element of a list of metrics: {"id":3,"name":"TSC","value":1}, in text TSC=1; name NULL: #3=1. */
void out_metric(struct out *o, int64_t id, const char *name, int64_t value);
/* A string by its id: {"ref":5,"text":"nginx"}, in text nginx; text NULL: #5. */
void out_reference(struct out *o, const char *key, uint64_t id, const char *text);

#endif
