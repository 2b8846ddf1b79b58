/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <libdeflate.h>
#include <snappy-c.h>
#include <string.h>
#include "pack.h"

#define RATIO_MAX 1032 /* of deflate: two bits for 258 bytes */
#define LEVEL 1 /* of 1 to 12; docs/decisions.md says what each costs */

static int pack_gzip(struct packer *p, const void *data, size_t n, struct buf *out)
{
	size_t room;
	void *to;

	if (!p->gzip)
		p->gzip = libdeflate_alloc_compressor(LEVEL);
	if (!p->gzip)
		return -ENOMEM;
	room = libdeflate_gzip_compress_bound(p->gzip, n);
	to = buf_reserve(out, room);
	if (!to)
		return -ENOMEM;
	out->len += libdeflate_gzip_compress(p->gzip, data, n, to, room);
	return 0;
}

static int pack_snappy(const void *data, size_t n, struct buf *out)
{
	size_t room = snappy_max_compressed_length(n);
	uint8_t *to = buf_reserve(out, room);

	if (!to || snappy_compress(data, n, (char *)to, &room) != SNAPPY_OK)
		return -ENOMEM;
	out->len += room;
	return 0;
}

int pack(struct packer *p, enum packing how, const void *data, size_t n, struct buf *out)
{
	return how == PACK_SNAPPY ? pack_snappy(data, n, out) : pack_gzip(p, data, n, out);
}

/* The size of what a gzip member holds stands in its last four bytes (RFC 1952, section 2.3.1). */
static int unpack_gzip(const uint8_t *data, size_t n, struct buf *out)
{
	struct libdeflate_decompressor *d;
	uint32_t len;
	void *to;
	int rc;

	if (n < sizeof(len))
		return -EBADMSG;
	memcpy(&len, data + n - sizeof(len), sizeof(len));
	if (len / RATIO_MAX > n)
		return -EBADMSG;
	to = buf_reserve(out, len);
	d = to ? libdeflate_alloc_decompressor() : NULL;
	if (!d)
		return -ENOMEM;
	rc = libdeflate_gzip_decompress(d, data, n, to, len, NULL);
	libdeflate_free_decompressor(d);
	if (rc != LIBDEFLATE_SUCCESS)
		return -EBADMSG;
	out->len += len;
	return 0;
}

static int unpack_snappy(const void *data, size_t n, struct buf *out)
{
	size_t len;
	uint8_t *to;

	if (snappy_uncompressed_length(data, n, &len) != SNAPPY_OK || len / RATIO_MAX > n)
		return -EBADMSG;
	to = buf_reserve(out, len);
	if (!to)
		return -ENOMEM;
	if (snappy_uncompress(data, n, (char *)to, &len) != SNAPPY_OK)
		return -EBADMSG;
	out->len += len;
	return 0;
}

int unpack(enum packing how, const void *data, size_t n, struct buf *out)
{
	return how == PACK_SNAPPY ? unpack_snappy(data, n, out) : unpack_gzip(data, n, out);
}

const char *packing_header(enum packing how)
{
	return how == PACK_SNAPPY ? "Content-Encoding: snappy" : "Content-Encoding: gzip";
}

void packer_fini(struct packer *p)
{
	libdeflate_free_compressor(p->gzip);
	p->gzip = NULL;
}
