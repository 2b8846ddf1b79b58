/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of cbor_*.c: the reader's buffer and one head at a time. */
#ifndef JD_CBOR_INTERNAL_H
#define JD_CBOR_INTERNAL_H
#include <stddef.h>
#include "cbor.h"

#define CBR_DEPTH 16

enum cbr_major { M_UINT, M_NEGINT, M_BYTES, M_TEXT, M_ARRAY, M_MAP, M_TAG, M_SIMPLE };
enum { INFO_FALSE = 20, INFO_TRUE = 21, INFO_HALF = 25, INFO_SINGLE = 26, INFO_DOUBLE = 27, INFO_OPEN = 31 };

struct cbr_head {
	enum cbr_major major;
	unsigned info;
	uint64_t arg;
};

struct cbr {
	cbr_read_fn read;
	void *arg;
	bool eof;
	int code; /* sticky */
	struct err *err;
	uint64_t base; /* offset of buf[0] in the input */
	uint64_t item; /* offset of the head that is being looked at */
	size_t pos, len;
	char subject[200];
	uint8_t buf[65536];
};

/* expected and what: the words of the message when it is something else. */
int cbr_refill(struct cbr *r); /* 1 = more bytes, 0 = end, or -errno */
int cbr_cut_off(struct cbr *r, const char *expected);
int cbr_head(struct cbr *r, const char *expected, struct cbr_head *ret);
int cbr_wrong(struct cbr *r, const struct cbr_head *h, const char *expected);
int cbr_take(struct cbr *r, uint8_t *dst, uint64_t n, const char *what); /* dst NULL: nowhere */

#endif
