/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "share.h"

const struct encoder_ops *encoder_find(const char *name)
{
	static const struct encoder_ops *const all[] = { &encode_hwpc,     &encode_power,  &encode_table,
							 &encode_snapshot, &encode_vjoule, &encode_openmetrics,
							 &encode_share };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}
