/* SPDX-License-Identifier: Apache-2.0 */
/* Sends documents to a topic of Kafka (docs/formats/kafka.md). A record of the spool becomes one message, or several: one for
 * each line, or for as many items as a broker takes. It is done when the brokers have confirmed each of them. */
#ifndef JD_KAFKA_SENDER_H
#define JD_KAFKA_SENDER_H
#include "delivery.h"
#include "model/config/config.h"

struct kafka_sender;

/* Checks place and settings, and that kafka.so is there. Connects to nothing. 0, or negative errno with err. */
int kafka_sender_check(const struct output_config *oc, struct err *err);
/* key: of all messages, so that those of a machine stay in order; copied. 0 or negative errno with err. */
int kafka_sender_new(const struct output_config *oc, const char *key, struct delivery *d, struct kafka_sender **ret,
		     struct err *err);
void kafka_sender_free(struct kafka_sender *s); /* NULL accepted */
/* As deliver of struct delivery; arg is a struct kafka_sender. */
bool kafka_deliver(void *arg, const struct buf *record, const struct spool_mark *mark);
/* Asks the brokers for the topic. 0, or -ECONNREFUSED with err. */
int kafka_sender_try(struct kafka_sender *s, struct err *err);

#endif
