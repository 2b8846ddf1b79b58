/* SPDX-License-Identifier: Apache-2.0 */
/* Repetitions that were cut off: half a line goes, the end is noted, the rest is published as it is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../model/recording.h"
#include "recorder_internal.h"

#define STAGED "_staged-"
#define LINE_LONGEST 65536

/* Latest timestamp of all files, last event, and the epoch that has not ended. */
struct last {
	char time[32], event[32], epoch[24];
};

struct line {
	char *text;
	size_t cap;
	ssize_t len;
	unsigned commas;
};

/* Bytes of zero are what a disk leaves of a block that never came. */
static bool next_line(FILE *f, struct line *l)
{
	l->len = getline(&l->text, &l->cap, f);
	l->commas = 0;
	if (l->len <= 0 || l->len > LINE_LONGEST || l->text[l->len - 1] != '\n' ||
	    memchr(l->text, '\0', (size_t)l->len))
		return false;
	for (ssize_t i = 0; i < l->len; i++)
		l->commas += l->text[i] == ',';
	return true;
}

static void note_event(struct last *last, const char *event)
{
	size_t n = strcspn(event, ",\n");
	const char *data = event[n] == ',' ? event + n + 1 : "";

	snprintf(last->event, sizeof(last->event), "%.*s", (int)n, event);
	if (strcmp(last->event, "epoch_begin") == 0)
		snprintf(last->epoch, sizeof(last->epoch), "%.*s", (int)strcspn(data, ",\n"), data);
	else if (strcmp(last->event, "epoch_end") == 0)
		last->epoch[0] = '\0';
}

static void note_last(struct last *last, enum recorder_table t, const char *line)
{
	const char *time = t == RECORDER_EVENTS ? line : strchr(line, ',') + 1;
	size_t n = strcspn(time, ",\n");

	if (t >= RECORDER_POWER_SAMPLES && t <= RECORDER_MEM_SAMPLES)
		return;
	if (n < sizeof(last->time) && strncmp(time, last->time, n) > 0)
		snprintf(last->time, sizeof(last->time), "%.*s", (int)n, time);
	if (t == RECORDER_EVENTS && time[n] == ',')
		note_event(last, time + n + 1);
}

/* Keeps the head and all whole lines, whose rows are counted. */
static int trim_csv(int dir_fd, enum recorder_table t, struct last *last, unsigned *ret_rows)
{
	int fd = openat(dir_fd, recorder_table_file(t), O_RDWR | O_CLOEXEC | O_NOFOLLOW), code = 0;
	struct line l = { 0 };
	off_t keep = 0;
	unsigned commas = 0, rows = 0;
	FILE *f;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	f = fdopen(fd, "r+e");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	for (; next_line(f, &l) && (!rows || l.commas == commas) && l.commas; rows++) {
		commas = l.commas;
		keep += l.len;
		if (rows)
			note_last(last, t, l.text);
	}
	free(l.text);
	*ret_rows = rows > 1 ? rows - 1 : 0;
	if (*ret_rows && (ftruncate(fd, keep) != 0 || fsync(fd) != 0))
		code = -errno;
	fclose(f);
	return code;
}

/* Documents are whole or not there. */
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

/* Readers stop at an epoch without its end. */
static int note_end(int dir_fd, const struct last *last)
{
	char line[160];
	int fd, n = 0, code = 0;

	if (strcmp(last->event, "experiment_end") == 0)
		return 0;
	fd = openat(dir_fd, recorder_table_file(RECORDER_EVENTS), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (last->epoch[0])
		n = snprintf(line, sizeof(line), "%s,epoch_end,%s\n", last->time, last->epoch);
	n += snprintf(line + n, sizeof(line) - (size_t)n, "%s,experiment_end,0\n", last->time);
	if (fd < 0 || write(fd, line, (size_t)n) != n || fsync(fd) != 0)
		code = -errno;
	if (fd >= 0)
		close(fd);
	return code;
}

static int mend(int dir_fd, bool baseline, const struct recorder_recovery *how, struct err *err)
{
	unsigned rows[RECORDER_TABLES] = { 0 };
	struct last last = { 0 };
	bool any = false;
	int code = 0;

	for (unsigned t = 0; t < RECORDER_TABLES && !code; t++) {
		code = trim_csv(dir_fd, (enum recorder_table)t, &last, &rows[t]);
		any |= rows[t] > 0;
	}
	if (!code && !any)
		return -ENODATA;
	if (!code && !baseline && !last.event[0])
		return err_set(
			err, -EBADMSG,
			"timestamps.csv has no event, but other files have rows; write the lines timestamp,event,data and "
			"TIME,experiment_begin,0 into it and try again");
	for (unsigned t = 0; t < RECORDER_TABLES && !code; t++)
		if (!rows[t] && unlinkat(dir_fd, recorder_table_file((enum recorder_table)t), 0) != 0 &&
		    errno != ENOENT)
			code = -errno;
	recorder_trim_snapshots(dir_fd);
	if (!code && !baseline)
		code = note_end(dir_fd, &last);
	if (code)
		return err_set(err, code, "%s; look at that disk", strerror(-code));
	return baseline || !how->mend ? 0 : how->mend(how->arg, dir_fd, err);
}

/* The one directory inside. */
static int find_run(const char *around, char ret[256])
{
	DIR *d = opendir(around);
	int code = -ENODATA;
	struct dirent *e;
	struct stat st;

	while (d && code && (e = readdir(d)))
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
		    strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    snprintf(ret, 256, "%s", e->d_name) < 256)
			code = 0;
	if (d)
		closedir(d);
	return code;
}

/* Cut off before its experiment began: what we made goes, and with it the directory unless something else is in it. */
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

static int publish(const char *parent, const char *around, char *ret_to, const struct recorder_recovery *how,
		   struct err *err)
{
	char run[256] = "", path[RECORDER_PATH_MAX + 256];
	unsigned number;
	int fd, code = find_run(around, run);

	if (code)
		return remove_empty(around, run, err);
	snprintf(path, sizeof(path), "%s/%s", around, run);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "%s; look at its permissions", strerror(errno));
	code = mend(fd, recorder_is_baseline(run), how, err);
	close(fd);
	if (code == -ENODATA)
		return remove_empty(around, run, err);
	return code ? code : recorder_rename(parent, around, run, ret_to, &number, err);
}

/* 1 = published, 0 = not, or somebody is at work on it. */
static int recover_one(const char *parent, const char *name, const struct recorder_recovery *how)
{
	char around[RECORDER_PATH_MAX], to[RECORDER_PATH_MAX];
	struct err err = { 0 };
	int fd, code;

	if (snprintf(around, sizeof(around), "%s/%s", parent, name) >= (int)sizeof(around))
		return 0;
	fd = open(around, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	/* its recorder may have published it just now */
	if ((flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) || !recorder_is_at(fd, around)) {
		close(fd);
		return 0;
	}
	code = publish(parent, around, to, how, &err);
	close(fd);
	if (how->said)
		how->said(how->arg, around, code ? NULL : to, &err);
	return !code;
}

/* Staged directories lie beside benchmarks (baselines) and beside runs. */
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
