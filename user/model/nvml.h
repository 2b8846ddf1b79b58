/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library (NVML), loaded at run time, with declarations of our own. Layouts and numbers are those
 * of its public header for LP64. A function that the library lacks is NULL. The source of GPUs, the guard of their
 * limits (ctl/experiment/guard.c) and the scripted library of the tests (tests/gpu) use this one declaration. */
#ifndef JD_NVML_H
#define JD_NVML_H
#include <stdbool.h>
#include <stdint.h>

enum nvml_code {
	NVML_OK = 0,
	NVML_UNINITIALIZED = 1,
	NVML_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_TOO_SMALL = 7,
	NVML_NO_DRIVER = 9,
	NVML_NO_FUNCTION = 13,
	NVML_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_BLOCKED = 17,
	NVML_MISMATCH = 18,
	NVML_VERSION = 25,
	NVML_DEPRECATED = 26,
	NVML_UNKNOWN = 999,
};

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_CURRENT = 0, NVML_PCIE_TX = 0, NVML_PCIE_RX = 1 };
enum { NVML_SAMPLES_POWER = 0, NVML_SAMPLES_GPU = 1, NVML_SAMPLES_MEM = 2 };
enum {
	NVML_VALUE_DOUBLE,
	NVML_VALUE_U32,
	NVML_VALUE_ULONG,
	NVML_VALUE_U64,
	NVML_VALUE_S64,
	NVML_VALUE_S32,
	NVML_VALUE_U16
};
enum {
	NVML_FIELD_ENERGY = 83,
	NVML_FIELD_POWER_AVERAGE = 185,
	NVML_FIELD_POWER_INSTANT = 186,
	NVML_FIELD_PCIE_TX_BYTES = 197,
	NVML_FIELD_PCIE_RX_BYTES = 198
};
enum { NVML_SCOPE_GPU, NVML_SCOPE_MODULE };
#define NVML_PROCESSES_V1 0x01000018u
#define NVML_TEMPERATURE_V1 0x0100000cu

typedef struct nvml_device *nvml_device; /* opaque */

union nvml_value {
	double d;
	int32_t s32;
	uint32_t u32;
	uint16_t u16;
	unsigned long ul;
	uint64_t u64;
	int64_t s64;
};
struct nvml_utilization {
	uint32_t gpu, memory;
};
struct nvml_sample {
	uint64_t stamp_us;
	union nvml_value value;
};
struct nvml_field {
	uint32_t id, scope;
	int64_t stamp_us, latency_us;
	uint32_t type;
	int32_t code;
	union nvml_value value;
};
struct nvml_process_use {
	uint32_t pid, pad;
	uint64_t stamp_us;
	uint32_t sm, memory, encoder, decoder;
};
struct nvml_process_use_v1 {
	uint64_t stamp_us;
	uint32_t pid, sm, memory, encoder, decoder, jpeg, optical_flow, pad;
};
struct nvml_processes_v1 {
	uint32_t version, count;
	uint64_t last_seen_us;
	struct nvml_process_use_v1 *list;
};
struct nvml_process {
	uint32_t pid, pad;
	uint64_t memory;
	uint32_t gpu_instance, compute_instance;
};
struct nvml_temperature {
	uint32_t version, sensor;
	int32_t celsius;
};
struct nvml_pci {
	char legacy_id[16];
	uint32_t domain, bus, device, device_id, subsystem_id;
	char id[32];
};

_Static_assert(sizeof(nvml_device) == 8 && sizeof(union nvml_value) == 8, "LP64");
_Static_assert(sizeof(struct nvml_utilization) == 8, "nvmlUtilization_t");
_Static_assert(sizeof(struct nvml_sample) == 16, "nvmlSample_t");
_Static_assert(sizeof(struct nvml_field) == 40 && __builtin_offsetof(struct nvml_field, latency_us) == 16 &&
		       __builtin_offsetof(struct nvml_field, type) == 24 &&
		       __builtin_offsetof(struct nvml_field, code) == 28 &&
		       __builtin_offsetof(struct nvml_field, value) == 32,
	       "nvmlFieldValue_t");
_Static_assert(sizeof(struct nvml_process_use) == 32 && __builtin_offsetof(struct nvml_process_use, sm) == 16,
	       "nvmlProcessUtilizationSample_t");
_Static_assert(sizeof(struct nvml_process_use_v1) == 40 && __builtin_offsetof(struct nvml_process_use_v1, sm) == 12,
	       "nvmlProcessUtilizationInfo_v1_t");
_Static_assert(sizeof(struct nvml_processes_v1) == 24, "nvmlProcessesUtilizationInfo_v1_t");
_Static_assert(sizeof(struct nvml_process) == 24 && __builtin_offsetof(struct nvml_process, gpu_instance) == 16,
	       "nvmlProcessInfo_t of the _v2 and _v3 symbols");
_Static_assert(sizeof(struct nvml_temperature) == 12, "nvmlTemperature_v1_t");
_Static_assert(sizeof(struct nvml_pci) == 68 && __builtin_offsetof(struct nvml_pci, id) == 36, "nvmlPciInfo_t");

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(uint32_t *ret);
	int (*by_index)(uint32_t i, nvml_device *ret);
	int (*by_uuid)(const char *uuid, nvml_device *ret);
	int (*name)(nvml_device d, char *ret, uint32_t size);
	int (*uuid)(nvml_device d, char *ret, uint32_t size);
	int (*pci)(nvml_device d, struct nvml_pci *ret);
	int (*capability)(nvml_device d, int *ret_major, int *ret_minor);
	int (*driver_version)(char *ret, uint32_t size);
	int (*nvml_version)(char *ret, uint32_t size);
	int (*cuda_version)(int *ret);
	int (*utilization)(nvml_device d, struct nvml_utilization *ret);
	int (*clock)(nvml_device d, uint32_t type, uint32_t which, uint32_t *ret_mhz);
	int (*clock_info)(nvml_device d, uint32_t type, uint32_t *ret_mhz);
	int (*app_clock)(nvml_device d, uint32_t type, uint32_t *ret_mhz);
	int (*set_app_clocks)(nvml_device d, uint32_t mem_mhz, uint32_t sm_mhz);
	int (*power_limit)(nvml_device d, uint32_t *ret_mw); /* the enforced limit */
	int (*power_managed)(nvml_device d, uint32_t *ret_mw); /* the limit that was set */
	int (*set_power_managed)(nvml_device d, uint32_t mw);
	int (*energy)(nvml_device d, unsigned long long *ret_mj);
	int (*power_state)(nvml_device d, uint32_t *ret);
	int (*power)(nvml_device d, uint32_t *ret_mw);
	int (*fields)(nvml_device d, int n, struct nvml_field *fields);
	int (*temperature)(nvml_device d, uint32_t sensor, uint32_t *ret);
	int (*temperature_v)(nvml_device d, struct nvml_temperature *ret);
	int (*pcie)(nvml_device d, uint32_t counter, uint32_t *ret_kbs);
	int (*samples)(nvml_device d, uint32_t type, unsigned long long since_us, uint32_t *ret_type, uint32_t *count,
		       struct nvml_sample *ret);
	int (*process_use)(nvml_device d, struct nvml_process_use *ret, uint32_t *count, unsigned long long since_us);
	int (*processes_use)(nvml_device d, struct nvml_processes_v1 *list);
	int (*compute)(nvml_device d, uint32_t *count, struct nvml_process *ret);
	int (*graphics)(nvml_device d, uint32_t *count, struct nvml_process *ret);
	int (*mig)(nvml_device d, uint32_t *ret_current, uint32_t *ret_pending);
};

#define NVML_LIBRARY "libnvidia-ml.so.1"

/* Loads the library from path without initializing it. 0; -ENOENT: it cannot be loaded, dlerror() says why; -ENOEXEC:
 * it is not NVML. n is zeroed on failure. */
int nvml_load(struct nvml *n, const char *path);
void nvml_unload(struct nvml *n);
/* The errno of a return code of NVML: 0, -EOPNOTSUPP (never), -EAGAIN (nothing new), -ENODEV (lost, or the driver is
 * gone), -EACCES, -EIO (this once). */
int nvml_errno(int code);
const char *nvml_text(int code);
/* Converts a value of any type to an integer; false for an unknown type and for a value that is not a number. */
bool nvml_number(uint32_t type, const union nvml_value *v, int64_t *ret);

#endif
