/* SPDX-License-Identifier: Apache-2.0 */
/* Meters and the ways to ask them. Each meter is asked by a thread of its own through struct meter_ops. Its values
 * are published under the lock of all, which the measuring thread only tries. */
#ifndef JD_METER_OPS_H
#define JD_METER_OPS_H
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include "meters.h"
#include "source/pacer.h"

#define METER_CHANNELS 20 /* of one meter: a command may print several devices */
#define METER_KEPT 16384 /* samples kept for cursors: two meters of two channels at 20 ms for over a minute */
#define METER_MAX_UW 1000000000000ll /* 1 MW: a larger value is wrong */

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
	meter_dcmi, meter_redfish;

/* Integral of one channel (meters.c). Pure. */
struct meter_energy {
	bool have;
	int64_t power_uw;
	uint64_t power_ns; /* of that value */
	uint64_t uj, rest; /* cumulative; rest in uW x ns below 1 uJ */
	uint64_t gaps; /* steps longer than longest_ns: their energy is not known */
};
/* Power at a time; steps up to longest_ns are trapezoids. Power that is fed back counts as 0. */
void meter_energy_add(struct meter_energy *e, int64_t power_uw, uint64_t now_ns, uint64_t longest_ns);

struct meter_channel {
	struct meter_desc desc;
	struct meter_energy energy;
};

struct meter {
	struct meters *all;
	unsigned number; /* in the configuration: its first device */
	const struct meter_ops *ops;
	char *device, *url, *user, *password_file, *ca_file;
	struct str_list command, channels_wanted;
	uint64_t pace_ns, longest_ns;
	void *state; /* of the ops, between open and close */
	bool is_open, silent;
	_Atomic bool told; /* a failure; the meter's thread writes */
	int answered; /* a plug: meters in its first answer; 0 = none yet. Others would mix up which is which */
	bool denied; /* it does not accept who asks: it is asked rarely */
	bool told_left_out; /* redfish: what it does not ask for */
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
	char warning[8][480];
	unsigned n_warnings;
};

/* A value of a channel of the meter, as of now; device counts from the meter's own first. -ERANGE: no such channel,
 * or no power. */
int meter_put(struct meter *m, unsigned device, unsigned channel, int64_t power_uw);
void meter_label(struct meter *m, unsigned channel, const char *label);
void meter_warn(struct meter *m, const char *text); /* lock held */
/* line.c: says once when a meter or some of its channels are silent. */
void meter_tell_silence(struct meter *m);

/* line.c: pure. "d0c0=12.5 d0c1=3000mW": values in uW until the line ends; other words are left out. Returns the
 * number of values. */
struct meter_value {
	uint8_t device, channel;
	int64_t power_uw;
};
unsigned meter_parse_line(const char *line, struct meter_value *ret, unsigned max);
/* Watts as a double to uW; false when that is no power. */
bool meter_watts(double watts, int64_t *ret_uw);
/* serial.c: an answer of `want` data bytes, checked; -EBADMSG. */
int meter_serial_check(const uint8_t *frame, size_t n, size_t want);
void meter_serial_frame(const uint8_t *command, size_t n, uint8_t *ret, size_t *ret_n);
/* dcmi.c: an answer, completion code first; -EIO: refused, -EBADMSG: no such answer, -ENODATA: the board
 * does not measure at the moment. */
int meter_dcmi_decode(const uint8_t *data, size_t n, int64_t *ret_uw);
/* plug.c: powers in a plug's answer. Number of channels, or -EBADMSG. A channel without a power is METER_NO_VALUE,
 * so that the others keep their numbers. */
#define METER_NO_VALUE INT64_MIN
int meter_shelly_parse(const char *text, size_t n, int64_t *ret_uw, unsigned max);
int meter_tasmota_parse(const char *text, size_t n, int64_t *ret_uw, unsigned max);
/* redfish.c: the power in a document EnvironmentMetrics or Power. -ENODATA: it has the value, which is null at the moment;
 * -EBADMSG: it has none, or one that is no power. */
#define METER_REDFISH_PATH 256
int meter_redfish_parse(const char *text, size_t n, int64_t *ret_uw);

#endif
