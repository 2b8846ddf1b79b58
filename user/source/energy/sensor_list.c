// SPDX-License-Identifier: Apache-2.0
/* hwmon: Documentation/hwmon/sysfs-interface.rst. powercap: Documentation/power/powercap/powercap.rst; drivers other than
 * RAPL's (arm_scmi_powercap.c, dtpm.c) tell power and no energy. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "sensor_list.h"

#define HWMON "/sys/class/hwmon"
#define POWERCAP "/sys/class/powercap"
#define MAX_INTERVAL_MS 3600000 /* a longer one is nonsense */

void sensor_path(const struct sensor *s, char *ret, size_t size)
{
	snprintf(ret, size, "%s/%s/%s", s->interface == ENERGY_HWMON ? HWMON : POWERCAP, s->place, s->file);
}

static struct sensor *room(struct sensor_list *l)
{
	struct sensor *more;

	if (l->n == SENSORS_MAX) {
		l->cut = true;
		return NULL;
	}
	more = realloc(l->v, (l->n + 1) * sizeof(*l->v));
	if (!more)
		return NULL;
	l->v = more;
	return &l->v[l->n];
}

static void add_unknown(struct sensor_list *l, const struct sensor *s)
{
	if (l->n_unknown < sizeof(l->unknown) / sizeof(l->unknown[0]))
		snprintf(l->unknown[l->n_unknown], sizeof(l->unknown[0]), "%.30s (%.31s) %.20s \"%.30s\"", s->place,
			 s->chip, s->file, s->label);
	l->n_unknown++;
}

/* 0 or -ENOMEM. A file of no domain is remembered. */
static int add(struct sensor_list *l, struct sensor *s)
{
	struct sensor *v;

	if (sensor_label_parse(s->chip, s->label, &s->is) != 0) {
		add_unknown(l, s);
		return 0;
	}
	v = room(l);
	if (!v)
		return l->cut ? 0 : -ENOMEM;
	*v = *s;
	l->n++;
	return 0;
}

/* Cards are domains of their own, and a battery is no consumer. */
static bool is_ours(const struct fsroot *root, const char *place, const char *chip)
{
	static const char *const cards[] = { "amdgpu", "radeon", "i915", "xe", "nouveau" };
	char text[16];

	for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++)
		if (strcmp(chip, cards[i]) == 0)
			return false;
	return fsroot_readf(root, text, sizeof(text), HWMON "/%s/power1_is_battery", place) < 0 || text[0] != '1';
}

/* The text of KIND N_label, or of N_oem_info; "" without one. */
static void read_label(const struct fsroot *root, struct sensor *s, const char *stem)
{
	static const char *const ends[] = { "label", "oem_info" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (fsroot_readf(root, s->label, sizeof(s->label), HWMON "/%s/%s_%s", s->place, stem, ends[i]) > 0)
			return;
	s->label[0] = '\0';
}

/* energyN_input, powerN_average, powerN_input where there is no average. False = none of these. */
static bool file_way(const struct fsroot *root, struct sensor *s, const char *file, char stem[16])
{
	char path[160], kind[8];
	unsigned number;
	int end = -1;

	if (sscanf(file, "%6[a-z]%4u_%n", kind, &number, &end) != 2 || end < 0)
		return false;
	snprintf(stem, 16, "%s%u", kind, number);
	if (strcmp(kind, "energy") == 0 && strcmp(file + end, "input") == 0)
		s->way = SENSOR_COUNTER;
	else if (strcmp(kind, "power") == 0 && strcmp(file + end, "average") == 0)
		s->way = SENSOR_AVERAGE;
	else if (strcmp(kind, "power") == 0 && strcmp(file + end, "input") == 0)
		s->way = SENSOR_INSTANT;
	else
		return false;
	snprintf(path, sizeof(path), HWMON "/%s/%s_average", s->place, stem);
	return s->way != SENSOR_INSTANT || !fsroot_exists(root, path);
}

static int add_file(const struct fsroot *root, struct sensor_list *l, struct sensor *s, const char *file)
{
	uint64_t ms = 0;
	char stem[16], path[160];

	if (strlen(file) >= sizeof(s->file) || !file_way(root, s, file, stem))
		return 0;
	memcpy(s->file, file, strlen(file) + 1);
	read_label(root, s, stem);
	snprintf(path, sizeof(path), HWMON "/%s/%s_average_interval", s->place, stem);
	s->interval_ns = 0;
	if (s->way == SENSOR_AVERAGE && fsroot_read_u64(root, path, &ms) == 0 && ms <= MAX_INTERVAL_MS)
		s->interval_ns = ms * NS_PER_MS;
	return add(l, s);
}

/* Drivers of the old kind (acpi_power_meter) keep their files in the device below the chip. */
static int add_chip(const struct fsroot *root, struct sensor_list *l, const char *chip)
{
	struct sensor s = { .interface = ENERGY_HWMON };
	const struct dirent *e;
	char path[160];
	int rc = 0;
	DIR *d;

	snprintf(s.place, sizeof(s.place), "%.30s", chip);
	if (fsroot_readf(root, s.chip, sizeof(s.chip), HWMON "/%s/name", s.place) <= 0) {
		snprintf(s.place, sizeof(s.place), "%.30s/device", chip);
		if (fsroot_readf(root, s.chip, sizeof(s.chip), HWMON "/%s/name", s.place) <= 0)
			return 0;
	}
	if (!is_ours(root, s.place, s.chip))
		return 0;
	snprintf(path, sizeof(path), HWMON "/%s", s.place);
	d = fsroot_opendir(root, path);
	while (d && !rc && (e = readdir(d)))
		rc = add_file(root, l, &s, e->d_name);
	if (d)
		closedir(d);
	return rc;
}

/* RAPL's zones are powercap.c's: registers, MMIO and TPMI have control types with this beginning. */
static int add_zone(const struct fsroot *root, struct sensor_list *l, const char *zone)
{
	struct sensor s = { .interface = ENERGY_POWERCAP };
	size_t type = strcspn(zone, ":");
	char path[160];
	uint64_t range;

	if (!zone[type] || type >= sizeof(s.chip) || strlen(zone) >= sizeof(s.place) ||
	    strncmp(zone, "intel-rapl", 10) == 0)
		return 0;
	snprintf(s.chip, sizeof(s.chip), "%.*s", (int)type, zone);
	memcpy(s.place, zone, strlen(zone) + 1);
	if (fsroot_readf(root, s.label, sizeof(s.label), POWERCAP "/%s/name", zone) <= 0)
		return 0;
	snprintf(path, sizeof(path), POWERCAP "/%s/energy_uj", zone);
	if (fsroot_exists(root, path)) {
		s.way = SENSOR_COUNTER;
		snprintf(s.file, sizeof(s.file), "energy_uj");
		snprintf(path, sizeof(path), POWERCAP "/%s/max_energy_range_uj", zone);
		if (fsroot_read_u64(root, path, &range) == 0 && range && range < UINT64_MAX)
			s.wrap_units = range + 1;
		return add(l, &s);
	}
	s.way = strcmp(s.chip, "dtpm") == 0 ? SENSOR_MODEL : SENSOR_INSTANT;
	snprintf(s.file, sizeof(s.file), "power_uw");
	sensor_path(&s, path, sizeof(path));
	return fsroot_exists(root, path) ? add(l, &s) : 0;
}

static int each_entry(const struct fsroot *root, const char *dir, struct sensor_list *l,
		      int (*add_entry)(const struct fsroot *, struct sensor_list *, const char *))
{
	DIR *d = fsroot_opendir(root, dir);
	const struct dirent *e;
	int rc = 0;

	while (d && !rc && (e = readdir(d)))
		if (e->d_name[0] != '.')
			rc = add_entry(root, l, e->d_name);
	if (d)
		closedir(d);
	return rc;
}

static int by_place(const void *a, const void *b)
{
	const struct sensor *x = a, *y = b;
	int order = strverscmp(x->place, y->place);

	if (x->interface != y->interface)
		return x->interface == ENERGY_HWMON ? -1 : 1;
	return order ? order : strverscmp(x->file, y->file);
}

int sensor_list_find(const struct fsroot *root, struct sensor_list *ret)
{
	int rc;

	*ret = (struct sensor_list){ 0 };
	rc = each_entry(root, HWMON, ret, add_chip);
	if (!rc)
		rc = each_entry(root, POWERCAP, ret, add_zone);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_place);
	return rc;
}

void sensor_list_free(struct sensor_list *l)
{
	free(l->v);
	*l = (struct sensor_list){ 0 };
}
