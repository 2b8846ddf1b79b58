/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of zico_*.c. */
#ifndef JD_ZICO_OUTPUT_INTERNAL_H
#define JD_ZICO_OUTPUT_INTERNAL_H
#include <pthread.h>
#include <stdatomic.h>
#include "../encode/zico.h"
#include "../sink/sink.h"
#include "../sink/zico_client.h"
#include "../store/spool.h"
#include "../store/trace_record.h"
#include "zico_output.h"

#define ZICO_AGENT_ATTRS 8
#define ZICO_PATH_MAX 1024

struct zico_waiting {
	struct zico_waiting *next;
	int64_t real_ns;
	size_t len;
	uint8_t data[];
};

/* What the agent tells of itself. */
struct zico_about {
	char kernel[160], packages[16], sources[2048], energy_quality[2048];
	struct zico_attr attrs[ZICO_AGENT_ATTRS];
	unsigned n;
};

struct zico_figures {
	uint64_t delivered, delivered_bytes;
	uint64_t dropped_queue; /* no room in memory: the disk is too slow */
	uint64_t refused; /* by the collector */
	uint64_t unfit; /* against the rules of traces, or unreadable in the spool */
	uint64_t failures; /* tries without success in a row */
	char state[512];
};

struct zico_output {
	char to[128];
	struct zico_options options; /* profile: of files and sockets */
	struct zico_about about;
	char *type;
	size_t queue_bytes;
	/* files, sockets */
	struct sink *sink;
	struct sink_stats told;
	struct zico *encoder; /* sender's thread; files: the submitting one */
	uint8_t host[16];
	struct buf text;
	/* collectors */
	const struct config *config; /* until it begins */
	struct spool *spool;
	struct zico_client *client;
	pthread_t writer, sender;
	bool writing, sending; /* the threads are there */
	atomic_bool stop;
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t queued, arrived; /* for the writer; for the sender */
	struct zico_waiting *first, **last;
	size_t held;
	uint64_t spooled; /* appended since the start: the sender looks whether it moved */
	struct zico_figures figures;
	struct zico_figures said; /* main thread */
	struct spool_stats said_spool;
};

/* zico_about.c */
void zico_about(struct zico_about *a, const struct config *c, const struct schema *s);
/* The host's uuid of envelopes: from the state directory, made where there is none. */
void zico_host(const char *state_dir, uint8_t ret_uuid[16]);

/* zico_deliver.c: the threads of an output to a collector. */
/* As far as it goes while another output has the spool. */
int zico_deliver_check(struct zico_output *z, const struct output_config *oc, const struct config *c, struct err *err);
int zico_deliver_open(struct zico_output *z, const struct output_config *oc, const struct config *c, struct err *err);
int zico_deliver_submit(struct zico_output *z, const struct trace *t);
void zico_deliver_close(struct zico_output *z);

/* zico_sender.c */
void *zico_sender(void *arg);

#endif
