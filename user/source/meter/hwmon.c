// SPDX-License-Identifier: Apache-2.0
/* Sensors of the kernel (Documentation/hwmon/sysfs-interface.rst): powerN_average or powerN_input in uW; or inN in mV times
 * currN in mA where the chip tells nothing else (INA3221). The ACPI power meter is one of them: it may be a battery's, and
 * where the firmware does not fill it in it says 0. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/parse.h"
#include "meter_ops.h"

#define CLASS "/sys/class/hwmon"
#define MAX_CHIPS 64
#define CHIP_MAX 24 /* bytes of hwmonN/device, with the end */

struct sensor {
	char path[120], times[120];
	bool zero_is_none;
}; /* times: "" or the current's file */
struct sensors {
	unsigned n;
	struct sensor v[METER_MAX_CHANNELS];
};

/* Graphics cards are domains of their own. */
static bool is_gpu(const char *name)
{
	static const char *const names[] = { "amdgpu", "radeon", "i915", "xe", "nouveau" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool readable(const struct meter *m, const char *path)
{
	char text[32];

	return fsroot_read(m->all->root, path, text, sizeof(text)) > 0;
}

static struct sensor *room(struct sensors *s)
{
	return s->n < METER_MAX_CHANNELS ? &s->v[s->n] : NULL;
}

/* powerN: the average where there is one. */
static bool add_power(struct meter *m, struct sensors *s, const char *chip, const char *name, const char *power)
{
	static const char *const kinds[] = { "average", "input" };
	struct sensor *v = room(s);

	for (size_t i = 0; v && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char path[120];

		if ((size_t)snprintf(path, sizeof(path), CLASS "/%s/%s_%s", chip, power, kinds[i]) >= sizeof(path) ||
		    !readable(m, path))
			continue;
		*v = (struct sensor){ .zero_is_none = strcmp(name, "power_meter") == 0 };
		memcpy(v->path, path, sizeof(path));
		meter_label(m, s->n++, path + strlen(CLASS) + 1);
		return true;
	}
	return false;
}

static bool add_pair(struct meter *m, struct sensors *s, const char *chip, const char *pair)
{
	struct sensor *v = room(s), one = { 0 };
	size_t volts = strcspn(pair, "*");

	if (!v ||
	    (size_t)snprintf(one.path, sizeof(one.path), CLASS "/%s/%.*s_input", chip, (int)volts, pair) >=
		    sizeof(one.path) ||
	    (size_t)snprintf(one.times, sizeof(one.times), CLASS "/%s/%s_input", chip, pair + volts + 1) >=
		    sizeof(one.times) ||
	    !readable(m, one.path) || !readable(m, one.times))
		return false;
	*v = one;
	meter_label(m, s->n++, one.path + strlen(CLASS) + 1);
	return true;
}

/* By the ACPI meter, or as a chip of a power supply. */
static bool is_battery(const struct meter *m, const char *chip)
{
	char path[120], type[32];
	uint64_t v = 0;

	snprintf(path, sizeof(path), CLASS "/%s/power1_is_battery", chip);
	if (fsroot_read_u64(m->all->root, path, &v) == 0 && v == 1)
		return true;
	return fsroot_readf(m->all->root, type, sizeof(type), CLASS "/%s/device/type", chip) > 0 &&
	       strcmp(type, "Battery") == 0;
}

static bool label_says(const struct meter *m, const char *chip, unsigned i, const char *word)
{
	char label[64];

	return fsroot_readf(m->all->root, label, sizeof(label), CLASS "/%s/power%u_label", chip, i) > 0 &&
	       strcasestr(label, word);
}

/* What one of a chip's sensors of power is labelled by, where it holds the others: the total of a supply with rails (corsair-psu),
 * or what goes into it (PMBus: pin and pout). NULL = none, and all are parts. */
static const char *whole_of(const struct meter *m, const char *chip)
{
	static const char *const words[] = { "total", "pin" };

	for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
		for (unsigned i = 1; i <= METER_MAX_CHANNELS; i++)
			if (label_says(m, chip, i, words[k]))
				return words[k];
	return NULL;
}

static void add_all(struct meter *m, struct sensors *s, const char *chip, const char *name)
{
	const char *whole = whole_of(m, chip);

	for (unsigned i = 1; i <= METER_MAX_CHANNELS; i++) {
		char power[16];

		snprintf(power, sizeof(power), "power%u", i);
		if (!whole || label_says(m, chip, i, whole))
			add_power(m, s, chip, name, power);
	}
}

/* Drivers that register without attributes (power_meter of older kernels) have them in the device's own directory. */
static bool chip_directory(const struct meter *m, unsigned number, char chip[CHIP_MAX], char *name, size_t size)
{
	static const char *const below[] = { "", "/device" };

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		snprintf(chip, CHIP_MAX, "hwmon%u%s", number, below[i]);
		if (fsroot_readf(m->all->root, name, size, CLASS "/%s/name", chip) >= 0)
			return true;
	}
	return false;
}

static void add_chip(struct meter *m, struct sensors *s, unsigned number)
{
	char name[64], chip[CHIP_MAX], number_text[CHIP_MAX];

	if (!chip_directory(m, number, chip, name, sizeof(name)))
		return;
	snprintf(number_text, sizeof(number_text), "hwmon%u", number);
	if (m->device ? strcmp(m->device, name) != 0 && strcmp(m->device, number_text) != 0 :
			is_gpu(name) || is_battery(m, chip))
		return;
	for (unsigned i = 0; i < m->channels_wanted.n; i++) {
		const char *wanted = m->channels_wanted.v[i];

		if (strchr(wanted, '*') ? !add_pair(m, s, chip, wanted) : !add_power(m, s, chip, name, wanted))
			continue;
	}
	if (!m->channels_wanted.n)
		add_all(m, s, chip, name);
}

static int hwmon_open(struct meter *m, struct err *err)
{
	struct sensors *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, -ENOMEM, "hwmon: out of memory; free some");
	for (unsigned i = 0; i < MAX_CHIPS; i++)
		add_chip(m, s, i);
	if (!s->n || (m->channels_wanted.n && s->n < m->channels_wanted.n)) {
		free(s);
		return err_set(err, -ENODEV,
			       "hwmon: no chip %s with the sensors of power that were asked for; see " CLASS
			       "/*/name and the power*, in* "
			       "and curr* files beside it",
			       m->device ? m->device : "is there");
	}
	m->state = s;
	return 0;
}

static int read_value(struct meter *m, const char *path, int64_t *ret)
{
	char text[32];
	int rc = fsroot_read(m->all->root, path, text, sizeof(text));

	return rc < 0 ? rc : parse_i64(text, ret);
}

static int look_one(struct meter *m, unsigned channel, const struct sensor *s)
{
	int64_t v, times = 1;
	int rc = read_value(m, s->path, &v);

	if (!rc && *s->times)
		rc = read_value(m, s->times, &times);
	if (rc)
		return rc;
	if (__builtin_mul_overflow(v, times, &v))
		return -ERANGE;
	return s->zero_is_none && !v ? -ENODATA : meter_put(m, 0, channel, v);
}

static int hwmon_look(struct meter *m, struct err *err)
{
	const struct sensors *s = m->state;
	const char *failed = "";
	int rc = 0, good = 0;

	for (unsigned i = 0; i < s->n; i++) {
		int one = look_one(m, i, &s->v[i]);

		good += one == 0;
		if (one && !rc) {
			rc = one;
			failed = s->v[i].path;
		}
	}
	return good ? 0 :
		      err_set(err, rc, "%s: %s", failed,
			      rc == -ENODATA ? "it says 0; the firmware does not fill it in" : strerror(-rc));
}

static void hwmon_close(struct meter *m)
{
	free(m->state);
	m->state = NULL;
}

const struct meter_ops meter_hwmon = { "hwmon", 100 * NS_PER_MS, false, hwmon_open, hwmon_look, hwmon_close };
