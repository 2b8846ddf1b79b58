// SPDX-License-Identifier: Apache-2.0
/* AMD and Intel GPUs: amdgpu tells power, i915 and xe tell energy, each through hwmon below the card's device
 * (Documentation/gpu/amdgpu/thermal.rst, Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon and -xe-hwmon).
 * pcie_bw is left alone: reading it sleeps for a second in the kernel. The processes that use a GPU are found only
 * by a look at every process's descriptors (drm.c). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "drm.h"

#define MAX_CARDS 64
#define CARD "/sys/class/drm/card%u/device"

/* A file behind a field: value / divide. */
struct sysfs_file {
	char path[200];
	uint32_t divide;
};
struct sysfs_unit {
	struct sysfs_file files[GPU_FIELDS];
};

static bool read_text(const struct fsroot *root, const char *dir, const char *name, char *text, size_t size)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return fsroot_read(root, path, text, size) >= 0;
}

static int sysfs_row(struct gpu_unit *u, uint32_t wanted, struct gpu_row *row)
{
	const struct sysfs_unit *d = u->device;
	bool any = false, gone = true;

	for (enum gpu_field f = 0; f < GPU_FIELDS; f++) {
		uint64_t v;
		int rc;

		if (!(wanted & GPU_BIT(f)) || !d->files[f].divide)
			continue;
		any = true;
		rc = fsroot_read_u64(u->g->root, d->files[f].path, &v);
		gone &= rc == -ENOENT || rc == -ENODEV || rc == -ENXIO;
		if (rc) {
			u->why = strerrordesc_np(-rc);
			u->denied = rc == -EACCES;
			continue;
		}
		row->v[f] = (int64_t)(v / d->files[f].divide);
		row->present |= GPU_BIT(f);
	}
	return any && gone ? -ENODEV : 0;
}

static void use_file(struct gpu_unit *u, enum gpu_field f, const char *dir, const char *name, uint32_t divide)
{
	struct sysfs_unit *d = u->device;
	char path[200];
	uint64_t v;

	if (d->files[f].divide || (size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path) ||
	    fsroot_read_u64(u->g->root, path, &v) != 0)
		return;
	memcpy(d->files[f].path, path, sizeof(path));
	d->files[f].divide = divide;
}

static void use_hwmon(struct gpu_unit *u, const char *dir, bool amd)
{
	char label[32];

	if (amd) {
		use_file(u, GPU_POWER, dir, "power1_average", 1000);
		use_file(u, GPU_POWER, dir, "power1_input", 1000); /* newer parts have this alone */
		use_file(u, GPU_POWER_LIMIT, dir, "power1_cap", 1000);
		use_file(u, GPU_TEMPERATURE, dir, "temp1_input", 1000);
		if (!read_text(u->g->root, dir, "freq1_label", label, sizeof(label)) || strcmp(label, "sclk") == 0)
			use_file(u, GPU_CLOCK_GPU, dir, "freq1_input", 1000000);
		use_file(u, GPU_CLOCK_MEM, dir, "freq2_input", 1000000);
		return;
	}
	/* xe: 1 is the card where there is such a sensor, 2 the package */
	use_file(u, GPU_TOTAL_ENERGY, dir, "energy1_input", 1000);
	use_file(u, GPU_TOTAL_ENERGY, dir, "energy2_input", 1000);
	use_file(u, GPU_POWER_LIMIT, dir, "power1_max", 1000);
}

static void each_hwmon(struct gpu_unit *u, const char *device, bool amd)
{
	char dir[128], path[192];
	struct dirent *e;
	DIR *list;

	snprintf(dir, sizeof(dir), "%s/hwmon", device);
	list = fsroot_opendir(u->g->root, dir);
	while (list && (e = readdir(list))) {
		if (strncmp(e->d_name, "hwmon", 5) != 0 || strlen(e->d_name) > 16)
			continue;
		snprintf(path, sizeof(path), "%s/%.16s", dir, e->d_name);
		use_hwmon(u, path, amd);
	}
	if (list)
		closedir(list);
}

static uint32_t find_files(struct gpu_unit *u, const char *device, bool amd)
{
	struct sysfs_unit *d = u->device;
	uint32_t fields = 0;

	memset(d, 0, sizeof(*d));
	each_hwmon(u, device, amd);
	use_file(u, GPU_UTIL_GPU, device, "gpu_busy_percent", 1);
	use_file(u, GPU_UTIL_MEM, device, "mem_busy_percent", 1);
	for (enum gpu_field f = 0; f < GPU_FIELDS; f++)
		fields |= d->files[f].divide ? GPU_BIT(f) : 0;
	return fields;
}

static void read_slot(const struct gpus *g, const char *device, char ret[32])
{
	char text[1024];
	const char *slot;

	*ret = '\0';
	if (!read_text(g->root, device, "uevent", text, sizeof(text)))
		return;
	slot = strstr(text, "PCI_SLOT_NAME=");
	if (slot)
		snprintf(ret, 32, "%.*s", (int)strcspn(slot + 14, "\n"), slot + 14);
}

/* A driver that was bound anew has another hwmonN, and may have another cardN. */
static int sysfs_revive(struct gpu_unit *u)
{
	for (unsigned i = 0; i < MAX_CARDS; i++) {
		char device[64], pci[32];

		snprintf(device, sizeof(device), CARD, i);
		read_slot(u->g, device, pci);
		if (*u->desc.pci ? strcmp(pci, u->desc.pci) != 0 : strcmp(device, u->sysfs) != 0)
			continue;
		if (!(find_files(u, device, strcmp(u->desc.vendor, "amd") == 0) & u->desc.fields & GPU_ENERGY_FIELDS))
			return -ENODEV;
		if (strcmp(u->sysfs, device) != 0)
			snprintf(u->sysfs, sizeof(u->sysfs), "%s", device);
		return 0;
	}
	return -ENODEV;
}

static const struct gpu_ops sysfs_ops = {
	.interface = ENERGY_HWMON,
	.row = sysfs_row,
	.processes = gpu_drm_processes,
	.processes_ns = NS_PER_S,
	.revive = sysfs_revive,
};

static bool is_asleep(const struct gpus *g, const char *device)
{
	char text[32];

	return !g->wake && read_text(g->root, device, "power/runtime_status", text, sizeof(text)) &&
	       strcmp(text, "suspended") == 0;
}

/* The head of gpu_metrics has a size, then the revision of the format: 1 is of cards, 2 and 3 are of processors with graphics
 * (kgd_pp_interface.h). Their power is the whole socket's. */
static bool is_apu(const struct gpus *g, const char *device)
{
	uint8_t head[4] = { 0 };
	char path[96];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/gpu_metrics", device);
	fd = fsroot_openat(g->root, path, O_RDONLY);
	if (fd < 0)
		return false;
	n = read(fd, head, sizeof(head));
	close(fd);
	return n == sizeof(head) && head[2] >= 2;
}

static int add_card(struct gpus *g, const char *device, bool amd)
{
	struct gpu_unit *u;

	if (is_asleep(g, device)) {
		gpu_warn(g, "gpu: %s sleeps and is not woken; left out until the next start, or set gpu.wake: true",
			 device);
		return 0;
	}
	if (amd && is_apu(g, device))
		return 0; /* integrated graphics: its energy is in RAPL's package */
	u = gpu_add(g, &sysfs_ops, amd ? "amd" : "intel");
	if (!u)
		return 0;
	u->device = calloc(1, sizeof(struct sysfs_unit));
	if (!u->device)
		return -ENOMEM;
	u->desc.fields = find_files(u, device, amd);
	if (!(u->desc.fields & GPU_ENERGY_FIELDS)) {
		free(u->device); /* integrated graphics: its energy is in RAPL's uncore domain */
		g->n--;
		return 0;
	}
	read_slot(g, device, u->desc.pci);
	snprintf(u->sysfs, sizeof(u->sysfs), "%s", device);
	if (!read_text(g->root, device, "product_name", u->desc.name, sizeof(u->desc.name)))
		snprintf(u->desc.name, sizeof(u->desc.name), "%s GPU", amd ? "AMD" : "Intel");
	return 0;
}

int gpu_sysfs_open(struct gpus *g)
{
	int rc = 0;

	for (unsigned i = 0; i < MAX_CARDS && !rc; i++) {
		char device[64], vendor[16];

		snprintf(device, sizeof(device), CARD, i);
		if (!read_text(g->root, device, "vendor", vendor, sizeof(vendor)))
			continue;
		if (strcmp(vendor, "0x1002") == 0 || strcmp(vendor, "0x8086") == 0)
			rc = add_card(g, device, strcmp(vendor, "0x1002") == 0);
	}
	return rc;
}

void gpu_sysfs_close_unit(struct gpu_unit *u)
{
	if (u->ops == &sysfs_ops)
		free(u->device);
}
