/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a stall of the host may spoil. */
#ifndef JD_TEST_FIVE_TIMES_H
#define JD_TEST_FIVE_TIMES_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static const char *wrong; /* of the run that goes on; NULL = nothing */

/* A stall spoils a run. A defect spoils all of them. */
static void five_times(void (*check)(const void *arg), const void *arg)
{
	for (unsigned i = 0; i < 5; i++) {
		wrong = NULL;
		check(arg);
		if (!wrong)
			return;
		printf("  wrong: %s\n", wrong);
	}
	fail_msg("%s: wrong in five runs", wrong);
}

#endif
