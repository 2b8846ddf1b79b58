/* SPDX-License-Identifier: Apache-2.0 */
/* An output of traces to ZICO. To a collector (http, https) they go through a spool on disk and two threads:
 * one writes what comes, one delivers what waits, encoded for the collector of that moment. To files and
 * sockets each goes at once, in an envelope that explains itself. Opened, closed and looked at by the
 * main thread, fed by any one other. */
#ifndef JD_ZICO_OUTPUT_H
#define JD_ZICO_OUTPUT_H
#include "../base/err.h"
#include "../model/config.h"
#include "../model/schema.h"
#include "../model/span.h"
#include "../sink/sink.h"

struct loop;
struct zico_output;

/* -EINVAL with err: what cannot work whatever the machine. Opens nothing. */
int zico_output_check(const struct output_config *oc, struct err *err);
int zico_output_open(const struct output_config *oc, const struct config *c, const struct schema *s, struct loop *loop,
		     struct zico_output **ret, struct err *err);
/* For a reload, while another output serves the same collector still: checks all, keeps what is submitted, and goes to
 * spool and collector when it is told to begin. c stays until then. Main thread. */
int zico_output_prepare(const struct output_config *oc, const struct config *c, const struct schema *s,
			struct zico_output **ret, struct err *err);
void zico_output_begin(struct zico_output *z, const struct output_config *oc);
/* Copies t; never blocks. 0, or why it was dropped (and counted): -ENOBUFS, -EINVAL against span.h. */
int zico_output_submit(struct zico_output *z, const struct trace *t);
/* Documents that wait in memory: those on disk outlive the program. away: also those whose reader is away. */
uint32_t zico_output_waiting(struct zico_output *z, bool away);
/* As of any output; queued: what is only in memory. *ret_spooled: what waits on disk. Main thread. */
void zico_output_stats(struct zico_output *z, struct sink_stats *ret, uint64_t *ret_spooled);
/* To the log: collectors that came or went, traces dropped, since the last call. */
void zico_output_say(struct zico_output *z);
void zico_output_close(struct zico_output *z); /* NULL accepted */

#endif
