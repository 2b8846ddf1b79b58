/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "pack.h"

#define RATIO_MAX 1032 /* of deflate: two bits for 258 bytes */
#define LEVEL 1 /* of 0 to 3; docs/decisions.md says what each costs */
#define STORED_MAX 65535 /* bytes of a block that is not packed (RFC 1951, section 3.2.4), which has 5 more */
#define GZIP_EDGES 64 /* head and tail of a member take 18 */
#define GZIP_WINDOW (15 + 16) /* of inflateInit2: gzip alone */

struct gzip_packer {
	struct isal_zstream z;
	uint8_t room[ISAL_DEF_LVL1_DEFAULT];
};

/* What does not become smaller stands there as it is. */
static size_t gzip_bound(size_t n)
{
	return n + (n / STORED_MAX + 1) * 5 + GZIP_EDGES;
}

static int pack_gzip(struct packer *p, const void *data, size_t n, struct buf *out)
{
	const size_t bound = gzip_bound(n);
	struct isal_zstream *z;
	void *to;

	if (!p->gzip)
		p->gzip = calloc(1, sizeof(*p->gzip));
	to = p->gzip && bound <= UINT32_MAX ? buf_reserve(out, bound) : NULL;
	if (!to)
		return -ENOMEM;
	z = &p->gzip->z;
	isal_deflate_stateless_init(z);
	z->level = LEVEL;
	z->level_buf = p->gzip->room;
	z->level_buf_size = sizeof(p->gzip->room);
	z->gzip_flag = IGZIP_GZIP;
	z->end_of_stream = 1;
	z->next_in = (uint8_t *)data;
	z->avail_in = (uint32_t)n;
	z->next_out = to;
	z->avail_out = (uint32_t)bound;
	if (isal_deflate_stateless(z) != COMP_OK)
		return -ENOMEM;
	out->len += z->total_out;
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

/* 0, or -EBADMSG: it is not one member that holds so many bytes. */
static int inflate_all(const void *data, size_t n, void *to, uint32_t len)
{
	z_stream z = { .next_in = (Bytef *)data, .avail_in = (uInt)n, .next_out = to, .avail_out = len };
	int rc = inflateInit2(&z, GZIP_WINDOW);

	if (rc != Z_OK)
		return rc == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	rc = inflate(&z, Z_FINISH) == Z_STREAM_END && !z.avail_in && !z.avail_out ? 0 : -EBADMSG;
	inflateEnd(&z);
	return rc;
}

/* The size of what a gzip member holds stands in its last four bytes (RFC 1952, section 2.3.1). */
static int unpack_gzip(const uint8_t *data, size_t n, struct buf *out)
{
	uint32_t len;
	void *to;
	int rc;

	if (n < sizeof(len) || n > UINT32_MAX)
		return -EBADMSG;
	memcpy(&len, data + n - sizeof(len), sizeof(len));
	if (len / RATIO_MAX > n)
		return -EBADMSG;
	to = buf_reserve(out, len);
	if (!to)
		return -ENOMEM;
	rc = inflate_all(data, n, to, len);
	out->len += rc ? 0 : len;
	return rc;
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
	free(p->gzip);
	p->gzip = NULL;
}
