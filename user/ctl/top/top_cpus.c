/* SPDX-License-Identifier: Apache-2.0 */
#include "top_cpus.h"
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"

#define CPUS "/sys/devices/system/cpu"
#define HWMON "/sys/class/hwmon"
#define TEMPERATURES 64 /* of one sensor chip, at most */

static bool read_number(const struct fsroot *root, uint64_t *ret, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static bool read_number(const struct fsroot *root, uint64_t *ret, const char *fmt, ...)
{
	char path[160];
	va_list args;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	return fsroot_read_u64(root, path, ret) == 0;
}

/* The number in a name such as cpu12; false = it is another name. */
static bool number_behind(const char *name, const char *word, unsigned *ret)
{
	uint64_t n;
	size_t len = strlen(word);

	if (strncmp(name, word, len) != 0 || parse_u64(name + len, &n) != 0 || n > 65535)
		return false;
	*ret = (unsigned)n;
	return true;
}

/* cpufreq/scaling_cur_freq, in kHz (Documentation/admin-guide/pm/cpufreq.rst) */
static void take_frequency(struct top_cpus *c, const struct fsroot *root, unsigned cpu)
{
	uint64_t khz;
	double hz;

	if (!read_number(root, &khz, CPUS "/cpu%u/cpufreq/scaling_cur_freq", cpu) || !khz)
		return;
	hz = (double)khz * 1e3;
	c->least_hz = !c->with_frequency || hz < c->least_hz ? hz : c->least_hz;
	c->most_hz = hz > c->most_hz ? hz : c->most_hz;
	c->mean_hz += hz;
	c->with_frequency++;
}

/* cpuidle/stateN/time, in microseconds since boot (Documentation/admin-guide/pm/cpuidle.rst) */
static void take_states(struct top_cpus *c, const struct fsroot *root, unsigned cpu)
{
	unsigned i = 0;

	for (uint64_t us; i < TOP_STATES_MAX; i++) {
		struct top_state *s = &c->states[i];

		if (!read_number(root, &us, CPUS "/cpu%u/cpuidle/state%u/time", cpu, i))
			break;
		if (i >= c->n_states) {
			if (fsroot_readf(root, s->name, sizeof(s->name), CPUS "/cpu%u/cpuidle/state%u/name", cpu, i) <
			    0)
				snprintf(s->name, sizeof(s->name), "state%u", i);
			c->n_states = i + 1;
		}
		s->time_us += us;
	}
	c->with_states += i > 0;
}

static void take_cpus(struct top_cpus *c, const struct fsroot *root)
{
	DIR *dir = fsroot_opendir(root, CPUS);
	struct dirent *e;
	unsigned cpu;

	while (dir && (e = readdir(dir)))
		if (number_behind(e->d_name, "cpu", &cpu)) {
			take_frequency(c, root, cpu);
			take_states(c, root, cpu);
		}
	if (dir)
		closedir(dir);
	if (c->with_frequency)
		c->mean_hz /= c->with_frequency;
}

/* tempN_input, in thousandths of a degree (Documentation/hwmon/sysfs-interface.rst), of the CPU's own sensors */
static void take_temperatures(struct top_cpus *c, const struct fsroot *root, unsigned chip)
{
	static const char *const chips[] = { "coretemp", "k10temp", "zenpower", "cpu_thermal" };
	char name[32];
	uint64_t milli_c;
	bool known = false;

	if (fsroot_readf(root, name, sizeof(name), HWMON "/hwmon%u/name", chip) < 0)
		return;
	for (unsigned i = 0; i < sizeof(chips) / sizeof(chips[0]); i++)
		known |= strcmp(name, chips[i]) == 0;
	for (unsigned i = 1; known && i < TEMPERATURES; i++) {
		if (!read_number(root, &milli_c, HWMON "/hwmon%u/temp%u_input", chip, i))
			continue;
		if (!c->has_temperature || (double)milli_c / 1e3 > c->hottest_c)
			c->hottest_c = (double)milli_c / 1e3;
		c->has_temperature = true;
	}
}

static void take_hwmon(struct top_cpus *c, const struct fsroot *root)
{
	DIR *dir = fsroot_opendir(root, HWMON);
	struct dirent *e;
	unsigned chip;

	while (dir && (e = readdir(dir)))
		if (number_behind(e->d_name, "hwmon", &chip))
			take_temperatures(c, root, chip);
	if (dir)
		closedir(dir);
}

/* The kernel adds a CPU's time in a state up when it leaves the state: a short window would miss it, and the next one
 * have too much. */
#define WINDOW_NS (5 * NS_PER_S)

static bool same_machine(const struct top_residency *a, const struct top_residency *b)
{
	bool same = a->taken_ns && a->cpus == b->cpus && a->n_states == b->n_states;

	for (unsigned i = 0; same && i < b->n_states; i++)
		same = a->time_us[i] <= b->time_us[i];
	return same;
}

static void find_parts(struct top_cpus *c, const struct top_residency *from, const struct top_residency *now)
{
	double all_us = (double)(now->taken_ns - from->taken_ns) / 1e3 * now->cpus;

	c->has_parts = all_us > 0;
	c->active = 1;
	for (unsigned i = 0; c->has_parts && i < c->n_states; i++) {
		double part = (double)(now->time_us[i] - from->time_us[i]) / all_us;

		c->states[i].part = part < c->active ? part : c->active;
		c->active -= c->states[i].part;
	}
}

/* A CPU that came or went makes the sums another machine's: the windows begin anew. */
static void take_residency(struct top_cpus *c, uint64_t now_ns)
{
	struct top_residency now = { .taken_ns = now_ns, .cpus = c->with_states, .n_states = c->n_states };

	for (unsigned i = 0; i < c->n_states; i++)
		now.time_us[i] = c->states[i].time_us;
	if (!same_machine(&c->newer, &now)) {
		c->older = (struct top_residency){ 0 };
		c->newer = now;
		return;
	}
	find_parts(c, c->older.taken_ns ? &c->older : &c->newer, &now);
	if (now_ns - c->newer.taken_ns >= WINDOW_NS) {
		c->older = c->newer;
		c->newer = now;
	}
}

void top_cpus_take(struct top_cpus *c, const struct fsroot *root, uint64_t now_ns)
{
	*c = (struct top_cpus){ .older = c->older, .newer = c->newer };
	take_cpus(c, root);
	take_hwmon(c, root);
	take_residency(c, now_ns);
}

void top_cpus_draw(const struct top_cpus *c, struct top_paint *p)
{
	char name[4 * sizeof(c->states[0].name)];

	top_put(p, TOP_PLAIN, "CPUs       ");
	if (c->with_frequency)
		top_put(p, TOP_PLAIN, "%.2f to %.2f GHz, mean %.2f", c->least_hz / 1e9, c->most_hz / 1e9,
			c->mean_hz / 1e9);
	else
		top_put(p, TOP_DIM, "frequency not told");
	if (c->has_temperature)
		top_put(p, TOP_PLAIN, "   hottest %.1f C", c->hottest_c);
	else
		top_put(p, TOP_DIM, "   temperature not told");
	if (!c->n_states)
		top_put(p, TOP_DIM, "   C-states not told");
	else if (!c->has_parts)
		top_put(p, TOP_DIM, "   C-states at the next interval");
	if (c->has_parts)
		top_put(p, TOP_PLAIN, "   C0 %.1f %%", 100 * c->active);
	for (unsigned i = c->n_states; c->has_parts && i-- > 0;) /* the deepest first, where the line is cut */
		top_put(p, TOP_PLAIN, "   %s %.1f %%", text_escape(name, sizeof(name), c->states[i].name),
			100 * c->states[i].part);
	top_end(p);
}
