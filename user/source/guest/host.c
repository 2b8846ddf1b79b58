/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/thread.h"
#include "host_internal.h"

#define STACK_BYTES (128u << 10)
#define CONNECT_MS 3000
#define BACKOFF_FIRST_MS 250u
#define BACKOFF_LAST_MS 16000u
#define SILENT_MS 30000 /* at least, and ten intervals: the connection is dead */
#define READS 64 /* before what came is looked at: a port may have kept hours of it */

struct host {
	const struct fsroot *root;
	char *place;
	struct host_totals totals; /* this and the rest up to the thread's: under the lock */
	unsigned n_warnings;
	char warning[HOST_WARNINGS][240];
	pthread_mutex_t lock;
	pthread_t thread;
	bool started, stop;
	int wake_fd;
	/* the thread's, and before it starts the opener's */
	int fd; /* -1 = not connected */
	bool away; /* that it cannot be reached was told */
	unsigned backoff_ms;
	struct host_lines lines;
	struct share share; /* as last told */
	char bytes[4096];
};

static void warn(struct host *h, const char *what, const char *why)
{
	pthread_mutex_lock(&h->lock);
	if (h->n_warnings < HOST_WARNINGS)
		snprintf(h->warning[h->n_warnings++], sizeof(h->warning[0]), "host %.100s: %s%s", h->place, what, why);
	pthread_mutex_unlock(&h->lock);
}

/* 0 = more may come, -EPIPE = the other side has left, or -errno. *ret_any: a line is in h->share. */
static int drain(struct host *h, bool *ret_any)
{
	for (unsigned i = 0; i < READS; i++) {
		ssize_t n = read(h->fd, h->bytes, sizeof(h->bytes));

		if (n == 0)
			return -EPIPE;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		host_lines_add(&h->lines, h->bytes, (size_t)n, &h->share, ret_any);
	}
	return 0;
}

static void leave(struct host *h)
{
	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
	h->lines.used = 0;
	h->lines.skip = false;
}

/* Waits for bytes and takes them. 0, -ETIMEDOUT, or why the connection is over. */
static int listen_once(struct host *h, int wait_ms, bool *ret_any)
{
	struct pollfd p[2] = { { .fd = h->fd, .events = POLLIN }, { .fd = h->wake_fd, .events = POLLIN } };
	int n = poll(p, 2, wait_ms);

	*ret_any = false;
	if (n == 0)
		return -ETIMEDOUT;
	if (n < 0 || !p[0].revents)
		return 0;
	/* a port whose other side is not there reads as its end */
	return drain(h, ret_any);
}

static int wait_first(struct host *h, uint64_t until_ns)
{
	bool any = false;
	int rc = -ETIMEDOUT;

	for (uint64_t now = clock_mono_ns(); now < until_ns && !any; now = clock_mono_ns()) {
		if (h->fd < 0)
			h->fd = host_place_open(h->root, h->place, CONNECT_MS);
		rc = h->fd < 0 ? h->fd : listen_once(h, (int)((until_ns - now) / NS_PER_MS) + 1, &any);
		if (any)
			return 0;
		if (rc && rc != -ETIMEDOUT) {
			leave(h);
			usleep(BACKOFF_FIRST_MS * 1000);
		}
	}
	return rc ? rc : -ETIMEDOUT;
}

static int begin(struct host *h, const char *place, uint64_t wait_ns, struct schema *s, struct err *err)
{
	uint64_t now = clock_mono_ns();
	int rc;

	h->place = strdup(place);
	if (!h->place || h->wake_fd < 0)
		return err_set(err, -ENOMEM, "host: out of memory or files");
	rc = host_place_check(place, err);
	if (rc)
		return rc;
	rc = wait_first(h, now + wait_ns);
	if (rc)
		return err_set(
			err, rc,
			"host %.200s: %s; let jouled on the host have an output for this machine (docs/formats/guest.md), at "
			"least every 5 s, or leave host out",
			place, rc == -ETIMEDOUT ? "nothing is told there" : strerror(-rc));
	rc = host_totals_init(&h->totals, &h->share, place, s);
	if (rc)
		return err_set(err, rc, "host %.200s: its domains do not fit beside those of this machine", place);
	host_totals_add(&h->totals, &h->share, clock_mono_ns(), clock_boot_ns());
	return 0;
}

int host_open(const struct host_options *o, struct schema *s, struct host **ret, struct err *err)
{
	struct host *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return err_set(err, -ENOMEM, "host: out of memory");
	pthread_mutex_init(&h->lock, NULL);
	h->fd = -1;
	h->root = o->root;
	h->backoff_ms = BACKOFF_FIRST_MS;
	h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = begin(h, o->place, o->wait_ns, s, err);
	if (rc)
		host_close(h);
	else
		*ret = h;
	return rc;
}

static bool told(struct host *h)
{
	bool taken;

	pthread_mutex_lock(&h->lock);
	taken = host_totals_add(&h->totals, &h->share, clock_mono_ns(), clock_boot_ns());
	pthread_mutex_unlock(&h->lock);
	if (!taken)
		return false;
	h->backoff_ms = BACKOFF_FIRST_MS;
	if (h->away)
		warn(h, "tells this machine's energy again", "");
	h->away = false;
	return true;
}

static void lose(struct host *h, int err)
{
	struct pollfd p = { .fd = h->wake_fd, .events = POLLIN };

	leave(h);
	if (!h->away)
		warn(h, "away, its energy is stale until it is back: ",
		     err == -EPIPE     ? "closed by the host" :
		     err == -ETIMEDOUT ? "it tells nothing" :
					 strerror(-err));
	h->away = true;
	poll(&p, 1, (int)h->backoff_ms);
	h->backoff_ms = h->backoff_ms * 2 < BACKOFF_LAST_MS ? h->backoff_ms * 2 : BACKOFF_LAST_MS;
}

static int silent_ms(const struct host *h)
{
	uint64_t ms = h->share.interval_ns / NS_PER_MS;

	return ms > 3600 * 1000 ? 36000 * 1000 : 10 * ms > SILENT_MS ? (int)(10 * ms) : SILENT_MS;
}

static bool stopping(struct host *h)
{
	bool stop;

	pthread_mutex_lock(&h->lock);
	stop = h->stop;
	pthread_mutex_unlock(&h->lock);
	return stop;
}

static void *follow(void *arg)
{
	struct host *h = arg;

	while (!stopping(h)) {
		bool any = false;
		int rc;

		if (h->fd < 0)
			h->fd = host_place_open(h->root, h->place, CONNECT_MS);
		rc = h->fd < 0 ? h->fd : listen_once(h, silent_ms(h), &any);
		if (any)
			told(h);
		if (rc && !stopping(h))
			lose(h, rc);
	}
	return NULL;
}

int host_start(struct host *h)
{
	int rc = h ? thread_start(&h->thread, "host", STACK_BYTES, follow, h) : 0;

	if (h)
		h->started = rc == 0;
	return rc;
}

void host_read(struct host *h, struct reading *r)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	host_totals_read(&h->totals, r);
	pthread_mutex_unlock(&h->lock);
}

bool host_next_warning(struct host *h, char *ret_text, size_t size)
{
	bool any;

	if (!h)
		return false;
	pthread_mutex_lock(&h->lock);
	any = h->n_warnings > 0;
	if (any) {
		snprintf(ret_text, size, "%s", h->warning[0]);
		memmove(h->warning[0], h->warning[1], --h->n_warnings * sizeof(h->warning[0]));
	}
	pthread_mutex_unlock(&h->lock);
	return any;
}

void host_close(struct host *h)
{
	const uint64_t one = 1;

	if (!h)
		return;
	if (h->started) {
		pthread_mutex_lock(&h->lock);
		h->stop = true;
		pthread_mutex_unlock(&h->lock);
		if (write(h->wake_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
			pthread_join(h->thread, NULL);
	}
	leave(h);
	if (h->wake_fd >= 0)
		close(h->wake_fd);
	pthread_mutex_destroy(&h->lock);
	free(h->place);
	free(h);
}
