/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual machines of this host: the cgroup of the guest with a CID. It is found by the command line of its QEMU
 * and that process's cgroup; the guest is not asked. */
#ifndef JD_GUESTS_H
#define JD_GUESTS_H
#include <stdint.h>
#include "base/err.h"
#include "source/cgroup/hierarchy.h"

struct guests;

int guests_open(const char *root, enum hierarchy_mode mode, struct guests **ret, struct err *err);
/* Path of the machine's cgroup below the mount. Looks at the processes anew, a second and ten times what that takes
 * after the last time. 0; -ENOENT: no such guest here; -EPERM: its cgroup is not its own or more than one claims the
 * CID; -ENAMETOOLONG; err says more. */
int guests_find(struct guests *g, uint32_t cid, char *ret_path, size_t size, struct err *err);
/* CID i of those that processes here claim, some maybe more than once; 0 behind the last. i = 0 looks at the
 * processes anew. */
uint32_t guests_claimed(struct guests *g, unsigned i);
void guests_close(struct guests *g);

/* The CID in a command line as /proc/PID/cmdline has it: of QEMU's vhost-vsock device, as options or as JSON. 0 for
 * none, and for a line that names two. */
uint32_t guests_cid_of(const char *cmdline, size_t len);
/* Cuts a path back to the cgroup of the machine it lies in, as libvirt and machined name them. false: it is in none. */
bool guests_machine_of(char *path);

#endif
