/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of jouled. Each prints its one error line itself and returns the exit status. */
#ifndef JD_APP_H
#define JD_APP_H
#include "../model/config.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Measures until a signal or -n. Takes c; argv is read again at SIGHUP. */
int agent_run(int argc, char **argv, struct config *c);
/* A recording through formula and outputs. */
int replay_run(struct config *c);
/* check_config, and its error line printed. */
int check_run(const struct config *c);
int doctor_run(const struct config *c);
/* What can be wrong with a configuration beyond its syntax: places and events, then -EINVAL; another
 * errno when the machine cannot even be looked at. */
int check_config(const struct config *c, struct err *err);

#endif
