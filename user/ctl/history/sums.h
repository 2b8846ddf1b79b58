/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of an answer of /v1/history: by a name that cgroups share, or by a length of time. */
#ifndef JD_CTL_HISTORY_SUMS_H
#define JD_CTL_HISTORY_SUMS_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "model/schema.h"
#include "model/cost.h"

enum sums_by { SUMS_UNIT, SUMS_NAMESPACE, SUMS_POD, SUMS_CONTAINER, SUMS_SLICE, SUMS_JOB, SUMS_DAY, SUMS_HOUR };
extern const char *const sums_words[]; /* names of these, NULL at the end */

struct sums_line {
	char *name; /* from outside, to be escaped; owned */
	double uj;
	double g; /* CO2 of what the file of intensities knows */
	double unknown_uj; /* energy of which it knows nothing */
	unsigned quality; /* of all its points */
	int64_t order; /* lines by time: begin, Unix seconds; 0 otherwise */
	uint64_t ns; /* measured time; 0 in lines that are no time */
};

struct sums {
	struct sums_line *v;
	size_t n;
	uint32_t room;
	struct sums_line all;
};

/* Returns the energy of a point over the domains in `summed`, in microjoules. */
double sums_point_uj(const json_t *point, const bool *summed, size_t n);
/* The domains of the answer that add up to the machine. Returns their number. */
size_t sums_domains(const json_t *doc, bool summed[SCHEMA_MAX_DOMAINS]);
/* Adds all series up. Lines by name are sorted by energy, lines by time by time; `all` is their sum. 0 or -ENOMEM. */
int sums_make(const json_t *doc, enum sums_by by, const struct cost *cost, struct sums *ret);
void sums_free(struct sums *s);

#endif
