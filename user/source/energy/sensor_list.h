/* SPDX-License-Identifier: Apache-2.0 */
/* The files that tell energy or power beside RAPL, each with the domain that its label names (label.c), as found in
 * sysfs (sensor_list.c). */
#ifndef JD_SENSOR_LIST_H
#define JD_SENSOR_LIST_H
#include <stddef.h>
#include "energy.h"

#define SENSORS_MAX 512 /* files: the cores of a large machine */
#define SENSOR_WATTS 2000.0 /* most that a package or a part of it draws */
#define SENSOR_MACHINE_WATTS 20000.0

/* In the order of preference for a domain. */
enum sensor_way {
	SENSOR_COUNTER, /* energy, uJ */
	SENSOR_AVERAGE, /* power over the interval before, uW */
	SENSOR_INSTANT, /* power now, uW */
	SENSOR_MODEL /* power that the kernel computes from frequency and load (dtpm), uW */
};

/* What a label says. */
struct sensor_label {
	enum domain_kind kind;
	uint16_t package;
	bool has_part; /* one of several whose sum is the domain */
	unsigned part;
};
/* chip: name of the hwmon chip or powercap control type. 0, -ENOENT: no domain is known for it. Pure. */
int sensor_label_parse(const char *chip, const char *label, struct sensor_label *ret);

struct sensor {
	struct sensor_label is;
	enum sensor_way way;
	enum energy_interface interface;
	char chip[32], label[64]; /* which it is; place and file say where */
	char place[64], file[40]; /* "hwmon3" or "hwmon3/device", "energy1_input"; "arm-scmi:0:1", "power_uw" */
	uint64_t wrap_units; /* 0 = never */
	uint64_t interval_ns; /* of an average; 0 = not told */
	bool refused; /* it did not answer at the start, or a part beside it did not */
};

struct sensor_list {
	unsigned n;
	struct sensor *v;
	bool cut; /* there are more than SENSORS_MAX */
	unsigned n_unknown; /* files that tell power, but of no domain */
	char unknown[8][120]; /* the first of them */
};

/* In the order of place and file. 0 or -ENOMEM; free in any case. */
int sensor_list_find(const struct fsroot *root, struct sensor_list *ret);
void sensor_list_free(struct sensor_list *l);
/* Path of the sensor's file. */
void sensor_path(const struct sensor *s, char *ret, size_t size);

#endif
