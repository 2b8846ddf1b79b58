// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wall_devices.h"

#define TEXT (1u << 20) /* some 10,000 devices; only what is read is touched */
#define SECTOR 512ull /* of the kernel's statistics, whatever the disk's is */
#define FANS_A_CHIP 16
#define MAX_RPM 100000.0

/* Counts of one device: sums go on from where they were when it begins anew. */
enum { READ_BYTES, WRITE_BYTES, REQUESTS, DISK_COUNTS, NET_BYTES = 0, NET_PACKETS, NET_COUNTS };

struct device {
	char name[32];
	bool there; /* at the last find */
	bool known; /* last[] is set */
	uint64_t last[DISK_COUNTS];
};

struct wall_devices {
	const struct fsroot *root;
	unsigned n_disks, n_interfaces, n_fans;
	struct device disks[WALL_NAMES], interfaces[WALL_NAMES];
	char fans[WALL_NAMES][80]; /* paths */
	uint64_t disk_sum[DISK_COUNTS], net_sum[NET_COUNTS];
	char text[TEXT];
};

struct wall_devices *wall_devices_new(const struct fsroot *root)
{
	struct wall_devices *d = calloc(1, sizeof(*d));

	if (d)
		d->root = root;
	return d;
}

void wall_devices_free(struct wall_devices *d)
{
	free(d);
}

static bool has_entries(const struct fsroot *root, const char *path)
{
	DIR *dir = fsroot_opendir(root, path);
	struct dirent *e;
	bool any = false;

	while (dir && !any && (e = readdir(dir)))
		any = e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return any;
}

/* A disk of its own, not made of others and not in memory. */
static bool is_disk(const struct fsroot *root, const char *name)
{
	static const char *const left_out[] = { "loop", "ram", "zram", "dm-", "md", "fd", "sr", "nbd" };
	char path[320];

	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (strncmp(name, left_out[i], strlen(left_out[i])) == 0)
			return false;
	snprintf(path, sizeof(path), "/sys/block/%s/slaves", name);
	return !has_entries(root, path);
}

static bool is_interface(const struct fsroot *root, const char *name)
{
	char path[320];

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", name);
	return fsroot_exists(root, path);
}

static struct device *device_of(struct device *all, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(all[i].name, name) == 0)
			return &all[i];
	return NULL;
}

static void find_in(struct wall_devices *d, const char *path, bool (*is)(const struct fsroot *, const char *),
		    struct device *all, unsigned *n)
{
	DIR *dir = fsroot_opendir(d->root, path);
	struct dirent *e;

	for (unsigned i = 0; i < *n; i++)
		all[i].there = false;
	while (dir && (e = readdir(dir))) {
		struct device *known;

		if (e->d_name[0] == '.' || strlen(e->d_name) >= sizeof(all->name) || !is(d->root, e->d_name))
			continue;
		known = device_of(all, *n, e->d_name);
		if (!known && *n < WALL_NAMES) {
			known = &all[(*n)++];
			*known = (struct device){ 0 };
			memcpy(known->name, e->d_name, strlen(e->d_name));
		}
		if (known)
			known->there = true;
	}
	if (dir)
		closedir(dir);
}

static void find_fans(struct wall_devices *d)
{
	DIR *dir = fsroot_opendir(d->root, "/sys/class/hwmon");
	struct dirent *e;

	d->n_fans = 0;
	while (dir && (e = readdir(dir))) {
		for (unsigned i = 1; i <= FANS_A_CHIP && e->d_name[0] != '.' && d->n_fans < WALL_NAMES; i++) {
			char *path = d->fans[d->n_fans];
			int n = snprintf(path, sizeof(d->fans[0]), "/sys/class/hwmon/%.32s/fan%u_input", e->d_name, i);

			d->n_fans += n < (int)sizeof(d->fans[0]) && fsroot_exists(d->root, path);
		}
	}
	if (dir)
		closedir(dir);
}

void wall_devices_find(struct wall_devices *d)
{
	find_in(d, "/sys/block", is_disk, d->disks, &d->n_disks);
	find_in(d, "/sys/class/net", is_interface, d->interfaces, &d->n_interfaces);
	find_fans(d);
}

static void add(struct device *dev, const uint64_t *now, uint64_t *sums, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t step = now[i] >= dev->last[i] ? now[i] - dev->last[i] : now[i]; /* it began anew */

		sums[i] += dev->known ? step : 0;
		dev->last[i] = now[i];
	}
	dev->known = true;
}

/* Documentation/admin-guide/iostats.rst: major minor name, then reads, merged, sectors, ms, writes, merged, sectors ... */
static void read_disks(struct wall_devices *d)
{
	char *save = NULL, name[32];
	unsigned long long v[7];

	if (fsroot_read(d->root, "/proc/diskstats", d->text, sizeof(d->text)) <= 0)
		return;
	for (char *line = strtok_r(d->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct device *dev;

		if (sscanf(line, "%*u %*u %31s %llu %llu %llu %llu %llu %llu %llu", name, &v[0], &v[1], &v[2], &v[3],
			   &v[4], &v[5], &v[6]) != 8)
			continue;
		dev = device_of(d->disks, d->n_disks, name);
		if (dev && dev->there)
			add(dev, (const uint64_t[DISK_COUNTS]){ v[2] * SECTOR, v[6] * SECTOR, v[0] + v[4] },
			    d->disk_sum, DISK_COUNTS);
	}
}

/* /proc/net/dev, of the network namespace that jouled is in: name: bytes packets and six more received, then the same sent. */
static void read_interfaces(struct wall_devices *d)
{
	unsigned long long v[4];
	char *save = NULL;

	if (!d->n_interfaces || fsroot_read(d->root, "/proc/net/dev", d->text, sizeof(d->text)) <= 0)
		return;
	for (char *line = strtok_r(d->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *colon = strchr(line, ':');
		struct device *dev;

		if (!colon)
			continue;
		*colon = '\0';
		dev = device_of(d->interfaces, d->n_interfaces, line + strspn(line, " "));
		if (dev && dev->there &&
		    sscanf(colon + 1, "%llu %llu %*u %*u %*u %*u %*u %*u %llu %llu", &v[0], &v[1], &v[2], &v[3]) == 4)
			add(dev, (const uint64_t[NET_COUNTS]){ v[0] + v[2], v[1] + v[3] }, d->net_sum, NET_COUNTS);
	}
}

static void read_fans(struct wall_devices *d, struct wall_work *ret)
{
	for (unsigned i = 0; i < d->n_fans; i++) {
		uint64_t rpm;
		double k;

		if (fsroot_read_u64(d->root, d->fans[i], &rpm) != 0 || (double)rpm > MAX_RPM)
			continue;
		k = (double)rpm / 1000;
		ret->fans += k * k * k;
		ret->has_fans = true;
	}
}

void wall_devices_read(struct wall_devices *d, uint64_t now_ns, struct wall_work *ret)
{
	*ret = (struct wall_work){ .mono_ns = now_ns };
	read_disks(d);
	read_interfaces(d);
	read_fans(d, ret);
	ret->read_bytes = d->disk_sum[READ_BYTES];
	ret->write_bytes = d->disk_sum[WRITE_BYTES];
	ret->requests = d->disk_sum[REQUESTS];
	ret->net_bytes = d->net_sum[NET_BYTES];
	ret->net_packets = d->net_sum[NET_PACKETS];
}
