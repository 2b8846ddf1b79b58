/* SPDX-License-Identifier: Apache-2.0 */
/* A repetition, from its staged directory to its place. root/experiment/benchmark/_staged-PID-N/RUN/ holds the
 * files while they grow; RUN is renamed to root/experiment/benchmark/RUN/NUMBER. Readers skip names with _ in
 * front at the level of runs, but not at that of repetitions. So the staging directory lies beside RUN, not in
 * it. Only its name tells where it belongs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/thread.h"
#include "files.h"

#define STAGED_TRIES 10000

void recorder_fail(struct recorder *r, int rc, const char *what)
{
	char file[sizeof(r->path) + 64];

	snprintf(file, sizeof(file), "%s/%s", r->path, what);
	if (!r->failed.code)
		err_write(&r->failed, rc, file, NULL);
}

static int parent_of(const struct recorder_place *p, char *ret)
{
	int n = p->benchmark ? snprintf(ret, RECORDER_PATH_MAX, "%s/%s/%s", p->root, p->experiment, p->benchmark) :
			       snprintf(ret, RECORDER_PATH_MAX, "%s/%s", p->root, p->experiment);

	return n < RECORDER_PATH_MAX - 256 ? 0 : -ENAMETOOLONG;
}

/* A killed process with the same number may have left its directory; the next N is free then. The lock tells
 * recovery that the directory is in use. */
static int make_around(struct recorder *r, const char *parent)
{
	for (unsigned i = 0; i < STAGED_TRIES; i++) {
		if (snprintf(r->around, sizeof(r->around), "%s/_staged-%d-%u", parent, (int)getpid(), i) >=
		    (int)sizeof(r->around))
			return -ENAMETOOLONG;
		if (mkdir(r->around, 0777) == 0) {
			r->around_fd = open(r->around, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (r->around_fd >= 0 && (flock(r->around_fd, LOCK_EX | LOCK_NB) == 0 || errno == EOPNOTSUPP) &&
			    recorder_is_at(r->around_fd, r->around))
				return 0;
			if (r->around_fd < 0 && errno != ENOENT)
				return -errno;
			/* recovery took the directory between mkdir and flock, and removes it */
			if (r->around_fd >= 0)
				close(r->around_fd);
			r->around_fd = -1;
		} else if (errno != EEXIST) {
			return -errno;
		}
	}
	return -EEXIST;
}

static int stage(struct recorder *r, struct err *err)
{
	char parent[RECORDER_PATH_MAX];
	int rc = parent_of(&r->place, parent);

	if (rc)
		return err_set(err, rc, "%.300s: the path is too long; name a shorter --root", r->place.root);
	rc = recorder_make_dirs(parent, err);
	if (rc)
		return rc;
	rc = make_around(r, parent);
	if (!rc && snprintf(r->path, sizeof(r->path), "%s/%s", r->around, r->place.run) >= (int)sizeof(r->path))
		rc = -ENAMETOOLONG;
	if (!rc && mkdir(r->path, 0777) != 0)
		rc = -errno;
	if (!rc)
		r->dir_fd = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!rc && r->dir_fd < 0)
		rc = -errno;
	return rc ? err_write(err, rc, parent, "no directory can be made there") : 0;
}

static int recorder_sync_stop(struct recorder_syncer *s);

static void release(struct recorder *r)
{
	recorder_sync_stop(&r->sync);
	for (unsigned i = 0; i < r->sync.n; i++)
		close(r->sync.fds[i]);
	for (unsigned t = 0; t < RECORDER_TABLES; t++) {
		buf_free(&r->csv[t].head);
		buf_free(&r->csv[t].out);
	}
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	if (r->around_fd >= 0)
		close(r->around_fd);
	free((char *)r->place.root);
	free((char *)r->place.experiment);
	free((char *)r->place.benchmark);
	free((char *)r->place.run);
	free(r);
}

static bool copy_place(struct recorder_place *to, const struct recorder_place *from)
{
	to->root = strdup(from->root);
	to->experiment = strdup(from->experiment);
	to->benchmark = from->benchmark ? strdup(from->benchmark) : NULL;
	to->run = strdup(from->run);
	return to->root && to->experiment && to->run && (!from->benchmark || to->benchmark);
}

static int recorder_sync_start(struct recorder_syncer *s);

int recorder_open(const struct recorder_place *p, struct recorder **ret, struct err *err)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_set(err, -ENOMEM, "record: out of memory; free some");
	r->around_fd = r->dir_fd = -1;
	for (unsigned t = 0; t < RECORDER_TABLES; t++)
		r->csv[t].fd = -1;
	if (!copy_place(&r->place, p)) {
		rc = err_set(err, -ENOMEM, "record: out of memory; free some");
		goto fail;
	}
	rc = stage(r, err);
	if (rc)
		goto fail;
	if (recorder_sync_start(&r->sync) != 0) {
		rc = err_set(err, -EAGAIN, "record: no thread can be made; raise the limit of processes");
		goto fail;
	}
	*ret = r;
	return 0;
fail:
	if (r->around_fd >= 0)
		recorder_remove_tree(r->around);
	release(r);
	return rc;
}

const char *recorder_path(const struct recorder *r)
{
	return r->path;
}

const char *recorder_around(const struct recorder *r)
{
	return r->around;
}

/* Replaces the file by rename: readers see the old file or the new one. */
void recorder_put(struct recorder *r, const char *name, const char *text, size_t size)
{
	char whole[80];
	size_t at = 0;
	ssize_t n = 0;
	int fd;

	if (r->failed.code)
		return;
	snprintf(whole, sizeof(whole), "../%.60s.new", name);
	fd = openat(r->dir_fd, whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	while (fd >= 0 && at < size && (n = write(fd, text + at, size - at)) >= 0)
		at += (size_t)n;
	if (fd < 0 || n < 0 || (fsync(fd) != 0 && errno != EINVAL) || renameat(r->dir_fd, whole, r->dir_fd, name) != 0)
		recorder_fail(r, -errno, name);
	if (fd >= 0)
		close(fd);
}

int recorder_file(struct recorder *r, const char *name)
{
	int fd;

	if (r->failed.code || r->sync.n == RECORDER_TABLES + RECORDER_EXTRA_MAX)
		return -1;
	fd = openat(r->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		recorder_fail(r, -errno, name);
	else
		recorder_sync_add(&r->sync, fd);
	return fd;
}

int recorder_flush(struct recorder *r, struct err *err)
{
	int rc;

	for (unsigned t = 0; t < RECORDER_TABLES; t++)
		if (r->csv[t].out.len)
			recorder_csv_flush(r, (enum recorder_table)t);
	pthread_mutex_lock(&r->sync.lock);
	rc = r->sync.failed;
	pthread_mutex_unlock(&r->sync.lock);
	if (rc)
		recorder_fail(r, rc, "");
	if (r->failed.code && err)
		*err = r->failed;
	return r->failed.code;
}

static void recorder_gpu_settle(struct recorder *r);

int recorder_publish(struct recorder *r, unsigned *ret_number, struct err *err)
{
	char parent[RECORDER_PATH_MAX];
	struct recorder_published at;
	int rc, synced;

	recorder_gpu_settle(r);
	rc = recorder_flush(r, err);
	synced = recorder_sync_stop(&r->sync);
	recorder_trim_snapshots(r->dir_fd);
	if (rc)
		goto out;
	if (synced) {
		recorder_fail(r, synced, "");
		*err = r->failed;
		rc = synced;
		goto out;
	}
	rc = parent_of(&r->place, parent);
	if (rc)
		goto out;
	rc = recorder_rename(parent, r->around, r->place.run, &at, err);
	if (!rc)
		*ret_number = at.number;
out:
	release(r);
	return rc;
}

void recorder_keep(struct recorder *r)
{
	if (!r)
		return;
	recorder_gpu_settle(r);
	recorder_flush(r, NULL);
	release(r);
}

void recorder_discard(struct recorder *r)
{
	if (!r)
		return;
	recorder_remove_tree(r->around);
	release(r);
}

/* A thread calls fdatasync(2) once a second. A disk may take long, and rows go on meanwhile. */

/* Descriptors are only added while the thread lives, so it works on a copy. */
static int sync_all(struct recorder_syncer *s)
{
	int fds[RECORDER_TABLES + RECORDER_EXTRA_MAX], rc = 0;
	unsigned n = s->n;

	memcpy(fds, s->fds, sizeof(fds));
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < n; i++)
		/* EINVAL, EROFS: the file does not support synchronisation (fsync(2)) */
		if (fdatasync(fds[i]) != 0 && errno != EINVAL && errno != EROFS && !rc)
			rc = -errno;
	pthread_mutex_lock(&s->lock);
	return rc;
}

static void *sync_each_second(void *arg)
{
	struct recorder_syncer *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		const uint64_t until_ns = clock_mono_ns() + NS_PER_S;
		int rc;

		while (!s->stop && thread_cond_wait(&s->wake, &s->lock, until_ns))
			;
		rc = sync_all(s);
		if (!s->failed)
			s->failed = rc;
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int recorder_sync_start(struct recorder_syncer *s)
{
	int rc;

	pthread_mutex_init(&s->lock, NULL);
	thread_cond_init(&s->wake);
	rc = thread_start(&s->thread, "sync", 0, sync_each_second, s);
	s->running = rc == 0;
	return rc;
}

void recorder_sync_add(struct recorder_syncer *s, int fd)
{
	pthread_mutex_lock(&s->lock);
	s->fds[s->n++] = fd;
	pthread_mutex_unlock(&s->lock);
}

/* Ends the thread. 0: everything is on the disk; or negative errno. */
static int recorder_sync_stop(struct recorder_syncer *s)
{
	if (!s->running)
		return 0;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	s->running = false;
	return s->failed;
}

/* gpu-power.csv and power-external.csv: their columns, and the rule for a complete row. */

void recorder_gpu(struct recorder *r, const struct gpu_desc *d)
{
	r->gpu_fields = d->fields;
}

static void write_row(struct recorder *r, const struct gpu_row *row)
{
	int64_t v[GPU_FIELDS];
	unsigned n = 0;

	if ((row->present & r->gpu_fields) != r->gpu_fields) {
		r->gpu_dropped++;
		return;
	}
	for (unsigned f = 0; f < GPU_FIELDS; f++)
		if (r->gpu_fields & GPU_BIT(f))
			v[n++] = row->v[f];
	recorder_row(r, RECORDER_GPU, row->real_ns, v);
}

/* Fixes the fields of the file and writes the held rows. */
static void decide(struct recorder *r, uint32_t fields)
{
	const char *names[GPU_FIELDS];
	unsigned n = 0;

	r->gpu_known = true;
	r->gpu_fields = fields;
	for (unsigned f = 0; f < GPU_FIELDS; f++)
		if (fields & GPU_BIT(f))
			names[n++] = gpu_field_column((enum gpu_field)f);
	recorder_columns(r, RECORDER_GPU, names, n);
	for (unsigned i = 0; i < r->n_held; i++)
		write_row(r, &r->held[i]);
	r->n_held = 0;
}

/* Fixes the fields when no row was complete: a field that no row has gets no column. */
static void recorder_gpu_settle(struct recorder *r)
{
	uint32_t seen = 0;

	if (r->gpu_known || !r->n_held)
		return;
	for (unsigned i = 0; i < r->n_held; i++)
		seen |= r->held[i].present;
	decide(r, r->gpu_fields & seen);
}

/* Drops a row without power, because readers need that column. Slow values come a little later than the first
 * rows. */
void recorder_gpu_row(struct recorder *r, const struct gpu_row *row)
{
	if (!(row->present & GPU_BIT(GPU_POWER))) {
		r->gpu_dropped++;
	} else if (r->gpu_known) {
		write_row(r, row);
	} else if ((row->present & r->gpu_fields) == r->gpu_fields) {
		decide(r, r->gpu_fields);
		write_row(r, row);
	} else {
		r->held[r->n_held++] = *row;
		if (r->n_held == GPU_HELD)
			recorder_gpu_settle(r);
	}
}

uint64_t recorder_gpu_dropped(const struct recorder *r)
{
	return r->gpu_dropped;
}

int recorder_meters(struct recorder *r, const struct meter_desc *d, unsigned n, int64_t unit_uw)
{
	char text[METER_MAX_DEVICES * METER_MAX_CHANNELS][8];
	const char *names[METER_MAX_DEVICES * METER_MAX_CHANNELS];

	if (n > METER_MAX_DEVICES * METER_MAX_CHANNELS)
		return -ENOSPC;
	for (unsigned i = 0; i < n; i++) {
		r->channel[i].device = d[i].device;
		r->channel[i].channel = d[i].channel;
		snprintf(text[i], sizeof(text[i]), "d%uc%u", d[i].device % 10u, d[i].channel % 10u);
		names[i] = text[i];
	}
	r->n_channels = n;
	r->unit_uw = unit_uw;
	recorder_columns(r, RECORDER_EXTERNAL, names, n);
	return 0;
}

static int64_t in_unit(int64_t uw, int64_t unit_uw)
{
	return (uw + (uw < 0 ? -unit_uw : unit_uw) / 2) / unit_uw;
}

/* A new value of a channel replaces its value until all channels have one: rows go at the pace of the slowest. */
void recorder_meter_sample(struct recorder *r, const struct meter_sample *s)
{
	int64_t v[METER_MAX_DEVICES * METER_MAX_CHANNELS];
	bool whole = r->n_channels > 0;

	for (unsigned i = 0; i < r->n_channels; i++) {
		if (r->channel[i].device == s->device && r->channel[i].channel == s->channel) {
			r->channel[i].fresh = true;
			r->channel[i].uw = s->power_uw;
			r->meter_ns = s->real_ns > r->meter_ns ? s->real_ns : r->meter_ns;
		}
		whole &= r->channel[i].fresh;
		v[i] = in_unit(r->channel[i].uw, r->unit_uw);
	}
	if (!whole)
		return;
	recorder_row(r, RECORDER_EXTERNAL, r->meter_ns, v);
	for (unsigned i = 0; i < r->n_channels; i++)
		r->channel[i].fresh = false;
	r->meter_ns = 0;
}
