/* SPDX-License-Identifier: Apache-2.0 */
/* kafka.so: the only file that knows librdkafka. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kafka_plugin.h"

#define CLOSE_MS 200

struct kafka_producer {
	rd_kafka_t *rk;
	rd_kafka_topic_t *topic;
	const struct kafka_taker *taker; /* while a turn lasts */
	char why[300]; /* the last failure; "" = none since the last turn */
};

/* Those of librdkafka are for a program that lets it try for minutes; here the spool does that. The configuration's own come
 * after them. */
static const char *const defaults[] = {
	"client.id",
	"jouled",
	"enable.idempotence",
	"true",
	"message.timeout.ms",
	"20000",
	"compression.codec",
	"lz4",
	"linger.ms",
	"5",
	"log.queue",
	"false",
	"socket.timeout.ms",
	"10000",
	NULL,
};

static const char *library(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "librdkafka %s", rd_kafka_version_str());
	return text;
}

/* Errors after which brokers do not take the same message either. */
static enum kafka_end end_of(rd_kafka_resp_err_t rc)
{
	switch (rc) {
	case RD_KAFKA_RESP_ERR_NO_ERROR:
		return KAFKA_DELIVERED;
	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
	case RD_KAFKA_RESP_ERR_INVALID_RECORD:
		return KAFKA_REFUSED;
	default:
		return KAFKA_FAILED;
	}
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *m, void *arg)
{
	struct kafka_producer *p = arg;
	const enum kafka_end end = end_of(m->err);

	if (end == KAFKA_FAILED && m->err != RD_KAFKA_RESP_ERR__PURGE_QUEUE &&
	    m->err != RD_KAFKA_RESP_ERR__PURGE_INFLIGHT && !*p->why)
		snprintf(p->why, sizeof(p->why), "%s", rd_kafka_err2str(m->err));
	if (p->taker)
		p->taker->ended(p->taker->arg, (size_t)(uintptr_t)m->_private, end, rd_kafka_err2str(m->err));
	(void)rk;
}

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *arg)
{
	struct kafka_producer *p = arg;

	/* that all brokers are down follows the reasons why */
	if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && *p->why)
		return;
	snprintf(p->why, sizeof(p->why), "%s", reason);
	(void)rk;
}

/* It comes as an error too; its own words go nowhere, for they may hold settings. */
static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk;
	(void)level;
	(void)facility;
	(void)text;
}

static int set_all(rd_kafka_conf_t *conf, const char *const *settings, char *why, size_t size)
{
	for (; *settings; settings += 2)
		if (rd_kafka_conf_set(conf, settings[0], settings[1], why, size) != RD_KAFKA_CONF_OK) {
			/* librdkafka's words show the value, which may be a password */
			snprintf(why, size, "config.%s: librdkafka does not take it; see its list of settings",
				 settings[0]);
			return -1;
		}
	return 0;
}

static int check(const char *const *settings, char *why, size_t size)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	int rc = set_all(conf, settings, why, size);

	rd_kafka_conf_destroy(conf);
	return rc;
}

static void close_producer(struct kafka_producer *p)
{
	if (!p)
		return;
	if (p->topic)
		rd_kafka_topic_destroy(p->topic);
	if (p->rk) {
		rd_kafka_purge(p->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
		rd_kafka_flush(p->rk, CLOSE_MS);
		rd_kafka_destroy(p->rk);
	}
	free(p);
}

static struct kafka_producer *open_producer(const char *brokers, const char *topic, const char *const *settings,
					    char *why, size_t size)
{
	struct kafka_producer *p = calloc(1, sizeof(*p));
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	const char *const servers[] = { "bootstrap.servers", brokers, NULL };

	if (!p || set_all(conf, defaults, why, size) || set_all(conf, settings, why, size) ||
	    set_all(conf, servers, why, size)) {
		if (!p)
			snprintf(why, size, "out of memory; free some");
		rd_kafka_conf_destroy(conf);
		free(p);
		return NULL;
	}
	rd_kafka_conf_set_opaque(conf, p);
	rd_kafka_conf_set_dr_msg_cb(conf, on_report);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_log_cb(conf, on_log);
	p->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, size);
	if (!p->rk) {
		rd_kafka_conf_destroy(conf);
		free(p);
		return NULL;
	}
	p->topic = rd_kafka_topic_new(p->rk, topic, NULL);
	if (!p->topic) {
		snprintf(why, size, "topic: %s", rd_kafka_err2str(rd_kafka_last_error()));
		close_producer(p);
		return NULL;
	}
	return p;
}

/* The newest reason why nothing goes on, and forgets it. */
static void tell(struct kafka_producer *p, char *why, size_t size)
{
	if (*p->why)
		snprintf(why, size, "%s", p->why);
	*p->why = '\0';
}

static int look(struct kafka_producer *p, int wait_ms, char *why, size_t size)
{
	const struct rd_kafka_metadata *m = NULL;
	rd_kafka_resp_err_t rc = rd_kafka_metadata(p->rk, 0, p->topic, &m, wait_ms);

	if (!rc && m->topic_cnt == 1)
		rc = m->topics[0].err;
	if (m)
		rd_kafka_metadata_destroy(m);
	if (!rc)
		return 0;
	snprintf(why, size, "%s", rd_kafka_err2str(rc));
	rd_kafka_poll(p->rk, 0);
	tell(p, why, size);
	return -1;
}

static int produce(struct kafka_producer *p, const struct kafka_message *m, char *why, size_t size)
{
	rd_kafka_resp_err_t rc;

	if (rd_kafka_produce(p->topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)m->data,
			     m->n_data, m->key, m->n_key, (void *)(uintptr_t)m->nth) == 0)
		return 0;
	rc = rd_kafka_last_error();
	if (rc == RD_KAFKA_RESP_ERR__QUEUE_FULL)
		return 1;
	snprintf(why, size, "%s", rd_kafka_err2str(rc));
	return -1;
}

static void turn(struct kafka_producer *p, int wait_ms, const struct kafka_taker *to, char *why, size_t size)
{
	p->taker = to;
	rd_kafka_poll(p->rk, wait_ms);
	p->taker = NULL;
	tell(p, why, size);
}

extern const struct kafka_plugin jouled_kafka_plugin;
const struct kafka_plugin jouled_kafka_plugin = {
	.form = KAFKA_PLUGIN_FORM,
	.library = library,
	.check = check,
	.open = open_producer,
	.look = look,
	.produce = produce,
	.turn = turn,
	.close = close_producer,
};
