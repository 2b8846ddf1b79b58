/* SPDX-License-Identifier: Apache-2.0 */
#include "sequential.h"
#include <math.h>
#include <stdlib.h>
#include "base/statistics.h"

/* The mixture of the header, solved for m at the level 1 / alarms. */
double sequential_half(unsigned n, double s, double alarms)
{
	double k, room;

	if (n < 2)
		return INFINITY;
	k = pow(sqrt(n + 1.0) / alarms, 2.0 / n);
	room = n - (k - 1);
	if (room <= 0)
		return INFINITY;
	return s * sqrt((k - 1) * (n + 1.0) * (n - 1) / (n * room));
}

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = { "cannot tell", "same", "better", "worse", "refused" };

	return names[v];
}

/* None is told when the interval leaves the change out. Else, a change is told when the interval leaves 0 out: it then
 * holds the change too, so that its middle, the mean, is nearer to the change than to none. */
static void judge(struct judgement *j, double mean, double half)
{
	double change = log1p(j->fail);

	j->ratio = exp(mean);
	j->interval = (struct interval){ exp(mean - half), exp(mean + half) };
	if (mean - half > -change && mean + half < change)
		j->verdict = VERDICT_SAME;
	else if (mean - half > 0)
		j->verdict = VERDICT_WORSE;
	else if (mean + half < 0)
		j->verdict = VERDICT_BETTER;
}

/* Returns the number of values whose interval, and `other` with it, is narrow enough for a verdict at any mean. */
static unsigned needed(unsigned from, double s, double alarms, double room)
{
	unsigned n = from > 2 ? from : 2, step = n;

	if (room <= 0)
		return 0;
	while (n < SEQUENTIAL_NEEDED_MAX && sequential_half(n, s, alarms) >= room)
		n += step = n;
	if (n >= SEQUENTIAL_NEEDED_MAX)
		return SEQUENTIAL_NEEDED_MAX;
	for (step = n / 2; step; step /= 2)
		if (n > step && n - step >= from && sequential_half(n - step, s, alarms) < room)
			n -= step;
	return n;
}

struct judgement sequential_judge(const double *a, const double *b, unsigned n, double fail)
{
	struct judgement ret = { .fail = fail, .ratio = NAN, .interval = { 0, INFINITY } };
	double *d = malloc((n + 1) * sizeof(*d));
	struct statistics s;

	if (!d)
		return ret;
	for (unsigned i = 0; i < n; i++)
		if (a[i] > 0 && b[i] > 0)
			d[ret.rounds++] = log(b[i] / a[i]);
	if (ret.rounds) {
		s = statistics_of(d, ret.rounds);
		judge(&ret, s.mean, sequential_half(ret.rounds, s.stddev, SEQUENTIAL_ALARMS));
		if (ret.verdict == VERDICT_CANNOT_TELL && ret.rounds > 1)
			ret.needed = needed(ret.rounds + 1, s.stddev, SEQUENTIAL_ALARMS, log1p(fail) / 2);
	}
	free(d);
	return ret;
}

/* Mean and spread of the logarithms of values above 0. */
static struct statistics logarithms(const double *v, unsigned n, unsigned *ret_n)
{
	double *d = malloc((n + 1) * sizeof(*d));
	struct statistics s = { 0 };

	*ret_n = 0;
	for (unsigned i = 0; d && i < n; i++)
		if (v[i] > 0)
			d[(*ret_n)++] = log(v[i]);
	if (*ret_n)
		s = statistics_of(d, *ret_n);
	free(d);
	return s;
}

struct judgement sequential_judge_apart(const double *a, unsigned n_a, const double *b, unsigned n_b, double fail)
{
	struct judgement ret = { .fail = fail, .ratio = NAN, .interval = { 0, INFINITY } };
	unsigned known;
	struct statistics first = logarithms(a, n_a, &known), other = logarithms(b, n_b, &ret.rounds);
	double of_first = sequential_half(known, first.stddev, SEQUENTIAL_ALARMS / 2);

	ret.hopeless = isinf(of_first);
	if (!known || !ret.rounds)
		return ret;
	judge(&ret, other.mean - first.mean,
	      of_first + sequential_half(ret.rounds, other.stddev, SEQUENTIAL_ALARMS / 2));
	if (ret.verdict == VERDICT_CANNOT_TELL && ret.rounds > 1)
		ret.needed = needed(ret.rounds + 1, other.stddev, SEQUENTIAL_ALARMS / 2, log1p(fail) / 2 - of_first);
	return ret;
}
