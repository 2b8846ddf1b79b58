/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of trace_record*.c. */
#ifndef JD_TRACE_RECORD_INTERNAL_H
#define JD_TRACE_RECORD_INTERNAL_H
#include "trace_record.h"

#define RECORD_VERSION 1
#define RECORD_NAMES 6 /* texts of the trace itself */
#define RECORD_NUMBERS 25 /* of a span that are not negative */
#define RECORD_TEXTS 6 /* of a span */

void record_numbers_of(const struct span *s, uint64_t v[RECORD_NUMBERS]);
void record_numbers_to(struct span *s, const uint64_t v[RECORD_NUMBERS]);

#endif
