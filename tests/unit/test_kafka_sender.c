/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a record against brokers that refuse or fail some of them: every other message arrives, and once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "agent/output/kafka_sender.h"
#include "sink/kafka/kafka_load.h"

#define LINES 100
#define LINE "line %03u\n"
#define LINE_BYTES 8 /* of a message, without its end */
#define WAITING 1000

/* The brokers, in the place of kafka.so. What waits is one batch. */
static struct kafka_message waiting[WAITING];
static size_t n_waiting, most_bytes, fails_at; /* most_bytes: of a batch, 0 = any */
static unsigned came[LINES], line_of[WAITING], refused_line, asked;
static struct delivery *stops_at_turn;

static struct kafka_producer *fake_open(const char *brokers, const char *topic, const char *const *settings, char *why,
					size_t size)
{
	return (struct kafka_producer *)waiting;
}

static void fake_close(struct kafka_producer *p)
{
}

static int fake_produce(struct kafka_producer *p, const struct kafka_message *m, char *why, size_t size)
{
	assert_int_equal(m->n_data, LINE_BYTES);
	assert_true(n_waiting < WAITING);
	line_of[n_waiting] = (unsigned)atoi((const char *)m->data + 5);
	waiting[n_waiting++] = *m;
	return 0;
}

static enum kafka_end end_of(size_t i, bool refused)
{
	if (line_of[i] == fails_at)
		return KAFKA_FAILED;
	return refused ? KAFKA_REFUSED : KAFKA_DELIVERED;
}

static void fake_turn(struct kafka_producer *p, int wait_ms, const struct kafka_taker *to, char *why, size_t size)
{
	bool refused = most_bytes && n_waiting * LINE_BYTES > most_bytes;

	if (stops_at_turn && n_waiting)
		atomic_store(&stops_at_turn->stop, true);
	asked += n_waiting != 0;
	for (size_t i = 0; i < n_waiting; i++)
		refused |= line_of[i] == refused_line;
	for (size_t i = 0; i < n_waiting && !stops_at_turn; i++) {
		enum kafka_end end = end_of(i, refused);

		came[line_of[i]] += end == KAFKA_DELIVERED;
		to->ended(to->arg, waiting[i].nth, end, end == KAFKA_REFUSED ? "too large" : "it timed out");
	}
	n_waiting = 0;
}

int kafka_load(const struct kafka_plugin **ret, struct err *err)
{
	static const struct kafka_plugin plugin = {
		.open = fake_open, .close = fake_close, .produce = fake_produce, .turn = fake_turn
	};

	*ret = &plugin;
	return 0;
}

struct world {
	struct delivery d;
	struct kafka_sender *s;
	struct buf record;
	struct spool_mark mark;
};

static void begin(struct world *w)
{
	const struct output_config oc = { .format = (char *)"power", .to = (char *)"kafka://here/topic" };
	struct err err = { 0 };
	char line[16];

	memset(w, 0, sizeof(*w));
	memset(came, 0, sizeof(came));
	n_waiting = most_bytes = asked = 0;
	fails_at = refused_line = LINES;
	stops_at_turn = NULL;
	w->d = (struct delivery){ .to = "here", .what = "documents", .items = "messages", .server = "the brokers" };
	delivery_init(&w->d);
	assert_int_equal(kafka_sender_new(&oc, "node", &w->d, &w->s, &err), 0);
	for (unsigned i = 0; i < LINES; i++)
		buf_add(&w->record, line, (size_t)snprintf(line, sizeof(line), LINE, i));
	w->mark.end = 1;
}

static void end(struct world *w)
{
	kafka_sender_free(w->s);
	delivery_free(&w->d);
	buf_free(&w->record);
}

/* All but `without` have come once. */
static void check_came(unsigned without)
{
	for (unsigned i = 0; i < LINES; i++)
		assert_int_equal(came[i], i != without);
}

/* A message that brokers refuse takes its batch with it. It alone is dropped and said, and there is no pause. */
static void test_refused(void **state)
{
	static const unsigned at[] = { 0, 37, LINES - 1 };

	for (unsigned i = 0; i < 3; i++) {
		struct world w;

		begin(&w);
		refused_line = at[i];
		assert_true(kafka_deliver(w.s, &w.record, &w.mark));
		check_came(at[i]);
		assert_int_equal(w.d.figures.refused_items, 1);
		assert_string_equal(w.d.figures.refused_item, "one of 8 bytes: too large");
		assert_int_equal(w.d.figures.delivered, 1);
		assert_int_equal(w.d.pause_ns, 0);
		assert_true(asked < 30);
		end(&w);
	}
}

/* Of messages that are too large together none is lost. */
static void test_batch_too_large(void **state)
{
	struct world w;

	begin(&w);
	most_bytes = 5 * LINE_BYTES;
	assert_true(kafka_deliver(w.s, &w.record, &w.mark));
	check_came(LINES);
	assert_int_equal(w.d.figures.refused_items, 0);
	end(&w);
}

/* A message that was not confirmed comes again, and those around it do not. */
static void test_failed(void **state)
{
	struct world w;

	begin(&w);
	fails_at = 0;
	refused_line = 50;
	assert_false(kafka_deliver(w.s, &w.record, &w.mark));
	assert_true(w.d.pause_ns > 0);
	assert_string_equal(w.d.figures.state, "the brokers did not confirm in time");
	refused_line = fails_at = LINES;
	assert_true(kafka_deliver(w.s, &w.record, &w.mark));
	check_came(LINES);
	end(&w);
	begin(&w);
	fails_at = 3;
	assert_false(kafka_deliver(w.s, &w.record, &w.mark));
	check_came(3);
	fails_at = LINES;
	assert_true(kafka_deliver(w.s, &w.record, &w.mark));
	check_came(LINES);
	/* the next record is another one */
	w.mark.end = 2;
	assert_true(kafka_deliver(w.s, &w.record, &w.mark));
	assert_int_equal(came[0] + came[LINES - 1], 4);
	end(&w);
}

/* A record that the end of the program cut is not done. */
static void test_stopped(void **state)
{
	struct world w;

	begin(&w);
	stops_at_turn = &w.d;
	assert_false(kafka_deliver(w.s, &w.record, &w.mark));
	assert_int_equal(w.d.figures.delivered, 0);
	assert_false(kafka_deliver(w.s, &w.record, &w.mark));
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_batch_too_large),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
