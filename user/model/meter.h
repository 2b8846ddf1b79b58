/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a power meter outside the CPU: channel `channel` of meter `device`, column dNcM of power-external.csv
 * (documents/data-model.rst). */
#ifndef JD_MODEL_METER_H
#define JD_MODEL_METER_H
#include <stdbool.h>
#include <stdint.h>

#define METER_MAX_DEVICES 10 /* readers of the format know one digit */
#define METER_MAX_CHANNELS 10

struct meter_sample {
	uint8_t device, channel;
	int64_t real_ns; /* CLOCK_REALTIME when the value was there */
	uint64_t mono_ns; /* CLOCK_MONOTONIC of the same instant */
	int64_t power_uw; /* negative: power was fed back */
};

/* One channel of one meter. */
struct meter_desc {
	uint8_t device, channel;
	uint16_t domain; /* in the schema; UINT16_MAX = channel of a domain that another one leads */
	char type[12]; /* hwmon, serial, command, fifo, shelly, tasmota, dcmi */
	char label[96]; /* its own name, or its place */
	uint64_t pace_ns; /* asked this often */
};

#endif
