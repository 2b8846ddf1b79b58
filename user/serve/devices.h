/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs and power meters, for the recorder of experiments. The agent keeps the rings and fills in these
 * callbacks. They are called on the loop's thread. All but record may take a lock for a moment. The caller
 * keeps its positions in the rings, so no state is kept per caller. */
#ifndef JD_SERVE_DEVICES_H
#define JD_SERVE_DEVICES_H
#include <stdbool.h>
#include <stdint.h>
#include "model/gpu.h"
#include "model/meter.h"

enum { DEVICES_ROWS, DEVICES_SAMPLES, DEVICES_METERS, DEVICES_RINGS };

struct serve_devices_at {
	uint64_t at[DEVICES_RINGS]; /* number of the next entry of each ring; 0 = the oldest kept */
	uint64_t missed; /* entries overwritten before they were read */
};

struct serve_devices {
	void *arg;
	unsigned (*gpus)(void *arg);
	void (*gpu)(void *arg, unsigned i, struct gpu_desc *ret);
	unsigned (*channels)(void *arg);
	void (*channel)(void *arg, unsigned i, struct meter_desc *ret);
	unsigned (*silent_meters)(void *arg); /* without a value so far */
	void (*record)(void *arg, uint64_t row_ns); /* make a row every row_ns from now on; 0 = stop */
	void (*now)(void *arg, struct serve_devices_at *ret);
	bool (*next_row)(void *arg, struct serve_devices_at *at, struct gpu_row *ret);
	bool (*next_sample)(void *arg, struct serve_devices_at *at, struct gpu_sample *ret);
	bool (*next_meter)(void *arg, struct serve_devices_at *at, struct meter_sample *ret);
	const char *gpu_library; /* the configured library; NULL = the system's */
};

#endif
