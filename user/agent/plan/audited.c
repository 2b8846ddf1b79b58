/* SPDX-License-Identifier: Apache-2.0 */
#include "audited.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define PPM_MAX 1e9

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct audit last;
static bool known;

void audited_tell(const struct audit *a)
{
	pthread_mutex_lock(&lock);
	known = a;
	if (a)
		last = *a;
	pthread_mutex_unlock(&lock);
}

static void mark_domain(struct snapshot *s, unsigned d, double error)
{
	uint32_t ppm = (uint32_t)fmin(error * 1e6, PPM_MAX);

	s->domains[d].uncertainty = error;
	for (unsigned i = 0; i < s->n_rows; i++)
		if (*snapshot_energy(s, i, d))
			*snapshot_uncertainty(s, i, d) = ppm;
}

void audited_mark(struct snapshot *s)
{
	if (strcmp(s->formula, formula_share.name) != 0)
		return;
	pthread_mutex_lock(&lock);
	for (unsigned d = 0; known && d < s->schema->n_domains; d++) {
		double error = strcmp(last.formula, s->formula) == 0 ? audit_error(&last, s->schema->domains[d].name) :
								       NAN;

		if (error >= 0 && isnan(s->domains[d].uncertainty) && !(s->domains[d].quality & QUALITY_ESTIMATED))
			mark_domain(s, d, error);
	}
	pthread_mutex_unlock(&lock);
}

void audited_advise(const struct formula_ops *ops, struct formula *f)
{
	pthread_mutex_lock(&lock);
	ops->advise(f, known ? last.better : "", known ? last.why : "");
	pthread_mutex_unlock(&lock);
}
