/* SPDX-License-Identifier: Apache-2.0 */
/* The line of the CPUs of joulectl top, from made-up files of /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ctl/top/top_cpus.h"

static char dir[] = "/tmp/jouled-cpus-XXXXXX";
static char drawn[1024];

static void put_file(const char *path, const char *text)
{
	char whole[300];
	FILE *f;

	snprintf(whole, sizeof(whole), "%s/sys/%s", dir, path);
	for (char *at = whole + strlen(dir) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(whole, 0755);
		*at = '/';
	}
	f = fopen(whole, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void put(void *arg, enum top_style style, const char *text)
{
	strncat(drawn, text, sizeof(drawn) - strlen(drawn) - 1);
}

static void end_line(void *arg)
{
	strncat(drawn, "|", sizeof(drawn) - strlen(drawn) - 1);
}

static const char *line_of(const struct top_cpus *c)
{
	struct top_paint p = { .put = put, .end_line = end_line };

	*drawn = '\0';
	top_cpus_draw(c, &p);
	return drawn;
}

static void put_states(unsigned cpu, const char *first, const char *second)
{
	char path[100];

	snprintf(path, sizeof(path), "devices/system/cpu/cpu%u/cpuidle/state0/time", cpu);
	put_file(path, first);
	snprintf(path, sizeof(path), "devices/system/cpu/cpu%u/cpuidle/state1/time", cpu);
	put_file(path, second);
}

static void test_line(void **state)
{
	struct top_cpus c = { 0 };
	struct fsroot *root;
	char command[100];

	assert_non_null(mkdtemp(dir));
	assert_int_equal(fsroot_open(dir, &root), 0);
	top_cpus_take(&c, root, 1000000000);
	assert_string_equal(line_of(&c), "CPUs       frequency not told   temperature not told   C-states not told|");

	put_file("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000\n");
	put_file("devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3400000\n");
	put_file("devices/system/cpu/cpufreq/none", ""); /* no CPU's folder */
	put_file("class/hwmon/hwmon0/name", "nvme\n");
	put_file("class/hwmon/hwmon0/temp1_input", "99000\n"); /* not of a CPU */
	put_file("class/hwmon/hwmon3/name", "coretemp\n");
	put_file("class/hwmon/hwmon3/temp2_input", "61500\n");
	put_file("class/hwmon/hwmon3/temp5_input", "58000\n");
	put_file("devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n");
	put_file("devices/system/cpu/cpu0/cpuidle/state1/name", "C6\n");
	put_file("devices/system/cpu/cpu1/cpuidle/state0/name", "POLL\n");
	put_file("devices/system/cpu/cpu1/cpuidle/state1/name", "C6\n");
	put_states(0, "1000\n", "500000\n");
	put_states(1, "0\n", "700000\n");
	top_cpus_take(&c, root, 2000000000);
	assert_string_equal(line_of(&c),
			    "CPUs       0.80 to 3.40 GHz, mean 2.10   hottest 61.5 C   C-states at the next interval|");
	/* in 1 s of two CPUs: 0.02 s of polling, 1.5 s in C6, so 0.48 s in none */
	put_states(0, "21000\n", "1300000\n");
	put_states(1, "0\n", "1400000\n");
	top_cpus_take(&c, root, 3000000000);
	assert_non_null(strstr(line_of(&c), "   C0 24.0 %   C6 75.0 %   POLL 1.0 %|"));
	/* the kernel told 3.9 s of C6 late: never more than all of the time */
	put_states(0, "21000\n", "3300000\n");
	put_states(1, "0\n", "3300000\n");
	top_cpus_take(&c, root, 3500000000);
	assert_non_null(strstr(line_of(&c), "   C0 0.0 %"));
	assert_non_null(strstr(line_of(&c), "   C6 99.3 %   POLL 0.7 %|"));
	/* CPU 1 went offline and came back with other times: no parts rather than wrong ones */
	put_states(1, "0\n", "5\n");
	put_states(0, "0\n", "5\n");
	top_cpus_take(&c, root, 4000000000);
	assert_non_null(strstr(line_of(&c), "C-states at the next interval|"));
	fsroot_close(root);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
