/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as OTLP (docs/formats/otlp.md): a document for the spool, of which each span is an item. */
#ifndef JD_OTLP_TRACES_H
#define JD_OTLP_TRACES_H
#include "base/buf.h"
#include "model/span.h"

/* Appends t to out. scratch is reused, so that steady state allocates nothing. 0 or -ENOMEM. */
int otlp_trace(const struct trace *t, struct buf *scratch, struct buf *out);

#endif
