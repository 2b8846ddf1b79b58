/* SPDX-License-Identifier: Apache-2.0 */
/* The two ways in which jouled runs. Each prints its own error line and returns the exit status. */
#ifndef JD_APP_H
#define JD_APP_H
#include "model/config/config.h"

/* EXIT_LOST: the work is done, but some of the output did not reach its destination. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_LOST = 3 };

/* Measures until a signal or until -n is reached. Takes c over. argv is read again at SIGHUP. */
int agent_run(int argc, char **argv, struct config *c);
/* Sends a recording through the formula to the outputs. */
int replay_run(struct config *c);

#endif
