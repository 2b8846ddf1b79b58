/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot=vsock-listen: virtual machines that come and ask, each told of its own share. Who comes is judged on the
 * I/O loop, shares are made by the measuring thread. */
#ifndef JD_OUTPUT_GUESTS_H
#define JD_OUTPUT_GUESTS_H
#include <stdbool.h>
#include "../base/err.h"
#include "../model/config.h"
#include "../model/snapshot.h"
#include "../sink/sink.h"

struct output_guests;

bool output_guests_are(const struct output_config *oc);
int output_guests_open(const struct output_config *oc, const struct config *c, struct output_guests **ret,
		       struct err *err);
/* Lets the sink ask who may come in; the sink is closed before the guests. NULL accepted. */
void output_guests_admit(struct output_guests *g, struct sink_options *o);
/* NULL accepted. */
void output_guests_send(struct output_guests *g, struct sink *sink, const struct snapshot *s);
/* To the log: who was turned away, whether the guest that was named is told nothing, and why. NULL accepted. */
void output_guests_say(struct output_guests *g);
void output_guests_close(struct output_guests *g); /* NULL accepted */

#endif
