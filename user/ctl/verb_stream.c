/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl stream: the agent's documents to standard output, as they come. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "model/recording/recording.h"
#include "ctl/core/agent_client.h"
#include "ctl/core/choice.h"
#include "ctl/core/put.h"
#include "ctl/core/verb.h"

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
static atomic_bool stop; /* lock-free: a signal handler sets it */

static void on_signal(int sig)
{
	interrupted = 1;
	stop = true;
}

struct streaming {
	struct agent *agent;
	int format;
	uint64_t count, left; /* 0 = without end */
	char before; /* last byte of the piece before */
	struct buf bytes; /* cbor with a count: bytes that were read and are not yet written */
	uint64_t written; /* offset in the stream up to which it was written */
	struct err err;
};

/* Writes a piece of the stream. A document ends with a line, in tables with an empty line. -ECANCELED: the last
 * document was written. */
static int take(void *arg, const char *piece, size_t size)
{
	struct streaming *s = arg;

	for (size_t i = 0; s->count && i < size; i++) {
		bool end = piece[i] == '\n' && (s->format != FORMAT_TABLE || s->before == '\n');

		s->before = piece[i];
		if (end && --s->left == 0) {
			int rc = put_all(STDOUT_FILENO, piece, i + 1);

			return rc ? rc : -ECANCELED;
		}
	}
	return put_all(STDOUT_FILENO, piece, size);
}

static ssize_t read_bytes(void *arg, void *dst, size_t n)
{
	struct streaming *s = arg;
	ssize_t got = agent_read(s->agent, dst, n, &stop, &s->err);

	if (got > 0)
		buf_add(&s->bytes, dst, (size_t)got);
	return s->bytes.failed ? -ENOMEM : got;
}

/* Writes the bytes before `offset`, which the reader has decoded: the header and whole snapshots. */
static int write_until(struct streaming *s, uint64_t offset)
{
	size_t n = (size_t)(offset - s->written);
	int rc = put_all(STDOUT_FILENO, s->bytes.data, n);

	memmove(s->bytes.data, s->bytes.data + n, s->bytes.len - n);
	s->bytes.len -= n;
	s->written = offset;
	return rc;
}

/* Writes s->left snapshots. CBOR has no mark at the end of a snapshot, so each one is decoded to find it. */
static int count_snapshots(struct streaming *s, struct err *err)
{
	struct recording *r = NULL;
	struct snapshot *snap;
	int rc = recording_open_from(read_bytes, s, "agent", &r, err);

	if (!rc)
		rc = write_until(s, recording_offset(r));
	while (!rc && s->left && (rc = recording_next(r, &snap, err)) == 1) {
		rc = write_until(s, recording_offset(r));
		s->left--;
	}
	recording_close(r);
	if (rc && s->err.code)
		*err = s->err;
	return stop ? 0 : rc;
}

static int run_stream(struct streaming *s, const char *path, struct err *err)
{
	int rc = agent_begin(s->agent, path, "*/*", err);

	if (rc)
		return rc;
	return s->format == FORMAT_CBOR && s->count ? count_snapshots(s, err) :
						      agent_take(s->agent, take, s, &stop, err);
}

/* 0, or a negative errno after an error line was logged. */
static int read_options(const struct verb_call *call, struct streaming *s, uint64_t *interval_ns)
{
	struct err err = { 0 };
	int rc;

	s->format = choice_word("stream: --format", call->option[OPTION_FORMAT], formats, FORMAT_JSON, &err);
	rc = s->format < 0 ? s->format :
			     choice_interval("stream: --interval", call->option[OPTION_INTERVAL], interval_ns, &err);
	if (!rc)
		rc = choice_number("stream: --count", call->option[OPTION_COUNT], choice_range(1, UINT64_MAX),
				   &s->count, &err);
	if (!rc && s->count && s->format == FORMAT_VJOULE)
		rc = err_set(&err, -EINVAL, "stream: --count: not for vjoule; interrupt it, or take another format");
	s->left = s->count;
	if (rc)
		log_error("%s", err.text);
	return rc;
}

static int run(const struct verb_call *call)
{
	struct sigaction on = { .sa_handler = on_signal };
	struct streaming s = { 0 };
	struct err err = { 0 };
	uint64_t interval_ns = 0;
	char path[96];
	int rc;

	if (read_options(call, &s, &interval_ns))
		return CTL_USAGE;
	snprintf(path, sizeof(path), "/v1/stream?format=%s", formats[s.format]);
	if (interval_ns)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "&interval=%lluns",
			 (unsigned long long)interval_ns);
	sigaction(SIGINT, &on, NULL);
	sigaction(SIGTERM, &on, NULL);
	signal(SIGPIPE, SIG_IGN);
	rc = agent_open(call->option[OPTION_SOCKET], &s.agent, &err);
	if (!rc)
		rc = run_stream(&s, path, &err);
	agent_close(s.agent);
	buf_free(&s.bytes);
	if (rc == -ECANCELED || rc == -EPIPE ||
	    interrupted) /* all documents are written, the reader has left, or a signal came */
		return CTL_OK;
	if (!rc && s.left && s.count)
		rc = err_set(&err, -ECONNRESET, "the agent has ended; start it again");
	if (rc)
		log_error("stream: %s", err.code ? err.text : strerrordesc_np(-rc));
	return rc ? CTL_FAILED : CTL_OK;
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
