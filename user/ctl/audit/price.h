/* SPDX-License-Identifier: Apache-2.0 */
/* What other work costs while an audit goes on, by what others did more or less within the rounds. Pure. */
#ifndef JD_CTL_AUDIT_PRICE_H
#define JD_CTL_AUDIT_PRICE_H

/* Which of the two loads run in a block: bit 0 the first, bit 1 the second. A round has each state once. */
#define AUDIT_LOADS 2
enum { AUDIT_STATES = 1 << AUDIT_LOADS };

struct audit_rounds;
struct audit_block;

/* Watts per CPU of others, and what such a CPU costs more for each CPU of loads that runs beside it. */
enum { AUDIT_PRICE_EACH, AUDIT_PRICE_BESIDE, AUDIT_PRICES };
struct audit_price {
	double of[AUDIT_PRICES];
	double covariance[AUDIT_PRICES][AUDIT_PRICES]; /* of their errors */
	double load[AUDIT_LOADS]; /* what a CPU of each load draws alone, W */
};

/* CPUs of others in a block by the loads' CPUs that they run beside. processes: of each load, each on a CPU of its own. What the
 * loads lack to the whole time of their CPUs is time that others took there. A program on the CPU of a load runs beside the loads
 * of the other CPUs only. */
double audit_beside(const struct audit_block *v, unsigned state, unsigned processes);
/* The prices of a domain by least squares, over what is left when the means of rounds and of states are taken off. Loads have the
 * lowest priority: others take CPU time from them, and would seem to cost less. So the loads' own CPU time is a covariate, by what
 * their CPUs draw. What is known before: that CPU time counts once, within 10 %; what others cost more beside loads is about 0, as
 * far as what the loads cost each other. A price that nothing tells is 0. At least AUDIT_ROUNDS_LEAST rounds. */
struct audit_price audit_price_of(const struct audit_rounds *r, unsigned domain);

#endif
