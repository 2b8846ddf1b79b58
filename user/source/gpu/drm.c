// SPDX-License-Identifier: Apache-2.0
/* Clients of GPUs, among all descriptors of all processes. To look at each of them every second would cost more than the
 * GPU's share is worth, so the search is bounded: processes that are new first, then the rest in turns, a thousand
 * descriptors a second for each. Clients that are known are looked at every second. */
#include "gpu_drm.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/parse.h"

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

/* A client that several processes share is the first one's. */
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

/* Field 5 of /proc/loadavg; unknown: all of them may be new. */
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

/* /proc lists processes in ascending order. Numbers are given away in this order too, and from the first again when they
 * are used up: what is above the last one is old. */
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
