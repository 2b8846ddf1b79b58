/* SPDX-License-Identifier: Apache-2.0 */
/* Mean and spread of repeated measurements. */
#ifndef JD_BASE_STATISTICS_H
#define JD_BASE_STATISTICS_H

struct statistics {
	double mean, stddev; /* stddev of the sample (n - 1); 0 for one value */
	double ci95; /* half width of the 95 % interval of the mean, by Student's t */
};

struct statistics statistics_of(const double *v, unsigned n);

#define STATISTICS_OUTLIERS_LEAST 5 /* of fewer values none is an outlier */

/* The median, and the bounds beyond which a value is an outlier: its modified z-score is above 3.5 (Iglewicz and
 * Hoaglin: How to detect and handle outliers, 1993). It is by the median of the distances from the median, or by their
 * mean where more than half of them are 0. */
struct statistics_bounds {
	double median, low, high;
};

/* scratch: room for n values. n >= 1 */
struct statistics_bounds statistics_bounds_of(const double *v, unsigned n, double *scratch);
/* The 97.5 % quantile of Student's t with that many degrees of freedom (at least 1). */
double student_t(unsigned freedom);

#endif
