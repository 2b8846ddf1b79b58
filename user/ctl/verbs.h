/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of verbs: joulectl, its completion and the manual page look them up here. Verbs do not depend on it. */
#ifndef JD_CTL_VERBS_H
#define JD_CTL_VERBS_H
#include "ctl/core/verb.h"

extern const struct verb *const verbs[]; /* ends with NULL; in the order of --help */
const struct verb *verb_find(const char *name); /* NULL: unknown name */

/* Prints the --help of a verb. */
void verb_print_help(const struct verb *v);
/* Prints a section of joulectl(1). 0 or -ENOENT. */
int verb_print_man(const char *name);

#endif
