/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs, packages, dies, cores from sysfs (Documentation/admin-guide/cputopology.rst). */
#ifndef JD_TOPOLOGY_H
#define JD_TOPOLOGY_H
#include "base/err.h"
#include "base/fsroot.h"
#include "model/schema.h"

/* Fills n_cpus, cpus (calloc'ed, owned by the schema), n_packages and n_core_types. A machine without topology
 * files (or unknown package -1) is one package 0. */
int topology_read(const struct fsroot *root, struct schema *s, struct err *err);
/* A CPU that was offline, or not there, at topology_read came online: reads its ids now (an offline CPU has no
 * topology files and stands in package 0), and it is present. n_packages never grows. */
void topology_refresh(const struct fsroot *root, struct schema *s, unsigned cpu);
/* Other CPUs of the same core (SMT siblings) into ret, at most `most`: their number. None for an offline CPU. */
unsigned topology_siblings(const struct fsroot *root, unsigned cpu, uint32_t *ret, unsigned most);
/* True where an online CPU has a sibling. */
bool topology_smt(const struct fsroot *root);
/* True where at most `most` CPUs are online, and all of them in one package. */
bool topology_small(const struct fsroot *root, unsigned most);
/* Online CPUs as a bitmap of n bits. Number online or -errno. Kept descriptor: cheap to repeat. The root is borrowed. */
struct online_cpus;
int online_open(const struct fsroot *root, struct online_cpus **ret);
int online_read(struct online_cpus *o, uint8_t *bits, unsigned n);
/* For online_look: CPUs below n are watched, each that is online by a descriptor. 0 or -ENOMEM. */
int online_watch(struct online_cpus *o, unsigned n);
/* As online_read. `gone` has the CPUs that went offline since the last look, also those that are back, even after a
 * moment. Files and events opened on such a CPU before are dead. Those opened after this call live, or the next look
 * tells. The first look tells of none. Both bitmaps have as many bits as are watched. */
int online_look(struct online_cpus *o, uint8_t *bits, uint8_t *gone);
void online_close(struct online_cpus *o);
/* CPU vendor and family/model from /proc/cpuinfo; "" and 0 on other machines. */
struct cpu_model {
	char vendor[16];
	unsigned family, model;
	char name[64];
};
void cpu_model_read(const struct fsroot *root, struct cpu_model *ret);

#endif
