/* SPDX-License-Identifier: Apache-2.0 */
/* Packs the bodies of pushed documents, and files whose format is packed. */
#ifndef JD_ENCODE_PACK_H
#define JD_ENCODE_PACK_H
#include <stddef.h>
#include "base/buf.h"

enum packing { PACK_GZIP, PACK_SNAPPY };

struct gzip_packer;

/* Kept from body to body, so that steady state allocates nothing. {0} is an empty one. */
struct packer {
	struct gzip_packer *gzip;
};

/* Appends n bytes in one packed piece: a gzip member (RFC 1952), or a block of snappy without a frame. 0 or -ENOMEM. */
int pack(struct packer *p, enum packing how, const void *data, size_t n, struct buf *out);

/* Appends what was packed. 0; -EBADMSG: it does not read, or claims more than such a packing can hold; -ENOMEM. */
int unpack(enum packing how, const void *data, size_t n, struct buf *out);

/* The header of HTTP that says so. */
const char *packing_header(enum packing how);

void packer_fini(struct packer *p);

#endif
