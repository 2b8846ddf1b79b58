// SPDX-License-Identifier: Apache-2.0
/* Reading the uses of GPUs: [row, domain, ns] each, in one list. Rows are checked when all of them are in. */
#include "recording_internal.h"

#define MAX_USES 65536

int recording_read_uses(struct recording *r)
{
	struct snapshot *s = &r->snap;
	struct cbr_iter list;
	uint64_t v[3] = { 0 };
	unsigned n = 0;
	int err = cbr_array(r->in, &list, "a list of uses");

	while (!err && (err = cbr_more(r->in, &list)) > 0) {
		err = cbr_uint(r->in, &v[n % 3], "a use");
		if (err || ++n % 3)
			continue;
		if (v[0] >= UINT32_MAX || v[1] >= r->schema.n_domains || n / 3 > MAX_USES)
			return cbr_fail(r->in, "uses of known rows and domains", "row %llu, domain %llu",
					(unsigned long long)v[0], (unsigned long long)v[1]);
		err = snapshot_reserve_uses(s, n / 3);
		if (!err)
			s->uses[s->n_uses++] = (struct snap_use){ (uint32_t)v[0], (uint16_t)v[1], v[2] };
	}
	return err || n % 3 == 0 ? err : cbr_fail(r->in, "three numbers for each use", "%u", n);
}

/* The number of rows stands for nobody. */
int recording_check_uses(struct recording *r)
{
	struct snapshot *s = &r->snap;

	for (unsigned i = 0; i < s->n_uses; i++) {
		if (s->uses[i].row > s->n_rows)
			return cbr_fail(r->in, "uses of known rows", "row %u of %u", s->uses[i].row, s->n_rows);
		if (s->uses[i].row == s->n_rows)
			s->uses[i].row = USE_NOBODY;
	}
	return 0;
}
