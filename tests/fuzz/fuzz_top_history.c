/* SPDX-License-Identifier: Apache-2.0 */
/* Any answer of /v1/history: refused with one line, or shown by top interval by interval, with a closed ledger. */
#include <stdint.h>
#include <stdlib.h>
#include "ctl/top/top.h"
#include "ctl/top/top_history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct snapshot *s)
{
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		uint64_t uj = s->domains[d].idle_uj + s->domains[d].residual_uj;

		for (unsigned i = 0; i < s->n_rows; i++)
			uj += *snapshot_energy(s, i, d);
		if (uj != s->domains[d].energy_uj)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct top_view *v = calloc(1, sizeof(*v));
	struct top_history *h = NULL;
	struct snapshot *s;
	struct err err = { 0 };

	if (!v)
		return 0;
	v->domain = -1;
	if (top_history_parse((const char *)data, size, &h, &err) != 0 && !err.text[0])
		abort();
	while (h && top_history_next(h, &s) == 1) {
		check(s);
		if (top_view_take(v, s) != 0)
			break;
	}
	top_history_close(h);
	top_view_free(v);
	free(v);
	return 0;
}
