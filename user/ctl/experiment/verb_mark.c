/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl mark: adds an event to the recording that this process runs in. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "marks.h"
#include "ctl/core/verb.h"

static const struct verb_option options[] = { { NULL, 0, NULL, NULL } };

static const char *const about[] = {
	"Writes a line of timestamps.csv, from inside a command that joulectl record runs: train_begin, epoch_begin, batch_begin, "
	"batch_end, epoch_end or train_end, with the time of now.",
	"Epochs are numbered by the recording, from 0; a DATA that is another number is refused there, and said there. DATA of "
	"batch and train events is 0 unless given.",
	"A program may as well write the line itself, EVENT or EVENT DATA, to the FIFO that JOULED_MARK_FIFO names.",
	NULL,
};

static int no_recording(const char *path, int rc)
{
	log_error("mark: %.300s: %s; run it inside joulectl record", path,
		  rc == ENXIO ? "no recording listens" : strerror(rc));
	return CTL_FAILED;
}

static int run(const struct verb_call *call)
{
	const char *path = getenv(RECORD_MARK_VARIABLE);
	char line[RECORD_MARK_LINE];
	struct record_mark mark;
	struct err err = { 0 };
	int fd, n;

	if (!call->n) {
		log_error("mark: no event; joulectl mark epoch_begin");
		return CTL_USAGE;
	}
	snprintf(line, sizeof(line), "%.60s %.40s", call->args[0], call->n > 1 ? call->args[1] : "");
	if (record_mark_parse(line, &mark, &err) != 0) {
		log_error("%s", err.text);
		return CTL_USAGE;
	}
	if (!path || !*path) {
		log_error("mark: " RECORD_MARK_VARIABLE " is not set; run it inside joulectl record");
		return CTL_FAILED;
	}
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return no_recording(path, errno);
	if (mark.has_data)
		n = snprintf(line, sizeof(line), "%s %lld %lld\n", mark.event, (long long)mark.data,
			     (long long)clock_real_ns());
	else
		n = snprintf(line, sizeof(line), "%s - %lld\n", mark.event, (long long)clock_real_ns());
	/* a line of at most PIPE_BUF bytes is written whole or not at all (pipe(7)) */
	n = write(fd, line, (size_t)n) == n ? CTL_OK : no_recording(path, errno);
	close(fd);
	return n;
}

const struct verb verb_mark = {
	.name = "mark",
	.synopsis = "EVENT [DATA]",
	.help = "Marks an event in the recording that runs it",
	.about = about,
	.options = options,
	.max_args = 2,
	.run = run,
};
