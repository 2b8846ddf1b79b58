/* SPDX-License-Identifier: Apache-2.0 */
#include "audited.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

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

static uint32_t error_ppm(const char *domain)
{
	const double error = audit_error(&last, domain);

	/* rounded up; an error of nothing is told as the least that there is */
	return error >= 0 ? (uint32_t)fmax(fmin(ceil(error * 1e6), SNAP_AUDIT_MOST_PPM), 1) : 0;
}

void audited_note(struct snapshot *s)
{
	s->audit = (struct snap_audit){ 0 };
	pthread_mutex_lock(&lock);
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		s->domains[d].audit_ppm = known ? error_ppm(s->schema->domains[d].name) : 0;
	if (known) {
		snprintf(s->audit.formula, sizeof(s->audit.formula), "%s", last.formula);
		snprintf(s->audit.better, sizeof(s->audit.better), "%s", last.better);
		snprintf(s->audit.why, sizeof(s->audit.why), "%s", last.why);
	}
	pthread_mutex_unlock(&lock);
}
