// SPDX-License-Identifier: Apache-2.0
/* The file of a calibration: any bytes are refused, or are points that a model can be tried on. */
#include <stdint.h>
#include <stdlib.h>
#include "source/wall/wall_points.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct wall_points p;
	struct wall_model m;
	struct err err;

	if (wall_points_read((const char *)data, size, "x", &p, &err) == 0 && wall_fit(p.v, p.n, &m) && !(m.gain >= 1))
		abort();
	return 0;
}
