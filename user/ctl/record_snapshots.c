/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.cbor: what the agent streams is the recording as it stands (docs/formats/snapshot.md), a snapshot a
 * second. A thread of its own takes it, for a stream is waited for. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "../base/thread.h"
#include "record.h"

struct record_snapshots {
	pthread_t thread;
	struct agent *agent;
	volatile bool stop;
	unsigned n;
	int fd[RECORD_OUTS];
};

/* A disk that is full is found by the others as well. */
static int take(void *arg, const char *piece, size_t size)
{
	struct record_snapshots *t = arg;

	for (unsigned i = 0; i < t->n; i++)
		for (size_t at = 0; t->fd[i] >= 0 && at < size;) {
			ssize_t n = write(t->fd[i], piece + at, size - at);

			if (n < 0 && errno != EINTR)
				return -errno;
			at += n > 0 ? (size_t)n : 0;
		}
	return 0;
}

static void *run(void *arg)
{
	struct record_snapshots *t = arg;

	agent_stream(t->agent, "/v1/stream?format=cbor&interval=1s", "application/cbor", take, t, &t->stop, NULL);
	return NULL;
}

int record_snapshots_start(struct record_session *s, struct record_snapshots **ret, struct err *err)
{
	struct record_snapshots *t = calloc(1, sizeof(*t));
	const char *socket = s->with.own ? private_agent_socket(s->with.own) : s->o->socket;
	int code;

	if (!t)
		return err_set(err, -ENOMEM, "record: out of memory; free some");
	code = agent_open(socket, &t->agent, err);
	if (code) {
		free(t);
		return code;
	}
	for (; t->n < s->n_out; t->n++)
		t->fd[t->n] = recorder_file(s->out[t->n].rec, "snapshot.cbor");
	code = thread_start(&t->thread, "snapshots", 0, run, t);
	if (code) {
		agent_close(t->agent);
		free(t);
		return err_set(err, code, "record: no thread can be made; raise the limit of processes");
	}
	*ret = t;
	return 0;
}

void record_snapshots_stop(struct record_snapshots *t)
{
	if (!t)
		return;
	t->stop = true;
	pthread_join(t->thread, NULL);
	agent_close(t->agent);
	free(t);
}
