// SPDX-License-Identifier: Apache-2.0
/* Clients of GPUs, among all descriptors of all processes. A look at all of them every second would cost too much,
 * so the search is bounded: new processes first, then the others in turns, a thousand descriptors a second for each.
 * Clients that are known are looked at every second. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/parse.h"
#include "drm.h"

#define MAX_CLIENTS 256
#define MAX_LOOKS 1024 /* descriptors a scan, of new processes and of the others */
#define FRESH_NS (500 * NS_PER_MS) /* GPUs are asked one after another: one scan is for all */
#define FDINFO_BYTES 4096

struct client {
	uint32_t pid, fd;
	uint64_t mono_ns;
	uint32_t ppm;
	struct drm_use use;
};

struct gpu_drm {
	uint64_t scan_ns;
	uint32_t newest_pid, sweep_pid; /* processes up to there were looked at */
	uint32_t last_pid; /* given away last, at the last scan */
	bool denied; /* of at least one process, in this scan */
	bool denied_told, full_told;
	unsigned n;
	struct client clients[MAX_CLIENTS];
};

static bool read_use(const struct gpus *g, uint32_t pid, uint32_t fd, struct drm_use *ret)
{
	char path[64], text[FDINFO_BYTES];

	snprintf(path, sizeof(path), "/proc/%u/fdinfo/%u", pid, fd);
	return fsroot_read(g->root, path, text, sizeof(text)) > 0 && drm_parse(text, ret);
}

static bool is_same(const struct drm_use *a, const struct drm_use *b)
{
	return a->client == b->client && strcmp(a->pci, b->pci) == 0;
}

static void look_at_known(const struct gpus *g, struct gpu_drm *d)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < d->n; i++) {
		struct client c = d->clients[i];
		struct drm_use use;
		uint64_t now;

		if (!read_use(g, c.pid, c.fd, &use) || !is_same(&use, &c.use))
			continue;
		now = clock_mono_ns();
		c.ppm = drm_share(&c.use, &use, now - c.mono_ns);
		c.use = use;
		c.mono_ns = now;
		d->clients[kept++] = c;
	}
	d->n = kept;
}

/* A client that several processes share belongs to the first one found. */
static void add_client(struct gpus *g, struct gpu_drm *d, uint32_t pid, uint32_t fd)
{
	struct drm_use use;

	for (unsigned i = 0; i < d->n; i++)
		if (d->clients[i].pid == pid && d->clients[i].fd == fd)
			return;
	if (!read_use(g, pid, fd, &use))
		return;
	for (unsigned i = 0; i < d->n; i++)
		if (is_same(&d->clients[i].use, &use))
			return;
	if (d->n < MAX_CLIENTS)
		d->clients[d->n++] = (struct client){ .pid = pid, .fd = fd, .mono_ns = clock_mono_ns(), .use = use };
	else if (!d->full_told) {
		d->full_told = true;
		pthread_mutex_lock(&g->lock);
		gpu_warn(g, "gpu: more than %d clients; what the others use is nobody's", MAX_CLIENTS);
		pthread_mutex_unlock(&g->lock);
	}
}

/* Descriptors of /dev/dri among those of a process; how many were looked at. */
static unsigned look_into(struct gpus *g, struct gpu_drm *d, uint32_t pid)
{
	char path[64];
	unsigned n = 0;
	struct dirent *e;
	DIR *list;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	list = fsroot_opendir(g->root, path);
	if (!list)
		d->denied |= errno == EACCES || errno == EPERM;
	while (list && n < MAX_LOOKS && (e = readdir(list))) {
		char target[16];
		uint64_t fd;
		ssize_t len;

		if (parse_u64(e->d_name, &fd) != 0 || fd > INT32_MAX)
			continue;
		n++;
		len = readlinkat(dirfd(list), e->d_name, target, sizeof(target));
		d->denied |= len < 0 && (errno == EACCES || errno == EPERM);
		if (len > 9 && memcmp(target, "/dev/dri/", 9) == 0)
			add_client(g, d, pid, (uint32_t)fd);
	}
	if (list)
		closedir(list);
	return n + 1;
}

/* Field 5 of /proc/loadavg. Where it is unknown, every process may be new. */
static uint32_t pid_given_last(const struct gpus *g)
{
	char text[128];
	const char *at;
	uint64_t pid;

	if (fsroot_read(g->root, "/proc/loadavg", text, sizeof(text)) <= 0)
		return UINT32_MAX;
	at = strrchr(text, ' ');
	return at && parse_u64(at + 1, &pid) == 0 && pid <= INT32_MAX ? (uint32_t)pid : UINT32_MAX;
}

/* /proc lists processes in ascending order. Numbers are given away in this order too, and from the first again when
 * they are used up: a number above the last one is old. */
static void look_for_new(struct gpus *g, struct gpu_drm *d)
{
	uint32_t last = pid_given_last(g), newest = last < d->last_pid ? 0 : d->newest_pid, sweep = d->sweep_pid;
	unsigned looks = 0, news = 0;
	struct dirent *e;
	DIR *list = fsroot_opendir(g->root, "/proc");

	d->newest_pid = newest;
	d->last_pid = last;
	while (list && (e = readdir(list))) {
		bool fresh;
		uint64_t pid;

		if (parse_u64(e->d_name, &pid) != 0 || pid > INT32_MAX)
			continue;
		fresh = pid > newest && pid <= last;
		if (fresh && news < MAX_LOOKS) {
			news += look_into(g, d, (uint32_t)pid);
			d->newest_pid = (uint32_t)pid;
		} else if (!fresh && pid > sweep && looks < MAX_LOOKS) {
			looks += look_into(g, d, (uint32_t)pid);
			d->sweep_pid = (uint32_t)pid;
		}
	}
	if (list)
		closedir(list);
	if (looks < MAX_LOOKS)
		d->sweep_pid = 0; /* all were looked at: from the first again */
}

static void tell_denied(struct gpus *g, struct gpu_drm *d)
{
	if (!d->denied || d->denied_told)
		return;
	d->denied_told = true;
	pthread_mutex_lock(&g->lock);
	gpu_warn(
		g,
		"gpu: descriptors of other users' processes cannot be looked at: their use of the GPU is nobody's; give CAP_SYS_PTRACE");
	pthread_mutex_unlock(&g->lock);
}

static void scan(struct gpus *g, struct gpu_drm *d)
{
	d->denied = false;
	look_at_known(g, d);
	look_for_new(g, d);
	tell_denied(g, d);
	d->scan_ns = clock_mono_ns();
}

int gpu_drm_processes(struct gpu_unit *u, struct gpu_process *ret, unsigned max)
{
	struct gpus *g = u->g;
	struct gpu_drm *d = g->drm ? g->drm : (g->drm = calloc(1, sizeof(*d)));
	unsigned n = 0;

	if (!d)
		return -ENOMEM;
	if (!d->scan_ns || clock_mono_ns() - d->scan_ns > FRESH_NS)
		scan(g, d);
	for (unsigned i = 0; i < d->n; i++) {
		const struct client *c = &d->clients[i];
		unsigned k = 0;

		if (!c->ppm || strcmp(c->use.pci, u->desc.pci) != 0)
			continue;
		while (k < n && ret[k].pid != c->pid)
			k++;
		if (k == max)
			break;
		if (k == n)
			ret[n++] = (struct gpu_process){ c->pid, 0 };
		ret[k].ppm += c->ppm;
	}
	return (int)n;
}

#define MAX_CAPACITY 64

/* "123 ns": digits, and behind them the unit or nothing. */
static bool take_number(const char *value, const char *unit, uint64_t *ret)
{
	uint64_t v = 0;

	if (!isdigit((unsigned char)*value))
		return false;
	for (; isdigit((unsigned char)*value); value++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*value - '0'), &v))
			return false;
	value += strspn(value, " \t");
	if (*value && strcmp(value, unit) != 0)
		return false;
	*ret = v;
	return true;
}

static struct drm_engine *engine_of(struct drm_use *u, const char *name)
{
	struct drm_engine *e;

	for (unsigned i = 0; i < u->n; i++)
		if (strcmp(u->engines[i].name, name) == 0)
			return &u->engines[i];
	if (u->n == DRM_ENGINES || !*name || strlen(name) >= sizeof(e->name))
		return NULL;
	e = &u->engines[u->n++];
	*e = (struct drm_engine){ .capacity = 1 };
	memcpy(e->name, name, strlen(name));
	return e;
}

static const char *below(const char *key, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(key, prefix, n) == 0 ? key + n : NULL;
}

static void take_engine(struct drm_use *u, const char *key, const char *value)
{
	const char *capacity = below(key, "drm-engine-capacity-"), *ns = below(key, "drm-engine-");
	const char *total = below(key, "drm-total-cycles-"), *cycles = below(key, "drm-cycles-");
	const char *name = capacity ? capacity : ns ? ns : total ? total : cycles;
	struct drm_engine *e;
	uint64_t v;

	if (!name || !take_number(value, !capacity && ns ? "ns" : "", &v) || !(e = engine_of(u, name)))
		return;
	if (capacity) {
		e->capacity = v >= 1 && v <= MAX_CAPACITY ? (uint32_t)v : 1;
	} else if (ns) {
		e->ns = v;
		e->by_ns = true;
	} else if (total) {
		e->total = v;
	} else {
		e->cycles = v;
		e->by_cycles = true;
	}
}

static void take_line(struct drm_use *u, char *line, bool *client)
{
	char *value = strchr(line, ':');

	if (!value)
		return;
	*value++ = '\0';
	value += strspn(value, " \t");
	if (strcmp(line, "drm-pdev") == 0)
		snprintf(u->pci, sizeof(u->pci), "%s", value);
	else if (strcmp(line, "drm-client-id") == 0)
		*client = take_number(value, "", &u->client);
	else
		take_engine(u, line, value);
}

bool drm_parse(const char *text, struct drm_use *ret)
{
	struct drm_use u = { .n = 0 };
	bool client = false;

	while (*text) {
		size_t len = strcspn(text, "\n");
		char line[128];

		if (len < sizeof(line)) {
			memcpy(line, text, len);
			line[len] = '\0';
			take_line(&u, line, &client);
		}
		text += len + (text[len] == '\n');
	}
	if (!client || !u.n || !*u.pci)
		return false;
	*ret = u;
	return true;
}

/* part of whole, in millionths of each engine. At most 1000000: more than the whole is not believed. */
static uint32_t millionths(uint64_t part, uint64_t whole, uint32_t capacity)
{
	uint64_t v = whole ? (uint64_t)((unsigned __int128)part * 1000000 / whole / capacity) : 0;

	return v <= 1000000 ? (uint32_t)v : 1000000;
}

uint32_t drm_share(const struct drm_use *old, const struct drm_use *now, uint64_t ns)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < now->n; i++) {
		const struct drm_engine *e = &now->engines[i], *was = NULL;

		for (unsigned k = 0; k < old->n; k++)
			if (strcmp(old->engines[k].name, e->name) == 0)
				was = &old->engines[k];
		if (!was)
			continue;
		if (e->by_ns && was->by_ns && e->ns >= was->ns)
			sum += millionths(e->ns - was->ns, ns, e->capacity);
		else if (e->by_cycles && was->by_cycles && e->cycles >= was->cycles && e->total > was->total)
			sum += millionths(e->cycles - was->cycles, e->total - was->total, e->capacity);
	}
	return sum;
}
