/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of powercap, perf and MSR: the list of probes, the state of the interface and the notes. Each
 * source embeds struct energy_source as its first member. */
#ifndef JD_ENERGY_DOMAIN_H
#define JD_ENERGY_DOMAIN_H
#include "energy.h"
#include "source/counters/topology.h"

#define ENERGY_MAX_NOTES 16
#define ENERGY_NO_DIE (-1)
#define ENERGY_MAX_PACKAGE 1023 /* larger ids in a captured machine are nonsense */

struct energy_source {
	enum energy_state state;
	char reason[200];
	unsigned n;
	struct energy_probe probes[SCHEMA_MAX_DOMAINS];
	unsigned n_notes;
	char notes[ENERGY_MAX_NOTES][200];
};

/* Shared members of energy_source_ops. */
unsigned energy_source_probes(const struct energy_source *e, const struct energy_probe **ret);
enum energy_state energy_source_state(const struct energy_source *e, const char **ret_reason);
const char *energy_source_note(const struct energy_source *e, unsigned i);

/* "package-0", "package-0-die-1", "psys": unique name of a domain. */
void energy_domain_name(char *name, size_t size, enum domain_kind kind, unsigned package, int die);
/* Appends a probe (state OK, one part, any CPU, 1 uJ, named). NULL and a note when the list is
 * full or has that domain already. die = ENERGY_NO_DIE when the package has one counter. */
struct energy_probe *energy_source_add(struct energy_source *e, enum domain_kind kind, unsigned package, int die);
void energy_source_add_note(struct energy_source *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* State and reason of the whole interface. */
void energy_source_set(struct energy_source *e, enum energy_state state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void energy_probe_set(struct energy_probe *p, enum energy_state state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* When all probes are known: ok if one is, else denied, broken, absent with that probe's reason. */
void energy_source_settle(struct energy_source *e);

/* AMD's and Hygon's package counter belongs to the socket: dies mirror it (Linux 6.12, "Fix the energy-pkg event for AMD CPUs"). */
bool energy_per_socket(const struct cpu_model *m);
/* Die of a CPU, or ENERGY_NO_DIE where its package has one die or dies mirror the socket. */
int energy_die_of(const struct schema *s, const struct cpu_model *m, const struct cpu_desc *c);

#endif
