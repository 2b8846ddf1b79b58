/* SPDX-License-Identifier: Apache-2.0 */
/* The records of docs/formats/vjoule.md byte for byte: the documentation's own examples, the same
 * values as v0.2 lays them out (by its table of offsets), and sizes by its formulas. */
#include "encode_fixture.h"
#include "encode/vjoule/wire.h"

/* A golden file of hex digits. */
static size_t golden(const char *name, uint8_t *dst, size_t size)
{
	char *text = fixture_golden(name);
	unsigned byte;
	size_t n = 0;
	int used;

	for (const char *at = text; sscanf(at, " %2x%n", &byte, &used) == 1; at += used) {
		assert_true(n < size);
		dst[n++] = (uint8_t)byte;
	}
	free(text);
	return n;
}

static void assert_record(const char *name, const uint8_t *got, size_t len)
{
	uint8_t want[512];
	size_t n = golden(name, want, sizeof(want));

	assert_int_equal(len, n);
	assert_memory_equal(got, want, n);
}

static struct vjoule_entry entry(int16_t id, const char *name)
{
	return (struct vjoule_entry){ id, (uint32_t)strlen(name), name };
}

static struct vjoule_cgroup cgroup(const char *name, const struct vjoule_metric *metrics)
{
	return (struct vjoule_cgroup){ name, (uint32_t)strlen(name), 2, metrics };
}

/* The whole record, its sizes added up as a caller does. */
static size_t put_report(uint8_t *p, enum vjoule_dialect d, const struct vjoule_machine *m,
			 const struct vjoule_cgroup *c, unsigned n)
{
	size_t size = vjoule_machine_size(d, m);
	uint8_t *end;

	for (unsigned i = 0; i < n; i++)
		size += vjoule_cgroup_size(d, c[i].len, c[i].n);
	end = vjoule_put_machine(p, d, m, size, n);
	for (unsigned i = 0; i < n; i++)
		end = vjoule_put_cgroup(end, d, &c[i]);
	assert_int_equal(end - p, size);
	return size;
}

static const float energy[] = { 12.1f, 0.001f, 10.92f, 1.4f, 0 };

static void test_document(void **state)
{
	const struct vjoule_entry entries[] = { entry(0, "RAPL_ENERGY_PKG"), entry(1, "TSC"), entry(2, "APERF"),
						entry(3, "MPERF") };
	const struct vjoule_header h = { .n = 4, .entries = entries };
	const struct vjoule_metric system[] = { { 0, 98108989378 }, { 7, 189082738 } };
	const struct vjoule_metric one[] = { { 3, 17878329 }, { 9, 189789326 } },
				   two[] = { { 3, 8717896178 }, { 9, 1878718897 } };
	const struct vjoule_cgroup cgroups[] = { cgroup("test", one), cgroup("test2", two) };
	struct vjoule_machine m = { .n_system = 2, .system = system };
	uint8_t out[512];

	memcpy(m.energy_j, energy, sizeof(energy));
	assert_int_equal(vjoule_put_header(out, VJOULE_DOCUMENT, &h) - out, vjoule_header_size(VJOULE_DOCUMENT, &h));
	assert_record("vjoule-document-header.hex", out, vjoule_header_size(VJOULE_DOCUMENT, &h));
	assert_int_equal(put_report(out, VJOULE_DOCUMENT, &m, cgroups, 2), 4 + 113);
	assert_record("vjoule-document-report.hex", out, 4 + 113);
}

static void test_v02(void **state)
{
	const struct vjoule_entry entries[] = { entry(0, "PERF_COUNT_HW_CPU_CYCLES"), entry(1, "LLC_MISSES") };
	const struct vjoule_header h = { .cpus = 2, .n = 2, .entries = entries };
	const struct vjoule_metric system[] = { { 0, 98108989378 } };
	const struct vjoule_metric one[] = { { 0, 17878329 }, { 1, 189789326 } },
				   two[] = { { 0, 8717896178 }, { 1, 1878718897 } };
	const struct vjoule_cgroup cgroups[] = { cgroup("/a", one), cgroup("/b/c", two) };
	const uint32_t khz[] = { 2600000, 3100000 };
	struct vjoule_machine m = { .temperature_mc = 45000, .n_khz = 2, .khz = khz, .n_system = 1, .system = system };
	uint8_t out[512];

	memset(out, 0xa5, sizeof(out)); /* what is not written shows */
	memcpy(m.energy_j, energy, sizeof(energy));
	vjoule_put_header(out, VJOULE_V02, &h);
	assert_record("vjoule-v02-header.hex", out, vjoule_header_size(VJOULE_V02, &h));
	assert_record("vjoule-v02-report.hex", out, put_report(out, VJOULE_V02, &m, cgroups, 2));
}

static void test_sizes_by_formula(void **state)
{
	for (unsigned s = 0; s < 4; s++) {
		for (unsigned f = 0; f < 200; f += 64) {
			const struct vjoule_machine m = { .n_khz = f, .n_system = s };

			assert_int_equal(vjoule_machine_size(VJOULE_V02, &m) - 4, 28 + 4 * f + 4 + 16 * s + 2);
			assert_int_equal(vjoule_machine_size(VJOULE_DOCUMENT, &m) - 4, 24 + 10 * s + 4);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_v02),
		cmocka_unit_test(test_sizes_by_formula),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
