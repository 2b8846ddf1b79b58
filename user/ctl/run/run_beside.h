/* SPDX-License-Identifier: Apache-2.0 */
/* What else the machine ran while a command was measured: the rows of two readings that are not the command's. */
#ifndef JD_CTL_RUN_BESIDE_H
#define JD_CTL_RUN_BESIDE_H
#include <stdint.h>
#include "result.h"

/* Rows of one reading. */
struct run_beside {
	struct run_beside_row *row;
	unsigned n, cap;
};

/* Adds a row; the name is copied. 0 or -ENOMEM. */
int run_beside_add(struct run_beside *b, const char *name, uint64_t energy_uj, uint64_t cpu_ns);
/* Writes the rows that used most between two readings, most first; sorts `before`. A row that is new counts whole.
 * Returns how many there are, at most RUN_OTHERS_MAX. */
unsigned run_beside_most(struct run_beside *before, const struct run_beside *after,
			 struct run_other ret[RUN_OTHERS_MAX]);
void run_beside_free(struct run_beside *b); /* zeroed accepted; may be filled again */

#endif
