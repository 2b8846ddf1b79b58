/* SPDX-License-Identifier: Apache-2.0 */
/* The format `snapshot`: a recording with one document per interval, including energy columns. */
#include <errno.h>
#include <stdlib.h>
#include "model/recording/recording.h"
#include "model/selection.h"
#include "encode.h"

struct encoder {
	struct encoder_stats stats;
	struct selection_fold fold;
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

static int snapshot_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	s = selection_fold(&e->fold, s, shown);
	if (!s)
		return -ENOMEM;
	recording_encode(s, true, out);
	return out->failed ? -ENOMEM : 0;
}

static const struct encoder_stats *snapshot_stats(const struct encoder *e)
{
	return &e->stats;
}

static void snapshot_destroy(struct encoder *e)
{
	if (e)
		selection_fold_free(&e->fold);
	free(e);
}

const struct encoder_ops encode_snapshot = {
	.name = "snapshot",
	.create = snapshot_create,
	.preamble = snapshot_preamble,
	.encode = snapshot_encode,
	.stats = snapshot_stats,
	.destroy = snapshot_destroy,
};
