/* SPDX-License-Identifier: Apache-2.0 */
/* The writer thread. A regular file only ever holds whole documents. After a short write the file is cut back
 * to the start of the document, and the document is dropped and counted. The next document is tried again, so
 * writing continues by itself once there is room. */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define DISK_STACK_BYTES (128u << 10)
#define DISK_POLL_MS 100 /* how often a blocked pipe checks whether to give up */
#define DISK_GRACE_NS (300 * NS_PER_MS) /* time for the writer to notice that it shall stop */

struct disk {
	struct sink s;
	/* Not a condition: glibc takes the lock after a wait as if others wanted it, and giving it back is a call then. */
	sem_t work;
	pthread_t thread;
	bool stop, finished, orphan; /* under s.lock */
	atomic_bool give_up;
	/* members of the writer thread only */
	int fd;
	char *path;
	struct stat is; /* what fd is: type, device, inode; of a regular file the size before the next document, too */
	bool greeted; /* not a regular file: the preamble is written */
	off_t cut; /* a torn document begins here; -1 = none */
	int stays; /* why the file is written that was opened before and not the one of that name; 0 = it is the same */
	int last, last_stays; /* result of the last document, and stays then */
};

static void disk_free(struct disk *d)
{
	if (d->fd >= 0)
		close(d->fd);
	free(d->path);
	sem_destroy(&d->work);
	sink_fini(&d->s);
	free(d);
}

/* Removes the torn document, unless another process has written after it. */
static int disk_cut(struct disk *d)
{
	if (d->cut < 0)
		return 0;
	if (ftruncate(d->fd, d->cut) != 0)
		return -errno;
	/* Without O_APPEND (a redirected stdout) the next write would leave a hole. */
	if (lseek(d->fd, d->cut, SEEK_SET) < 0)
		return -errno;
	d->is.st_size = d->cut;
	d->cut = -1;
	return 0;
}

static void disk_torn(struct disk *d, size_t written)
{
	struct stat st;
	off_t end = lseek(d->fd, 0, SEEK_CUR);

	if (end < (off_t)written || fstat(d->fd, &st) != 0 || st.st_size != end)
		return;
	d->cut = end - (off_t)written;
	disk_cut(d);
}

/* Writes once. It blocks only on a disk; elsewhere poll tells when PIPE_BUF bytes have room. */
static ssize_t disk_write_some(struct disk *d, const uint8_t *data, size_t len)
{
	struct pollfd p = { .fd = d->fd, .events = POLLOUT };
	ssize_t n;

	if (S_ISREG(d->is.st_mode)) {
		n = write(d->fd, data, len);
		return n < 0 ? -errno : n;
	}
	n = poll(&p, 1, DISK_POLL_MS);
	if (n <= 0)
		return atomic_load(&d->give_up) ? -ECANCELED : -EAGAIN;
	if (len > PIPE_BUF)
		len = PIPE_BUF;
	n = S_ISSOCK(d->is.st_mode) ? send(d->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) : write(d->fd, data, len);
	return n < 0 ? -errno : n;
}

static int disk_write_all(struct disk *d, const struct doc *doc)
{
	size_t done = 0;

	while (done < doc->len) {
		ssize_t n = disk_write_some(d, doc->data + done, doc->len - done);

		if (n == -EINTR || (n == -EAGAIN && !S_ISREG(d->is.st_mode)))
			continue;
		if (n <= 0) {
			if (done && S_ISREG(d->is.st_mode))
				disk_torn(d, done);
			return n ? (int)n : -EIO;
		}
		done += (size_t)n;
	}
	return 0;
}

/* Takes the file that is opened now. 0, or negative errno and the one before is kept. */
static int disk_reopen(struct disk *d, int fd)
{
	struct stat st;
	int rc;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	if (d->fd >= 0)
		close(d->fd);
	d->fd = fd;
	d->cut = -1;
	d->greeted = false;
	d->is = st;
	return 0;
}

/* Opens a FIFO again, which was closed when its reader left. One that stayed open would give the next reader the rest of a
 * document. 0; -EPIPE: there is no reader yet, or no FIFO; or another negative errno. */
static int disk_meet_reader(struct disk *d)
{
	int fd = open(d->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return errno == ENXIO ? -EPIPE : -errno;
	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		return disk_reopen(d, fd);
	close(fd);
	return -EPIPE;
}

/* Opens the file again under its name when it was moved or removed (log rotation). The one look tells its size, too. When
 * that fails, a file that has a name still is written on. 0, or negative errno: the file that is open has no name. */
static int disk_follow(struct disk *d)
{
	struct stat there, here;

	if (!S_ISREG(d->is.st_mode))
		return d->fd < 0 ? disk_meet_reader(d) : 0;
	if (!d->path) {
		if (fstat(d->fd, &here) == 0)
			d->is = here;
		return 0;
	}
	if (stat(d->path, &there) == 0 && there.st_ino == d->is.st_ino && there.st_dev == d->is.st_dev) {
		d->is = there;
		d->stays = 0;
		return 0;
	}
	d->stays = disk_reopen(d, disk_open_file(d->path, false));
	if (!d->stays || fstat(d->fd, &here) != 0)
		return d->stays;
	d->is = here;
	return here.st_nlink ? 0 : d->stays;
}

static int disk_greet(struct disk *d)
{
	/* Each time, because a rotation may have emptied the file in place. */
	bool wanted = S_ISREG(d->is.st_mode) ? d->is.st_size == 0 : !d->greeted;
	int rc = 0;

	uint32_t epoch; /* never moves: its sink cannot be restarted */
	struct doc *hello = wanted ? sink_preamble(&d->s, &epoch) : NULL;
	if (hello)
		rc = disk_write_all(d, hello);
	doc_unref(hello);
	if (!rc)
		d->greeted = true;
	return rc;
}

static int disk_write_doc(struct disk *d, const struct doc *doc)
{
	int rc = disk_follow(d);

	if (!rc)
		rc = disk_cut(d);
	if (!rc)
		rc = disk_greet(d);
	if (!rc)
		rc = disk_write_all(d, doc);
	if (rc == -EPIPE && d->path && d->fd >= 0 && S_ISFIFO(d->is.st_mode)) {
		close(d->fd);
		d->fd = -1;
	}
	return rc;
}

static void disk_say(struct disk *d, int rc)
{
	const char *name = d->path ? d->path : "stdout";

	if (rc == d->last && d->stays == d->last_stays)
		return;
	d->last = rc;
	d->last_stays = d->stays;
	if (!rc && d->stays) {
		sink_state(&d->s, false, "%.40s was moved and is still written; a new one does not open: %s; %s", name,
			   strerrordesc_np(-d->stays), err_write_remedy(d->stays));
		return;
	}
	if (!rc) {
		sink_state(&d->s, true, "writing %.120s", name);
		return;
	}
	if (rc == -ECANCELED) {
		sink_failed(&d->s, 0, "its reader is too slow");
		sink_state(&d->s, false, "%.80s: its reader is too slow; let it read faster", name);
		return;
	}
	sink_failed(&d->s, rc, strerrordesc_np(-rc));
	sink_state(&d->s, false, "%.60s: %s; %s", name, strerrordesc_np(-rc), err_write_remedy(rc));
}

/* Some file systems report only at close() that they could not store data. */
static void disk_shut(struct disk *d)
{
	int rc = close(d->fd) == 0 || errno == EINTR || errno == EBADF ? 0 : -errno;

	d->fd = -1;
	if (!rc)
		return;
	sink_failed(&d->s, rc, strerrordesc_np(-rc));
	pthread_mutex_lock(&d->s.lock);
	d->s.stats.dropped_documents++; /* at least one */
	pthread_mutex_unlock(&d->s.lock);
}

static void *disk_thread(void *arg)
{
	struct disk *d = arg;
	struct doc *doc;

	for (;;) {
		pthread_mutex_lock(&d->s.lock);
		doc = atomic_load(&d->give_up) ? NULL : doc_list_take(&d->s.inbox);
		bool stop = d->stop;
		pthread_mutex_unlock(&d->s.lock);
		if (!doc && stop)
			break;
		if (!doc) {
			sem_wait(&d->work);
			continue;
		}
		int rc = disk_write_doc(d, doc);
		disk_say(d, rc);
		/* the reader of a pipe left on its own */
		sink_done(&d->s, doc, !rc ? SINK_DELIVERED : rc == -EPIPE ? SINK_LEFT : SINK_DROPPED);
	}
	disk_shut(d);
	pthread_mutex_lock(&d->s.lock);
	d->finished = true;
	bool orphan = d->orphan;
	pthread_cond_broadcast(&d->s.changed);
	pthread_mutex_unlock(&d->s.lock);
	if (orphan)
		disk_free(d);
	return NULL;
}

int disk_start(const struct sink_ops *ops, int fd, const char *path, const struct sink_options *o, struct sink **ret)
{
	struct disk *d = calloc(1, sizeof(*d));
	int rc = -ENOMEM;

	if (!d)
		return -ENOMEM;
	d->fd = -1;
	d->cut = -1;
	d->last = 1;
	sem_init(&d->work, 0, 0);
	if (sink_init(&d->s, ops, o->queue_bytes) || (path && !(d->path = strdup(path))))
		goto fail;
	rc = fstat(fd, &d->is) ? -errno : 0;
	if (rc)
		goto fail;
	disk_say(d, 0);
	d->fd = fd;
	rc = thread_start(&d->thread, "jouled-disk", DISK_STACK_BYTES, disk_thread, d);
	if (rc) {
		d->fd = -1;
		goto fail;
	}
	*ret = &d->s;
	return 0;
fail:
	disk_free(d);
	return rc;
}

void disk_wake(struct sink *s)
{
	sem_post(&((struct disk *)s)->work);
}

void disk_close(struct sink *s, uint64_t deadline_ns)
{
	struct disk *d = (struct disk *)s;

	pthread_mutex_lock(&s->lock);
	d->stop = true;
	sem_post(&d->work);
	while (!d->finished && sink_wait(s, deadline_ns))
		;
	atomic_store(&d->give_up, true);
	uint64_t grace = clock_mono_ns() + DISK_GRACE_NS;
	while (!d->finished && sink_wait(s, grace))
		;
	/* The thread hangs in write(). It frees its memory itself if write() ever returns. */
	d->orphan = !d->finished;
	bool orphan = d->orphan;
	pthread_t thread = d->thread;
	if (orphan)
		sink_settle(s);
	pthread_mutex_unlock(&s->lock);
	if (orphan) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	disk_free(d);
}
