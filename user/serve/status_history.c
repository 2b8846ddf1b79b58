/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/status: what is kept, and what was lost of it. */
#include "../store/history.h"
#include "serve_internal.h"

void serve_history_status(struct serve *s, struct json *j)
{
	struct history_figures f;

	json_key(j, "history");
	json_object_begin(j);
	if (!s->o.history) {
		json_key_str(j, "state", "off");
		json_key_str(j, "reason", s->o.no_history);
		json_object_end(j);
		return;
	}
	history_figures(s->o.history, &f);
	json_key_str(j, "state", f.state);
	json_key_str(j, "reason", f.reason);
	json_key_str(j, "path", f.path);
	json_key_u64(j, "bytes", f.bytes);
	json_key_u64(j, "intervals", f.written);
	json_key_u64(j, "lost_intervals", f.lost_intervals);
	json_key_u64(j, "queued_intervals", f.queued);
	/* totals go on from there; after a kill at most what one second brought is missing */
	json_key(j, "resumed_unix_ns");
	json_i64(j, f.resumed_ns);
	json_key(j, "killed_before");
	json_bool(j, f.killed);
	json_object_end(j);
}
