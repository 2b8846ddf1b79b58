// SPDX-License-Identifier: Apache-2.0
/* NVIDIA GPUs: opening the library, and finding them again after their driver was reset or loaded anew.
 * A GPU is known by its UUID: the index moves with the library's view of the machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gpu_nvml.h"

static void probe_rings(struct gpu_unit *u)
{
	struct gpu_sample *some = calloc(GPU_MAX_SAMPLES, sizeof(*some));

	for (enum gpu_ring r = 0; some && r < GPU_RINGS; r++) {
		int n = gpu_nvml_samples(u, r, some, GPU_MAX_SAMPLES);

		if (n >= 0 || n == -EAGAIN)
			u->desc.rings |= (uint8_t)(1u << r);
		u->ring_us[r] = 0; /* the recorder gets them from the first */
	}
	free(some);
}

static void describe(struct gpu_unit *u)
{
	const struct nvml *n = u->g->nvml;
	struct gpu_desc *d = &u->desc;
	nvml_device h = nvml_unit_of(u)->handle;
	uint32_t now = 0, later = 0;
	struct nvml_pci pci = { 0 };

	if (n->name && n->name(h, d->name, sizeof(d->name)) != NVML_OK)
		d->name[0] = '\0';
	if (n->uuid && n->uuid(h, d->uuid, sizeof(d->uuid)) != NVML_OK)
		d->uuid[0] = '\0';
	if (n->pci && n->pci(h, &pci) == NVML_OK)
		snprintf(d->pci, sizeof(d->pci), "%04x:%02x:%02x.0", pci.domain, pci.bus & 0xff, pci.device & 0x1f);
	if (n->driver_version && n->driver_version(d->driver_version, sizeof(d->driver_version)) != NVML_OK)
		d->driver_version[0] = '\0';
	if (n->nvml_version && n->nvml_version(d->nvml_version, sizeof(d->nvml_version)) != NVML_OK)
		d->nvml_version[0] = '\0';
	if (n->cuda_version && n->cuda_version(&d->cuda_version) != NVML_OK)
		d->cuda_version = 0;
	if (n->capability && n->capability(h, &d->cuda_major, &d->cuda_minor) != NVML_OK)
		d->cuda_major = d->cuda_minor = 0;
	d->mig = n->mig && n->mig(h, &now, &later) == NVML_OK && now == 1;
	if (*d->pci)
		snprintf(u->sysfs, sizeof(u->sysfs), "/sys/bus/pci/devices/%s", d->pci);
}

static int find_again(const struct gpu_unit *u, nvml_device *ret)
{
	const struct nvml *n = u->g->nvml;
	uint32_t count = 0;
	char uuid[96];
	int code;

	if (n->by_uuid && *u->desc.uuid)
		return n->by_uuid(u->desc.uuid, ret);
	code = n->count(&count);
	for (uint32_t i = 0; code == NVML_OK && i < count; i++)
		if (n->by_index(i, ret) == NVML_OK && n->uuid && n->uuid(*ret, uuid, sizeof(uuid)) == NVML_OK &&
		    strcmp(uuid, u->desc.uuid) == 0)
			return NVML_OK;
	return code ? code : NVML_LOST;
}

static bool answers(struct gpu_unit *u)
{
	struct gpu_row row = { 0 };

	return gpu_nvml_row(u, GPU_ENERGY_FIELDS, &row) == 0 && row.present;
}

/* It may have come back by itself, as after a reset that left the library as it was. */
static bool is_back(struct gpu_unit *u)
{
	nvml_device handle = NULL;
	int code;

	pthread_rwlock_wrlock(&u->g->nvml_use);
	code = find_again(u, &handle);
	nvml_unit_of(u)->handle = code == NVML_OK ? handle : NULL;
	pthread_rwlock_unlock(&u->g->nvml_use);
	return code == NVML_OK && answers(u);
}

static bool another_sleeps(const struct gpu_unit *u)
{
	const struct gpus *g = u->g;

	for (unsigned i = 0; i < g->n; i++)
		if (g->units[i].ops == u->ops && g->units[i].state == GPU_ASLEEP && !g->wake)
			return true;
	return false;
}

/* The library is initialized anew for all: handles from before are void, and who is not found has none. */
static void begin_anew(struct gpus *g, const struct gpu_ops *ops)
{
	int code;

	pthread_rwlock_wrlock(&g->nvml_use);
	g->nvml->shutdown();
	code = g->nvml->init();
	for (unsigned i = 0; i < g->n; i++) {
		struct gpu_unit *u = &g->units[i];
		nvml_device handle = NULL;
		int found = code;

		if (u->ops != ops)
			continue;
		if (code == NVML_OK)
			found = find_again(u, &handle);
		nvml_unit_of(u)->handle = found == NVML_OK ? handle : NULL;
		if (found != NVML_OK)
			u->why = nvml_text(found);
	}
	pthread_rwlock_unlock(&g->nvml_use);
}

/* To initialize the library wakes every GPU: one that sleeps is worth more than one that is lost. */
static int nvml_revive(struct gpu_unit *u)
{
	if (is_back(u))
		return 0;
	if (another_sleeps(u))
		return -EBUSY;
	begin_anew(u->g, u->ops);
	return answers(u) ? 0 : -ENODEV;
}

static const struct gpu_ops nvml_ops = {
	.interface = ENERGY_NVML,
	.row = gpu_nvml_row,
	.pcie = gpu_nvml_pcie,
	.samples = gpu_nvml_samples,
	.processes = gpu_nvml_processes,
	.revive = nvml_revive,
};

static int add_unit(struct gpus *g, uint32_t i)
{
	nvml_device handle;
	int code = g->nvml->by_index(i, &handle);
	struct gpu_unit *u;

	if (code) {
		gpu_warn(g, "gpu: number %u of NVML: %s", i, nvml_text(code));
		return 0;
	}
	u = gpu_add(g, &nvml_ops, "nvidia");
	if (!u)
		return 0;
	u->device = calloc(1, sizeof(struct nvml_unit));
	if (!u->device)
		return -ENOMEM;
	nvml_unit_of(u)->handle = handle;
	describe(u);
	gpu_nvml_probe(u);
	if (u->desc.fields & (GPU_BIT(GPU_TOTAL_ENERGY) | GPU_BIT(GPU_POWER))) {
		probe_rings(u);
		return 0;
	}
	/* Jetson: everything is refused; its INA3221 is in hwmon */
	gpu_warn(
		g,
		"gpu: %s tells neither power nor energy through NVML; left out; on a Jetson, configure a meter of type hwmon with "
		"the channels of its ina3221",
		*u->desc.name ? u->desc.name : "a GPU");
	free(u->device);
	g->n--;
	return 0;
}

int gpu_nvml_open(struct gpus *g, const char *library, struct err *err)
{
	struct nvml n;
	uint32_t count = 0;
	int rc = nvml_load(&n, library, err), code;

	if (rc)
		return rc;
	g->nvml = malloc(sizeof(n));
	if (!g->nvml) {
		nvml_unload(&n);
		return err_set(err, -ENOMEM, "gpu: out of memory");
	}
	*g->nvml = n;
	code = n.init();
	if (code == NVML_OK)
		code = n.count(&count);
	if (code) {
		err_set(err, -ENODEV, "gpu: NVML: %s", nvml_text(code));
		gpu_nvml_close(g);
		return -ENODEV;
	}
	for (uint32_t i = 0; !rc && i < count && i < GPU_MAX; i++)
		rc = add_unit(g, i);
	return rc ? err_set(err, rc, "gpu: out of memory") : 0;
}

void gpu_nvml_close(struct gpus *g)
{
	if (!g->nvml)
		return;
	for (unsigned i = 0; i < g->n; i++) {
		if (g->units[i].ops != &nvml_ops)
			continue;
		free(g->units[i].device);
		g->units[i].device = NULL;
	}
	g->nvml->shutdown();
	nvml_unload(g->nvml);
	free(g->nvml);
	g->nvml = NULL;
}
