/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots for top. An agent's stream has the format of a recording, so that one reader serves both. The reader
 * watches the keyboard while it waits for bytes, so that top needs no second thread. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "model/recording/recording.h"
#include "ctl/core/agent_client.h"
#include "ctl/decode/input.h"
#include "top_history.h"
#include "top.h"

#define LOOK_MS 100
#define RETRY_NS NS_PER_S
#define REPLAY_WAIT_MAX_NS (60 * NS_PER_S) /* longer gaps in a recording are shortened to this */

struct top_feed {
	struct top_source src;
	struct agent *agent;
	struct recording *rec;
	struct top_history *past;
	struct buf last; /* the agent's last finished interval, read before the stream */
	size_t taken; /* bytes of `last` that were read */
	bool streaming;
	atomic_bool stop;
	uint64_t last_end_ns; /* of the snapshot given before; 0 = none */
	uint64_t try_ns; /* the next connection is not tried before */
	struct err read_err;
};

static bool look(struct top_feed *f)
{
	if (f->src.key_fd >= 0 && f->src.idle(f->src.arg))
		f->stop = true;
	return f->stop;
}

bool top_feed_wait(struct top_feed *f, uint64_t ns)
{
	uint64_t until = clock_mono_ns() + ns, now;

	while (!look(f) && (now = clock_mono_ns()) < until) {
		struct pollfd p = { .fd = f->src.key_fd, .events = POLLIN };
		uint64_t ms = (until - now) / NS_PER_MS + 1;

		poll(&p, 1, ms < LOOK_MS ? (int)ms : LOOK_MS);
	}
	return f->stop;
}

static int begin_stream(struct top_feed *f)
{
	char path[96];

	snprintf(path, sizeof(path), "/v1/stream?format=cbor");
	if (f->src.interval_ns)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "&interval=%lluns",
			 (unsigned long long)f->src.interval_ns);
	f->streaming = true;
	return agent_begin(f->agent, path, "application/cbor", &f->read_err);
}

/* Gives the recording's reader its bytes: first `last`, then the stream. */
static ssize_t read_agent(void *arg, void *dst, size_t n)
{
	struct top_feed *f = arg;
	ssize_t got = 0;

	if (f->taken < f->last.len) {
		n = n < f->last.len - f->taken ? n : f->last.len - f->taken;
		memcpy(dst, f->last.data + f->taken, n);
		f->taken += n;
		return (ssize_t)n;
	}
	if (!f->streaming)
		got = begin_stream(f);
	while (!got && !f->stop) {
		got = agent_read(f->agent, dst, n, &f->stop, &f->read_err);
		if (got == 0)
			return 0;
		if (got == -EAGAIN) {
			got = 0;
			look(f);
		}
	}
	return f->stop ? 0 : got;
}

static void drop(struct top_feed *f)
{
	recording_close(f->rec);
	agent_close(f->agent);
	buf_reset(&f->last);
	f->rec = NULL;
	f->agent = NULL;
	f->streaming = false;
	f->taken = 0;
}

/* The agent's last interval is read before the stream, so that top shows something at once. It is left out when the
 * user asks for another length of intervals. */
static int connect_agent(struct top_feed *f, struct err *err)
{
	struct err none;
	int rc = agent_open(f->src.socket, &f->agent, err);

	if (rc)
		return rc;
	agent_also_look_at(f->agent, f->src.key_fd);
	buf_reset(&f->last);
	if (!f->src.interval_ns)
		agent_get(f->agent, "/v1/snapshot", "application/cbor", &f->last, &none);
	f->read_err = (struct err){ 0 };
	rc = recording_open_from(read_agent, f, "agent", &f->rec, err);
	if (rc && f->read_err.code)
		*err = f->read_err;
	return rc;
}

static int open_source(struct top_feed *f, struct err *err)
{
	if (f->src.replay)
		return recording_open(f->src.replay, &f->rec, err);
	if (f->src.since)
		return top_history_open(f->src.socket, f->src.since, f->src.until, &f->past, err);
	return connect_agent(f, err);
}

int top_feed_rewind(struct top_feed *f, struct err *err)
{
	f->last_end_ns = 0;
	if (f->past) {
		top_history_rewind(f->past);
		return 0;
	}
	if (!f->src.replay || strcmp(f->src.replay, "-") == 0)
		return err_set(err, -ESPIPE, "standard input cannot go back; give the recording as a file");
	recording_close(f->rec);
	f->rec = NULL;
	return recording_open(f->src.replay, &f->rec, err);
}

int top_feed_open(const struct top_source *src, struct top_feed **ret, struct err *err)
{
	struct top_feed *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return err_set(err, -ENOMEM, "top: out of memory; free some");
	f->src = *src;
	f->last.limit = AGENT_BODY_MAX;
	rc = open_source(f, err);
	if (rc) {
		top_feed_close(f);
		return rc;
	}
	*ret = f;
	return 0;
}

static int reconnect(struct top_feed *f, struct err *err)
{
	uint64_t now = clock_mono_ns();
	int rc;

	if (now < f->try_ns && top_feed_wait(f, f->try_ns - now))
		return -ECANCELED;
	f->try_ns = clock_mono_ns() + RETRY_NS;
	rc = connect_agent(f, err);
	if (rc)
		drop(f);
	return rc;
}

/* Waits as long as the interval took in the recording, at the chosen speed; the first interval comes without waiting.
 * true = waiting was given up. */
static bool pace(struct top_feed *f, const struct snapshot *s)
{
	struct top_play plain = { 0 }, *play = f->src.play ? f->src.play : &plain;
	uint64_t wait = f->last_end_ns && s->end_ns > f->last_end_ns ? s->end_ns - f->last_end_ns : 0;
	uint64_t begun = clock_mono_ns(), waited = 0;

	f->last_end_ns = s->end_ns;
	while (f->src.pace && wait && !play->now && !play->seeking) {
		uint64_t most = play->speed < 0 ? wait << -play->speed : wait >> play->speed, now;

		most = most < REPLAY_WAIT_MAX_NS ? most : REPLAY_WAIT_MAX_NS;
		if (!play->paused && waited >= most)
			break;
		if (top_feed_wait(f, play->paused || most - waited > LOOK_MS * NS_PER_MS ? LOOK_MS * NS_PER_MS :
											   most - waited))
			return true;
		now = clock_mono_ns();
		waited += play->paused ? 0 : now - begun;
		begun = now;
	}
	play->now = false;
	return play->seeking && look(f);
}

static int next_of_replay(struct top_feed *f, struct snapshot **ret, struct err *err)
{
	int rc = f->past ? top_history_next(f->past, ret) : recording_next(f->rec, ret, err);

	return rc == 1 && pace(f, *ret) ? 0 : rc;
}

int top_feed_next(struct top_feed *f, struct snapshot **ret, struct err *err)
{
	int rc = 0;

	if (f->src.replay || f->src.since)
		return next_of_replay(f, ret, err);
	if (!f->agent)
		rc = reconnect(f, err);
	/* The stream may repeat the interval that was read before it. */
	while (!rc && (rc = recording_next(f->rec, ret, err)) == 1 && (*ret)->end_ns == f->last_end_ns)
		rc = 0;
	if (f->stop)
		return 0;
	if (rc == 1) {
		f->last_end_ns = (*ret)->end_ns;
		return 1;
	}
	if (f->read_err.code)
		*err = f->read_err;
	else if (!rc)
		rc = err_set(err, -ECONNRESET, "agent: it has ended; start it again");
	if (f->agent)
		drop(f);
	f->try_ns = clock_mono_ns() + RETRY_NS;
	return rc;
}

void top_feed_close(struct top_feed *f)
{
	if (!f)
		return;
	drop(f);
	top_history_close(f->past);
	buf_free(&f->last);
	free(f);
}
