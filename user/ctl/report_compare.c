/* SPDX-License-Identifier: Apache-2.0 */
/* Counter, integral and wall meter of one repetition. The bounds are wide: counters step by up to 100 ms, and
 * driver power is a mean over up to a second on many cards (arXiv 2312.02741). */
#include <stdio.h>
#include <string.h>
#include "report.h"

#define AGREE 0.05
#define EDGE_S 0.2 /* what an end of the window may be off by */
#define TENFOLD 12.0 /* a machine of eight GPUs, one in use, is at 11; beyond, it is rather the unit */

static double length_s(const struct report_result *r)
{
	return (double)(r->last_ns - r->first_ns) / 1e9;
}

static double mean_w(const struct report_result *r)
{
	return r->value[REPORT_ENERGY] / length_s(r);
}

static bool usable(const struct report_result *r)
{
	return r->known && r->last_ns > r->first_ns && r->value[REPORT_ENERGY] > 0;
}

static bool apart(double a, double b, double seconds)
{
	return fabs(a - b) > fmax(fabs(a), fabs(b)) * (AGREE + EDGE_S / seconds);
}

static void compare_external(const struct report_options *o, const struct report_repetition *r, double gpu_w,
			     struct tree_findings *f)
{
	double raw_w = mean_w(&r->source[REPORT_EXTERNAL]) + o->external_idle_w;

	if (raw_w < gpu_w)
		tree_find(
			f, TREE_WRONG, "external-below-gpu", r->place->shown, 0,
			"external power (%.4g W) is below that of the GPU alone (%.4g W); is a count 10 mW? --external-unit 10mW",
			raw_w, gpu_w);
	else if (raw_w > TENFOLD * gpu_w)
		tree_find(
			f, TREE_WRONG, "external-tenfold", r->place->shown, 0,
			"external power (%.4g W) is %.1f times that of the GPU (%.4g W); is a count 1 mW? --external-unit mW",
			raw_w, raw_w / gpu_w, gpu_w);
}

void report_compare(const struct report_options *o, const struct report_repetition *r, struct tree_findings *f)
{
	const struct report_result *sd = &r->source[REPORT_SD], *hd = &r->source[REPORT_HD];
	const struct report_result *rapl = &r->source[REPORT_RAPL], *cgroup = &r->source[REPORT_CGROUP];

	if (usable(sd) && !isnan(r->counter_j) && apart(sd->value[REPORT_ENERGY], r->counter_j, length_s(sd)))
		tree_find(f, TREE_WRONG, "counter", r->place->shown, 0,
			  "the GPU's counter says %.5g J, its power (sd) adds up to %.5g J", r->counter_j,
			  sd->value[REPORT_ENERGY]);
	if (usable(sd) && usable(hd) && apart(mean_w(sd), mean_w(hd), fmin(length_s(sd), length_s(hd))))
		tree_find(f, TREE_WRONG, "samples", r->place->shown, 0,
			  "mean power is %.5g W by the driver's samples (hd), %.5g W by queries (sd)", mean_w(hd),
			  mean_w(sd));
	if (r->source[REPORT_EXTERNAL].known &&
	    r->source[REPORT_EXTERNAL].last_ns > r->source[REPORT_EXTERNAL].first_ns && (usable(sd) || usable(hd)))
		compare_external(o, r, mean_w(usable(sd) ? sd : hd), f);
	/* a GPU is in cgroup-power.csv alone */
	if (usable(rapl) && usable(cgroup) && strcmp(r->domains[0], r->domains[1]) == 0 &&
	    mean_w(cgroup) > mean_w(rapl) * (1 + AGREE))
		tree_find(f, TREE_WRONG, "cgroup-above-rapl", r->place->shown, 0,
			  "the cgroup's power (%.5g W) is above the machine's (%.5g W)", mean_w(cgroup), mean_w(rapl));
}
