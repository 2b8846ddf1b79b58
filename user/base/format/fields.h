/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a struct, listed once. A row of the table has a field's name, type and place. The table makes the forms
 * of the struct: JSON, CBOR, and the output of ctl/out.h. CBOR and JSON are read back with it. A form has the fields in
 * the order of the table. Where two forms differ, a field has two rows with different `in`. */
#ifndef JD_FIELDS_H
#define JD_FIELDS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "json.h"

struct cbr;

enum field_type {
	FIELD_U8,
	FIELD_U16,
	FIELD_U32,
	FIELD_U64,
	FIELD_INT,
	FIELD_I64,
	FIELD_BOOL,
	FIELD_DOUBLE,
	FIELD_CHARS, /* an array of char */
	FIELD_STRING, /* a pointer to text; NULL counts as "" */
	FIELD_LENGTH, /* uint64_t: an end, shown as the time since the start; the start is the uint64_t at `from` */
};

/* The words for the values of an unsigned field. */
struct field_words {
	const char *(*name)(unsigned v);
	unsigned n; /* values 0 .. n - 1, or bits */
	bool bits; /* the value is a set; name() gives its worst one's word */
};

/* How a field is shown. */
enum {
	FIELD_SOME = 1, /* left out of a map where it is zero, false, not finite or "" */
	FIELD_HEX = 2, /* hexadecimal text in JSON: many readers cannot hold 64 bits */
	FIELD_SPELLED = 4, /* CBOR has the word too, not the number */
	FIELD_DIGIT = 8, /* a bool is 0 or 1 in CBOR */
};

struct field {
	const char *name;
	enum field_type type;
	uint16_t offset, size, from;
	uint8_t how;
	uint8_t key; /* place in a CBOR array */
	unsigned in; /* bit per form or part that has the field; 0 = all of them */
	uint64_t max; /* largest number, or bytes of a string with its NUL, that a reader takes; 0 = as the type */
	const struct field_words *words; /* NULL: it is a number */
	const char *what; /* the field in messages of the CBOR reader; NULL: its name */
};

struct fields {
	const struct field *list;
	unsigned n;
};

#define FIELD_TYPE(v) \
	_Generic((v), \
		uint8_t: FIELD_U8, \
		uint16_t: FIELD_U16, \
		uint32_t: FIELD_U32, \
		uint64_t: FIELD_U64, \
		int: FIELD_INT, \
		int64_t: FIELD_I64, \
		bool: FIELD_BOOL, \
		double: FIELD_DOUBLE, \
		char *: FIELD_CHARS, \
		const char *: FIELD_STRING)

/* Makes a row of the table: the struct's tag, the member, then initialisers of other members. FIELD_AS gives the field
 * another name. */
#define FIELD_AS(shown, tag, member, ...) \
	{ \
		.name = (shown), .type = FIELD_TYPE(((struct tag *)0)->member), \
		.offset = offsetof(struct tag, member), .size = sizeof(((struct tag *)0)->member), ##__VA_ARGS__ \
	}
#define FIELD(tag, member, ...) FIELD_AS(#member, tag, member, ##__VA_ARGS__)
#define FIELD_LENGTH_OF(shown, tag, start, end, ...) \
	{ \
		.name = (shown), .type = FIELD_LENGTH, .offset = offsetof(struct tag, end), \
		.from = offsetof(struct tag, start), .size = sizeof(uint64_t), ##__VA_ARGS__ \
	}
#define FIELDS(rows) \
	{ \
		(rows), sizeof(rows) / sizeof((rows)[0]) \
	}

/* True when the form `in` of obj shows the field. in: one bit or more. A row whose `in` is 0 is in every form. */
bool field_shown(const struct field *f, const void *obj, unsigned in);
/* Returns the bits of a number, also of a signed one or a double. */
uint64_t field_number(const struct field *f, const void *obj);
/* Returns the text of a field, or the word for its number. */
const char *field_text(const struct field *f, const void *obj);

/* Writes keys and values into the object that is open. */
void fields_json(struct json *j, const struct fields *t, const void *obj, unsigned in);
/* Writes an object with them under a key. */
void json_key_fields(struct json *j, const char *key, const struct fields *t, const void *obj, unsigned in);
/* Writes keys and values of a CBOR map. The caller writes the head of the map, with fields_count pairs for these. */
void fields_cbor(struct buf *b, const struct fields *t, const void *obj, unsigned in);
unsigned fields_count(const struct fields *t, const void *obj, unsigned in);
/* Fills ret with the fields of a form by their key, the place in a CBOR array: n pointers. */
void fields_by_key(const struct fields *t, unsigned in, const struct field **ret, unsigned n);
/* Writes the value alone, as an element of an array. */
void field_cbor(struct buf *b, const struct field *f, const void *obj);

/* Reads the value after `key` into obj. Numbers are bounded by the field's type, words by the list. 1: no field of the
 * form has this key, and nothing is read. 0 or negative errno. */
int fields_cbor_read(struct cbr *in, const struct fields *t, unsigned form, const char *key, void *obj);
/* Reads the value alone, of any field except a string and a length. 0 or negative errno. */
int field_cbor_read(struct cbr *in, const struct field *f, void *obj);

/* Reads the fields that a JSON object has. A field that is missing there or has another type stays as it is in obj.
 * object: jansson's json_t, which owns the strings of obj afterwards. */
void fields_json_read(const void *object, const struct fields *t, void *obj, unsigned in);

#endif
