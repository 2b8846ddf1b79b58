/* SPDX-License-Identifier: Apache-2.0 */
/* What of a miss is the sensor's (docs/attribution.md). A sensor that is off, and an energy that was read a moment before or after its
 * counters, make points miss by chance: to one side as to the other, by as much as usual, whatever the point before missed by. Work
 * that prices do not tell goes on from point to point, and what is new on a machine misses by more than usual. */
#include <math.h>
#include "model.h"

#define TOLD 30 /* points that tell what is usual */
#define USUAL 2.0 /* deviations within which a miss is usual; at twice that nothing of it is */
#define ALIKE 2.0 /* times the likeness of neighbouring misses, above ... */
#define BY_CHANCE 0.5 /* ... what it is by chance, over the root of their number */

double model_noise_part(const struct model_fit *f, double seconds, double left)
{
	const double usual = USUAL * f->s.sigma * seconds;
	double alike, near;

	if (f->points < TOLD || seconds * 1e9 < MODEL_POINT_NS || !(usual > 0) || !isfinite(left))
		return 0;
	alike = ALIKE * (model_autocorrelation(f) - BY_CHANCE / sqrt(f->n_window));
	near = fmin(fmax(2 - fabs(left) / usual, 0), 1);
	return near * (1 - fmin(fmax(alike, 0), 1));
}
