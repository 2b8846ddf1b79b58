/* SPDX-License-Identifier: Apache-2.0 */
#include "note.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "store/recorder/recorder.h"

#define PREFIX "_limits-"
#define NOTES_MAX 1000
#define TEXT_MAX 8192
#define LINE \
	"%95s %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32

static bool lock(struct record_note *n)
{
	struct stat st;

	n->fd = open(n->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (n->fd >= 0 && (flock(n->fd, LOCK_EX | LOCK_NB) == 0 || errno == EOPNOTSUPP)) {
		if (fstat(n->fd, &st) == 0 && st.st_nlink > 0)
			return true;
		errno = ENOENT; /* another process has found it empty and removed it before it was locked */
	}
	record_note_close(n);
	return false;
}

int record_note_lock_root(const char *root, int *ret_fd, struct err *err)
{
	int rc = recorder_make_dirs(root, err);

	*ret_fd = -1;
	if (rc)
		return rc;
	*ret_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0)
		return err_set(err, -errno, "%.300s: %s; name another --root", root, strerror(errno));
	do
		rc = flock(*ret_fd, LOCK_EX) == 0 ? 0 : -errno;
	while (rc == -EINTR);
	if (rc != -EOPNOTSUPP && rc != -ENOLCK)
		return rc ? err_set(err, rc, "%.300s: it cannot be locked: %s; name another --root", root,
				    strerror(-rc)) :
			    0;
	close(*ret_fd);
	*ret_fd = -1;
	return 0;
}

int record_note_make(const char *root, struct record_note *ret, struct err *err)
{
	char full[PATH_MAX];
	int rc = 0;

	ret->fd = -1;
	if (!realpath(root, full))
		return err_set(err, -errno, "%.300s: %s; name another --root", root, strerror(errno));
	for (unsigned i = 0; i < NOTES_MAX; i++) {
		if (snprintf(ret->path, sizeof(ret->path), "%s/" PREFIX "%d-%u", full, (int)getpid(), i) >=
		    (int)sizeof(ret->path))
			return err_set(err, -ENAMETOOLONG, "%.300s: the path is too long; name a shorter --root", root);
		if (mkdir(ret->path, 0700) == 0) {
			if (lock(ret))
				return 0;
			rc = errno;
			rmdir(ret->path);
			errno = rc;
		}
		if (errno != EEXIST && errno != EWOULDBLOCK && errno != ENOENT)
			break;
	}
	return err_write(err, -errno, root, "limits cannot be noted there");
}

static void print(FILE *f, const struct guard_gpu *g)
{
	fprintf(f, "%s %u %u %u %u %u %u %u %u %u\n", g->uuid, g->power_mw, g->mem_mhz, g->gpu_mhz, g->set[0].power_mw,
		g->set[1].power_mw, g->set[0].mem_mhz, g->set[1].mem_mhz, g->set[0].gpu_mhz, g->set[1].gpu_mhz);
}

int record_note_write(const struct record_note *n, const struct guard_state *s, struct err *err)
{
	int fd = openat(n->fd, "limits.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), rc;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "we");

	for (unsigned i = 0; f && i < s->n; i++)
		print(f, &s->gpu[i]);
	rc = !f || fflush(f) != 0 || fsync(fd) != 0 ? -errno : 0;
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	if (!rc && renameat(n->fd, "limits.new", n->fd, "limits") != 0)
		rc = -errno;
	if (!rc)
		fsync(n->fd);
	return rc ? err_write(err, rc, n->path, "what the limits were cannot be noted, so none is set") : 0;
}

int record_note_parse(const char *text, struct guard_state *ret)
{
	*ret = (struct guard_state){ 0 };
	while (*text && ret->n < RECORD_LIMITED_MAX) {
		struct guard_gpu *g = &ret->gpu[ret->n];
		size_t len = strcspn(text, "\n");
		char line[256];

		if (text[len] != '\n' || len >= sizeof(line))
			return -EBADMSG;
		memcpy(line, text, len);
		line[len] = '\0';
		if (sscanf(line, LINE, g->uuid, &g->power_mw, &g->mem_mhz, &g->gpu_mhz, &g->set[0].power_mw,
			   &g->set[1].power_mw, &g->set[0].mem_mhz, &g->set[1].mem_mhz, &g->set[0].gpu_mhz,
			   &g->set[1].gpu_mhz) != 10)
			return -EBADMSG;
		for (const char *c = g->uuid; *c; c++)
			if (!isgraph((unsigned char)*c))
				return -EBADMSG;
		ret->n++;
		text += len + 1;
	}
	return *text ? -EBADMSG : 0;
}

/* A note without its file has nothing to put back: its recording was killed before it set a limit. */
int record_note_read(const struct record_note *n, struct guard_state *ret, struct err *err)
{
	int fd = openat(n->fd, "limits", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[TEXT_MAX];
	size_t size = 0;
	ssize_t got = 0;

	*ret = (struct guard_state){ 0 };
	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(err, -errno, "%s; look at its permissions", strerror(errno));
	while (size < sizeof(text) - 1 && (got = read(fd, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)got;
	close(fd);
	text[size] = '\0';
	if (got < 0 || strlen(text) != size || record_note_parse(text, ret) != 0)
		return err_set(err, -EBADMSG, "no note of limits; look at nvidia-smi -q -d POWER,CLOCK and remove it");
	return 0;
}

void record_note_remove(const struct record_note *n)
{
	unlinkat(n->fd, "limits.new", 0);
	unlinkat(n->fd, "limits", 0);
	rmdir(n->path);
}

void record_note_close(struct record_note *n)
{
	int saved = errno;

	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
	errno = saved;
}

static int only_notes(const struct dirent *e)
{
	return strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1) == 0;
}

/* Refuses a note of another user, unless that is root: it must not decide about limits. */
static int check_owner(struct record_note *n, struct err *err)
{
	struct stat st;

	if (fstat(n->fd, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()))
		return 0;
	record_note_close(n);
	return err_set(err, -EPERM, "it belongs to another user; that user can recover it");
}

int record_note_next(const char *root, char after[NAME_MAX + 1], struct record_note *ret, struct err *err)
{
	struct dirent **list;
	int n = scandir(root, &list, only_notes, versionsort), rc = -ENOENT;

	ret->fd = -1;
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;

		if (rc == -ENOENT && strverscmp(name, after) > 0 &&
		    snprintf(ret->path, sizeof(ret->path), "%s/%s", root, name) < (int)sizeof(ret->path) && lock(ret)) {
			snprintf(after, NAME_MAX + 1, "%s", name);
			rc = check_owner(ret, err);
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return rc;
}

static const char *same_gpu(const struct guard_state *a, const struct guard_state *b)
{
	for (unsigned i = 0; i < a->n; i++)
		for (unsigned k = 0; k < b->n; k++)
			if (strcmp(a->gpu[i].uuid, b->gpu[k].uuid) == 0)
				return a->gpu[i].uuid;
	return NULL;
}

/* A note counts only while a process holds its lock, and when root or this user wrote it. */
static bool is_in_use(struct record_note *n)
{
	return n->fd >= 0 && check_owner(n, NULL) == 0 && flock(n->fd, LOCK_EX | LOCK_NB) != 0;
}

const char *record_note_in_use(const char *root, const struct guard_state *s)
{
	struct dirent **list;
	int n = scandir(root, &list, only_notes, versionsort);
	const char *used = NULL;
	struct record_note note;
	struct guard_state other;

	for (int i = 0; i < n; i++) {
		snprintf(note.path, sizeof(note.path), "%s/%s", root, list[i]->d_name);
		note.fd = open(note.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (is_in_use(&note) && record_note_read(&note, &other, NULL) == 0 && !used)
			used = same_gpu(s, &other);
		record_note_close(&note);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return used;
}
