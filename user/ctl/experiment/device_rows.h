/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs and power meters of the agent (/v1/devices), and their rows and samples since the last request. */
#ifndef JD_CTL_RECORD_DEVICES_H
#define JD_CTL_RECORD_DEVICES_H
#include "model/gpu.h"
#include "model/meter.h"
#include "ctl/core/agent_client.h"

#define RECORD_CHANNELS_MAX (METER_MAX_DEVICES * METER_MAX_CHANNELS)

struct record_devices {
	unsigned n_gpus, n_channels;
	unsigned silent_meters; /* of the agent, without a value so far: their channels are not known */
	struct gpu_desc gpu[GPU_MAX];
	struct meter_desc channel[RECORD_CHANNELS_MAX];
	uint64_t rows, samples, meters; /* numbers of the next row and samples to ask for */
	uint64_t missed; /* rows and samples that the agent overwrote before they were asked for */
	char gpu_library[1024]; /* path of NVML; "" = the one that the system finds */
};

struct record_devices_take {
	void (*row)(void *arg, const struct gpu_row *row);
	void (*sample)(void *arg, const struct gpu_sample *s);
	void (*meter)(void *arg, const struct meter_sample *s);
	void *arg;
};

/* Asks for the devices, and begins to count rows and samples from now. every_ns: the pace of rows that the agent keeps
 * from now on; 0 = rows are not needed. An agent without this route counts as one without devices. */
int record_devices_ask(struct agent *a, uint64_t every_ns, struct record_devices *ret, struct err *err);
int record_devices_poll(struct agent *a, uint64_t every_ns, struct record_devices *d,
			const struct record_devices_take *take, struct err *err);
/* Parse the texts of the answers. 0 or -EBADMSG. */
int record_devices_parse(const char *text, size_t size, struct record_devices *ret, struct err *err);
int record_devices_parse_samples(const char *text, size_t size, struct record_devices *d,
				 const struct record_devices_take *take, struct err *err);

#endif
