/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that use a card of AMD or Intel, by what its driver writes behind open files: texts as the kernel's pages
 * (drm-usage-stats.rst, xe-drm-usage-stats.rst) show them, and a captured machine whose clients work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"
#include "source/gpu/drm.h"
#include "source/cgroup/process_cgroup.h"
#include "temp_root.h"

#define AMD "/sys/class/drm/card0/device/"
#define HEAD "pos:\t0\nflags:\t0100002\nmnt_id:\t26\nino:\t685\n"

/* i915, of which four engines are told and one class has two of them. */
static void by_time(void **state)
{
	static const char old[] = HEAD
		"drm-driver: i915\ndrm-pdev:   0000:00:02.0\ndrm-client-id:\t7\n"
		"drm-engine-render:\t9288864723 ns\ndrm-engine-copy: 2035071108 ns\ndrm-engine-video: 0 ns\n"
		"drm-engine-capacity-video:   2\ndrm-engine-video-enhance:   0 ns\n";
	static const char new[] = HEAD
		"drm-driver: i915\ndrm-pdev:   0000:00:02.0\ndrm-client-id:\t7\n"
		"drm-engine-render:\t9538864723 ns\ndrm-engine-copy: 2035071108 ns\ndrm-engine-video: 500000000 ns\n"
		"drm-engine-capacity-video:   2\ndrm-engine-video-enhance:   0 ns\n";
	struct drm_use a, b;

	assert_true(drm_parse(old, &a));
	assert_true(drm_parse(new, &b));
	assert_string_equal(a.pci, "0000:00:02.0");
	assert_int_equal(a.client, 7);
	assert_int_equal(a.n, 4);
	/* a quarter of a second of render in one, and half a second of two video engines */
	assert_int_equal(drm_share(&a, &b, NS_PER_S), 250000 + 250000);
	/* a counter that went back says nothing; more than there was of time is all of it */
	assert_int_equal(drm_share(&b, &a, NS_PER_S), 0);
	assert_int_equal(drm_share(&a, &b, NS_PER_S / 10), 2000000);
	assert_int_equal(drm_share(&a, &b, 0), 0);
}

static void by_cycles(void **state)
{
	static const char old[] = HEAD
		"drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\ndrm-total-system:\t0\n"
		"drm-total-vram0:\t23992 KiB\ndrm-cycles-rcs:\t28257900\ndrm-total-cycles-rcs:\t7655183225\ndrm-cycles-ccs:\t0\n"
		"drm-total-cycles-ccs:\t7655183225\ndrm-engine-capacity-ccs:\t4\n";
	static const char new[] = HEAD
		"drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\n"
		"drm-cycles-rcs:\t28357900\ndrm-total-cycles-rcs:\t7656183225\ndrm-cycles-ccs:\t400000\n"
		"drm-total-cycles-ccs:\t7656183225\ndrm-engine-capacity-ccs:\t4\n";
	struct drm_use a, b;

	assert_true(drm_parse(old, &a));
	assert_true(drm_parse(new, &b));
	assert_int_equal(a.n, 2);
	assert_int_equal(drm_share(&a, &b, 12345), 100000 + 100000);
}

static void nonsense(void **state)
{
	static const char *const none[] = {
		"",
		HEAD,
		"drm-pdev: 0000:03:00.0\ndrm-client-id: 3\n",
		"drm-client-id: 3\ndrm-engine-gfx: 1 ns\n",
		"drm-pdev: 0000:03:00.0\ndrm-engine-gfx: 1 ns\n",
		"drm-pdev: 0000:03:00.0\ndrm-client-id: -3\ndrm-engine-gfx: 1 ns\n",
		"drm-pdev: 0000:03:00.0\ndrm-client-id: 3\ndrm-engine-gfx: 1 %\n",
		"drm-pdev: 0000:03:00.0\ndrm-client-id: 3\ndrm-engine-gfx: 99999999999999999999 ns\n",
		"drm-pdev: 0000:03:00.0\ndrm-client-id: 3\ndrm-engine-: 1 ns\n",
		"drm-pdev: 0000:03:00.0\ndrm-client-id: 3\ndrm-engine-aaaaaaaaaaaaaaaaaaaaaaaa: 1 ns\n",
	};
	struct drm_use u;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(drm_parse(none[i], &u));
}

struct machine {
	struct temp_root t;
	struct hierarchy h;
	struct schema schema;
	struct cgroup_table *table;
	struct reading r;
	struct gpus *g;
	uint32_t rows[2];
	uint64_t begun; /* clients have worked since */
};

static void put_link(const struct temp_root *t, const char *path, const char *to)
{
	char full[256];

	temp_root_put(t, path, "");
	snprintf(full, sizeof(full), "%s%s", t->dir, path);
	assert_int_equal(unlink(full), 0);
	assert_int_equal(symlink(to, full), 0);
}

static void process(struct machine *m, unsigned pid, const char *cgroup, uint32_t *ret_row)
{
	char path[128], text[128];
	uint64_t id;

	snprintf(path, sizeof(path), "/cg%s/cgroup.procs", cgroup);
	temp_root_put(&m->t, path, "");
	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	snprintf(text, sizeof(text), "0::%s\n", cgroup);
	temp_root_put(&m->t, path, text);
	snprintf(path, sizeof(path), "/proc/%u/fd/0", pid);
	put_link(&m->t, path, "/dev/null");
	snprintf(path, sizeof(path), "/proc/%u/fd/5", pid);
	put_link(&m->t, path, "/dev/dri/renderD128");
	assert_int_equal(process_cgroup(m->t.root, &m->h, pid, &id), 0);
	*ret_row = (uint32_t)reading_add_row(&m->r, cgroup_add(m->table, id, cgroup, 1, 0));
}

static void work(const struct machine *m, unsigned pid, unsigned client, uint64_t ns)
{
	char path[128], next[160], to[160], text[512];

	snprintf(path, sizeof(path), "/proc/%u/fdinfo/next", pid);
	snprintf(text, sizeof(text),
		 HEAD "drm-driver:\tamdgpu\ndrm-client-id:\t%u\ndrm-pdev:\t0000:03:00.0\n"
		      "drm-engine-gfx:\t%llu ns\ndrm-engine-dec:\t0 ns\n",
		 client, (unsigned long long)ns);
	temp_root_put(&m->t, path, text);
	snprintf(next, sizeof(next), "%s%s", m->t.dir, path);
	snprintf(to, sizeof(to), "%s/proc/%u/fdinfo/5", m->t.dir, pid);
	assert_int_equal(rename(next, to), 0);
}

static void start(struct machine *m)
{
	const struct gpu_options o = { .pace_ns = 20 * NS_PER_MS, .hierarchy = &m->h };
	struct err err = { 0 };

	m->h = (struct hierarchy){ .v2 = true, .mount = "/cg", .subdir = "/" };
	m->schema.n_cpus = 1;
	m->schema.cpus = calloc(1, sizeof(*m->schema.cpus));
	assert_int_equal(reading_init(&m->r, &m->schema), 0);
	m->table = cgroup_table_new();
	temp_root_put(&m->t, AMD "vendor", "0x1002\n");
	temp_root_put(&m->t, AMD "uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n");
	temp_root_put(&m->t, AMD "hwmon/hwmon4/power1_average", "145000000\n");
	process(m, 300, "/one", &m->rows[0]);
	process(m, 4711, "/two", &m->rows[1]);
	work(m, 300, 1, 0);
	work(m, 4711, 2, 0);
	assert_int_equal(gpus_open(m->t.root, &o, &m->schema, &m->g, &err), 0);
	assert_true(gpus_look_into_processes(m->g));
	assert_int_equal(gpus_start(m->g), 0);
}

static void finish(struct machine *m)
{
	gpus_close(m->g);
	reading_free(&m->r);
	cgroup_table_free(m->table);
	free(m->schema.cpus);
	temp_root_free(&m->t);
}

static uint64_t used(const struct machine *m, uint32_t row)
{
	for (uint32_t i = 0; i < m->r.n_uses; i++)
		if (m->r.uses[i].row == row)
			return m->r.uses[i].ns;
	return 0;
}

/* 60 % and 20 % of the time, until the second has used so much. */
static void work_until(struct machine *m, uint64_t want_ns)
{
	uint64_t until = clock_mono_ns() + 60 * NS_PER_S;

	while (used(m, m->rows[1]) < want_ns && clock_mono_ns() < until) {
		uint64_t ns = clock_mono_ns() - m->begun;

		work(m, 300, 1, ns * 6 / 10);
		work(m, 4711, 2, ns * 2 / 10);
		m->r.mono_ns = clock_mono_ns();
		gpus_read(m->g, &m->r, m->table);
		usleep(10000);
	}
}

static void clients(void **state)
{
	struct machine m = { .t = temp_root_new() };
	uint64_t from, one, all;

	start(&m);
	m.begun = clock_mono_ns();
	work_until(&m, NS_PER_S / 10);
	one = used(&m, m.rows[0]);
	from = m.r.domains[0].time_ns;
	assert_in_range(one * 100 / (one + used(&m, m.rows[1])), 65, 85);
	/* a second descriptor of the same client, as after fork, counts once */
	put_link(&m.t, "/proc/4711/fd/6", "/dev/dri/renderD128");
	put_link(&m.t, "/proc/4711/fdinfo/6", "5");
	all = used(&m, m.rows[1]);
	work_until(&m, all + NS_PER_S / 2);
	one = used(&m, m.rows[0]) - one;
	all = used(&m, m.rows[1]) - all;
	/* whoever writes these files is late on a busy machine, and so is what they say */
	assert_in_range(one * 100 / (one + all), 70, 80);
	assert_in_range(one * 100 / (m.r.domains[0].time_ns - from), 40, 80);
	assert_int_equal(used(&m, USE_NOBODY), 0);
	finish(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_time),
		cmocka_unit_test(by_cycles),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
