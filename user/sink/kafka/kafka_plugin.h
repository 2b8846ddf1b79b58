/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent knows of Kafka: the functions of kafka.so, which is built where librdkafka is and is a package of its own.
 * kafka.so knows nothing of the agent. A producer is used by one thread at a time. */
#ifndef JD_KAFKA_PLUGIN_H
#define JD_KAFKA_PLUGIN_H
#include <stddef.h>
#include <stdint.h>

#define KAFKA_PLUGIN_SYMBOL "jouled_kafka_plugin"
#define KAFKA_PLUGIN_FORM 2 /* of the struct below */

struct kafka_producer;

/* KAFKA_REFUSED: the brokers do not take it, or another one that was sent with it. */
enum kafka_end { KAFKA_DELIVERED, KAFKA_REFUSED, KAFKA_FAILED };

/* Takes the report of a message. */
struct kafka_taker {
	void (*ended)(void *arg, size_t nth, enum kafka_end end, const char *why);
	void *arg;
};

struct kafka_message {
	const void *data, *key;
	size_t n_data, n_key;
	size_t nth; /* the caller's number, for its report */
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
	/* Waits up to wait_ms for reports, and hands them over. Each message that was queued has one. why: the last failure of
	 * a message or of a broker, unchanged when there was none. */
	void (*turn)(struct kafka_producer *p, int wait_ms, const struct kafka_taker *to, char *why, size_t size);
	void (*close)(struct kafka_producer *p); /* gives up what is queued; NULL accepted */
};

#endif
