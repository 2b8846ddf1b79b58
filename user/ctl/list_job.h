/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of a batch job's steps, from the agent's history. */
#ifndef JD_CTL_LIST_JOB_H
#define JD_CTL_LIST_JOB_H
#include "base/err.h"

enum list_form { LIST_TEXT, LIST_CSV, LIST_JSON };

/* Asks the agent behind the socket (NULL = the usual one) and prints what each step used in the last 24 h, and their sum.
 * job: a number, as job_id_ok says. 0, or a negative errno with err; nothing is printed then. */
int list_job(const char *socket, const char *job, enum list_form form, struct err *err);

#endif
