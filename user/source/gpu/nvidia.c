// SPDX-License-Identifier: Apache-2.0
/* NVIDIA GPUs: opening the library, and finding them again after their driver was reset or loaded anew.
 * A GPU is known by its UUID: the index moves with the library's view of the machine. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "nvidia.h"

#define NVML_USE_NS (250 * NS_PER_MS) /* use is sampled every 200 ms on Hopper */

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

static int gpu_nvml_row(struct gpu_unit *u, uint32_t wanted, struct gpu_row *row);

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

/* The library is initialized anew for all: handles from before are void, and a GPU that is not found has none. */
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

/* Initializing the library wakes every GPU, so it waits while another GPU sleeps. */
static int nvml_revive(struct gpu_unit *u)
{
	if (is_back(u))
		return 0;
	if (another_sleeps(u))
		return -EBUSY;
	begin_anew(u->g, u->ops);
	return answers(u) ? 0 : -ENODEV;
}

static int gpu_nvml_power_now(struct gpu_unit *u, int64_t *ret_mw);
static int gpu_nvml_pcie(struct gpu_unit *u, int64_t *ret_tx, int64_t *ret_rx);

static const struct gpu_ops nvml_ops = {
	.interface = ENERGY_NVML,
	.row = gpu_nvml_row,
	.power_now = gpu_nvml_power_now,
	.pcie = gpu_nvml_pcie,
	.samples = gpu_nvml_samples,
	.processes = gpu_nvml_processes,
	.processes_ns = NVML_USE_NS,
	.revive = nvml_revive,
};

static void gpu_nvml_probe(struct gpu_unit *u);

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
	const char *name = library ? library : NVML_LIBRARY;
	struct nvml n;
	uint32_t count = 0;
	int rc = nvml_load(&n, name), code;

	if (rc == -ENOENT)
		return err_set(err, rc, "gpu: %s; install NVIDIA's driver or name its library with gpu.library",
			       dlerror());
	if (rc)
		return err_set(err, rc,
			       "gpu: %s: it has no nvmlInit_v2 and what belongs to it; name NVIDIA's own library",
			       name);
	g->nvml = malloc(sizeof(n));
	if (!g->nvml) {
		nvml_unload(&n);
		return err_set(err, -ENOMEM, "gpu: out of memory; free some");
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
	return rc ? err_set(err, rc, "gpu: out of memory; free some") : 0;
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

/* Fields of an NVIDIA GPU for gpu-power.csv. */

#define SHORTEST_BYTES_NS (20 * NS_PER_MS)
#define LONGEST_BYTES_NS (5 * NS_PER_S) /* a mean over more says nothing about now */

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
	case GPU_CLOCK_MEM:
	case GPU_CLOCK_GPU:
		code = ask_clock(n, d->handle, f == GPU_CLOCK_MEM ? NVML_CLOCK_MEM : NVML_CLOCK_SM, &v);
		return set(row, f, code, v);
	case GPU_APP_CLOCK_MEM:
	case GPU_APP_CLOCK_GPU:
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

/* Values of the wanted fields; gpu_nvml_probe has put the known ones into the unit's desc. */
static int gpu_nvml_row(struct gpu_unit *u, uint32_t wanted, struct gpu_row *row)
{
	int rc;

	pthread_rwlock_rdlock(&u->g->nvml_use);
	rc = nvml_unit_of(u)->handle ? 0 : -ENODEV;
	for (enum gpu_field f = 0; f <= GPU_UTIL_GPU && rc != -ENODEV; f++) {
		int code;

		if (!(wanted & GPU_BIT(f)) || f == GPU_PCI_TX || f == GPU_PCI_RX)
			continue;
		code = ask(u->g->nvml, nvml_unit_of(u), f, wanted, row);
		rc = nvml_errno(code);
		if (!rc)
			continue;
		u->why = nvml_text(code);
		u->denied = rc == -EACCES;
	}
	pthread_rwlock_unlock(&u->g->nvml_use);
	return rc == -ENODEV ? rc : 0;
}

/* Power of this instant: nvmlDeviceGetPowerUsage tells the mean of a second on Ampere and newer. */
static int gpu_nvml_power_now(struct gpu_unit *u, int64_t *ret_mw)
{
	struct nvml_unit *d = nvml_unit_of(u);
	int code = NVML_LOST;

	if (d->power_field || d->no_instant)
		return -EOPNOTSUPP;
	pthread_rwlock_rdlock(&u->g->nvml_use);
	if (d->handle)
		code = field_value(u->g->nvml, d->handle, NVML_FIELD_POWER_INSTANT, NVML_SCOPE_GPU, ret_mw);
	pthread_rwlock_unlock(&u->g->nvml_use);
	d->no_instant = nvml_errno(code) == -EOPNOTSUPP;
	return nvml_errno(code);
}

/* Both counters in one call, so that they are of one instant. Counters of 0 mean a GPU that does not count. */
static int ask_bytes(const struct nvml *n, nvml_device d, struct nvml_bytes *ret)
{
	struct nvml_field f[2] = { { .id = NVML_FIELD_PCIE_TX_BYTES }, { .id = NVML_FIELD_PCIE_RX_BYTES } };
	int code = n->fields ? n->fields(d, 2, f) : NVML_NO_FUNCTION;
	uint64_t now = clock_mono_ns();
	int64_t tx, rx;

	for (unsigned i = 0; i < 2 && code == NVML_OK; i++)
		code = f[i].code;
	if (code != NVML_OK)
		return code;
	if (!nvml_number(f[0].type, &f[0].value, &tx) || !nvml_number(f[1].type, &f[1].value, &rx) || tx < 0 ||
	    rx < 0 || !(tx | rx))
		return NVML_NOT_SUPPORTED;
	*ret = (struct nvml_bytes){ (uint64_t)tx, (uint64_t)rx, now };
	return NVML_OK;
}

/* KB/s since the look before. A counter that went back has wrapped or begun anew; then the rate is not known. */
static int by_bytes(const struct nvml *n, struct nvml_unit *d, int64_t *ret_tx, int64_t *ret_rx)
{
	struct nvml_bytes now, old = d->bytes;
	int code = ask_bytes(n, d->handle, &now);
	uint64_t ns;

	if (code != NVML_OK)
		return code;
	ns = now.mono_ns - old.mono_ns;
	if (old.mono_ns && ns < SHORTEST_BYTES_NS)
		return NVML_NOT_FOUND;
	d->bytes = now;
	if (!old.mono_ns || ns > LONGEST_BYTES_NS || now.tx < old.tx || now.rx < old.rx)
		return NVML_NOT_FOUND;
	*ret_tx = (int64_t)((unsigned __int128)(now.tx - old.tx) * NS_PER_S / 1000 / ns);
	*ret_rx = (int64_t)((unsigned __int128)(now.rx - old.rx) * NS_PER_S / 1000 / ns);
	return NVML_OK;
}

/* Each direction keeps its caller for 20 ms. */
static int by_throughput(const struct nvml *n, nvml_device d, int64_t *ret_tx, int64_t *ret_rx)
{
	uint32_t tx = 0, rx = 0;
	int code = n->pcie ? n->pcie(d, NVML_PCIE_TX, &tx) : NVML_NO_FUNCTION;

	if (code == NVML_OK)
		code = n->pcie(d, NVML_PCIE_RX, &rx);
	if (code == NVML_OK) {
		*ret_tx = tx;
		*ret_rx = rx;
	}
	return code;
}

static int gpu_nvml_pcie(struct gpu_unit *u, int64_t *ret_tx, int64_t *ret_rx)
{
	struct nvml_unit *d = nvml_unit_of(u);
	int code = NVML_LOST;

	pthread_rwlock_rdlock(&u->g->nvml_use);
	if (d->handle)
		code = d->counts_bytes ? by_bytes(u->g->nvml, d, ret_tx, ret_rx) :
					 by_throughput(u->g->nvml, d->handle, ret_tx, ret_rx);
	pthread_rwlock_unlock(&u->g->nvml_use);
	return nvml_errno(code);
}

/* Grace Hopper may tell the power of the module alone, and older libraries have no fields. */
static void find_power(const struct nvml *n, struct nvml_unit *d, struct gpu_row *row)
{
	static const struct {
		uint32_t field, scope;
	} ways[] = {
		{ 0, 0 },
		{ NVML_FIELD_POWER_INSTANT, NVML_SCOPE_GPU },
		{ NVML_FIELD_POWER_AVERAGE, NVML_SCOPE_GPU },
		{ NVML_FIELD_POWER_INSTANT, NVML_SCOPE_MODULE },
		{ NVML_FIELD_POWER_AVERAGE, NVML_SCOPE_MODULE },
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		d->power_field = ways[i].field;
		d->power_scope = ways[i].scope;
		if (ask(n, d, GPU_POWER, 0, row) == NVML_OK)
			return;
	}
}

static bool tells_pcie(struct gpu_unit *u)
{
	struct nvml_unit *d = nvml_unit_of(u);
	struct nvml_bytes bytes;
	int64_t tx, rx;

	d->counts_bytes = ask_bytes(u->g->nvml, d->handle, &bytes) == NVML_OK;
	return d->counts_bytes || by_throughput(u->g->nvml, d->handle, &tx, &rx) == NVML_OK;
}

/* A field refused as not supported is absent for good; one that failed with another error is not. */
static void gpu_nvml_probe(struct gpu_unit *u)
{
	const struct nvml *n = u->g->nvml;
	uint32_t wanted = GPU_BIT(GPU_UTIL_GPU) | GPU_BIT(GPU_UTIL_MEM);
	struct gpu_row row = { 0 };

	for (enum gpu_field f = 0; f <= GPU_UTIL_GPU; f++) {
		int code;

		if (f == GPU_PCI_TX || f == GPU_PCI_RX)
			continue;
		code = ask(n, nvml_unit_of(u), f, wanted, &row);
		if (f == GPU_POWER && nvml_errno(code) == -EOPNOTSUPP) {
			find_power(n, nvml_unit_of(u), &row);
			code = row.present & GPU_BIT(GPU_POWER) ? NVML_OK : code;
		}
		if (nvml_errno(code) != -EOPNOTSUPP)
			u->desc.fields |= f == GPU_UTIL_GPU ? wanted : GPU_BIT(f);
	}
	if (tells_pcie(u))
		u->desc.fields |= GPU_BIT(GPU_PCI_TX) | GPU_BIT(GPU_PCI_RX);
}
