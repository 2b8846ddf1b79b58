/* SPDX-License-Identifier: Apache-2.0 */
/* Tries whether an output reaches its place, before any document needs it. */
#ifndef JD_OUTPUT_TRY_H
#define JD_OUTPUT_TRY_H
#include "base/err.h"
#include "model/config/config.h"
#include "output_context.h"

struct output_try {
	char what[32]; /* "output otlp" */
	char text[800]; /* the place, and what came of it */
};

/* False when nothing can be tried: the output connects nowhere. Else *ret_rc is 0, or the negative errno of the failure, and
 * *ret says it. It takes as long as the server, or the timeouts. Nothing is stored anywhere. */
bool output_try(const struct output_config *oc, const struct output_context *c, struct output_try *ret, int *ret_rc);

#endif
