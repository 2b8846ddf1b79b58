/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that use a scripted GPU (tests/gpu/fake_nvml.c), GPUs that sleep, and a driver that keeps its callers waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"
#include "source/gpu/gpus.h"
#include "source/cgroup/hierarchy.h"
#include "source/cgroup/process_cgroup.h"
#include "nvml_log.h"
#include "temp_root.h"

#define PCI0 "/sys/bus/pci/devices/0000:17:00.0/"

static char library[512];

struct fixture {
	struct temp_root t;
	struct hierarchy h;
	struct schema schema;
	struct cgroup_table *table;
	struct reading r;
	struct gpus *g;
	uint32_t row; /* of this process's cgroup */
	char log[128];
};

static void script(struct fixture *f, const char *text)
{
	char all[1024], path[128], next[160];

	snprintf(all, sizeof(all), "log %s\n%s", f->log, text);
	temp_root_put(&f->t, "/script.new", all);
	snprintf(next, sizeof(next), "%s/script.new", f->t.dir);
	snprintf(path, sizeof(path), "%s/script", f->t.dir);
	assert_int_equal(rename(next, path), 0);
	setenv("FAKE_NVML", path, 1);
}

/* A machine whose only process is ours, number 4711 there, in the cgroup /work. */
static void open_all(struct fixture *f, const char *text)
{
	const struct gpu_options o = { .library = library, .pace_ns = 20 * NS_PER_MS, .hierarchy = &f->h };
	struct err err = { 0 };
	uint64_t id = 0;

	temp_root_put(&f->t, "/proc/4711/cgroup", "0::/work\n");
	temp_root_put(&f->t, "/cg/work/cgroup.procs", "4711\n");
	snprintf(f->log, sizeof(f->log), "%s/log", f->t.dir);
	f->h = (struct hierarchy){ .v2 = true, .mount = "/cg", .subdir = "/" };
	f->schema.n_cpus = 1;
	f->schema.cpus = calloc(1, sizeof(*f->schema.cpus));
	assert_int_equal(reading_init(&f->r, &f->schema), 0);
	f->table = cgroup_table_new();
	assert_int_equal(process_cgroup(f->t.root, &f->h, 4711, &id), 0);
	f->row = (uint32_t)reading_add_row(&f->r, cgroup_add(f->table, id, "/work", 1, 0));
	script(f, text);
	assert_int_equal(gpus_open(f->t.root, &o, &f->schema, &f->g, &err), 0);
	assert_int_equal(gpus_start(f->g), 0);
}

static void finish(struct fixture *f)
{
	gpus_close(f->g);
	reading_free(&f->r);
	cgroup_table_free(f->table);
	free(f->schema.cpus);
	temp_root_free(&f->t);
}

static uint64_t use_of(const struct fixture *f, uint32_t row, unsigned domain)
{
	for (uint32_t i = 0; i < f->r.n_uses; i++)
		if (f->r.uses[i].row == row && f->r.uses[i].domain == domain)
			return f->r.uses[i].ns;
	return 0;
}

static void read_for(struct fixture *f, uint64_t ns)
{
	uint64_t until = clock_mono_ns() + ns;

	for (; clock_mono_ns() < until; usleep(5000)) {
		f->r.mono_ns = clock_mono_ns();
		gpus_read(f->g, &f->r, f->table);
	}
}

static unsigned calls(const struct fixture *f, const char *of)
{
	return nvml_log_calls(f->log, of);
}

static void wait_for_calls(const struct fixture *f, const char *of, unsigned more)
{
	unsigned before = calls(f, of);

	for (uint64_t until = clock_mono_ns() + 60 * NS_PER_S; calls(f, of) < before + more && clock_mono_ns() < until;)
		usleep(20000);
}

/* ours : nobody, in percent of both. */
static unsigned share(const struct fixture *f, unsigned domain)
{
	uint64_t ours = use_of(f, f->row, domain), nobody = use_of(f, USE_NOBODY, domain);

	return ours + nobody ? (unsigned)((ours * 100 + (ours + nobody) / 2) / (ours + nobody)) : 0;
}

/* 60 % by a process that is there, 20 % by one that is gone; nonsense beside them counts for nothing. */
static void by_use(void **state)
{
	struct fixture f = { .t = temp_root_new() };
	uint64_t from, to;

	open_all(&f, "process 0 4711 60\nprocess 0 4712 20\ngarbage\n");
	wait_for_calls(&f, "process_use 0", 2);
	read_for(&f, 300 * NS_PER_MS);
	from = f.r.domains[0].time_ns;
	to = use_of(&f, f.row, 0);
	read_for(&f, 500 * NS_PER_MS);
	to = use_of(&f, f.row, 0) - to;
	assert_in_range(to * 100 / (f.r.domains[0].time_ns - from), 59, 61);
	assert_int_equal(share(&f, 0), 75);
	assert_int_equal(use_of(&f, f.row, 1), 0);
	finish(&f);
}

/* MIG: who is there shares alike. */
static void mig(void **state)
{
	struct gpu_desc d;
	struct fixture f = { .t = temp_root_new() };

	open_all(&f, "mig 0\nprocess 0 4711 60\nprocess 0 4712 20\n");
	gpus_desc(f.g, 0, &d);
	assert_true(d.mig);
	assert_false(d.fields & GPU_BIT(GPU_UTIL_GPU));
	read_for(&f, 500 * NS_PER_MS);
	assert_int_equal(share(&f, 0), 50);
	finish(&f);
}

/* Entries of a length that no header has: the processes are still who they are. */
static void long_entries(void **state)
{
	struct fixture f = { .t = temp_root_new() };

	open_all(&f, "mig 0\nlong 4712 4711 4713\n");
	read_for(&f, 500 * NS_PER_MS);
	assert_int_equal(share(&f, 0), 33);
	finish(&f);
}

/* Known while it ran: what it did last is still its own when the process is gone. */
static void gone_but_known(void **state)
{
	struct fixture f = { .t = temp_root_new() };
	char path[128];

	open_all(&f, "process 0 4711 50\n");
	wait_for_calls(&f, "process_use 0", 2);
	read_for(&f, 300 * NS_PER_MS);
	snprintf(path, sizeof(path), "%s/proc/4711/cgroup", f.t.dir);
	assert_int_equal(unlink(path), 0);
	read_for(&f, 1500 * NS_PER_MS);
	assert_int_equal(share(&f, 0), 100);
	finish(&f);
}

/* Two take turns between two readings: each has what it used in its turn, not the last one all. */
static void turns(void **state)
{
	struct fixture f = { .t = temp_root_new() };
	uint64_t begun, turned, ended;
	unsigned ours;

	open_all(&f, "process 0 4711 80\n");
	wait_for_calls(&f, "process_use 0", 2);
	read_for(&f, 50 * NS_PER_MS);
	ours = (unsigned)(use_of(&f, f.row, 0) / NS_PER_MS);
	begun = f.r.domains[0].time_ns;
	wait_for_calls(&f, "process_use 0", 6);
	turned = clock_mono_ns();
	script(&f, "process 0 4712 80\n");
	wait_for_calls(&f, "process_use 0", 6);
	read_for(&f, 50 * NS_PER_MS);
	ended = f.r.domains[0].time_ns;
	ours = (unsigned)(use_of(&f, f.row, 0) / NS_PER_MS) - ours;
	/* one answer before or after the turn, and one look */
	assert_in_range(ours, (turned - begun) * 6 / 10 / NS_PER_MS, (turned - begun) * 11 / 10 / NS_PER_MS);
	assert_true(ended > turned);
	assert_true(use_of(&f, USE_NOBODY, 0) > (ended - turned) * 4 / 10);
	finish(&f);
}

/* A driver that samples use less often than it is asked has no news in between: what it told before holds. */
static void sampled_rarely(void **state)
{
	struct fixture f = { .t = temp_root_new() };
	uint64_t from, use;

	open_all(&f, "process 0 4711 60\nsampled 500\n");
	wait_for_calls(&f, "process_use 0", 4);
	read_for(&f, 50 * NS_PER_MS);
	from = f.r.domains[0].time_ns;
	use = use_of(&f, f.row, 0);
	wait_for_calls(&f, "process_use 0", 8);
	read_for(&f, 50 * NS_PER_MS);
	use = use_of(&f, f.row, 0) - use;
	assert_in_range(use * 100 / (f.r.domains[0].time_ns - from), 50, 62);
	finish(&f);
}

static bool warned(struct fixture *f, const char *part)
{
	uint64_t until = clock_mono_ns() + 30 * NS_PER_S;
	char text[300];

	for (; clock_mono_ns() < until; usleep(10000))
		while (gpus_next_warning(f->g, text, sizeof(text)))
			if (strstr(text, part))
				return true;
	return false;
}

/* One that sleeps at the start: the library's first call would wake it. */
static void asleep_at_the_start(void **state)
{
	struct fixture f = { .t = temp_root_new() };

	temp_root_put(&f.t, PCI0 "vendor", "0x10de\n");
	temp_root_put(&f.t, PCI0 "class", "0x030200\n");
	temp_root_put(&f.t, PCI0 "power/runtime_status", "suspended\n");
	open_all(&f, "");
	assert_int_equal(gpus_count(f.g), 0);
	assert_true(warned(&f, "sleeps and is not woken"));
	assert_int_equal(calls(&f, "init"), 0);
	finish(&f);
}

/* One that falls asleep is asked nothing more, and the other goes on. */
static void falls_asleep(void **state)
{
	struct fixture f = { .t = temp_root_new() };
	unsigned before, other;

	temp_root_put(&f.t, PCI0 "power/runtime_status", "active\n");
	open_all(&f, "");
	read_for(&f, 100 * NS_PER_MS);
	temp_root_put(&f.t, PCI0 "power/runtime_status", "suspended\n");
	assert_true(warned(&f, "gpu-0: it sleeps"));
	read_for(&f, 300 * NS_PER_MS); /* a call of the slow thread may be under way */
	before = calls(&f, " 0\n");
	other = calls(&f, " 1\n");
	read_for(&f, 1500 * NS_PER_MS);
	assert_int_equal(calls(&f, " 0\n"), before);
	assert_true(calls(&f, " 1\n") > other);
	assert_true(f.r.domains[0].stale);
	assert_false(f.r.domains[1].stale);
	finish(&f);
}

/* One is lost, and only a new start of the library would find it: that would wake the other. */
static void lost_beside_a_sleeper(void **state)
{
	struct fixture f = { .t = temp_root_new() };

	temp_root_put(&f.t, PCI0 "power/runtime_status", "suspended\n");
	temp_root_put(&f.t, PCI0 "vendor", "0x10de\n"); /* no class: it is not seen at the start */
	open_all(&f, "");
	assert_true(warned(&f, "gpu-0: it sleeps"));
	assert_int_equal(calls(&f, "init"), 1);
	script(&f, "lost 1\n");
	assert_true(warned(&f, "gpu-1: it does not answer"));
	read_for(&f, 2500 * NS_PER_MS);
	assert_int_equal(calls(&f, "init"), 1);
	temp_root_put(&f.t, PCI0 "power/runtime_status", "active\n");
	assert_true(warned(&f, "gpu-0: it is awake"));
	for (uint64_t until = clock_mono_ns() + 20 * NS_PER_S; calls(&f, "init") < 2 && clock_mono_ns() < until;
	     usleep(10000))
		;
	assert_true(calls(&f, "init") >= 2);
	script(&f, "");
	assert_true(warned(&f, "gpu-1: it is back"));
	finish(&f);
}

/* A driver that holds its caller for half a second holds nobody else. */
static void hangs(void **state)
{
	struct fixture f = { .t = temp_root_new() };
	uint64_t until;
	unsigned longer = 0;

	open_all(&f, "");
	script(&f, "slow energy 500\n");
	for (until = clock_mono_ns() + 2 * NS_PER_S; clock_mono_ns() < until; usleep(10000)) {
		uint64_t cpu = clock_thread_cpu_ns(), begun = clock_mono_ns(), took;

		f.r.mono_ns = begun;
		gpus_read(f.g, &f.r, f.table);
		took = clock_mono_ns() - begun;
		assert_true(clock_thread_cpu_ns() - cpu < 100 * NS_PER_MS);
		longer += took >= 400 * NS_PER_MS;
	}
	assert_true(longer <= 1); /* the machine may be busy once; waits for the driver would be 500 ms, each */
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_use),
		cmocka_unit_test(mig),
		cmocka_unit_test(long_entries),
		cmocka_unit_test(gone_but_known),
		cmocka_unit_test(turns),
		cmocka_unit_test(sampled_rarely),
		cmocka_unit_test(asleep_at_the_start),
		cmocka_unit_test(falls_asleep),
		cmocka_unit_test(lost_beside_a_sleeper),
		cmocka_unit_test(hangs),
	};
	const char *b = getenv("B");

	if (!realpath(b ? b : "build", library))
		return 1;
	strcat(library, "/gpu/libnvidia-ml.so.1");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
