/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <linux/vm_sockets.h> /* behind sys/socket.h: older headers take its types for granted */
#include <sys/un.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/parse.h"
#include "base/thread.h"
#include "host.h"
#include "host_totals.h"

#define STACK_BYTES (128u << 10)
#define CONNECT_MS 3000
#define BACKOFF_FIRST_MS 250u
#define BACKOFF_LAST_MS 16000u
#define SILENT_MS 30000 /* a connection silent for this long, and for ten intervals, is dead */
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
	bool away; /* it was told that the host cannot be reached */
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

/* Waits for bytes and takes them. 0, -ETIMEDOUT, or the error that ended the connection. */
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

static int host_place_open(const struct fsroot *root, const char *place, int wait_ms);

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
	if (!h->place)
		return err_set(err, -ENOMEM, "host: out of memory; free some");
	if (h->wake_fd < 0)
		return err_set(err, -EMFILE, "host: no descriptor left; raise the limit of open files");
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
		return err_set(err, -ENOMEM, "host: out of memory; free some");
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

static void lose(struct host *h, int rc)
{
	struct pollfd p = { .fd = h->wake_fd, .events = POLLIN };

	leave(h);
	if (!h->away)
		warn(h, "away, its energy is stale until it is back: ",
		     rc == -EPIPE     ? "closed by the host" :
		     rc == -ETIMEDOUT ? "it tells nothing" :
					strerror(-rc));
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

union address {
	struct sockaddr any;
	struct sockaddr_vm vm;
	struct sockaddr_un un;
};

/* "2:7000" */
static bool parse_vsock(const char *s, struct sockaddr_vm *ret)
{
	size_t digits = strspn(s, "0123456789");
	char cid[16];
	uint64_t c, port;

	if (!digits || digits >= sizeof(cid) || s[digits] != ':' || !s[digits + 1] ||
	    s[digits + 1 + strspn(s + digits + 1, "0123456789")])
		return false;
	memcpy(cid, s, digits);
	cid[digits] = '\0';
	if (parse_u64(cid, &c) || c >= UINT32_MAX || parse_u64(s + digits + 1, &port) || !port || port >= UINT32_MAX)
		return false;
	*ret = (struct sockaddr_vm){ .svm_family = AF_VSOCK, .svm_cid = (unsigned)c, .svm_port = (unsigned)port };
	return true;
}

/* Length of the address, 0 for a device, -EINVAL. */
static int parse(const char *place, union address *ret)
{
	if (strncmp(place, "vsock://", 8) == 0)
		return parse_vsock(place + 8, &ret->vm) ? (int)sizeof(ret->vm) : -EINVAL;
	if (strncmp(place, "unix:///", 8) == 0) {
		if (strlen(place + 7) >= sizeof(ret->un.sun_path))
			return -EINVAL;
		ret->un = (struct sockaddr_un){ .sun_family = AF_UNIX };
		memcpy(ret->un.sun_path, place + 7, strlen(place + 7));
		return (int)sizeof(ret->un);
	}
	return *place == '/' && place[1] ? 0 : -EINVAL;
}

int host_place_check(const char *place, struct err *err)
{
	union address a;

	if (parse(place, &a) >= 0)
		return 0;
	return err_set(
		err, -EINVAL,
		"host: \"%.200s\" is no place; write vsock://2:PORT, unix:///PATH (shorter than 108 bytes) or the "
		"device of a virtio-serial port, /dev/virtio-ports/NAME",
		place);
}

/* A connection that takes its time. */
static int finish(int fd, int wait_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int rc = ETIMEDOUT;

	if (poll(&p, 1, wait_ms) > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &rc, &len) != 0)
		rc = errno;
	return -rc;
}

/* A descriptor that does not block, connected within wait_ms; or -errno. */
static int host_place_open(const struct fsroot *root, const char *place, int wait_ms)
{
	union address a;
	int len = parse(place, &a), fd, rc;

	if (len < 0)
		return len;
	if (!len)
		return fsroot_openat(root, place, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, &a.any, (socklen_t)len) == 0 ? 0 : -errno;
	if (rc == -EINPROGRESS)
		rc = finish(fd, wait_ms);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

/* 10 kW a domain, in uJ per ns: no machine's share is larger. It bounds the energy from a broken host. */
#define MAX_UJ_PER_NS 10.0
#define ESTIMATES (QUALITY_ESTIMATED | QUALITY_MULTIPLEXED)
/* Lines that waited while this machine stood still come at once. Their time is the host's, up to this much. */
#define AHEAD_NS (86400 * NS_PER_S)

static const struct share_domain *find(const struct share *s, const char *name)
{
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->domains[i].name, name) == 0)
			return &s->domains[i];
	return NULL;
}

/* The quality of a line that is passed over holds for the line that takes its place, too. */
static void pass_over(const struct share *old, struct share *next)
{
	for (unsigned i = 0; i < next->n && old->epoch == next->epoch; i++) {
		struct share_domain *d = &next->domains[i];
		const struct share_domain *o = find(old, d->name);
		unsigned both = o ? o->quality | d->quality : 0;

		if (!o)
			continue;
		d->quality |= o->quality & ESTIMATES;
		if (both & (QUALITY_PARTIAL | QUALITY_LOST))
			d->quality |= QUALITY_PARTIAL;
		if (!(o->quality & (QUALITY_STALE | QUALITY_LOST)))
			d->quality &= ~(unsigned)(QUALITY_STALE | QUALITY_LOST);
	}
}

static void take_line(struct host_lines *l, struct share *ret, bool *ret_any)
{
	struct share next;

	if (share_read(l->text, l->used, &next) != 0)
		return;
	if (*ret_any)
		pass_over(ret, &next);
	*ret = next;
	*ret_any = true;
}

void host_lines_add(struct host_lines *l, const char *data, size_t n, struct share *ret, bool *ret_any)
{
	while (n) {
		const char *end = memchr(data, '\n', n);
		size_t len = end ? (size_t)(end - data) : n;

		l->skip |= len > SHARE_LINE_MAX - l->used;
		if (!l->skip) {
			memcpy(l->text + l->used, data, len);
			l->used += len;
		}
		if (end) {
			if (!l->skip)
				take_line(l, ret, ret_any);
			l->used = 0;
			l->skip = false;
			len++;
		}
		data += len;
		n -= len;
	}
}

static bool schema_has(const struct schema *schema, const char *name)
{
	for (unsigned i = 0; i < schema->n_domains; i++)
		if (strcmp(schema->domains[i].name, name) == 0)
			return true;
	return false;
}

static void describe(const struct share_domain *d, const char *place, struct domain_desc *ret)
{
	*ret = (struct domain_desc){
		.kind = d->kind, .package = d->package, .die = d->die, .has_die = d->has_die, .interface = ENERGY_HOST
	};
	memcpy(ret->name, d->name, sizeof(ret->name));
	snprintf(ret->reason, sizeof(ret->reason), "%s (host): this machine's share, told at %.120s",
		 d->quality & ESTIMATES ? "estimated" : "measured", place);
}

int host_totals_init(struct host_totals *t, const struct share *s, const char *place, struct schema *schema)
{
	if (s->n > SCHEMA_MAX_DOMAINS - schema->n_domains)
		return -E2BIG;
	for (unsigned i = 0; i < s->n; i++)
		if (schema_has(schema, s->domains[i].name))
			return -EEXIST;
	*t = (struct host_totals){ .n = s->n };
	for (unsigned i = 0; i < s->n; i++) {
		struct host_domain *d = &t->domains[i];

		memcpy(d->name, s->domains[i].name, sizeof(d->name));
		d->column = schema->n_domains;
		d->total.max_units_per_ns = MAX_UJ_PER_NS;
		if (s->domains[i].package >= schema->n_packages)
			schema->n_packages = s->domains[i].package + 1u;
		describe(&s->domains[i], place, &schema->domains[schema->n_domains++]);
	}
	return 0;
}

static void add_domain(struct host_domain *d, const struct share_domain *told, bool anew, uint64_t now_ns,
		       uint64_t boot_ns)
{
	if (anew && d->total.have_prev) {
		d->total.have_prev = false;
		d->anew++;
	}
	energy_accumulate(&d->total, told->uj, now_ns, boot_ns);
	/* The time of a stale total stands still, except for the first: energy of the line before may not have been
	 * taken yet. */
	if (!(told->quality & (QUALITY_STALE | QUALITY_LOST)) || !d->told_ns)
		d->told_ns = now_ns;
	d->partial += !!(told->quality & (QUALITY_PARTIAL | QUALITY_LOST));
	/* of all lines since the last reading */
	d->estimated = (d->estimated && !d->read) || told->quality & ESTIMATES;
	d->read = false;
}

/* Follows how far the host's time runs ahead of ours: the line's energy may have been used in either. */
static void follow_time(struct host_totals *t, const struct share *s, uint64_t boot_ns)
{
	uint64_t here = boot_ns > t->boot_ns ? boot_ns - t->boot_ns : 0, lines = s->number - t->number, more;
	uint64_t there = s->interval_ns && lines > AHEAD_NS / s->interval_ns ? AHEAD_NS : lines * s->interval_ns;

	if (there <= here) {
		t->ahead_ns -= here - there < t->ahead_ns ? here - there : t->ahead_ns;
		return;
	}
	more = there - here < AHEAD_NS - t->ahead_ns ? there - here : AHEAD_NS - t->ahead_ns;
	t->ahead_ns += more;
	t->granted_ns += more;
}

bool host_totals_add(struct host_totals *t, const struct share *s, uint64_t now_ns, uint64_t boot_ns)
{
	bool anew = t->any && s->epoch != t->epoch;

	if (t->any && !anew && s->number <= t->number)
		return false;
	if (t->any && !anew)
		follow_time(t, s, boot_ns);
	for (unsigned i = 0; i < t->n; i++) {
		const struct share_domain *told = find(s, t->domains[i].name);

		if (told)
			add_domain(&t->domains[i], told, anew, now_ns, boot_ns + t->granted_ns);
	}
	t->any = true;
	t->epoch = s->epoch;
	t->number = s->number;
	t->boot_ns = boot_ns;
	return true;
}

void host_totals_read(struct host_totals *t, struct reading *r)
{
	for (unsigned i = 0; i < t->n; i++) {
		struct host_domain *d = &t->domains[i];

		r->domains[d->column] = (struct reading_domain){
			.units = d->total.units,
			.uj_num = 1,
			.uj_den = 1,
			.time_ns = d->told_ns,
			.estimated = d->estimated,
			.resets = d->anew + d->total.resets,
			.dropped = d->partial + d->total.dropped,
		};
		d->read = true;
	}
}
