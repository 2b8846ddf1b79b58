/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of experiment trees: bytes of each file, numbers of repetitions, rows that are not whole, and what is
 * made of a recording that was cut off. Expected bytes are written from the format, by hand. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/recorder/recorder.h"
#include "temp_root.h"

#define T0 1795313480123456789ll /* 2026-11-22 02:11:20.123456789 UTC */

static struct temp_root at;

static int make(void **state)
{
	at = temp_root_new();
	return 0;
}

static int drop(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int end(void **state)
{
	fsroot_close(at.root);
	return nftw(at.dir, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static struct recorder *start(const char *run)
{
	const struct recorder_place p = {
		.root = at.dir, .experiment = "e", .benchmark = run ? "b" : NULL, .run = run ? run : "_baseline"
	};
	struct recorder *r = NULL;
	struct err err = { 0 };

	assert_int_equal(recorder_open(&p, &r, &err), 0);
	return r;
}

static const char *text_of(const char *path)
{
	static char text[4096];
	int n = fsroot_read(at.root, path, text, sizeof(text) - 1);

	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

static unsigned publish(struct recorder *r)
{
	unsigned number = 99;
	struct err err = { 0 };

	assert_int_equal(recorder_publish(r, &number, &err), 0);
	return number;
}

static void bytes(void **state)
{
	static const char *const names[] = { "package-0", "package-0-energy" };
	static const char *const events[] = { "cpu-ns", "cpu/event=1,umask=2/" };
	struct recorder *r = start("150W");

	recorder_event(r, T0, "experiment_begin", 0);
	recorder_event(r, T0 + 1000000000 - 123456789, "epoch_begin", 3);
	recorder_columns(r, RECORDER_RAPL, names, 2);
	recorder_row(r, RECORDER_RAPL, T0, (const int64_t[]){ 16000, 0 });
	recorder_row(r, RECORDER_RAPL, T0 + 250000000, (const int64_t[]){ -1, INT64_MAX });
	recorder_sample(r, GPU_RING_POWER, T0 / 1000, 100000);
	recorder_columns(r, RECORDER_COUNTERS, events, 2);
	recorder_row(r, RECORDER_COUNTERS, T0, (const int64_t[]){ 1, 2 });
	recorder_row(r, RECORDER_COUNTERS, T0 + 250000000, (const int64_t[]){ 3, RECORDER_EMPTY });
	recorder_put(r, "system_info.json", "{}", 2);
	assert_false(fsroot_exists(at.root, "/e/b/150W"));
	assert_int_equal(publish(r), 0);
	assert_string_equal(text_of("/e/b/150W/0/timestamps.csv"),
			    "timestamp,event,data\n"
			    "2026-11-22 02:11:20.123456,experiment_begin,0\n2026-11-22 02:11:21.000000,epoch_begin,3");
	assert_string_equal(
		text_of("/e/b/150W/0/rapl-power.csv"),
		",timestamp,package-0,package-0-energy\n"
		"0,2026-11-22 02:11:20.123456,16000,0\n1,2026-11-22 02:11:20.373456,-1,9223372036854775807");
	assert_string_equal(text_of("/e/b/150W/0/counters.csv"),
			    ",timestamp,cpu-ns,\"cpu/event=1,umask=2/\"\n0,2026-11-22 02:11:20.123456,1,2\n"
			    "1,2026-11-22 02:11:20.373456,3,");
	assert_string_equal(text_of("/e/b/150W/0/total_power_samples.csv"),
			    ",timestamp,value\n0,1795313480123456,100000");
	assert_string_equal(text_of("/e/b/150W/0/system_info.json"), "{}");
	assert_false(fsroot_exists(at.root, "/e/b/150W/0/gpu-power.csv"));
	assert_false(fsroot_exists(at.root, "/e/b/150W/0/system_info.json.new"));
}

/* One above all that are there; two at once get two. */
static void numbers(void **state)
{
	struct recorder *a = start("n"), *b = start("n"), *c;

	recorder_event(a, T0, "experiment_begin", 0);
	recorder_event(b, T0, "experiment_begin", 0);
	assert_string_not_equal(recorder_path(a), recorder_path(b));
	assert_int_equal(publish(a), 0);
	assert_int_equal(publish(b), 1);
	temp_root_put(&at, "/e/b/n/10/x", "");
	c = start("n");
	recorder_event(c, T0, "experiment_begin", 0);
	assert_int_equal(publish(c), 11);
	recorder_discard(start("gone"));
	assert_false(fsroot_exists(at.root, "/e/b/gone"));
}

static void baseline_replaces(void **state)
{
	static const char *const names[] = { "package-0" };

	for (int64_t i = 1; i <= 2; i++) {
		struct recorder *r = start(NULL);

		recorder_columns(r, RECORDER_RAPL, names, 1);
		recorder_row(r, RECORDER_RAPL, T0, &i);
		publish(r);
	}
	assert_string_equal(text_of("/e/_baseline/rapl-power.csv"),
			    ",timestamp,package-0\n0,2026-11-22 02:11:20.123456,2");
}

static struct gpu_row row_of(uint32_t present, int64_t ms)
{
	struct gpu_row r = { .real_ns = T0 + ms * 1000000, .present = present };

	for (unsigned f = 0; f < GPU_FIELDS; f++)
		r.v[f] = f + 1;
	return r;
}

/* The slow columns come later: rows before them go, and so does one that lacks a value in the middle. */
static void gpu_rows(void **state)
{
	const uint32_t all = GPU_BIT(GPU_POWER) | GPU_BIT(GPU_PCI_TX) | GPU_BIT(GPU_UTIL_GPU);
	const struct gpu_desc d = { .fields = all };
	const uint32_t rows[] = { all & ~GPU_BIT(GPU_PCI_TX), all, all & ~GPU_BIT(GPU_POWER),
				  all & ~GPU_BIT(GPU_UTIL_GPU), all };
	struct recorder *r = start("g");

	recorder_gpu(r, &d);
	for (unsigned i = 0; i < 5; i++) {
		const struct gpu_row row = row_of(rows[i], (int64_t)i * 150);

		recorder_gpu_row(r, &row);
	}
	assert_int_equal(recorder_gpu_dropped(r), 3);
	publish(r);
	assert_string_equal(text_of("/e/b/g/0/gpu-power.csv"),
			    ",timestamp,power,pci-tx,util-gpu\n"
			    "0,2026-11-22 02:11:20.273456,8,10,12\n1,2026-11-22 02:11:20.723456,8,10,12");
}

/* A field that never comes is no column after all. */
static void gpu_field_that_never_comes(void **state)
{
	const struct gpu_desc d = { .fields = GPU_BIT(GPU_POWER) | GPU_BIT(GPU_PCI_TX) };
	const struct gpu_row row = row_of(GPU_BIT(GPU_POWER), 0);
	struct recorder *r = start("g");

	recorder_gpu(r, &d);
	recorder_gpu_row(r, &row);
	recorder_gpu_row(r, &row);
	publish(r);
	assert_string_equal(text_of("/e/b/g/0/gpu-power.csv"),
			    ",timestamp,power\n"
			    "0,2026-11-22 02:11:20.123456,8\n1,2026-11-22 02:11:20.123456,8");
}

/* A row when every channel is new, at the time of the last; counts are rounded. */
static void meters(void **state)
{
	const struct meter_desc d[] = { { .device = 0, .channel = 0 }, { .device = 1, .channel = 2 } };
	const struct meter_sample s[] = {
		{ .device = 0, .channel = 0, .real_ns = T0, .power_uw = 1 },
		{ .device = 0, .channel = 0, .real_ns = T0 + 1000000, .power_uw = 12344999 },
		{ .device = 1, .channel = 2, .real_ns = T0 + 2000000, .power_uw = -15000 },
		{ .device = 1, .channel = 2, .real_ns = T0 + 3000000, .power_uw = 7 },
		{ .device = 5, .channel = 5, .real_ns = T0 + 4000000, .power_uw = 7 },
	};
	struct recorder *r = start("m");

	assert_int_equal(recorder_meters(r, d, 2, 10000), 0);
	for (unsigned i = 0; i < 5; i++)
		recorder_meter_sample(r, &s[i]);
	publish(r);
	assert_string_equal(text_of("/e/b/m/0/power-external.csv"),
			    ",timestamp,d0c0,d1c2\n0,2026-11-22 02:11:20.125456,1234,-2");
}

static void names(void **state)
{
	static const char *const bad[] = { "", "_x", ".x", "a/b", "a\nb" };
	struct err err;

	assert_int_equal(recorder_name_check("--run", "877MHz,1065MHz", &err), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(recorder_name_check("--run", bad[i], &err), -EINVAL);
}

static unsigned told;
static char told_why[512];

static int mend(void *arg, int dir_fd, struct err *err)
{
	++*(unsigned *)arg;
	return 0;
}

static void said(void *arg, const char *from, const char *to, const struct err *err)
{
	told++;
	snprintf(told_why, sizeof(told_why), "%s", to ? "" : err->text);
}

/* Killed in the middle of a line, with a block that never reached the disk. */
static void leave_cut_off(void)
{
	temp_root_put(&at, "/e/b/_staged-1-0/r/timestamps.csv",
		      "timestamp,event,data\n2026-11-22 02:11:20.123456,experiment_begin,0\n2026-11");
	temp_root_put(&at, "/e/b/_staged-1-0/r/rapl-power.csv",
		      ",timestamp,p\n0,2026-11-22 02:11:21.000000,5\n1,2026-11-22 02:11:22.000000\n");
	temp_root_put(&at, "/e/b/_staged-1-0/r/gpu-power.csv", ",timestamp,power\n0,2026-11-22 02:1");
	temp_root_put(&at, "/e/b/_staged-1-0/r/counters.csv",
		      ",timestamp,\"a,b\"\n0,2026-11-22 02:11:21.000000,5\n\n1,2");
	temp_root_put(&at, "/e/b/_staged-1-0/r/snapshot.cbor", "no recording");
	temp_root_put(&at, "/e/b/_staged-1-0/mark", "");
}

static void recovery(void **state)
{
	unsigned mended = 0;
	const struct recorder_recovery how = { mend, said, &mended };
	struct recorder *live = start("r");
	struct err err = { 0 };

	leave_cut_off();
	told = 0;
	recorder_event(live, T0, "experiment_begin", 0);
	assert_int_equal(recorder_flush(live, &err), 0);
	assert_int_equal(recorder_recover(at.dir, &how, &err), 1);
	assert_int_equal(told, 1);
	assert_int_equal(mended, 1);
	assert_string_equal(told_why, "");
	assert_string_equal(text_of("/e/b/r/0/timestamps.csv"),
			    "timestamp,event,data\n2026-11-22 02:11:20.123456,experiment_begin,0\n"
			    "2026-11-22 02:11:21.000000,experiment_end,0");
	assert_string_equal(text_of("/e/b/r/0/rapl-power.csv"), ",timestamp,p\n0,2026-11-22 02:11:21.000000,5");
	assert_string_equal(text_of("/e/b/r/0/counters.csv"), ",timestamp,\"a,b\"\n0,2026-11-22 02:11:21.000000,5");
	assert_false(fsroot_exists(at.root, "/e/b/r/0/gpu-power.csv"));
	assert_false(fsroot_exists(at.root, "/e/b/r/0/snapshot.cbor"));
	assert_false(fsroot_exists(at.root, "/e/b/_staged-1-0"));
	assert_int_equal(publish(live), 1);
	assert_int_equal(recorder_recover(at.dir, &how, &err), 0);
	assert_int_equal(recorder_recover("/nowhere", &how, &err), -ENOENT);
}

/* Readers stop at a second epoch without its end. */
static void recovery_in_an_epoch(void **state)
{
	const struct recorder_recovery how = { NULL, said, NULL };
	struct err err = { 0 };

	temp_root_put(&at, "/e/b/_staged-8-0/r/timestamps.csv",
		      "timestamp,event,data\n2026-11-22 02:11:20.123456,experiment_begin,0\n"
		      "2026-11-22 02:11:20.200000,epoch_begin,0\n2026-11-22 02:11:20.300000,epoch_end,0\n"
		      "2026-11-22 02:11:20.400000,epoch_begin,1\n2026-11-22 02:11:20.500000,batch_beg");
	temp_root_put(&at, "/e/b/_staged-8-0/r/rapl-power.csv", ",timestamp,p\n0,2026-11-22 02:11:21.000000,5\n");
	assert_int_equal(recorder_recover(at.dir, &how, &err), 1);
	assert_string_equal(text_of("/e/b/r/0/timestamps.csv"),
			    "timestamp,event,data\n2026-11-22 02:11:20.123456,experiment_begin,0\n"
			    "2026-11-22 02:11:20.200000,epoch_begin,0\n2026-11-22 02:11:20.300000,epoch_end,0\n"
			    "2026-11-22 02:11:20.400000,epoch_begin,1\n2026-11-22 02:11:21.000000,epoch_end,1\n"
			    "2026-11-22 02:11:21.000000,experiment_end,0");
}

static void leave_second_epoch(const char *gpu, const char *samples)
{
	temp_root_put(&at, "/e/b/_staged-8-0/r/timestamps.csv",
		      "timestamp,event,data\n2026-11-22 02:11:20.123456,experiment_begin,0\n"
		      "2026-11-22 02:11:20.200000,epoch_begin,0\n2026-11-22 02:11:20.300000,epoch_end,0\n"
		      "2026-11-22 02:11:20.400000,epoch_begin,1\n2026-11-22 02:11:20.600000,batch_begin,0\n");
	temp_root_put(&at, "/e/b/_staged-8-0/r/rapl-power.csv", ",timestamp,p\n0,2026-11-22 02:11:23.000000,5\n");
	temp_root_put(&at, "/e/b/_staged-8-0/r/gpu-power.csv", gpu);
	temp_root_put(&at, "/e/b/_staged-8-0/r/total_power_samples.csv", samples);
}

/* The end is where the first of the files ends that the reader takes energy from; 1795313480 is 02:11:20. */
static void recovery_ends_with_its_files(void **state)
{
	const struct recorder_recovery how = { NULL, said, NULL };
	struct err err = { 0 };

	leave_second_epoch(",timestamp,power\n0,2026-11-22 02:11:20.100000,5\n1,2026-11-22 02:11:22.700000,5\n",
			   ",timestamp,value\n0,1795313480000000,5\n1,1795313481500000,5\n");
	assert_int_equal(recorder_recover(at.dir, &how, &err), 1);
	assert_non_null(strstr(text_of("/e/b/r/0/timestamps.csv"),
			       "batch_begin,0\n2026-11-22 02:11:21.500000,epoch_end,1\n"
			       "2026-11-22 02:11:21.500000,experiment_end,0"));
	/* not before an event */
	leave_second_epoch(",timestamp,power\n0,2026-11-22 02:11:20.100000,5\n1,2026-11-22 02:11:22.700000,5\n",
			   ",timestamp,value\n0,1795313480000000,5\n1,1795313480500000,5\n");
	assert_int_equal(recorder_recover(at.dir, &how, &err), 1);
	assert_non_null(
		strstr(text_of("/e/b/r/1/timestamps.csv"), "batch_begin,0\n2026-11-22 02:11:20.600000,epoch_end,1\n"));
	/* a GPU that was lost long before ends nothing */
	leave_second_epoch(",timestamp,power\n0,2026-11-22 02:11:20.100000,5\n1,2026-11-22 02:11:22.700000,5\n",
			   ",timestamp,value\n0,1795313460000000,5\n1,1795313461500000,5\n");
	assert_int_equal(recorder_recover(at.dir, &how, &err), 1);
	assert_non_null(
		strstr(text_of("/e/b/r/2/timestamps.csv"), "batch_begin,0\n2026-11-22 02:11:22.700000,epoch_end,1\n"));
}

/* An empty repetition is told and removed, unless a file that is not ours lies there. */
static void recovery_of_nothing(void **state)
{
	const struct recorder_recovery how = { NULL, said, NULL };
	struct err err = { 0 };

	temp_root_put(&at, "/e/b/_staged-7-0/r/timestamps.csv", "timestamp,event,data\n");
	told = 0;
	assert_int_equal(recorder_recover(at.dir, &how, &err), 0);
	assert_int_equal(told, 1);
	assert_non_null(strstr(told_why, "nothing was recorded"));
	assert_false(fsroot_exists(at.root, "/e/b/r"));
	assert_false(fsroot_exists(at.root, "/e/b/_staged-7-0"));
	temp_root_put(&at, "/e/b/_staged-7-0/r/mine", "");
	assert_int_equal(recorder_recover(at.dir, &how, &err), 0);
	assert_int_equal(told, 2);
	assert_non_null(strstr(told_why, "remove it"));
	assert_true(fsroot_exists(at.root, "/e/b/_staged-7-0/r/mine"));
}

/* A power failure may take timestamps.csv alone: what was measured is not ours to throw away. */
static void recovery_without_events(void **state)
{
	const struct recorder_recovery how = { NULL, said, NULL };
	struct err err = { 0 };

	temp_root_put(&at, "/e/b/_staged-6-0/r/timestamps.csv", "timestamp,event,da");
	temp_root_put(&at, "/e/b/_staged-6-0/r/rapl-power.csv", ",timestamp,p\n0,2026-11-22 02:11:21.000000,5\n1,2026");
	assert_int_equal(recorder_recover(at.dir, &how, &err), 0);
	assert_non_null(strstr(told_why, "TIME,experiment_begin,0"));
	temp_root_put(&at, "/e/b/_staged-6-0/r/timestamps.csv",
		      "timestamp,event,data\n2026-11-22 02:11:20.000000,experiment_begin,0\n");
	assert_int_equal(recorder_recover(at.dir, &how, &err), 1);
	assert_string_equal(text_of("/e/b/r/0/rapl-power.csv"), ",timestamp,p\n0,2026-11-22 02:11:21.000000,5");
}

/* A process that is killed while it writes: whole lines up to the last flush. */
static void killed(void **state)
{
	const struct recorder_recovery how = { NULL, said, NULL };
	struct err err = { 0 };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct recorder *r = start("k");

		recorder_event(r, T0, "experiment_begin", 0);
		for (int64_t i = 0; i < 20000; i++)
			recorder_sample(r, GPU_RING_MEM, T0 / 1000 + i, i);
		recorder_flush(r, NULL);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(recorder_recover(at.dir, &how, &err), 1);
	FILE *f = fopen(strcat(strcpy(told_why, at.dir), "/e/b/k/0/memory_utilization_samples.csv"), "re");
	unsigned lines = 0;

	for (int c; f && (c = fgetc(f)) != EOF;)
		lines += c == '\n';
	if (f)
		fclose(f);
	assert_int_equal(lines, 20001);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bytes, make, end),
		cmocka_unit_test_setup_teardown(numbers, make, end),
		cmocka_unit_test_setup_teardown(baseline_replaces, make, end),
		cmocka_unit_test_setup_teardown(gpu_rows, make, end),
		cmocka_unit_test_setup_teardown(gpu_field_that_never_comes, make, end),
		cmocka_unit_test_setup_teardown(meters, make, end),
		cmocka_unit_test(names),
		cmocka_unit_test_setup_teardown(recovery, make, end),
		cmocka_unit_test_setup_teardown(recovery_of_nothing, make, end),
		cmocka_unit_test_setup_teardown(recovery_in_an_epoch, make, end),
		cmocka_unit_test_setup_teardown(recovery_ends_with_its_files, make, end),
		cmocka_unit_test_setup_teardown(recovery_without_events, make, end),
		cmocka_unit_test_setup_teardown(killed, make, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
