/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: the recording form, one document an interval, energy columns included. */
#include <errno.h>
#include <stdlib.h>

#include "../model/recording.h"
#include "encode.h"

struct encoder {
	struct encoder_stats stats;
};

static int snapshot_create(const struct encode_options *o, const struct schema *s, struct encoder **ret,
			   struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return err_set(err, -ENOMEM, "format snapshot: out of memory; free some");
	*ret = e;
	return 0;
}

static int snapshot_preamble(struct encoder *e, const struct schema *s, struct buf *out)
{
	recording_encode_header(s, out);
	return out->failed ? -ENOMEM : 0;
}

static int snapshot_encode(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	recording_encode(s, true, out);
	return out->failed ? -ENOMEM : 0;
}

static const struct encoder_stats *snapshot_stats(const struct encoder *e)
{
	return &e->stats;
}

static void snapshot_destroy(struct encoder *e)
{
	free(e);
}

const struct encoder_ops encode_snapshot = {
	.name = "snapshot",
	.help = "CBOR recording, to be replayed with --replay",
	.create = snapshot_create,
	.preamble = snapshot_preamble,
	.encode = snapshot_encode,
	.stats = snapshot_stats,
	.destroy = snapshot_destroy,
};
