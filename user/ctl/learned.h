/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_CTL_LEARNED_H
#define JD_CTL_LEARNED_H
#include <jansson.h>
#include <stdbool.h>

/* Prints of an answer of /v1/status why formula auto took what it took, and a line per domain with the terms in use, their
 * trials and the held-out error. False: there is nothing of it. */
bool learned_print(const json_t *status);

#endif
