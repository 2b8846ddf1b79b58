/* SPDX-License-Identifier: Apache-2.0 */
#include "marks.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/core/janitor.h"

#define READ_MAX (1 << 20) /* bytes per call, so that a fast writer does not hold up the recorder */
#define LINGER_US 1000000
#define SAID_MAX 20 /* refusals of a repetition that are logged one by one */

static const char *const events[] = {
	"train_begin", "epoch_begin", "batch_begin", "batch_end", "epoch_end", "train_end"
};

static const char *known_event(const char *word)
{
	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (strcmp(events[i], word) == 0)
			return events[i];
	return NULL;
}

int record_mark_parse(const char *line, struct record_mark *ret, struct err *err)
{
	char text[RECORD_MARK_LINE], *save = NULL, *word, *data, *time;
	struct record_mark m = { 0 };

	snprintf(text, sizeof(text), "%s", line);
	word = strtok_r(text, " \t\r", &save);
	data = strtok_r(NULL, " \t\r", &save);
	time = strtok_r(NULL, " \t\r", &save);
	m.event = known_event(word ? word : "");
	if (!m.event)
		return err_set(err, -EINVAL,
			       "mark %.40s: no such event; one of train_begin, epoch_begin, batch_begin, batch_end, "
			       "epoch_end, train_end",
			       word ? word : "");
	m.has_data = data && strcmp(data, "-") != 0;
	if (m.has_data && (parse_i64(data, &m.data) != 0 || m.data < 0))
		return err_set(err, -EINVAL, "mark %s %.40s: no whole number; write one such as 0, or leave it out",
			       m.event, data);
	if ((time && (parse_i64(time, &m.time_ns) != 0 || m.time_ns <= 0)) || strtok_r(NULL, " \t\r", &save))
		return err_set(err, -EINVAL, "mark %s: more words than EVENT and DATA; leave them out", m.event);
	*ret = m;
	return 0;
}

/* Reads and discards until the last writer has left, and LINGER_US longer for a writer that is about to open the FIFO. */
static void drain(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char piece[4096];

	for (unsigned calm = 0; calm < 2;) {
		ssize_t n = read(fd, piece, sizeof(piece));

		if (n != 0)
			calm = 0;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			break;
		if (n < 0)
			poll(&p, 1, -1);
		if (n == 0 && ++calm < 2)
			usleep(LINGER_US);
	}
}

/* Runs in the janitor. Writers that have the FIFO open can go on writing. It is unlinked, so that no later writer
 * waits in open(2). */
static void let_go(void *arg)
{
	const struct record_marks *m = arg;
	int fd = open(m->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

	unlink(m->path);
	close(m->fd); /* this descriptor is open for writing too: the FIFO would never end */
	if (fd >= 0)
		drain(fd);
}

int record_marks_open(struct record_marks *m, const char *dir, struct err *err)
{
	char full[PATH_MAX];

	/* The path is absolute, because the command may change its directory. */
	*m = (struct record_marks){ .fd = -1 };
	snprintf(m->path, sizeof(m->path), "%s/mark", realpath(dir, full) ? full : dir);
	if (mkfifo(m->path, 0600) != 0)
		return err_set(err, -errno, "%.300s: no FIFO can be made: %s; name a --root on another file system",
			       m->path, strerror(errno));
	/* It is open for writing too, so that read(2) sees no end when a writer leaves. */
	m->fd = open(m->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (m->fd < 0)
		return err_set(err, -errno, "%.300s: %s; raise the limit of open files", m->path, strerror(errno));
	return janitor_start(let_go, m, m->fd, &m->janitor, err);
}

void record_marks_begin(struct record_marks *m, int64_t now_ns)
{
	m->begin_ns = now_ns;
	m->epochs = 0;
	m->in_epoch = false;
	m->epoch_ns = 0;
	m->closed = -1;
	m->taken = m->refused = 0;
}

static int judge_epoch(struct record_marks *m, struct record_mark *mark, struct err *err)
{
	bool begins = strcmp(mark->event, "epoch_begin") == 0;
	int64_t number = begins ? m->epochs : m->epochs - 1;

	if (!begins && !m->in_epoch)
		return err_set(err, -EINVAL, "mark epoch_end: no epoch has begun; mark epoch_begin first");
	if (begins && m->in_epoch)
		return err_set(err, -EINVAL, "mark epoch_begin: epoch %lld has not ended; mark epoch_end first",
			       (long long)m->epochs - 1);
	if (mark->has_data && mark->data != number)
		return err_set(err, -EINVAL,
			       "mark %s %lld: epochs are counted from 0 and this is number %lld; leave the number out",
			       mark->event, (long long)mark->data, (long long)number);
	mark->data = number;
	if (mark->time_ns < m->epoch_ns)
		mark->time_ns =
			m->epoch_ns; /* after the clock was set back an epoch still does not end before it begins */
	m->epoch_ns = mark->time_ns;
	m->epochs += begins;
	m->in_epoch = begins;
	return 0;
}

int record_marks_judge(struct record_marks *m, struct record_mark *mark, int64_t now_ns, struct err *err)
{
	if (!mark->time_ns)
		mark->time_ns = now_ns;
	if (mark->time_ns < m->begin_ns || mark->time_ns > now_ns)
		return err_set(err, -EINVAL, "mark %s: its time is not within this experiment; leave the time out",
			       mark->event);
	return strncmp(mark->event, "epoch_", 6) == 0 ? judge_epoch(m, mark, err) : 0;
}

static void end_line(struct record_marks *m, void (*take)(void *, const struct record_mark *),
		     void (*said)(void *, const char *), void *arg)
{
	struct record_mark mark;
	struct err err = { 0 };
	int rc;

	m->line[m->n] = '\0';
	if (m->too_long || strlen(m->line) != m->n)
		rc = err_set(&err, -EINVAL, "mark: the line is no text, or longer than %d bytes; write EVENT and DATA",
			     RECORD_MARK_LINE - 1);
	else if (!m->n)
		return;
	else
		rc = record_mark_parse(m->line, &mark, &err);
	if (!rc)
		rc = record_marks_judge(m, &mark, clock_real_ns(), &err);
	m->taken += !rc;
	m->refused += !!rc;
	if (!rc)
		take(arg, &mark);
	else if (m->refused <= SAID_MAX)
		said(arg, err.text);
	else if (m->refused == SAID_MAX + 1)
		said(arg, "mark: further refused marks are only counted; correct the program that writes them");
}

void record_marks_read(struct record_marks *m, void (*take)(void *arg, const struct record_mark *mark),
		       void (*said)(void *arg, const char *why), void *arg)
{
	char piece[4096];
	ssize_t n;

	for (size_t left = READ_MAX; m->fd >= 0 && left && (n = read(m->fd, piece, sizeof(piece))) > 0;
	     left -= (size_t)n)
		for (ssize_t i = 0; i < n; i++) {
			if (piece[i] == '\n') {
				end_line(m, take, said, arg);
				m->n = 0;
				m->too_long = false;
			} else if (m->n < sizeof(m->line) - 1) {
				m->line[m->n++] = piece[i];
			} else {
				m->too_long = true;
			}
		}
}

int64_t record_marks_end(struct record_marks *m, void (*take)(void *arg, const struct record_mark *mark),
			 void (*said)(void *arg, const char *why), void *arg)
{
	struct record_mark end = { .event = "epoch_end" };
	char text[160];

	record_marks_read(m, take, said, arg);
	if (m->n || m->too_long)
		end_line(m, take, said, arg);
	m->n = 0;
	end.time_ns = clock_real_ns();
	if (end.time_ns < m->epoch_ns)
		end.time_ns = m->epoch_ns;
	if (!m->in_epoch)
		return end.time_ns;
	end.data = m->closed = m->epochs - 1;
	m->in_epoch = false;
	snprintf(text, sizeof(text),
		 "epoch %lld has not ended: its epoch_end is noted at the end of the experiment; mark epoch_end",
		 (long long)m->closed);
	said(arg, text);
	take(arg, &end);
	return end.time_ns;
}

void record_marks_close(struct record_marks *m)
{
	if (m->fd < 0)
		return;
	unlink(m->path); /* first, so that no writer waits in open(2) for a reader that has left */
	close(m->fd);
	m->fd = -1;
	janitor_dismiss(m->janitor);
	m->janitor = NULL;
}
