// SPDX-License-Identifier: Apache-2.0
/* What an NVIDIA GPU tells of itself: the fields of gpu-power.csv. */
#include <errno.h>
#include "../base/clock.h"
#include "gpu_nvml.h"

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

int gpu_nvml_row(struct gpu_unit *u, uint32_t wanted, struct gpu_row *row)
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

/* Both counters in one call, so that they are of one instant. A GPU that moved nothing since its driver was loaded is
 * one that does not count. */
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

/* KB/s since the look before. A counter that went back has wrapped or begun anew: nothing is known then. */
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

int gpu_nvml_pcie(struct gpu_unit *u, int64_t *ret_tx, int64_t *ret_rx)
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

/* What is refused as not supported is absent for good; an error of the moment is not. */
void gpu_nvml_probe(struct gpu_unit *u)
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
