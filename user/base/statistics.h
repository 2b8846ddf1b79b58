/* SPDX-License-Identifier: Apache-2.0 */
/* Mean and spread of repeated measurements. */
#ifndef JD_CTL_RUN_STATS_H
#define JD_CTL_RUN_STATS_H

struct run_stats {
	double mean, stddev; /* stddev of the sample (n - 1); 0 for one value */
	double ci95; /* half width of the 95 % interval of the mean, by Student's t */
};

struct run_stats run_stats_of(const double *v, unsigned n);
/* The 97.5 % quantile of Student's t with that many degrees of freedom (at least 1). */
double run_student_t(unsigned freedom);

#endif
