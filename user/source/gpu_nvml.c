// SPDX-License-Identifier: Apache-2.0
/* NVIDIA GPUs: what each can say is found out once, by asking; a field it refuses then is not asked for again.
 * A GPU is known by its UUID: the index moves with the library's view of the machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gpu_internal.h"
#include "nvml.h"

struct nvml_unit {
	nvml_device handle;
	uint32_t power_field, power_scope;   /* 0: nvmlDeviceGetPowerUsage */
	int last_code;
};

static struct nvml_unit *of(const struct gpu_unit *u)
{
	return u->device;
}

static int set(struct gpu_row *row, enum gpu_field f, int code, int64_t v)
{
	if (code == NVML_OK) {
		row->v[f] = v;
		row->present |= GPU_BIT(f);
	}
	return code;
}

static int field_value(const struct nvml *n, nvml_device d, uint32_t id, uint32_t scope, int64_t *ret)
{
	struct nvml_field f = { .id = id, .scope = scope };
	int code = n->fields ? n->fields(d, 1, &f) : NVML_NO_FUNCTION;

	if (code == NVML_OK)
		code = f.code;
	return code == NVML_OK && !nvml_number(f.type, &f.value, ret) ? NVML_NOT_SUPPORTED : code;
}

static int ask_clock(const struct nvml *n, nvml_device d, uint32_t type, uint32_t *ret)
{
	int code = n->clock ? n->clock(d, type, NVML_CLOCK_CURRENT, ret) : NVML_NO_FUNCTION;

	return code != NVML_OK && n->clock_info ? n->clock_info(d, type, ret) : code;
}

static int ask_energy(const struct nvml *n, nvml_device d, int64_t *ret)
{
	unsigned long long mj = 0;
	int code = n->energy ? n->energy(d, &mj) : NVML_NO_FUNCTION;

	if (code == NVML_NOT_SUPPORTED || code == NVML_NO_FUNCTION)
		return field_value(n, d, NVML_FIELD_ENERGY, NVML_SCOPE_GPU, ret);
	*ret = (int64_t)mj;
	return code;
}

static int ask_power(const struct nvml *n, const struct nvml_unit *d, int64_t *ret)
{
	uint32_t mw = 0;
	int code;

	if (d->power_field)
		return field_value(n, d->handle, d->power_field, d->power_scope, ret);
	code = n->power ? n->power(d->handle, &mw) : NVML_NO_FUNCTION;
	*ret = mw;
	return code;
}

static int ask_temperature(const struct nvml *n, nvml_device d, int64_t *ret)
{
	struct nvml_temperature t = { .version = NVML_TEMPERATURE_V1 };
	uint32_t v = 0;
	int code = n->temperature ? n->temperature(d, 0, &v) : NVML_NO_FUNCTION;

	*ret = v;
	if (code != NVML_OK && n->temperature_v) {
		code = n->temperature_v(d, &t);
		*ret = t.celsius;
	}
	return code;
}

static int ask_utilization(const struct nvml *n, nvml_device d, uint32_t wanted, struct gpu_row *row)
{
	struct nvml_utilization use = { 0 };
	int code = n->utilization ? n->utilization(d, &use) : NVML_NO_FUNCTION;

	if (code == NVML_OK && (use.gpu > 100 || use.memory > 100))
		code = NVML_UNKNOWN;
	if (wanted & GPU_BIT(GPU_UTIL_GPU))
		set(row, GPU_UTIL_GPU, code, use.gpu);
	if (wanted & GPU_BIT(GPU_UTIL_MEM))
		set(row, GPU_UTIL_MEM, code, use.memory);
	return code;
}

/* One field but the PCIe pair; both of utilization come with the first. */
static int ask(const struct nvml *n, const struct nvml_unit *d, enum gpu_field f, uint32_t wanted, struct gpu_row *row)
{
	uint32_t v = 0;
	int64_t wide = 0;
	int code = NVML_NO_FUNCTION;

	switch (f) {
	case GPU_CLOCK_MEM: case GPU_CLOCK_GPU:
		code = ask_clock(n, d->handle, f == GPU_CLOCK_MEM ? NVML_CLOCK_MEM : NVML_CLOCK_SM, &v);
		return set(row, f, code, v);
	case GPU_APP_CLOCK_MEM: case GPU_APP_CLOCK_GPU:
		if (n->app_clock)
			code = n->app_clock(d->handle, f == GPU_APP_CLOCK_MEM ? NVML_CLOCK_MEM : NVML_CLOCK_SM, &v);
		return set(row, f, code, v);
	case GPU_POWER_LIMIT:
		code = n->power_limit ? n->power_limit(d->handle, &v) : code;
		return set(row, f, code, v);
	case GPU_TOTAL_ENERGY:
		code = ask_energy(n, d->handle, &wide);
		return set(row, f, code, wide);
	case GPU_POWER_STATE:
		code = n->power_state ? n->power_state(d->handle, &v) : code;
		return set(row, f, code == NVML_OK && v > 15 ? NVML_UNKNOWN : code, v);
	case GPU_POWER:
		code = ask_power(n, d, &wide);
		return set(row, f, code, wide);
	case GPU_TEMPERATURE:
		code = ask_temperature(n, d->handle, &wide);
		return set(row, f, code, wide);
	case GPU_UTIL_GPU:
		return ask_utilization(n, d->handle, wanted, row);
	default:
		return NVML_NOT_SUPPORTED;
	}
}

static int nvml_row(struct gpu_unit *u, uint32_t wanted, struct gpu_row *row)
{
	int rc = 0;

	pthread_rwlock_rdlock(&u->g->nvml_use);
	for (enum gpu_field f = 0; f <= GPU_UTIL_GPU && rc != -ENODEV; f++) {
		int code;

		if (!(wanted & GPU_BIT(f)) || f == GPU_PCI_TX || f == GPU_PCI_RX)
			continue;
		code = ask(u->g->nvml, of(u), f, wanted, row);
		rc = nvml_errno(code);
		if (rc)
			of(u)->last_code = code;
	}
	pthread_rwlock_unlock(&u->g->nvml_use);
	return rc == -ENODEV ? rc : 0;
}

static int nvml_pcie(struct gpu_unit *u, int64_t *ret_tx, int64_t *ret_rx)
{
	const struct nvml *n = u->g->nvml;
	uint32_t tx = 0, rx = 0;
	int code = NVML_NO_FUNCTION;

	pthread_rwlock_rdlock(&u->g->nvml_use);
	if (n->pcie)
		code = n->pcie(of(u)->handle, NVML_PCIE_TX, &tx);
	if (code == NVML_OK)
		code = n->pcie(of(u)->handle, NVML_PCIE_RX, &rx);
	pthread_rwlock_unlock(&u->g->nvml_use);
	if (code == NVML_OK) {
		*ret_tx = tx;
		*ret_rx = rx;
	}
	return nvml_errno(code);
}

/* Grace Hopper may tell the power of the module alone, and older libraries have no fields. */
static void find_power(const struct nvml *n, struct nvml_unit *d, struct gpu_row *row)
{
	static const struct { uint32_t field, scope; } ways[] = {
		{ 0, 0 }, { NVML_FIELD_POWER_INSTANT, NVML_SCOPE_GPU }, { NVML_FIELD_POWER_AVERAGE, NVML_SCOPE_GPU },
		{ NVML_FIELD_POWER_INSTANT, NVML_SCOPE_MODULE }, { NVML_FIELD_POWER_AVERAGE, NVML_SCOPE_MODULE },
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		d->power_field = ways[i].field;
		d->power_scope = ways[i].scope;
		if (ask(n, d, GPU_POWER, 0, row) == NVML_OK)
			return;
	}
}

/* What is refused as not supported is absent for good; an error of the moment is not. */
static void probe(struct gpu_unit *u)
{
	const struct nvml *n = u->g->nvml;
	uint32_t wanted = GPU_BIT(GPU_UTIL_GPU) | GPU_BIT(GPU_UTIL_MEM);
	struct gpu_row row = { 0 };
	int64_t tx, rx;

	for (enum gpu_field f = 0; f <= GPU_UTIL_GPU; f++) {
		int code;

		if (f == GPU_PCI_TX || f == GPU_PCI_RX)
			continue;
		code = ask(n, of(u), f, wanted, &row);
		if (f == GPU_POWER && nvml_errno(code) == -EOPNOTSUPP) {
			find_power(n, of(u), &row);
			code = row.present & GPU_BIT(GPU_POWER) ? NVML_OK : code;
		}
		if (nvml_errno(code) == -EOPNOTSUPP)
			continue;
		u->desc.fields |= f == GPU_UTIL_GPU ? wanted : GPU_BIT(f);
		of(u)->last_code = code ? code : of(u)->last_code;
	}
	if (nvml_pcie(u, &tx, &rx) == 0)
		u->desc.fields |= GPU_BIT(GPU_PCI_TX) | GPU_BIT(GPU_PCI_RX);
}

static void probe_rings(struct gpu_unit *u)
{
	struct gpu_sample *some = calloc(GPU_MAX_SAMPLES, sizeof(*some));

	for (enum gpu_ring r = 0; some && r < GPU_RINGS; r++) {
		int n = gpu_nvml_samples(u, r, some, GPU_MAX_SAMPLES);

		if (n >= 0 || n == -EAGAIN)
			u->desc.rings |= (uint8_t)(1u << r);
		u->ring_us[r] = 0;   /* the recorder gets them from the first */
	}
	free(some);
}

static void describe(struct gpu_unit *u)
{
	const struct nvml *n = u->g->nvml;
	struct gpu_desc *d = &u->desc;
	nvml_device h = of(u)->handle;
	uint32_t now = 0, later = 0;
	struct nvml_pci pci = { 0 };

	if (n->name && n->name(h, d->name, sizeof(d->name)) != NVML_OK)
		d->name[0] = '\0';
	if (n->uuid && n->uuid(h, d->uuid, sizeof(d->uuid)) != NVML_OK)
		d->uuid[0] = '\0';
	if (n->pci && n->pci(h, &pci) == NVML_OK)
		snprintf(d->pci, sizeof(d->pci), "%04x:%02x:%02x.0", pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0x1f);
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

/* The library is initialized anew once for all: handles from before are void. */
static int nvml_revive(struct gpu_unit *u)
{
	struct gpus *g = u->g;
	nvml_device handle;
	int code;

	pthread_rwlock_wrlock(&g->nvml_use);
	g->nvml->shutdown();
	code = g->nvml->init();
	for (unsigned i = 0; code == NVML_OK && i < g->n; i++)
		if (g->units[i].ops == u->ops && find_again(&g->units[i], &handle) == NVML_OK)
			of(&g->units[i])->handle = handle;
	if (code == NVML_OK)
		code = find_again(u, &handle);
	if (code)
		of(u)->last_code = code;
	pthread_rwlock_unlock(&g->nvml_use);
	return nvml_errno(code);
}

static const struct gpu_ops nvml_ops = {
	.interface = ENERGY_NVML, .row = nvml_row, .pcie = nvml_pcie, .samples = gpu_nvml_samples,
	.processes = gpu_nvml_processes, .revive = nvml_revive,
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
	of(u)->handle = handle;
	describe(u);
	probe(u);
	if (u->desc.fields & (GPU_BIT(GPU_TOTAL_ENERGY) | GPU_BIT(GPU_POWER))) {
		probe_rings(u);
		return 0;
	}
	/* Jetson: everything is refused; its INA3221 is in hwmon */
	gpu_warn(g, "gpu: %s tells neither power nor energy through NVML; left out; on a Jetson, configure a meter of type hwmon with "
		 "the channels of its ina3221", *u->desc.name ? u->desc.name : "a GPU");
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
