/* SPDX-License-Identifier: Apache-2.0 */
/* The interface that has nothing: `rapl: none`. */
#include <errno.h>
#include <stdlib.h>
#include "domain.h"

static int null_open(const struct fsroot *root, const struct perf_seam *seam, const struct schema *s,
		     struct energy_source **ret, struct err *err)
{
	struct energy_source *e = calloc(1, sizeof(*e));

	if (!e)
		return err_set(err, -ENOMEM, "energy: out of memory; free some");
	energy_source_set(e, ENERGY_ABSENT, "rapl: none: energy is not read; set rapl: auto");
	*ret = e;
	return 0;
}

static int null_read(struct energy_source *e, unsigned i, unsigned part, uint64_t *ret_units)
{
	return -ENODEV;
}

static void null_hotplug(struct energy_source *e, const uint8_t *online, unsigned n)
{
}

static void null_close(struct energy_source *e)
{
	free(e);
}

const struct energy_source_ops energy_null = {
	.interface = ENERGY_NONE,
	.open = null_open,
	.probes = energy_source_probes,
	.state = energy_source_state,
	.note = energy_source_note,
	.read = null_read,
	.hotplug = null_hotplug,
	.close = null_close,
};
