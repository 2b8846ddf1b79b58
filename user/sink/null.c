/* SPDX-License-Identifier: Apache-2.0 */
/* null: counts documents and throws them away, for measuring without an output and for tests. */
#include <errno.h>
#include <stdlib.h>

#include "impl.h"

static void null_close(struct sink *s, uint64_t deadline_ns)
{
	sink_fini(s);
	free(s);
}

static int null_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
		     struct err *err)
{
	struct sink *s = calloc(1, sizeof(*s));

	if (!s || sink_init(s, &sink_null, o->queue_bytes)) {
		if (s)
			null_close(s, 0);
		return err_set(err, -ENOMEM, "output \"%s\": out of memory; free some", u->text);
	}
	sink_state(s, true, "every document is thrown away");
	*ret = s;
	return 0;
}

const struct sink_ops sink_null = { .scheme = "null", .open = null_open, .close = null_close };
