/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of joulectl run: judges a command against another or against saved runs, round after round. */
#ifndef JD_CTL_RUN_GATE_H
#define JD_CTL_RUN_GATE_H
#include "ctl/compare/baseline.h"
#include "run_rounds.h"

struct run_gate {
	struct gate gate;
	struct baseline saved; /* n 0 = none */
	char caution[400];
};

/* Reads the saved runs that the plan names. 0, or negative errno with err. */
int run_gate_open(struct run_gate *g, const struct run_plan *p, struct err *err);
/* Judges what was run so far, into g->gate. Its verdict is VERDICT_REFUSED where the runs cannot be compared. */
void run_gate_judge(struct run_gate *g, const struct run_plan *p, const struct run_comparison *c);
/* `enough` of struct run_rounds; arg is a struct run_gate. */
int run_gate_enough(void *arg, const struct run_rounds *r, struct err *err);
/* Writes the runs of the judged or only command to a file, for a later gate. 0, or negative errno with err. */
int run_gate_save(const char *path, const struct run_comparison *c, struct err *err);
void run_gate_free(struct run_gate *g);

#endif
