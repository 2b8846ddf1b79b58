/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl stream: the agent's documents to standard output, as they come. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../base/log.h"
#include "../model/recording.h"
#include "agent.h"
#include "choice.h"
#include "verb.h"

enum { OPTION_FORMAT, OPTION_INTERVAL, OPTION_COUNT, OPTION_SOCKET };

static const struct verb_option options[] = {
	[OPTION_FORMAT] = { "format", 'f', "FORMAT", "json (default), cbor, hwpc, power, table or vjoule" },
	[OPTION_INTERVAL] = { "interval", 'i', "TIME", "10ms to 1h; the agent's own unless given" },
	[OPTION_COUNT] = { "count", 'n', "N", "end after N lines (json, hwpc, power), tables or snapshots (cbor)" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "of the agent; JOULED_SOCKET, or /run/jouled/jouled.sock" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Writes a document per interval until it is interrupted or the agent ends: json, a line each; cbor, a recording "
	"that top --replay, plot and jouled --replay read; hwpc and power, reports of PowerAPI, a line each; table; vjoule.",
	"A reader that is too slow loses whole documents, which the next one's number shows.",
	NULL,
};

static const char *const formats[] = { "json", "cbor", "hwpc", "power", "table", "vjoule", NULL };
enum { FORMAT_JSON, FORMAT_CBOR, FORMAT_HWPC, FORMAT_POWER, FORMAT_TABLE, FORMAT_VJOULE };

static volatile sig_atomic_t interrupted;
static volatile bool stop;

static void on_signal(int sig)
{
	interrupted = 1;
	stop = true;
}

struct streaming {
	struct agent *agent;
	int format;
	uint64_t count, left; /* 0 = without end */
	char before; /* the byte before this piece */
	struct buf bytes; /* cbor with a count: read, not yet written */
	uint64_t written; /* of the stream */
	struct err err;
};

static int write_all(const char *p, size_t n)
{
	while (n) {
		ssize_t put = write(STDOUT_FILENO, p, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		p += put;
		n -= (size_t)put;
	}
	return 0;
}

/* A line ends a document, in tables an empty one. -ECANCELED: that was the last. */
static int take(void *arg, const char *piece, size_t size)
{
	struct streaming *s = arg;

	for (size_t i = 0; s->count && i < size; i++) {
		bool end = piece[i] == '\n' && (s->format != FORMAT_TABLE || s->before == '\n');

		s->before = piece[i];
		if (end && --s->left == 0) {
			int code = write_all(piece, i + 1);

			return code ? code : -ECANCELED;
		}
	}
	return write_all(piece, size);
}

static ssize_t read_bytes(void *arg, void *dst, size_t n)
{
	struct streaming *s = arg;
	ssize_t got = agent_read(s->agent, dst, n, &stop, &s->err);

	if (got > 0)
		buf_add(&s->bytes, dst, (size_t)got);
	return s->bytes.failed ? -ENOMEM : got;
}

/* What the reader has understood: header and whole snapshots. */
static int write_until(struct streaming *s, uint64_t offset)
{
	size_t n = (size_t)(offset - s->written);
	int code = write_all((const char *)s->bytes.data, n);

	memmove(s->bytes.data, s->bytes.data + n, s->bytes.len - n);
	s->bytes.len -= n;
	s->written = offset;
	return code;
}

/* Snapshots have no mark at their end: they are read to be counted. */
static int count_snapshots(struct streaming *s, struct err *err)
{
	struct recording *r = NULL;
	struct snapshot *snap;
	int code = recording_open_from(read_bytes, s, "agent", &r, err);

	if (!code)
		code = write_until(s, recording_offset(r));
	while (!code && s->left && (code = recording_next(r, &snap, err)) == 1) {
		code = write_until(s, recording_offset(r));
		s->left--;
	}
	recording_close(r);
	if (code && s->err.code)
		*err = s->err;
	return stop ? 0 : code;
}

static int run_stream(struct streaming *s, const char *path, struct err *err)
{
	int code;

	if (s->format != FORMAT_CBOR || !s->count)
		return agent_stream(s->agent, path, "*/*", take, s, &stop, err);
	code = agent_begin(s->agent, path, "*/*", err);
	return code ? code : count_snapshots(s, err);
}

/* 0 or -EINVAL, said. */
static int read_options(const struct verb_call *call, struct streaming *s, uint64_t *interval_ns)
{
	struct err err = { 0 };
	int code;

	s->format = choice_word("stream: --format", call->option[OPTION_FORMAT], formats, FORMAT_JSON, &err);
	code = s->format < 0 ? s->format :
			       choice_interval("stream: --interval", call->option[OPTION_INTERVAL], interval_ns, &err);
	if (!code)
		code = choice_number("stream: --count", call->option[OPTION_COUNT], 1, UINT64_MAX, &s->count, &err);
	if (!code && s->count && s->format == FORMAT_VJOULE)
		code = err_set(&err, -EINVAL, "stream: --count: not for vjoule; interrupt it, or take another format");
	s->left = s->count;
	if (code)
		log_error("%s", err.text);
	return code;
}

static int run(const struct verb_call *call)
{
	struct sigaction on = { .sa_handler = on_signal };
	struct streaming s = { 0 };
	struct err err = { 0 };
	uint64_t interval_ns = 0;
	char path[96];
	int code;

	if (read_options(call, &s, &interval_ns))
		return CTL_USAGE;
	snprintf(path, sizeof(path), "/v1/stream?format=%s", formats[s.format]);
	if (interval_ns)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "&interval=%lluns",
			 (unsigned long long)interval_ns);
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	signal(SIGPIPE, SIG_IGN);
	code = agent_open(call->option[OPTION_SOCKET], &s.agent, &err);
	if (!code)
		code = run_stream(&s, path, &err);
	agent_close(s.agent);
	buf_free(&s.bytes);
	if (code == -ECANCELED || code == -EPIPE || interrupted) /* the last one, or nobody reads on */
		return CTL_OK;
	if (!code && s.left && s.count)
		code = err_set(&err, -ECONNRESET, "the agent has ended; start it again");
	if (code)
		log_error("stream: %s", err.code ? err.text : strerrordesc_np(-code));
	return code ? CTL_FAILED : CTL_OK;
}

const struct verb verb_stream = {
	.name = "stream",
	.synopsis = "",
	.help = "Writes the agent's documents to standard output as they come",
	.about = about,
	.options = options,
	.max_args = 0,
	.run = run,
};
