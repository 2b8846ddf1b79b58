/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of meter*.c. Each meter is asked by a thread of its own through struct meter_ops; what it says is published
 * under the lock of all, which the measuring thread only tries. */
#ifndef JD_METER_INTERNAL_H
#define JD_METER_INTERNAL_H
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include "meter.h"
#include "pacer.h"

#define METER_CHANNELS 20 /* of one meter: a command may print several devices */
#define METER_KEPT 16384 /* samples kept for cursors: two meters of two channels at 20 ms for over a minute */
#define METER_MAX_UW 1000000000000ll /* 1 MW: what is more is nonsense */

struct meter;

/* All are called on the meter's thread. */
struct meter_ops {
	const char *type;
	uint64_t pace_ns;
	bool streams; /* it talks by itself: looks wait for it, at most a fifth of a second */
	/* 0 or -errno and err; tried again later. */
	int (*open)(struct meter *m, struct err *err);
	/* One look, each value through meter_put. 0: at least one value, or nothing was due; 1: so much that the next look
	 * had better wait; -errno and err: none. */
	int (*look)(struct meter *m, struct err *err);
	void (*close)(struct meter *m);
};
extern const struct meter_ops meter_hwmon, meter_serial, meter_command, meter_fifo, meter_shelly, meter_tasmota,
	meter_dcmi;

/* Integral of one channel (meter_energy.c). Pure. */
struct meter_energy {
	bool have;
	int64_t power_uw;
	uint64_t power_ns; /* of that value */
	uint64_t uj, rest; /* cumulative; rest in uW x ns below 1 uJ */
	uint64_t gaps; /* steps longer than longest_ns: nothing is known of them */
};
/* Power at a time; steps up to longest_ns are trapezoids. What is fed back is no energy used: 0. */
void meter_energy_add(struct meter_energy *e, int64_t power_uw, uint64_t now_ns, uint64_t longest_ns);

struct meter_channel {
	struct meter_desc desc;
	struct meter_energy energy;
};

struct meter {
	struct meters *all;
	unsigned number; /* in the configuration: its first device */
	const struct meter_ops *ops;
	char *device, *url;
	struct str_list command, channels_wanted;
	uint64_t pace_ns, longest_ns;
	void *state; /* of the ops, between open and close */
	bool is_open, told, silent;
	int answered; /* a plug: meters in its first answer; 0 = none yet. Others would mix up which is which */
	unsigned failures; /* in a row */
	unsigned pauses; /* since it answered last, each twice as long */
	struct pacer *pacer;
	uint16_t domain;
	/* published, under the lock */
	unsigned n_channels;
	struct meter_channel channels[METER_CHANNELS];
	uint64_t opened_ns, newest_ns;
	uint64_t bad; /* looks that failed */
	uint64_t silent_readings; /* in which some channels had no value: measuring thread */
};

struct meters {
	const struct fsroot *root;
	unsigned n;
	struct meter *list;
	uint64_t opened_ns;
	atomic_bool stop;
	pthread_mutex_t lock; /* the rest, and what meters publish */
	struct meter_sample *kept; /* ring */
	uint64_t n_kept;
	char warning[8][220];
	unsigned n_warnings;
};

/* A value of a channel of the meter, device counted from its own first, now. -ERANGE: too many, or nonsense. */
int meter_put(struct meter *m, unsigned device, unsigned channel, int64_t power_uw);
void meter_label(struct meter *m, unsigned channel, const char *label);
void meter_warn(struct meter *m, const char *text); /* lock held */
/* meter_read.c: says once when a meter or some of its channels are silent. */
void meter_tell_silence(struct meter *m);

/* meter_line.c: pure. "d0c0=12.5 d0c1=3000mW": values in uW until the line ends; words that are none of these are
 * left out. Returns how many. */
struct meter_value {
	uint8_t device, channel;
	int64_t power_uw;
};
unsigned meter_parse_line(const char *line, struct meter_value *ret, unsigned max);
/* Watts as a double to uW; false for what is no power. */
bool meter_watts(double watts, int64_t *ret_uw);
/* meter_serial.c: an answer of `want` data bytes, checked; -EBADMSG. */
int meter_serial_check(const uint8_t *frame, size_t n, size_t want);
void meter_serial_frame(const uint8_t *command, size_t n, uint8_t *ret, size_t *ret_n);
/* meter_dcmi.c: an answer, completion code first; -EIO: refused, -EBADMSG: no such answer, -ENODATA: the board
 * does not measure at the moment. */
int meter_dcmi_decode(const uint8_t *data, size_t n, int64_t *ret_uw);
/* meter_plug.c: what a plug answered. Number of channels, or -EBADMSG; METER_NO_VALUE for one of which it says nothing
 * that is a power: the others keep their numbers. */
#define METER_NO_VALUE INT64_MIN
int meter_shelly_parse(const char *text, size_t n, int64_t *ret_uw, unsigned max);
int meter_tasmota_parse(const char *text, size_t n, int64_t *ret_uw, unsigned max);

#endif
