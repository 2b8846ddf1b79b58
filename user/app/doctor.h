/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_DOCTOR_H
#define JD_DOCTOR_H
#include "machine.h"

/* One line of jouled doctor: subject, ok | denied | absent | broken, and the reason, made clean for a terminal. */
void doctor_line(const char *what, const char *state, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Capabilities and what each buys; what is given up once everything is open. */
void doctor_tell_rights(const struct machine *m, const struct config *c);
/* GPUs and meters, asked for real (doctor_devices.c). */
void doctor_tell_devices(struct machine *m, const struct config *c);
/* The kubelet, where the configuration names one (doctor_kubelet.c). */
void doctor_tell_kubelet(const struct machine *m, const struct config *c);

/* What the host of this virtual machine tells, where host is configured: its domains are in the schema then. */
void doctor_tell_host(struct machine *m, const struct config *c);

#endif
