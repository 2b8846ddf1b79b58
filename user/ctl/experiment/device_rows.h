/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs and power meters of the agent: /v1/devices, and what they told since the last look. */
#ifndef JD_CTL_RECORD_DEVICES_H
#define JD_CTL_RECORD_DEVICES_H
#include "../model/gpu.h"
#include "../model/meter.h"
#include "agent.h"

#define RECORD_CHANNELS_MAX (METER_MAX_DEVICES * METER_MAX_CHANNELS)

struct record_devices {
	unsigned n_gpus, n_channels;
	struct gpu_desc gpu[GPU_MAX];
	struct meter_desc channel[RECORD_CHANNELS_MAX];
	uint64_t rows, samples, meters; /* next ones */
	uint64_t missed; /* overwritten in the agent before we came */
	char gpu_library[1024]; /* "" = the system's */
};

struct record_devices_take {
	void (*row)(void *arg, const struct gpu_row *row);
	void (*sample)(void *arg, const struct gpu_sample *s);
	void (*meter)(void *arg, const struct meter_sample *s);
	void *arg;
};

/* Also sets the next ones to now. every_ns: the agent makes full rows from now on; 0 = it need not. An agent that
 * has no such thing has no device. */
int record_devices_ask(struct agent *a, uint64_t every_ns, struct record_devices *ret, struct err *err);
int record_devices_poll(struct agent *a, uint64_t every_ns, struct record_devices *d,
			const struct record_devices_take *take, struct err *err);
/* Texts of the answers. 0 or -EBADMSG. */
int record_devices_parse(const char *text, size_t size, struct record_devices *ret, struct err *err);
int record_devices_parse_samples(const char *text, size_t size, struct record_devices *d,
				 const struct record_devices_take *take, struct err *err);

#endif
