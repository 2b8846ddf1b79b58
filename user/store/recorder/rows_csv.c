/* SPDX-License-Identifier: Apache-2.0 */
/* Writes rows as readers of the format need them: comma, LF, an unnamed index from 0 in every file but
 * timestamps.csv, UTC always with six digits, whole numbers, no empty cells in files of the original. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/format/csv.h"
#include "files.h"

#define FLUSH_BYTES 65536

const char *recorder_table_file(enum recorder_table t)
{
	static const char *const names[RECORDER_TABLES] = {
		"timestamps.csv",
		"gpu-power.csv",
		"power-external.csv",
		"total_power_samples.csv",
		"gpu_utilization_samples.csv",
		"memory_utilization_samples.csv",
		"cgroup-power.csv",
		"rapl-power.csv",
		"counters.csv",
	};

	return names[t];
}

static bool is_samples(enum recorder_table t)
{
	return t >= RECORDER_POWER_SAMPLES && t <= RECORDER_MEM_SAMPLES;
}

void recorder_time(char ret[RECORDER_TIME], int64_t real_ns)
{
	int64_t ns = real_ns % (int64_t)NS_PER_S;
	time_t s = (time_t)(real_ns / (int64_t)NS_PER_S) - (ns < 0);
	struct tm tm;

	gmtime_r(&s, &tm);
	snprintf(ret, RECORDER_TIME, "%04d-%02d-%02d %02d:%02d:%02d.%06d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
		 tm.tm_hour, tm.tm_min, tm.tm_sec, (int)((ns + (ns < 0 ? (int64_t)NS_PER_S : 0)) / 1000));
}

static void add_time(struct buf *b, int64_t real_ns)
{
	char text[RECORDER_TIME];

	recorder_time(text, real_ns);
	buf_add_str(b, text);
}

void recorder_columns(struct recorder *r, enum recorder_table t, const char *const *names, unsigned n)
{
	struct recorder_csv *c = &r->csv[t];

	if (c->rows)
		return;
	buf_reset(&c->head);
	if (t == RECORDER_EVENTS)
		buf_add_str(&c->head, "timestamp,event,data");
	else
		buf_add_str(&c->head, ",timestamp");
	for (unsigned i = 0; i < n; i++) {
		buf_add_char(&c->head, ',');
		csv_add_cell(&c->head, names[i]);
	}
	buf_add_char(&c->head, '\n');
	c->n = n;
}

/* Makes the file with its first row, because readers fail on a file without rows. */
static bool begin(struct recorder *r, enum recorder_table t)
{
	static const char *const value[] = { "value" };
	struct recorder_csv *c = &r->csv[t];

	if (r->failed.code)
		return false;
	if (c->fd >= 0)
		return true;
	if (t == RECORDER_EVENTS || is_samples(t))
		recorder_columns(r, t, value, is_samples(t));
	c->fd = openat(r->dir_fd, recorder_table_file(t), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	if (c->fd < 0) {
		recorder_fail(r, -errno, recorder_table_file(t));
		return false;
	}
	recorder_sync_add(&r->sync, c->fd);
	buf_add(&c->out, c->head.data, c->head.len);
	return true;
}

static void end(struct recorder *r, enum recorder_table t)
{
	struct recorder_csv *c = &r->csv[t];

	buf_add_char(&c->out, '\n');
	c->rows++;
	if (c->out.failed)
		recorder_fail(r, -ENOMEM, recorder_table_file(t));
	else if (c->out.len >= FLUSH_BYTES)
		recorder_csv_flush(r, t);
}

void recorder_row(struct recorder *r, enum recorder_table t, int64_t real_ns, const int64_t *v)
{
	struct recorder_csv *c = &r->csv[t];

	if (!begin(r, t))
		return;
	buf_add_u64(&c->out, c->rows);
	buf_add_char(&c->out, ',');
	add_time(&c->out, real_ns);
	for (unsigned i = 0; i < c->n; i++) {
		buf_add_char(&c->out, ',');
		if (v[i] != RECORDER_EMPTY)
			buf_add_i64(&c->out, v[i]);
	}
	end(r, t);
}

void recorder_sample(struct recorder *r, enum gpu_ring ring, int64_t real_us, int64_t value)
{
	enum recorder_table t = (enum recorder_table)(RECORDER_POWER_SAMPLES + ring);
	struct buf *b = &r->csv[t].out;

	if (!begin(r, t))
		return;
	buf_add_u64(b, r->csv[t].rows);
	buf_add_char(b, ',');
	buf_add_i64(b, real_us);
	buf_add_char(b, ',');
	buf_add_i64(b, value);
	end(r, t);
}

void recorder_event(struct recorder *r, int64_t real_ns, const char *event, int64_t data)
{
	struct buf *b = &r->csv[RECORDER_EVENTS].out;

	if (!begin(r, RECORDER_EVENTS))
		return;
	add_time(b, real_ns);
	buf_printf(b, ",%s,%lld", event, (long long)data);
	end(r, RECORDER_EVENTS);
}

uint64_t recorder_rows(const struct recorder *r, enum recorder_table t)
{
	return r->csv[t].rows;
}

/* A short write leaves half a line, which recovery removes. */
int recorder_csv_flush(struct recorder *r, enum recorder_table t)
{
	struct recorder_csv *c = &r->csv[t];
	size_t at = 0;

	while (at < c->out.len && !r->failed.code) {
		ssize_t n = write(c->fd, c->out.data + at, c->out.len - at);

		if (n < 0 && errno != EINTR)
			recorder_fail(r, -errno, recorder_table_file(t));
		at += n > 0 ? (size_t)n : 0;
	}
	buf_reset(&c->out);
	return r->failed.code;
}
