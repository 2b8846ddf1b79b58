/* SPDX-License-Identifier: Apache-2.0 */
/* A repetition from its staged directory to its place.
 *
 * root/experiment/benchmark/_staged-PID-N/RUN/ holds the files while they grow; RUN is renamed to
 * root/experiment/benchmark/RUN/NUMBER. Names with _ in front are skipped at the level of runs, not at that of
 * repetitions, so the staging lies beside RUN, not in it, and nothing but its name tells where it belongs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "recorder_internal.h"

#define STAGED_TRIES 10000

void recorder_fail(struct recorder *r, int code, const char *what)
{
	if (!r->failed.code)
		err_set(&r->failed, code, "%.300s/%s: %s; %s", r->path, what, strerrordesc_np(-code),
			code == -ENOSPC || code == -EDQUOT ? "make room on that disk" :
							     "look at that disk and its mount");
}

static int parent_of(const struct recorder_place *p, char *ret)
{
	int n = p->benchmark ? snprintf(ret, RECORDER_PATH_MAX, "%s/%s/%s", p->root, p->experiment, p->benchmark) :
			       snprintf(ret, RECORDER_PATH_MAX, "%s/%s", p->root, p->experiment);

	return n < RECORDER_PATH_MAX - 256 ? 0 : -ENAMETOOLONG;
}

/* A process that was killed has left its own under the same number, and then the next is free. The lock tells
 * recovery that somebody is at work. */
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
			/* recovery was here between the two, and takes it away, or has */
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
	int code = parent_of(&r->place, parent);

	if (code)
		return err_set(err, code, "%.300s: the path is too long; name a shorter --root", r->place.root);
	code = recorder_make_dirs(parent, err);
	if (code)
		return code;
	code = make_around(r, parent);
	if (!code && snprintf(r->path, sizeof(r->path), "%s/%s", r->around, r->place.run) >= (int)sizeof(r->path))
		code = -ENAMETOOLONG;
	if (!code && mkdir(r->path, 0777) != 0)
		code = -errno;
	if (!code)
		r->dir_fd = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!code && r->dir_fd < 0)
		code = -errno;
	return code ? err_set(err, code,
			      "%.300s: no directory can be made there: %s; name another --root, or make room", parent,
			      strerror(-code)) :
		      0;
}

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

int recorder_open(const struct recorder_place *p, struct recorder **ret, struct err *err)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int code = 0;

	if (!r)
		return err_set(err, -ENOMEM, "record: out of memory; free some");
	r->around_fd = r->dir_fd = -1;
	for (unsigned t = 0; t < RECORDER_TABLES; t++)
		r->csv[t].fd = -1;
	if (!copy_place(&r->place, p))
		code = err_set(err, -ENOMEM, "record: out of memory; free some");
	if (!code)
		code = stage(r, err);
	if (!code && recorder_sync_start(&r->sync) != 0)
		code = err_set(err, -EAGAIN, "record: no thread can be made; raise the limit of processes");
	if (!code) {
		*ret = r;
		return 0;
	}
	if (r->around_fd >= 0)
		recorder_remove_tree(r->around);
	release(r);
	return code;
}

const char *recorder_path(const struct recorder *r)
{
	return r->path;
}

const char *recorder_around(const struct recorder *r)
{
	return r->around;
}

/* By rename as well: there is an old one or a new one. */
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
	int code;

	for (unsigned t = 0; t < RECORDER_TABLES; t++)
		if (r->csv[t].out.len)
			recorder_csv_flush(r, (enum recorder_table)t);
	pthread_mutex_lock(&r->sync.lock);
	code = r->sync.failed;
	pthread_mutex_unlock(&r->sync.lock);
	if (code)
		recorder_fail(r, code, "");
	if (r->failed.code && err)
		*err = r->failed;
	return r->failed.code;
}

int recorder_publish(struct recorder *r, unsigned *ret_number, struct err *err)
{
	char parent[RECORDER_PATH_MAX], to[RECORDER_PATH_MAX];
	int code, synced;

	recorder_gpu_settle(r);
	code = recorder_flush(r, err);
	synced = recorder_sync_stop(&r->sync);
	if (!code && synced) {
		recorder_fail(r, synced, "");
		*err = r->failed;
		code = synced;
	}
	if (!code)
		code = parent_of(&r->place, parent);
	recorder_trim_snapshots(r->dir_fd);
	if (!code)
		code = recorder_rename(parent, r->around, r->place.run, to, ret_number, err);
	release(r);
	return code;
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
