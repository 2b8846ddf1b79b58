/* SPDX-License-Identifier: Apache-2.0 */
/* jouled doctor: opens every source by itself and prints one line with the result. */
#ifndef JD_DOCTOR_H
#define JD_DOCTOR_H
#include "agent/machine/machine.h"

/* Prints the whole report. 0, or the negative errno of a configuration or a machine that cannot be examined;
 * err is set then. */
int doctor_run(const struct config *c, struct err *err);

/* The rest is for the files of this folder. */

/* Prints one line of jouled doctor: subject, state (ok, denied, absent, broken), reason. The text is made safe
 * for a terminal. */
void doctor_line(const char *what, const char *state, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Reports the capabilities, the use of each, and those that the agent gives up once everything is open. */
void doctor_tell_rights(const struct machine *m, const struct config *c);
/* Reports GPUs and meters after reading them (doctor_devices.c). */
void doctor_tell_devices(struct machine *m, const struct config *c);
/* Tries the connections of outputs (doctor_outputs.c). */
void doctor_tell_outputs(const struct machine *m, const struct config *c);

/* Reports the share that the host of this virtual machine tells, if `host` is configured. Its domains are in the
 * schema then. */
void doctor_tell_host(struct machine *m, const char *host);

#endif
