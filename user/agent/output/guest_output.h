/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot=vsock-listen: an output to which virtual machines connect. Each gets its own share. The I/O loop decides
 * which machines may connect; the measuring thread computes the shares. */
#ifndef JD_GUEST_OUTPUT_H
#define JD_GUEST_OUTPUT_H
#include <stdbool.h>
#include "base/err.h"
#include "model/config/config.h"
#include "model/snapshot.h"
#include "sink/sink.h"

struct output_guests;

int output_guests_open(const struct output_config *oc, const struct machine_config *m, struct output_guests **ret,
		       struct err *err);
/* Sets the callback by which the sink asks whether a peer may connect. Close the sink before the guests. NULL
 * accepted. */
void output_guests_admit(struct output_guests *g, struct sink_options *o);
/* NULL accepted. */
void output_guests_send(struct output_guests *g, struct sink *sink, const struct snapshot *s);
/* Logs connections that were turned away, and the reason when the named guest gets no data. NULL accepted. */
void output_guests_say(struct output_guests *g);
void output_guests_close(struct output_guests *g); /* NULL accepted */

#endif
