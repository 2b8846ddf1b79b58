/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent knows of Kafka: the functions of kafka.so, which is built where librdkafka is and is a package of its own.
 * kafka.so knows nothing of the agent. A producer is used by one thread at a time. */
#ifndef JD_KAFKA_PLUGIN_H
#define JD_KAFKA_PLUGIN_H
#include <stddef.h>
#include <stdint.h>

#define KAFKA_PLUGIN_SYMBOL "jouled_kafka_plugin"
#define KAFKA_PLUGIN_FORM 1 /* of the struct below */

struct kafka_producer;

/* How what was produced has ended so far. */
struct kafka_reports {
	uint64_t delivered, failed;
};

struct kafka_message {
	const void *data, *key;
	size_t n_data, n_key;
};

struct kafka_plugin {
	unsigned form; /* KAFKA_PLUGIN_FORM */
	const char *(*library)(void); /* "librdkafka 2.0.2" */
	/* Checks the settings, as open takes them. 0, -1: why says the reason. */
	int (*check)(const char *const *settings, char *why, size_t size);
	/* Makes a producer, which connects on its own. settings: name, value, name, value, NULL; copied. NULL: why says the
	 * reason. why NULL is not allowed; size is its room. */
	struct kafka_producer *(*open)(const char *brokers, const char *topic, const char *const *settings, char *why,
				       size_t size);
	/* Asks a broker for the topic. 0, -1: why says the reason. */
	int (*look)(struct kafka_producer *p, int wait_ms, char *why, size_t size);
	/* Queues a copy. 0; 1: no room, call turn and try again; -1: refused for good, why says the reason. */
	int (*produce)(struct kafka_producer *p, const struct kafka_message *m, char *why, size_t size);
	/* Waits up to wait_ms for reports, and returns the figures since the producer was opened. why: the last failure of a
	 * message or of a broker, unchanged when there was none. */
	void (*turn)(struct kafka_producer *p, int wait_ms, struct kafka_reports *ret, char *why, size_t size);
	void (*close)(struct kafka_producer *p); /* gives up what is queued; NULL accepted */
};

#endif
