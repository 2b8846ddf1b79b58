/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's test: is B worse than A by as much as matters? It may be asked after every round, and the runs may end at
 * any round, without more false alarms: its interval holds the truth at all rounds at once.
 *
 * d = ln(b / a) of a round. The interval has every mean m of which the mixture of t tests
 * sqrt(c / (n + c)) ((n + c) V / ((n + c) V - S^2))^(n / 2), S = sum(d - m), V = sum((d - m)^2), c = 1,
 * stays below 1 / ALARMS (Lai: On confidence sequences, 1976; Wang and Ramdas: Anytime-valid t-tests and confidence
 * sequences, 2023). It is exact for normal d. Rounds in random order make d symmetric where A and B are alike. */
#ifndef JD_COMPARE_SEQUENTIAL_H
#define JD_COMPARE_SEQUENTIAL_H
#include <stdbool.h>
#include "bootstrap.h"

#define SEQUENTIAL_ALARMS 0.01 /* at most this part of comparisons of alike commands ends as worse or better */
#define SEQUENTIAL_NEEDED_MAX 1000000u

enum verdict { VERDICT_CANNOT_TELL, VERDICT_SAME, VERDICT_BETTER, VERDICT_WORSE, VERDICT_REFUSED };

struct judgement {
	enum verdict verdict;
	unsigned rounds; /* in which both are known and above 0 */
	double fail; /* the change that matters: 0.02 */
	double ratio; /* geometric mean of b / a */
	struct interval interval; /* 99 %, at all rounds at once; infinite while there are too few */
	bool hopeless; /* no number of rounds tells: the values of the other time are too few */
	unsigned needed; /* with VERDICT_CANNOT_TELL: rounds that would tell, by the spread so far; 0 = not known */
};

/* Judges rounds of a and b, of which a[i] and b[i] ran together. */
struct judgement sequential_judge(const double *a, const double *b, unsigned n, double fail);
/* Judges values of b against values of a that were measured at another time. The interval is that of each side at half
 * the alarms, added. needed: runs of b. */
struct judgement sequential_judge_apart(const double *a, unsigned n_a, const double *b, unsigned n_b, double fail);
/* Returns half the interval of the mean of n values with the standard deviation s. Infinite while n is too small. */
double sequential_half(unsigned n, double s, double alarms);
/* "worse", "same", "better", "cannot tell", "refused" */
const char *verdict_name(enum verdict v);

#endif
