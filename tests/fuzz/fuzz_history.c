/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of the history's file, and the times of its requests; the first byte chooses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "encode/totals/keep.h"
#include "base/instant.h"
#include "store/history/database.h"

static int take(void *arg, const struct point_row *r)
{
	*(uint64_t *)arg += r->energy_uj[0];
	return 0;
}

static void read_totals(const uint8_t *data, size_t size)
{
	static struct schema schema = { .n_domains = 2, .core = { .n = 1 } };
	struct totals_options o = { .keep_ns = 1, .top = size & 1 };
	struct totals *t = totals_new(&schema, &o);
	struct totals_options by = { .keep_ns = 1, .top = 2, .by = { .kind = GROUP_POD } };
	struct totals copy = { 0 };

	if (t && size & 2)
		totals_view(t, &by);
	if (t && totals_load(t, data, size) == 0 && totals_loaded(t) == 0)
		totals_copy(&copy, t);
	totals_free(&copy);
	totals_free(t);
	free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[64];
	uint64_t sum = 0;
	int64_t ns;

	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0:
		point_read(data + 1, size - 1, data[0] / 3 % (SCHEMA_MAX_DOMAINS + 1), take, &sum);
		break;
	case 1:
		read_totals(data + 1, size - 1);
		break;
	default:
		if (size > sizeof(text))
			return 0;
		memcpy(text, data + 1, size - 1);
		text[size - 1] = '\0';
		instant_parse(text, 1700000000000000000, &ns);
	}
	return 0;
}
