/* SPDX-License-Identifier: Apache-2.0 */
/* Power meters: hwmon, serial, a command or FIFO, plugs over HTTP, IPMI DCMI, Redfish (docs/meters.md). Each has a thread
 * and a pace of its own; the measuring thread takes the newest finished values with their own time and never
 * waits. A meter is a domain `external-N` of the schema, its channels are columns dNcM. */
#ifndef JD_METER_H
#define JD_METER_H
#include "base/err.h"
#include "base/fsroot.h"
#include "model/config/config.h"
#include "model/meter.h"
#include "model/reading.h"

struct meters;

/* Adds a domain per meter of the list to s. A meter that does not answer at the start is tried again later. An empty
 * list: 0, and *ret is NULL. The list is copied. */
int meters_open(const struct fsroot *root, const struct meters_config *list, struct schema *s, struct meters **ret,
		struct err *err);
int meters_start(struct meters *m); /* 0 or -errno; NULL accepted */
void meters_read(struct meters *m, struct reading *r); /* measuring thread; never waits; NULL accepted */
bool meters_next_warning(struct meters *m, char *ret_text, size_t size);
void meters_close(struct meters *m); /* NULL accepted */

/* For the recorder: every sample as it came, in a ring of bounded length; each reader has its own cursor and may
 * be on any thread but the measuring one. */
struct meter_cursor {
	uint64_t next, missed;
}; /* next 0 = from the oldest kept */
unsigned meters_channels(const struct meters *m); /* NULL: 0 */
unsigned meters_silent(struct meters *m); /* meters without a value so far; NULL: 0 */
unsigned meters_values(struct meters *m, unsigned domain); /* channels of a domain that have sent a value */
bool meters_settled(struct meters *m); /* each has sent a value, or told why it does not */
void meters_desc(struct meters *m, unsigned i, struct meter_desc *ret);
void meters_cursor(struct meters *m, struct meter_cursor *ret); /* only samples from now on */
bool meters_next(struct meters *m, struct meter_cursor *c, struct meter_sample *ret); /* false = none now */

#endif
