/* SPDX-License-Identifier: Apache-2.0 */
/* For decode_zico.c, zico_value.c and decode.c alone.
 *
 * Agent data and traces of ZICO are CBOR items, each behind a tag, one after the other. The tags depend on
 * the dialect:
 *
 *	                  zico-1.90, zico-1.90.6     document                  zico-2
 *	string            1 [id, text, type]         13 [id, text, type]       1 [id, text]
 *	method            2 [id, class, method, signature], document: 14
 *	agent attribute   3 [key, value]             15 [key, value]
 *	trace record      8 [...]                    10 big, 11 little [...]   3 [...]
 *	                                             or 6 big, 7 little
 *	  first           10 big, 11 little bytes    bytes                     start ns, method id
 *	  begin           33 [clock ms, type]        the same                  5 [clock, type, span?, parent?]
 *	  attributes      9 {key: value}             the same                  6 [key, value], [type, key, value]
 *	  for one above   38 [type, {key: value}]    the same
 *	  exception       34 [id, class, message, cause, [[class, method, file, line]]]; zico-2: 7, and attributes
 *	  one seen before 35 id                      the same                  8 id
 *	  flags           15 bits, or 37 one or two
 *	  last            12 big, 13 little bytes    13 in the record's order  4 [stop ns, calls, flags?]
 *
 * Bytes are a word of 64 bits: ticks of 65536 ns in the low 40, method id or number of calls in the high 24;
 * a second word behind the last one's has the calls when they do not fit. Strings are text, tag 6 on a
 * number, or where only a string can stand, the number alone. */
#ifndef JD_CTL_DECODE_ZICO_H
#define JD_CTL_DECODE_ZICO_H
#include "base/format/cbor.h"
#include "decode.h"

#define ZICO_TEXT_MAX (4u << 20) /* what collectors take */
#define ZICO_BYTES_MAX 65536u
#define ZICO_VALUE_LEVELS 8 /* of lists, maps and tags within each other */
#define ZICO_RECORD_LEVELS 1024 /* of calls */
#define ZICO_NAMES_BYTES (8u << 20)
#define ZICO_IDS (1u << 20) /* larger ids are shown, but not looked up */

enum zico_tag {
	TAG_STRING = 1,
	TAG_METHOD = 2,
	TAG_ATTRIBUTE = 3,
	TAG_REFERENCE = 6,
	TAG_RECORD = 8,
	TAG_ATTRIBUTES = 9,
	TAG_FIRST_BIG = 10,
	TAG_FIRST_LITTLE = 11,
	TAG_LAST_BIG = 12,
	TAG_LAST_LITTLE = 13,
	TAG_FLAGS = 15,
	TAG_BEGIN = 33,
	TAG_EXCEPTION = 34,
	TAG_EXCEPTION_SEEN = 35,
	TAG_FLAG = 37,
	TAG_UPWARD = 38,
	DOC_RECORD_6 = 6,
	DOC_RECORD_7 = 7,
	DOC_RECORD_BIG = 10,
	DOC_RECORD_LITTLE = 11,
	DOC_STRING = 13,
	DOC_METHOD = 14,
	DOC_ATTRIBUTE = 15,
	TAG_ENVELOPE = 0x7a69636f,
	Z2_RECORD = 3,
	Z2_LAST = 4,
	Z2_BEGIN = 5,
	Z2_ATTRIBUTE = 6,
	Z2_EXCEPTION = 7,
	Z2_EXCEPTION_SEEN = 8,
};

enum zico_dialect { ZICO_1, ZICO_DOCUMENT, ZICO_2 };
extern const char *const zico_dialect_names[];

/* Decoder of base64 text: the digits that are not yet a group of four. */
struct zico_base64 {
	struct input *in;
	unsigned n;
	uint8_t four[4];
};
/* decode.c: reads decoded bytes, as read(2) does. n is at least 3; 0 = the end, negative errno = a failure of the
 * input. */
ssize_t zico_read_base64(void *base64, void *dst, size_t n);

/* Strings and methods by id, as far as they were defined in the same input. */
struct zico_names {
	struct buf bytes; /* strings with their NUL; methods as three ids */
	uint32_t *at[2]; /* strings, methods: by id, offset in bytes + 1 */
	uint32_t n[2];
};

struct zico_level {
	struct cbr_iter items;
	uint64_t start;
	bool big, last; /* last: its end was read, nothing may follow */
};

struct zico {
	struct decoding *d;
	struct cbr *in;
	struct zico_base64 base64;
	struct err err;
	enum zico_dialect dialect;
	struct zico_names names;
	struct buf text; /* the string that is being read */
	int depth; /* of the record that is being read */
	uint64_t stop; /* of a record of ZICO 2 */
	struct zico_level level[ZICO_RECORD_LEVELS];
};

/* zico_value.c: strings and methods by id. A later definition replaces an earlier one. zico_string returns NULL, and
 * zico_method false, for an unknown id. */
int zico_define_string(struct zico *z, uint64_t id, const char *text);
int zico_define_method(struct zico *z, uint64_t id, const uint32_t v[3]);
const char *zico_string(const struct zico *z, uint64_t id);
/* Class, method and signature. */
bool zico_method(const struct zico *z, uint64_t id, uint32_t ret[3]);

/* Each function reads one item and writes it under key. 0 or negative errno. */
int zico_value(struct zico *z, const char *key);
int zico_number(struct zico *z, const char *key);
int zico_string_or_id(struct zico *z, const char *key); /* or null, for no string */
int zico_map(struct zico *z, const char *key); /* one pair after the other */
int zico_stack(struct zico *z, const char *key); /* [class, method, file, line] after another */
/* The elements of an array, of which the first `required` must be there. */
struct zico_field {
	const char *key;
	int (*read)(struct zico *z, const char *key);
};
int zico_fields(struct zico *z, const struct zico_field *f, int required, int n, const char *what);
int zico_element(struct zico *z, struct cbr_iter *it, const char *what); /* the next one must be there */
/* Fails when the output has become too large. 0 or negative errno. */
int zico_room(struct zico *z);


#endif
