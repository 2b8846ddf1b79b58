/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a command that lie apart from its others. */
#ifndef JD_CTL_RUN_OUTLIERS_H
#define JD_CTL_RUN_OUTLIERS_H
#include "result.h"

enum run_outlier_of { OUTLIER_ENERGY, OUTLIER_CPU, OUTLIER_WALL };

struct run_outlier {
	unsigned run; /* index in the report's runs */
	enum run_outlier_of of; /* energy where there is some, else CPU time; elapsed time if only that lies apart */
	double value, median; /* uJ or ns; the median is that of all runs of the command */
};

/* Finds them by the bounds of base/statistics.h. *ret is the caller's, to be freed; NULL = none. The count, or -ENOMEM. */
int run_outliers_find(const struct run_report *r, struct run_outlier **ret);

#endif
