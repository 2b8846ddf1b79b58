/* SPDX-License-Identifier: Apache-2.0 */
/* Round steps for an axis, and numbers as people read them. */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include "../base/clock.h"
#include "plot.h"

struct plot_axis plot_value_axis(double top, unsigned ticks)
{
	static const double round[] = { 1, 2, 2.5, 5, 10 };
	double power, step;
	unsigned i = 0;

	if (!(top > 0))
		top = 1;
	power = pow(10, floor(log10(top / ticks)));
	while (i < 4 && round[i] * power * ticks < top * (1 - 1e-9))
		i++;
	step = round[i] * power;
	return (struct plot_axis){ 0, step, (unsigned)ceil(top / step - 1e-9) + 1 };
}

struct plot_axis plot_time_axis(int64_t start_ns, int64_t end_ns, unsigned ticks)
{
	static const double steps[] = { .001,   .002,   .005,    .01,     .02,     .05,     .1,    .2,    .5,
					1,      2,      5,       10,      15,      30,      60,    120,   300,
					600,    900,    1800,    3600,    7200,    10800,   21600, 43200, 86400,
					172800, 604800, 1209600, 2592000, 7776000, 31536000 };
	double start = (double)start_ns / NS_PER_S, end = (double)end_ns / NS_PER_S, zone, first;
	time_t seconds = (time_t)start;
	struct tm tm;
	unsigned i = 0;

	while (i + 1 < sizeof(steps) / sizeof(steps[0]) && (end - start) / steps[i] > ticks)
		i++;
	zone = localtime_r(&seconds, &tm) ? (double)tm.tm_gmtoff : 0;
	first = ceil((start + zone) / steps[i] - 1e-6) * steps[i] - zone;
	return (struct plot_axis){ first, steps[i],
				   first > end ? 0 : (unsigned)floor((end - first) / steps[i] + 1e-6) + 1 };
}

void plot_time_label(char *dst, size_t size, double unix_s, double step_s)
{
	double rounded = floor(unix_s * 1000 + .5) / 1000;
	time_t seconds = (time_t)floor(rounded + (step_s < 1 ? 1e-6 : 0.5));
	struct tm tm = { 0 };
	char text[32];

	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), step_s < 60 ? "%H:%M:%S" : step_s < 86400 ? "%H:%M" : "%b %d", &tm);
	if (step_s < 1)
		snprintf(dst, size, "%s.%03d", text, (int)floor((rounded - (double)seconds) * 1000 + .5) % 1000);
	else
		snprintf(dst, size, "%s", text);
}

const char *plot_unit(double watts, double *ret_divisor)
{
	*ret_divisor = watts < 1 ? 1e-3 : watts < 2000 ? 1 : 1e3;
	return watts < 1 ? "mW" : watts < 2000 ? "W" : "kW";
}

void plot_number(char *dst, size_t size, double v)
{
	double a = fabs(v);

	snprintf(dst, size, "%.*f", a >= 99.95 || a < 5e-5 ? 0 : a >= 9.995 ? 1 : a >= .9995 ? 2 : 3, v);
}

void plot_joules(char *dst, size_t size, double uj)
{
	static const struct {
		double from, by;
		const char *unit;
	} units[] = {
		{ 1e12, 1e12, "MJ" }, { 1e9, 1e9, "kJ" }, { 1e6, 1e6, "J" }, { 1e3, 1e3, "mJ" }, { 0, 1, "\xc2\xb5J" },
	};
	unsigned i = 0;
	char number[32];

	while (uj < units[i].from)
		i++;
	plot_number(number, sizeof(number), uj / units[i].by);
	snprintf(dst, size, "%s %s", number, units[i].unit);
}

void plot_dates(const struct plot *p, char *from, char *to, size_t size)
{
	time_t start = (time_t)(p->columns[0].start_ns / (int64_t)NS_PER_S);
	time_t end = (time_t)(p->columns[p->n_columns - 1].end_ns / (int64_t)NS_PER_S);
	struct tm a = { 0 }, b = { 0 };
	bool same;

	localtime_r(&start, &a);
	localtime_r(&end, &b);
	same = a.tm_year == b.tm_year && a.tm_yday == b.tm_yday;
	strftime(from, size, "%Y-%m-%d %H:%M:%S", &a);
	strftime(to, size, same ? "%H:%M:%S %Z" : "%Y-%m-%d %H:%M:%S %Z", &b);
}
