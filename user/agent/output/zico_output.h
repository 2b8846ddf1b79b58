/* SPDX-License-Identifier: Apache-2.0 */
/* An output of traces to ZICO. Traces for a collector (http, https) go through a spool on disk and two threads:
 * one writes new traces, one delivers waiting ones, encoded for the collector of that moment. Traces for files
 * and sockets go out at once, in a self-contained envelope. The main thread opens, closes and inspects the
 * output; one other thread feeds it. */
#ifndef JD_ZICO_OUTPUT_H
#define JD_ZICO_OUTPUT_H
#include "base/err.h"
#include "encode/zico/zico.h"
#include "model/config/config.h"
#include "model/config/formats.h"
#include "model/schema.h"
#include "model/span.h"
#include "sink/sink.h"
#include "sink/zico/collector.h"
#include "store/trace_record.h"
#include "delivery.h"
#include "output_context.h"
#include "push_output.h"

struct zico_output;

/* Checks the URL and the options. Opens nothing. 0, or -EINVAL with err. */
int zico_output_check(const struct output_config *oc, const char *sensor, struct err *err);
/* 0 or negative errno with err. Main thread. */
int zico_output_open(const struct output_config *oc, const struct output_context *c, struct zico_output **ret,
		     struct err *err);
/* For a reload while another output still serves the same collector. Checks everything and keeps submitted traces in
 * memory. zico_output_begin starts spool and collector; the name of the state directory must stay until then. Main
 * thread. */
int zico_output_prepare(const struct output_config *oc, const struct output_context *c, struct zico_output **ret,
			struct err *err);
void zico_output_begin(struct zico_output *z, const struct output_config *oc);
/* Sets which traces it takes from now on, including those that wait on disk; when opened, the configuration
 * decides. Both arguments must stay until the next call. Any thread. */
void zico_output_select(struct zico_output *z, const struct output_config *oc, const struct cgroups_config *c);
/* For a reload that keeps it: files and sockets are told this formula from the next trace on. Collectors are told it once in a
 * session, so they need a new output. The submitting thread. */
void zico_output_formula(struct zico_output *z, const char *formula);
/* Copies t if its cgroup is selected; never blocks. 0, or the reason why it was dropped and counted: -ENOBUFS;
 * -EINVAL: against the rules of span.h. */
int zico_output_submit(struct zico_output *z, const struct trace *t);
/* The number of documents waiting in memory. Documents on disk outlive the program and do not count. away: counts
 * those without a reader too. */
uint32_t zico_output_waiting(struct zico_output *z, bool away);
/* Statistics as of any output; queued = traces that are only in memory. *ret_spooled = traces that wait on disk. Main
 * thread. */
void zico_output_stats(struct zico_output *z, struct sink_stats *ret, uint64_t *ret_spooled);
/* Logs collectors that came or went and traces dropped since the last call. */
void zico_output_say(struct zico_output *z);
/* Closes it. ret: the last figures, or NULL; queued = traces that are not on disk either. NULL accepted for z. */
void zico_output_close(struct zico_output *z, struct sink_stats *ret);

/* Inside of zico_*.c. */

#define ZICO_AGENT_ATTRS 8

/* The attributes by which the agent describes itself to collectors. */
struct zico_about {
	char kernel[160], packages[16], formula[16], sources[2048], energy_quality[2048];
	struct zico_attr attrs[ZICO_AGENT_ATTRS];
	unsigned n;
};

struct zico_output {
	struct delivery d; /* to a collector; files and sockets use its figures alone */
	struct zico_options options; /* profile: for files and sockets */
	struct zico_about about;
	char *type;
	/* files, sockets */
	struct sink *sink;
	struct sink_stats told;
	struct zico *encoder; /* used by the sender's thread; files: by the submitting thread */
	uint8_t host[16];
	struct buf text;
	/* collectors */
	const char *state_dir; /* borrowed until the spool is open; NULL = the working directory */
	struct zico_client *client;
	struct zico_sending *sending; /* of the sender's thread */
	struct selection_rules rules; /* under the lock of d */
};

/* True when traces of this cgroup are to be sent. */
bool zico_output_admits(struct zico_output *z, const char *cgroup);

/* zico_about.c */
/* Fills a, which borrows the names of the schema. Texts of more than attribute_max bytes are cut, with a warning; `to` names
 * the output in it. */
void zico_about(struct zico_about *a, const char *formula, const struct schema *s, unsigned attribute_max,
		const char *to);
/* -EINVAL with err when collectors of the profile cannot store the agent's name, application, environment or
 * attributes. */
int zico_about_fits(const struct output_config *oc, const struct zico_profile *p, const char *sensor, struct err *err);
/* The host's uuid for envelopes: read from the state directory, made when there is none. */
void zico_host(const char *state_dir, uint8_t ret_uuid[16]);

/* zico_sender.c */
struct zico_sending *zico_sending_new(struct zico_output *z); /* NULL = no memory */
void zico_sending_free(struct zico_sending *s); /* NULL accepted */
/* As deliver of struct delivery; arg is a struct zico_sending. */
bool zico_deliver(void *arg, const struct buf *record, const struct spool_mark *mark);

#endif
