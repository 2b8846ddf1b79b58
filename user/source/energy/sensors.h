/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of machines without RAPL, and of domains that RAPL lacks: chips of hwmon and powercap zones of other control
 * types than RAPL's, found without configuration (docs/sources.md). Firmware may answer late, so a thread of its own
 * reads them; the measuring thread takes the newest finished values with their own time and never waits. */
#ifndef JD_SENSORS_H
#define JD_SENSORS_H
#include "energy.h"

struct sensors;

/* Adds the domains that s lacks. Each is read once, and what does not answer is a finding and not a domain. None at all
 * is not an error. root is borrowed. */
int sensors_open(const struct fsroot *root, struct schema *s, struct sensors **ret, struct err *err);
int sensors_start(struct sensors *all); /* 0 or -errno; NULL accepted */
void sensors_read(struct sensors *all, struct reading *r); /* measuring thread; NULL accepted */
/* The thread's work, for tests without it: reads what is due. Returns the ns until the next look. */
uint64_t sensors_step(struct sensors *all, uint64_t now_ns, uint64_t boot_ns);
/* Line i of what was found and why it is used or not, NULL after the last. */
const char *sensors_finding(const struct sensors *all, unsigned i, enum energy_state *ret_state);
bool sensors_next_warning(struct sensors *all, char *ret_text, size_t size); /* NULL accepted: none */
/* True when the schema has a domain with the energy of CPUs: no estimate is needed. */
bool sensors_cover_cpus(const struct schema *s);
void sensors_close(struct sensors *all); /* NULL accepted */

#endif
