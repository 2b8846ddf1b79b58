/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's history as snapshots, one per time, for top. */
#ifndef JD_CTL_TOP_HISTORY_H
#define JD_CTL_TOP_HISTORY_H
#include "base/err.h"
#include "model/naming.h"
#include "model/snapshot.h"

#define TOP_HISTORY_TRIGGER "history" /* of the schema: rows have energy and nothing else */

struct top_history;
/* Asks the agent. since and until as GET /v1/history takes them; until may be NULL. 0, or negative errno with err. */
int top_history_open(const char *socket, const char *since, const char *until, struct top_history **ret,
		     struct err *err);
/* Reads such an answer (docs/query.md). 0, -EPROTO or -ENOMEM with err. */
int top_history_parse(const char *json, size_t size, struct top_history **ret, struct err *err);
/* 1 with a snapshot that is valid until the next call, 0 at the end. */
int top_history_next(struct top_history *h, struct snapshot **ret);
void top_history_rewind(struct top_history *h);
void top_history_close(struct top_history *h); /* NULL accepted */

#endif
