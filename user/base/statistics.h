/* SPDX-License-Identifier: Apache-2.0 */
/* Mean and spread of repeated measurements. */
#ifndef JD_BASE_STATISTICS_H
#define JD_BASE_STATISTICS_H

struct statistics {
	double mean, stddev; /* stddev of the sample (n - 1); 0 for one value */
	double ci95; /* half width of the 95 % interval of the mean, by Student's t */
};

struct statistics statistics_of(const double *v, unsigned n);
/* The 97.5 % quantile of Student's t with that many degrees of freedom (at least 1). */
double student_t(unsigned freedom);

#endif
