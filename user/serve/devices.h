/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs and power meters as the recorder of experiments asks for them: who keeps the rings is the agent's
 * business. All but record may take a lock for a moment; called on the loop's thread. Positions in the rings are
 * the asker's, so that nothing has to be kept of it. */
#ifndef JD_SERVE_DEVICES_H
#define JD_SERVE_DEVICES_H
#include <stdbool.h>
#include <stdint.h>
#include "../model/gpu.h"
#include "../model/meter.h"

enum { DEVICES_ROWS, DEVICES_SAMPLES, DEVICES_METERS, DEVICES_RINGS };

struct serve_devices_at {
	uint64_t at[DEVICES_RINGS]; /* numbers of the next ones; 0 = from the oldest kept */
	uint64_t missed; /* overwritten before they were asked for */
};

struct serve_devices {
	void *arg;
	unsigned (*gpus)(void *arg);
	void (*gpu)(void *arg, unsigned i, struct gpu_desc *ret);
	unsigned (*channels)(void *arg);
	void (*channel)(void *arg, unsigned i, struct meter_desc *ret);
	void (*record)(void *arg, uint64_t row_ns); /* rows at that pace from now on; 0 = not any more */
	void (*now)(void *arg, struct serve_devices_at *ret);
	bool (*next_row)(void *arg, struct serve_devices_at *at, struct gpu_row *ret);
	bool (*next_sample)(void *arg, struct serve_devices_at *at, struct gpu_sample *ret);
	bool (*next_meter)(void *arg, struct serve_devices_at *at, struct meter_sample *ret);
	const char *gpu_library; /* that was asked for; NULL = the system's */
};

#endif
