/* SPDX-License-Identifier: Apache-2.0 */
/* Recovers repetitions that were cut off: it removes half lines, notes the end, and publishes the rest
 * unchanged. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/format/csv.h"
#include "model/recording/recording.h"
#include "files.h"

#define STAGED "_staged-"
/* A file may be behind the others by so much, because a driver's ring is read only now and then. */
#define LAG_NS (5 * (int64_t)NS_PER_S)

/* The latest time of each file, the last event, and the epoch that has not ended ("" = none). */
struct last {
	int64_t ns[RECORDER_TABLES];
	char event[32], epoch[24];
};

static void note_event(struct last *last, const struct csv_row *row)
{
	const char *data = row->n > 2 ? row->cell[2] : "";

	snprintf(last->event, sizeof(last->event), "%s", row->cell[1]);
	if (strcmp(last->event, "epoch_begin") == 0)
		snprintf(last->epoch, sizeof(last->epoch), "%s", data);
	else if (strcmp(last->event, "epoch_end") == 0)
		last->epoch[0] = '\0';
}

/* The time of a row; 0 = it has none. */
static int64_t row_ns(const char *text)
{
	struct tm tm = { 0 };
	int us, n = 0;

	if (sscanf(text, "%4d-%2d-%2d %2d:%2d:%2d.%6d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
		   &tm.tm_sec, &us, &n) != 7 ||
	    n != 26 || tm.tm_year < 1970 || tm.tm_year > 2200)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return (int64_t)timegm(&tm) * (int64_t)NS_PER_S + us * (int64_t)1000;
}

static int64_t sample_ns(const char *text)
{
	long long us = strtoll(text, NULL, 10);

	return us > 0 && us < INT64_MAX / 1000 ? us * 1000 : 0;
}

static void note_last(struct last *last, enum recorder_table t, const struct csv_row *row)
{
	const char *time = row->cell[t != RECORDER_EVENTS];
	bool samples = t >= RECORDER_POWER_SAMPLES && t <= RECORDER_MEM_SAMPLES;
	int64_t ns = samples ? sample_ns(time) : row_ns(time);

	if (ns > last->ns[t])
		last->ns[t] = ns;
	if (t == RECORDER_EVENTS)
		note_event(last, row);
}

/* Reads whole rows up to the first that is damaged: cut off, of another width, empty, or with bytes of zero (blocks
 * that never reached the disk). Returns the offset of their end. *ret_rows is their number without the head. */
static off_t read_whole(struct csv_reader *c, enum recorder_table t, struct last *last, unsigned *ret_rows)
{
	unsigned rows = 0, width = 0;
	struct csv_row row;
	off_t keep = 0;

	for (; csv_next(c, &row) > 0 && row.whole && row.n > 1 && row.line == rows + 1; rows++) {
		if (rows && row.n != width)
			break;
		width = row.n;
		keep = (off_t)row.end;
		if (rows)
			note_last(last, t, &row);
	}
	*ret_rows = rows ? rows - 1 : 0;
	return keep;
}

/* Cuts the file after its last whole row and counts the rows. */
static int trim_csv(int dir_fd, enum recorder_table t, struct last *last, unsigned *ret_rows)
{
	int fd = openat(dir_fd, recorder_table_file(t), O_RDWR | O_CLOEXEC | O_NOFOLLOW), copy, rc;
	struct csv_reader *c;
	off_t keep;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	rc = copy < 0 ? -errno : csv_open(copy, &c);
	if (rc)
		goto out;
	keep = read_whole(c, t, last, ret_rows);
	csv_close(c);
	if (*ret_rows && (ftruncate(fd, keep) != 0 || fsync(fd) != 0))
		rc = -errno;
out:
	close(fd);
	return rc;
}

/* Cuts the file after its last whole document. */
void recorder_trim_snapshots(int dir_fd)
{
	int fd = openat(dir_fd, "snapshot.cbor", O_RDWR | O_CLOEXEC | O_NOFOLLOW), copy;
	struct recording *rec;
	struct snapshot *s;
	off_t keep = 0;

	if (fd < 0)
		return;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0 && recording_open_fd(copy, &rec, NULL) == 0) {
		keep = (off_t)recording_offset(rec);
		while (recording_next(rec, &s, NULL) == 1)
			keep = (off_t)recording_offset(rec);
		recording_close(rec);
	}
	if (keep ? ftruncate(fd, keep) != 0 || fsync(fd) != 0 : unlinkat(dir_fd, "snapshot.cbor", 0) != 0)
		keep = 0;
	close(fd);
}

/* The end of the repetition: the earliest end of the files that count, because an epoch must not be longer than
 * they are. A file that stopped long before (its GPU was lost) does not count, and no event is later than the
 * end. */
static int64_t end_of(const struct last *last)
{
	static const enum recorder_table count[] = { RECORDER_GPU, RECORDER_POWER_SAMPLES, RECORDER_EXTERNAL };
	int64_t newest = 0, end;

	for (unsigned t = 0; t < RECORDER_TABLES; t++)
		if ((t < RECORDER_POWER_SAMPLES || t > RECORDER_MEM_SAMPLES) && last->ns[t] > newest)
			newest = last->ns[t];
	end = newest;
	for (unsigned i = 0; i < sizeof(count) / sizeof(count[0]); i++)
		if (last->ns[count[i]] > newest - LAG_NS && last->ns[count[i]] < end)
			end = last->ns[count[i]];
	return end > last->ns[RECORDER_EVENTS] ? end : last->ns[RECORDER_EVENTS];
}

/* Adds the missing end events: readers stop at an epoch without an end. */
static int note_end(int dir_fd, const struct last *last)
{
	char line[2 * RECORDER_TIME + 100], time[RECORDER_TIME];
	int fd, n = 0, rc = 0;

	if (strcmp(last->event, "experiment_end") == 0)
		return 0;
	recorder_time(time, end_of(last));
	fd = openat(dir_fd, recorder_table_file(RECORDER_EVENTS), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (last->epoch[0])
		n = snprintf(line, sizeof(line), "%s,epoch_end,%s\n", time, last->epoch);
	n += snprintf(line + n, sizeof(line) - (size_t)n, "%s,experiment_end,0\n", time);
	if (fd < 0 || write(fd, line, (size_t)n) != n || fsync(fd) != 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

static int mend(int dir_fd, bool baseline, const struct recorder_recovery *how, struct err *err)
{
	unsigned rows[RECORDER_TABLES] = { 0 };
	struct last last = { 0 };
	bool any = false;
	int rc = 0;

	for (unsigned t = 0; t < RECORDER_TABLES && !rc; t++) {
		rc = trim_csv(dir_fd, (enum recorder_table)t, &last, &rows[t]);
		any |= rows[t] > 0;
	}
	if (!rc && !any)
		return -ENODATA;
	if (!rc && !baseline && !last.event[0])
		return err_set(
			err, -EBADMSG,
			"timestamps.csv has no event, but other files have rows; write the lines timestamp,event,data and "
			"TIME,experiment_begin,0 into it and try again");
	for (unsigned t = 0; t < RECORDER_TABLES && !rc; t++)
		if (!rows[t] && unlinkat(dir_fd, recorder_table_file((enum recorder_table)t), 0) != 0 &&
		    errno != ENOENT)
			rc = -errno;
	recorder_trim_snapshots(dir_fd);
	if (!rc && !baseline)
		rc = note_end(dir_fd, &last);
	if (rc)
		return err_set(err, rc, "%s; %s", strerrordesc_np(-rc), err_write_remedy(rc));
	return baseline || !how->mend ? 0 : how->mend(how->arg, dir_fd, err);
}

/* Finds the one directory inside. */
static int find_run(const char *around, char ret[256])
{
	DIR *d = opendir(around);
	int rc = -ENODATA;
	struct dirent *e;
	struct stat st;

	while (d && rc && (e = readdir(d)))
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
		    strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    snprintf(ret, 256, "%s", e->d_name) < 256)
			rc = 0;
	if (d)
		closedir(d);
	return rc;
}

/* Removes a directory that was cut off before its experiment began, unless it holds something that is not ours. */
static int remove_empty(const char *around, const char *run, struct err *err)
{
	static const char *const inside[] = { "system_info.json", "snapshot.cbor" }, *const beside[] = {
		"system_info.json.new", "mark", "samples.new"
	};
	int around_fd = open(around, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int fd = *run ? openat(around_fd, run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

	for (unsigned t = 0; fd >= 0 && t < RECORDER_TABLES; t++)
		unlinkat(fd, recorder_table_file((enum recorder_table)t), 0);
	for (unsigned i = 0; fd >= 0 && i < 2; i++)
		unlinkat(fd, inside[i], 0);
	for (unsigned i = 0; i < 3; i++)
		unlinkat(around_fd, beside[i], 0);
	if (fd >= 0) {
		close(fd);
		unlinkat(around_fd, run, AT_REMOVEDIR);
	}
	if (around_fd >= 0)
		close(around_fd);
	if (rmdir(around) != 0)
		return err_set(err, -ENOTEMPTY, "nothing was recorded yet, but something else is in it; remove it");
	return err_set(err, -ENODATA, "nothing was recorded yet; removed");
}

static int publish(const char *parent, const char *around, const struct recorder_recovery *how,
		   struct recorder_published *ret, struct err *err)
{
	char run[256] = "", path[RECORDER_PATH_MAX + 256];
	int fd, rc = find_run(around, run);

	if (rc)
		return remove_empty(around, run, err);
	snprintf(path, sizeof(path), "%s/%s", around, run);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "%s; look at its permissions", strerror(errno));
	rc = mend(fd, recorder_is_baseline(run), how, err);
	close(fd);
	if (rc == -ENODATA)
		return remove_empty(around, run, err);
	return rc ? rc : recorder_rename(parent, around, run, ret, err);
}

/* Publishes one staged directory. 1 = published, 0 = not, or in use. */
static int recover_one(const char *parent, const char *name, const struct recorder_recovery *how)
{
	char around[RECORDER_PATH_MAX];
	struct recorder_published at;
	struct err err = { 0 };
	int fd, rc;

	if (snprintf(around, sizeof(around), "%s/%s", parent, name) >= (int)sizeof(around))
		return 0;
	fd = open(around, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	/* its recorder may have just published it */
	if ((flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) || !recorder_is_at(fd, around)) {
		close(fd);
		return 0;
	}
	rc = publish(parent, around, how, &at, &err);
	close(fd);
	if (how->said)
		how->said(how->arg, around, rc ? NULL : at.path, &err);
	return !rc;
}

/* Publishes the staged directories below dir. They lie beside benchmarks (baselines) and beside runs. */
static int recover_below(const char *dir, unsigned depth, const struct recorder_recovery *how)
{
	char below[RECORDER_PATH_MAX];
	struct dirent **list;
	int n = scandir(dir, &list, NULL, alphasort), found = 0;

	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		bool is_dir = list[i]->d_type == DT_DIR || list[i]->d_type == DT_UNKNOWN;

		if (is_dir && depth && strncmp(name, STAGED, sizeof(STAGED) - 1) == 0)
			found += recover_one(dir, name, how);
		else if (is_dir && depth < 2 && name[0] != '_' && name[0] != '.' &&
			 snprintf(below, sizeof(below), "%s/%s", dir, name) < (int)sizeof(below))
			found += recover_below(below, depth + 1, how);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return found;
}

int recorder_recover(const char *root, const struct recorder_recovery *how, struct err *err)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, -errno, "%.300s: %s; name the directory that experiments were recorded to", root,
			       strerror(errno));
	close(fd);
	return recover_below(root, 0, how);
}
