/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "segment.h"

#define MAX_BYTES ((uint64_t)256 << 20)
#define MIN_BYTES ((uint64_t)64 << 10)
#define SEGMENT_BYTES ((uint64_t)1 << 20)

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int by_number(const void *a, const void *b)
{
	const struct spool_segment *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static struct spool_segment *add_segment(struct spool *s, uint64_t number)
{
	struct spool_segment *grown;

	if (s->n_segments == s->cap_segments) {
		grown = reallocarray(s->segments, s->cap_segments * 2 + 16, sizeof(*grown));
		if (!grown)
			return NULL;
		s->segments = grown;
		s->cap_segments = s->cap_segments * 2 + 16;
	}
	s->segments[s->n_segments] = (struct spool_segment){ .number = number,
							     .oldest_ns = INT64_MAX,
							     .newest_ns = INT64_MIN };
	return &s->segments[s->n_segments++];
}

static void spool_cursor_save(struct spool *s);

/* The record is no longer among those that wait. A changed file may say more than there was. */
static void take_weight(struct spool_segment *g, uint32_t weight)
{
	g->weight -= weight < g->weight ? weight : g->weight;
}

/* Drops the first segment and returns how many waiting records are lost with it. The record that was taken is on its way:
 * spool_done or the next spool_next says whether it is lost. */
static uint64_t drop_segment(struct spool *s)
{
	uint64_t waiting = s->segments[0].waiting, lost = waiting;

	if (s->is_taken && s->taken.segment == s->segments[0].number && waiting) {
		s->taken_dropped = true;
		take_weight(&s->segments[0], s->taken.weight);
		lost--;
	}

	close_fd(&s->read_fd);
	if (s->n_segments == 1)
		close_fd(&s->write_fd);
	spool_file_remove(s, s->segments[0].number);
	s->stats.bytes -= s->segments[0].size;
	s->stats.waiting -= waiting;
	s->stats.dropped_weight += s->segments[0].weight;
	s->n_segments--;
	memmove(s->segments, s->segments + 1, s->n_segments * sizeof(*s->segments));
	s->read_at = SPOOL_FILE_HEAD;
	spool_cursor_save(s);
	return lost;
}

static int list_segments(struct spool *s)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	uint64_t number;
	int rc = 0;

	if (!d) {
		rc = -errno;
		close_fd(&fd);
		return rc;
	}
	while (!rc && (e = readdir(d)))
		if (spool_file_number(e->d_name, &number) == 0 && !add_segment(s, number))
			rc = -ENOMEM;
	closedir(d);
	if (s->n_segments)
		qsort(s->segments, s->n_segments, sizeof(*s->segments), by_number);
	return rc;
}

static int spool_cursor_open(struct spool *s, uint64_t *ret_segment, uint64_t *ret_at);

/* Takes over the segments of another run. Segments before the cursor are removed. */
static int take_over(struct spool *s)
{
	uint64_t segment = 0, at = 0;
	int rc = spool_cursor_open(s, &segment, &at);

	if (!rc)
		rc = list_segments(s);
	while (!rc && s->n_segments && s->segments[0].number < segment)
		drop_segment(s);
	s->read_at = s->n_segments && s->segments[0].number == segment && at > SPOOL_FILE_HEAD ? at : SPOOL_FILE_HEAD;
	for (unsigned i = 0; i < s->n_segments && !rc; i++)
		rc = spool_look_at(s, &s->segments[i], i ? SPOOL_FILE_HEAD : s->read_at, i + 1 == s->n_segments);
	s->next_number = s->n_segments ? s->segments[s->n_segments - 1].number + 1 : segment + 1;
	/* the file is shorter than the cursor says: records appended from now on have not been taken */
	if (!rc && s->n_segments && s->read_at > SPOOL_FILE_HEAD && s->read_at > s->segments[0].size) {
		s->read_at = s->segments[0].size > SPOOL_FILE_HEAD ? s->segments[0].size : SPOOL_FILE_HEAD;
		spool_cursor_save(s);
	}
	return rc;
}

static int open_dir(struct spool *s, const char *dir)
{
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return -errno;
	s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return -errno;
	s->lock_fd = openat(s->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return -errno;
	return flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? -EBUSY : -errno;
}

int spool_open(const struct spool_options *o, struct spool **ret, struct err *err)
{
	struct spool *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_set(err, -ENOMEM, "spool %s: out of memory; free some", o->dir);
	pthread_mutex_init(&s->lock, NULL);
	s->dir = s->lock_fd = s->cursor_fd = s->write_fd = s->read_fd = -1;
	s->max_bytes = o->max_bytes ? o->max_bytes : MAX_BYTES;
	if (s->max_bytes < MIN_BYTES)
		s->max_bytes = MIN_BYTES;
	s->max_age_ns = o->max_age_ns;
	s->segment_bytes = s->max_bytes / 64 < SEGMENT_BYTES ? s->max_bytes / 64 : SEGMENT_BYTES;
	rc = open_dir(s, o->dir);
	if (!rc)
		rc = take_over(s);
	if (!rc) {
		*ret = s;
		return 0;
	}
	spool_close(s);
	return rc == -EBUSY ?
		       err_set(err, rc,
			       "spool %s: in use by another output or process; restart jouled, or give each its own state-dir",
			       o->dir) :
		       err_set(err, rc, "spool %s: %s; mend it or name another state-dir", o->dir, strerror(-rc));
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	close_fd(&s->write_fd);
	close_fd(&s->read_fd);
	close_fd(&s->cursor_fd);
	close_fd(&s->lock_fd);
	close_fd(&s->dir);
	pthread_mutex_destroy(&s->lock);
	free(s->segments);
	free(s);
}

static int begin_segment(struct spool *s)
{
	struct spool_segment *g;
	int fd = spool_file_open(s, s->next_number, O_RDWR | O_CREAT | O_TRUNC), rc;

	if (fd < 0)
		return fd;
	rc = spool_write_all(fd, spool_file_head, sizeof(spool_file_head), 0);
	g = rc ? NULL : add_segment(s, s->next_number);
	if (!g) {
		close(fd);
		spool_file_remove(s, s->next_number);
		return rc ? rc : -ENOMEM;
	}
	close_fd(&s->write_fd);
	s->write_fd = fd;
	s->next_number++;
	g->size = SPOOL_FILE_HEAD;
	s->stats.bytes += g->size;
	return 0;
}

static struct spool_segment *last_segment(struct spool *s)
{
	return s->n_segments ? &s->segments[s->n_segments - 1] : NULL;
}

static bool too_old(const struct spool *s, int64_t real_ns, int64_t now_ns)
{
	return s->max_age_ns && now_ns > real_ns && (uint64_t)now_ns - (uint64_t)real_ns > s->max_age_ns;
}

/* Removes segments that are too old, even while no thread takes records. */
static void drop_old(struct spool *s, int64_t now_ns)
{
	while (s->n_segments && s->segments[0].waiting && too_old(s, s->segments[0].newest_ns, now_ns))
		s->stats.dropped_old += drop_segment(s);
}

/* True when a segment is full, or covers so much time that its old records would stay because of newer ones. */
static bool ends(const struct spool *s, const struct spool_segment *g, size_t need, int64_t real_ns)
{
	if (g->unreadable || g->size < SPOOL_FILE_HEAD ||
	    g->size + need > (s->segment_bytes > need ? s->segment_bytes : need + SPOOL_FILE_HEAD))
		return true;
	return s->max_age_ns && g->waiting && real_ns > g->oldest_ns &&
	       (uint64_t)real_ns - (uint64_t)g->oldest_ns > s->max_age_ns / 16;
}

static int open_last(struct spool *s, size_t need, int64_t real_ns)
{
	struct spool_segment *g = last_segment(s);

	if (!g || ends(s, g, need, real_ns))
		return begin_segment(s);
	if (s->write_fd < 0)
		s->write_fd = spool_file_open(s, g->number, O_RDWR);
	return s->write_fd < 0 ? s->write_fd : 0;
}

/* In one call, where that takes all. */
static int write_parts(int fd, const struct spool_head *h, const void *data, uint64_t at)
{
	const struct iovec parts[] = { { (void *)h, SPOOL_HEAD }, { (void *)data, h->len } };
	int rc;

	if (pwritev(fd, parts, 2, (off_t)at) == (ssize_t)(SPOOL_HEAD + h->len))
		return 0;
	rc = spool_write_all(fd, h, SPOOL_HEAD, at);
	return rc ? rc : spool_write_all(fd, data, h->len, at + SPOOL_HEAD);
}

/* Writes the whole record or nothing. */
static int write_record(struct spool *s, const struct spool_head *h, const void *data)
{
	struct spool_segment *g;
	int rc = open_last(s, SPOOL_HEAD + h->len, h->real_ns);

	if (rc)
		return rc;
	g = last_segment(s);
	rc = write_parts(s->write_fd, h, data, g->size);
	if (rc) {
		if (ftruncate(s->write_fd, (off_t)g->size) != 0)
			close_fd(&s->write_fd);
		return rc;
	}
	g->size += SPOOL_HEAD + h->len;
	spool_counted(g, h->real_ns, h->weight);
	s->stats.bytes += SPOOL_HEAD + h->len;
	s->stats.waiting++;
	return 0;
}

static void make_room(struct spool *s, size_t need)
{
	while (s->n_segments && s->stats.bytes + need + SPOOL_FILE_HEAD > s->max_bytes) {
		s->stats.dropped_full += drop_segment(s);
		s->stats.error = 0;
	}
}

int spool_append(struct spool *s, int64_t real_ns, const void *data, size_t len)
{
	return spool_append_weighed(s, real_ns, 0, data, len);
}

int spool_append_weighed(struct spool *s, int64_t real_ns, uint32_t weight, const void *data, size_t len)
{
	struct spool_head h = { .magic = SPOOL_MAGIC, .len = (uint32_t)len, .weight = weight, .real_ns = real_ns };
	int rc = len > SPOOL_RECORD_MAX || len + SPOOL_HEAD + SPOOL_FILE_HEAD > s->max_bytes / 2 ? -EMSGSIZE : 0;

	if (!rc)
		h.crc = spool_crc(&h, data);
	pthread_mutex_lock(&s->lock);
	drop_old(s, real_ns);
	if (!rc) {
		make_room(s, SPOOL_HEAD + len);
		rc = write_record(s, &h, data);
	}
	s->stats.error = rc ? rc : s->stats.error;
	/* The disk is full: drop the oldest segment for the new record. All that waits is not given up for one. */
	while ((rc == -ENOSPC || rc == -EDQUOT) && s->n_segments > 1) {
		s->stats.dropped_full += drop_segment(s);
		rc = write_record(s, &h, data);
	}
	s->stats.dropped_full += rc != 0;
	s->stats.dropped_weight += rc ? weight : 0;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* Reads one record of the first segment. -ENOENT: the segment ends; -EAGAIN: the record was skipped. */
static int read_record(struct spool *s, int64_t now_ns, struct buf *out, struct spool_mark *ret)
{
	struct spool_segment *g = &s->segments[0];
	struct spool_head h;
	uint64_t at = s->read_at;
	uint8_t *to;
	int rc = spool_find(s->read_fd, &at, g->size, &h, &s->stats.damaged_bytes);

	s->read_at = at;
	if (rc)
		return rc;
	if (too_old(s, h.real_ns, now_ns)) {
		s->read_at += SPOOL_HEAD + h.len;
		s->stats.dropped_old++;
		s->stats.dropped_weight += h.weight;
		take_weight(g, h.weight);
		g->waiting -= g->waiting > 0;
		s->stats.waiting -= s->stats.waiting > 0;
		return -EAGAIN;
	}
	to = buf_reserve(out, h.len);
	if (!to)
		return -ENOMEM;
	rc = spool_read_all(s->read_fd, to, h.len, at + SPOOL_HEAD);
	if (rc)
		return rc;
	if (spool_crc(&h, to) != h.crc) {
		s->read_at++; /* look for the next record after this magic */
		s->stats.damaged_bytes++;
		return -EAGAIN;
	}
	out->len += h.len;
	*ret = (struct spool_mark){ g->number, at + SPOOL_HEAD + h.len, h.weight };
	return 0;
}

/* Called when the first segment is read to its end. */
static void leave_segment(struct spool *s)
{
	s->stats.waiting -= s->segments[0].waiting; /* records that were damaged */
	s->segments[0].waiting = 0;
	if (s->n_segments > 1)
		drop_segment(s);
}

/* Drops the first segment when its file is gone, cut or unreadable, so that later segments do not wait for it. */
static void lose_segment(struct spool *s)
{
	s->stats.damaged_bytes += s->segments[0].size > s->read_at ? s->segments[0].size - s->read_at : 0;
	drop_segment(s);
}

/* Reads the next record of the first segment. -EAGAIN: the first segment or the offset has changed; try again. */
static int next_record(struct spool *s, int64_t now_ns, struct buf *out, struct spool_mark *ret)
{
	int rc;

	if (s->read_fd < 0)
		s->read_fd = spool_file_open(s, s->segments[0].number, O_RDONLY);
	rc = s->read_fd < 0 ? s->read_fd : read_record(s, now_ns, out, ret);
	if (rc == -EIO || rc == -ENODATA || (rc == -ENOENT && s->read_fd < 0)) {
		lose_segment(s);
		return -EAGAIN;
	}
	if (rc != -ENOENT)
		return rc;
	leave_segment(s);
	return s->read_fd < 0 ? -EAGAIN : -ENOENT; /* the segment was dropped: read the next one */
}

int spool_next(struct spool *s, int64_t now_ns, struct buf *out, struct spool_mark *ret)
{
	int rc = -EAGAIN;

	pthread_mutex_lock(&s->lock);
	if (s->taken_dropped) { /* it is asked for again, but it is gone */
		s->stats.dropped_full++;
		s->stats.dropped_weight += s->taken.weight;
	}
	s->is_taken = s->taken_dropped = false;
	drop_old(s, now_ns);
	while (rc == -EAGAIN && s->n_segments)
		rc = next_record(s, now_ns, out, ret);
	if (!rc) {
		s->is_taken = true;
		s->taken = *ret;
	}
	pthread_mutex_unlock(&s->lock);
	return rc == -EAGAIN ? -ENOENT : rc;
}

void spool_done(struct spool *s, const struct spool_mark *m)
{
	pthread_mutex_lock(&s->lock);
	s->is_taken = s->taken_dropped = false;
	/* its segment may have been dropped meanwhile to make room */
	if (s->n_segments && s->segments[0].number == m->segment && m->end > s->read_at) {
		s->read_at = m->end;
		s->segments[0].waiting -= s->segments[0].waiting > 0;
		take_weight(&s->segments[0], m->weight);
		s->stats.waiting -= s->stats.waiting > 0;
		spool_cursor_save(s);
	}
	pthread_mutex_unlock(&s->lock);
}

void spool_sync(struct spool *s)
{
	int fd, rc;

	pthread_mutex_lock(&s->lock);
	fd = s->write_fd < 0 ? -1 : fcntl(s->write_fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&s->lock);
	if (fd < 0)
		return;
	rc = fdatasync(fd) ? -errno : 0;
	close(fd);
	pthread_mutex_lock(&s->lock);
	s->stats.sync_error = rc;
	pthread_mutex_unlock(&s->lock);
}

void spool_get_stats(struct spool *s, struct spool_stats *ret)
{
	pthread_mutex_lock(&s->lock);
	*ret = s->stats;
	pthread_mutex_unlock(&s->lock);
}

/* The cursor: how far records were taken. If it is lost, some records are sent again. */

struct slot {
	uint64_t turn, segment, at;
	uint32_t crc, zero;
};

static uint32_t slot_crc(const struct slot *s)
{
	return crc32_gzip_refl(0, (const uint8_t *)s, offsetof(struct slot, crc));
}

/* Opens the cursor. *ret_segment and *ret_at are 0 when there is none. */
static int spool_cursor_open(struct spool *s, uint64_t *ret_segment, uint64_t *ret_at)
{
	struct slot slot;

	s->cursor_fd = openat(s->dir, "cursor", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->cursor_fd < 0)
		return -errno;
	*ret_segment = *ret_at = 0;
	for (unsigned i = 0; i < 2; i++) {
		if (spool_read_all(s->cursor_fd, &slot, sizeof(slot), i * sizeof(slot)) != 0 ||
		    slot.crc != slot_crc(&slot) || slot.turn < s->cursor_turn)
			continue;
		s->cursor_turn = slot.turn;
		*ret_segment = slot.segment;
		*ret_at = slot.at;
	}
	return 0;
}

static void spool_cursor_save(struct spool *s)
{
	struct slot slot = { .turn = ++s->cursor_turn, .at = s->read_at };

	slot.segment = s->n_segments ? s->segments[0].number : s->next_number;
	slot.crc = slot_crc(&slot);
	/* a full disk must not matter: the first two saves allocate both slots */
	(void)spool_write_all(s->cursor_fd, &slot, sizeof(slot), slot.turn % 2 * sizeof(slot));
}
