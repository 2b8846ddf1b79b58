/* SPDX-License-Identifier: Apache-2.0 */
/* The model specific registers of one CPU: /dev/cpu/N/msr (msr(4)), or on a captured machine the
 * text file ROOT/msr-registers. Its lines, the first match wins, no match is EIO:
 *
 *	CPU REGISTER VALUE
 *
 * CPU and REGISTER: decimal or 0x hex, or * for any. VALUE: a number, or EIO (no such register), ENXIO
 * (CPU offline), EACCES or EPERM. Empty lines and what follows # are ignored. At most 32 KiB. */
#ifndef JD_MSR_PORT_H
#define JD_MSR_PORT_H
#include "base/fsroot.h"

struct msr_port {
	int fd; /* -1 = closed */
	unsigned cpu;
	bool recorded;
};

/* 0 or -errno: -ENOENT (no msr driver), -ENXIO (CPU offline), -EACCES or -EPERM (CAP_SYS_RAWIO). */
int msr_port_open(const struct fsroot *root, unsigned cpu, struct msr_port *ret);
/* 0 or -errno: -EIO (no such register), -ENXIO (CPU offline). */
int msr_port_read(const struct msr_port *p, uint32_t reg, uint64_t *ret);
void msr_port_close(struct msr_port *p);

#endif
