/* SPDX-License-Identifier: Apache-2.0 */
/* Documents on their way to a server over HTTP (encode/push.h) or to the brokers of Kafka. They are encoded when they are
 * measured, wait in a spool on disk, and are sent in order. The main thread opens, closes and inspects; the measuring
 * thread submits. */
#ifndef JD_PUSH_OUTPUT_H
#define JD_PUSH_OUTPUT_H
#include "base/http/http_client.h"
#include "encode/push.h"
#include "model/span.h"
#include "model/config/config.h"
#include "output_context.h"
#include "sink/sink.h"

struct push_output;

/* The certificates, secrets and times of the configuration, borrowed. */
struct http_client_options push_http_options(const struct push_config *c);
/* Checks the URL. Opens nothing. 0, or -EINVAL with err. */
int push_output_check(const struct output_config *oc, struct err *err);
/* 0 or negative errno with err. */
int push_output_open(const struct output_config *oc, const struct output_context *c, struct push_output **ret,
		     struct err *err);
/* For a reload while another output still has the spool: documents are kept in memory until push_output_begin. The name
 * of the state directory must stay until then. */
int push_output_prepare(const struct output_config *oc, const struct output_context *c, struct push_output **ret,
			struct err *err);
void push_output_begin(struct push_output *p, const struct output_config *oc);
/* Asks the server to take a document without series, and opens nothing else. As push_sender_try. */
int push_output_try(const struct output_config *oc, const struct output_context *c, struct err *err);
/* Sets what stands before each document; copied. 0 or -ENOMEM with err. */
int push_output_preamble(struct push_output *p, const struct buf *preamble, struct err *err);
/* Queues a document, in whose interval energy_uj was measured; never blocks. The buffer may be empty afterwards. 0,
 * or -ENOBUFS or -ENOMEM: it is dropped, and counted. */
int push_output_submit(struct push_output *p, struct buf *document, uint64_t energy_uj);
/* Queues a trace whose cgroup is one of these patterns; none = all. Cgroups that are left out for all outputs have none. */
void push_output_trace(struct push_output *p, const struct trace *t, const struct str_list *cgroups);
/* Documents that would be lost at the end of the program, and those on disk while the server takes them. */
uint32_t push_output_waiting(struct push_output *p);
/* *ret_spooled: documents that wait on disk. */
void push_output_stats(struct push_output *p, struct sink_stats *ret, uint64_t *ret_spooled);
void push_output_say(struct push_output *p);
/* ret: the last figures; queued = documents that are not on disk either. */
void push_output_close(struct push_output *p, struct sink_stats *ret);

#endif
