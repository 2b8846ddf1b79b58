/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as the spool keeps it: one CBOR array per trace (docs/formats/spool.md). It is encoded for a
 * collector only when it is sent, because profile and numbers depend on that collector. */
#ifndef JD_TRACE_RECORD_H
#define JD_TRACE_RECORD_H
#include "base/buf.h"
#include "base/err.h"
#include "model/span.h"

#define TRACE_RECORD_SPANS_MAX (1u << 20)

/* Appends the trace to out. 0 or -ENOMEM. */
int trace_record_write(const struct trace *t, struct buf *out);
/* Reads a trace from untrusted bytes. It checks them, limits all sizes by len, then applies the rules of
 * span.h. The trace owns all it points to. 0, -EBADMSG with err, -ENOMEM. */
int trace_record_read(const void *data, size_t len, struct trace **ret, struct err *err);
void trace_record_free(struct trace *t); /* of trace_record_read only; NULL accepted */

#endif
