/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_mock TOPIC FILE: brokers of librdkafka's own mock cluster, and a consumer that appends each message of the topic to
 * FILE, as "KEY LENGTH\n" and its bytes. Prints the brokers in one line. Lines of standard input: down, up, errors, refuse (the
 * next batch is too large). It ends with standard input. */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BROKERS 3
#define PARTITIONS 4
#define PRODUCE 0 /* number of the request in Kafka's protocol */

static void die(const char *what, const char *why)
{
	fprintf(stderr, "kafka_mock: %s: %s\n", what, why);
	exit(1);
}

static rd_kafka_t *make(rd_kafka_type_t type, const char *brokers)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[300];
	rd_kafka_t *rk;

	if (brokers && (rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof(why)) ||
			rd_kafka_conf_set(conf, "group.id", "test", why, sizeof(why)) ||
			rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", why, sizeof(why))))
		die("settings", why);
	rk = rd_kafka_new(type, conf, why, sizeof(why));
	if (!rk)
		die("client", why);
	return rk;
}

static rd_kafka_t *consume(const char *brokers, const char *topic)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
	rd_kafka_t *rk = make(RD_KAFKA_CONSUMER, brokers);

	for (int i = 0; i < PARTITIONS; i++)
		rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_poll_set_consumer(rk);
	if (rd_kafka_assign(rk, list))
		die("assign", topic);
	rd_kafka_topic_partition_list_destroy(list);
	return rk;
}

static void obey(rd_kafka_mock_cluster_t *cluster, const char *command)
{
	for (int b = 1; b <= BROKERS; b++) {
		if (strncmp(command, "down", 4) == 0)
			rd_kafka_mock_broker_set_down(cluster, b);
		if (strncmp(command, "up", 2) == 0)
			rd_kafka_mock_broker_set_up(cluster, b);
	}
	if (strncmp(command, "errors", 6) == 0)
		rd_kafka_mock_push_request_errors(cluster, PRODUCE, 4, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
						  RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
						  RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
						  RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE);
	if (strncmp(command, "refuse", 6) == 0)
		rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
	printf("did %s", command);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	rd_kafka_t *owner = make(RD_KAFKA_PRODUCER, NULL), *reader;
	rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(owner, BROKERS);
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	FILE *out = argc == 3 ? fopen(argv[2], "ab") : NULL;
	char command[64];

	if (!out || !cluster || rd_kafka_mock_topic_create(cluster, argv[1], PARTITIONS, 1))
		die("arguments", "kafka_mock TOPIC FILE");
	printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
	fflush(stdout);
	reader = consume(rd_kafka_mock_cluster_bootstraps(cluster), argv[1]);
	for (;;) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(reader, 20);

		if (m && !m->err) {
			fprintf(out, "%.*s %zu\n", (int)m->key_len, (const char *)m->key, m->len);
			fwrite(m->payload, 1, m->len, out);
			fflush(out);
		}
		if (m)
			rd_kafka_message_destroy(m);
		if (poll(&in, 1, 0) == 0)
			continue;
		if (!fgets(command, sizeof(command), stdin))
			break;
		obey(cluster, command);
	}
	rd_kafka_destroy(reader);
	rd_kafka_mock_cluster_destroy(cluster);
	rd_kafka_destroy(owner);
	return fclose(out) != 0;
}
