/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as JSON (docs/formats/spans.md): what /v1/spans and joulectl spans --json say. */
#ifndef JD_TRACE_JSON_H
#define JD_TRACE_JSON_H
#include "../base/json.h"
#include "../model/span.h"

void trace_json(struct json *j, const struct trace *t);

#endif
