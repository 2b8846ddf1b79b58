/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of a batch job's steps, from the agent's history. */
#ifndef JD_CTL_LIST_JOB_H
#define JD_CTL_LIST_JOB_H
#include "base/err.h"

enum list_form { LIST_TEXT, LIST_CSV, LIST_JSON };

struct list_question {
	const char *job; /* a number, as job_id_ok says */
	const char *since; /* as instant_parse takes it; NULL = list_job_check sets it to 24 h ago */
	const char *step; /* list_job_check sets it */
	enum list_form form;
};

/* Checks since, and chooses the step. 0, or -EINVAL with err. */
int list_job_check(struct list_question *q, struct err *err);

/* Asks the agent behind the socket (NULL = the usual one) and prints what each step used since then, and their sum. 0, or a
 * negative errno with err; nothing is printed then. */
int list_job(const char *socket, const struct list_question *q, struct err *err);

#endif
