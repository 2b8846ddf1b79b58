/* SPDX-License-Identifier: Apache-2.0 */
/* The table: a golden one drawn by hand, and what must hold for every one. */
#include <locale.h>
#include <wchar.h>
#include "unit/encode_fixture.h"

static struct snap_row *add(struct fixture *f, const char *path, uint64_t time_ns, uint64_t cycles,
			    uint64_t instructions)
{
	struct snap_row *r = fixture_row(f, path, f->snap.n_rows);

	r->time_ns = time_ns;
	r->counters[0] = cycles;
	r->counters[1] = instructions;
	return r;
}

static void machine(struct fixture *f)
{
	struct snap_row *r;

	fixture_init(f, 2, 1);
	fixture_event(&f->schema.core, "CYCLES", EVENT_PERF);
	fixture_event(&f->schema.core, "INSTRUCTIONS", EVENT_PERF);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(f, DOMAIN_DRAM, 0, "dram-0");
	fixture_ready(f);
	snprintf(f->snap.formula, sizeof(f->snap.formula), "share");
	f->snap.cpus[0].busy_ns = 600000000;
	f->snap.domains[0].energy_uj = 10000000;
	f->snap.domains[0].idle_uj = 2500000;
	f->snap.domains[0].idle_quality = QUALITY_ESTIMATED;
	f->snap.domains[0].residual_uj = 500000;
	f->snap.domains[1].energy_uj = 1500000;
	f->snap.domains[1].share_quality = QUALITY_ESTIMATED;
	f->snap.rows[ROW_KERNEL].time_ns = 400000000;
	f->snap.rows[ROW_IDLE].time_ns = 1400000000;
	*snapshot_energy(&f->snap, ROW_KERNEL, 0) = 1000000;
	r = add(f, "/", 50000000, 400, 500);
	r->quality = QUALITY_MULTIPLEXED;
	r->traffic.tx_bytes = 999;
	*snapshot_energy(&f->snap, 4, 0) = 1500000;
	*snapshot_energy(&f->snap, 4, 1) = 500000;
	add(f, "/busy-without-energy", 1000000, 0, 0);
	r = add(f, "/system.slice/nginx.service", 200000000, 1000, 2000);
	r->traffic = (struct traffic){ .rx_bytes = 1500, .tx_bytes = 5000000 };
	*snapshot_energy(&f->snap, 6, 0) = 4000000;
	*snapshot_energy(&f->snap, 6, 1) = 1000000;
	add(f, "/system.slice/cron.service", 54000000, 100, 50);
	*snapshot_energy(&f->snap, 7, 0) = 500000;
	add(f, "/idle", 0, 0, 0);
	f->snap.rows[ROW_OTHER].time_ns = 1;
}

static void test_golden(void **state)
{
	char *golden = fixture_golden("table.txt");
	struct fixture f;
	const char *text;

	machine(&f);
	fixture_create(&f, &encode_table, &(struct encode_options){ .limit = 3 });
	text = fixture_encode(&f);
	assert_int_equal(strncmp(text, golden, strlen(golden)), 0);
	assert_string_equal(text + strlen(golden), "\n");
	free(golden);
	fixture_free(&f);
}

static unsigned lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* Columns as the C library counts them, which knows nothing of our count. */
static int widest(const char *text)
{
	int max = 0;

	for (; *text; text = strchr(text, '\n') + 1) {
		wchar_t wide[4096];
		char line[4096];
		int n;

		snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
		assert_true(mbstowcs(wide, line, 4096) < 4096);
		n = wcswidth(wide, 4096);
		assert_true(n >= 0); /* -1: a control character */
		max = n > max ? n : max;
	}
	return max;
}

static void test_fits(void **state)
{
	static char paths[60][400];
	struct fixture f;
	unsigned wide[] = { 0, 60, 80, 200 };

	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	machine(&f);
	for (unsigned i = 0; i < 50; i++) {
		static const char *const nasty[] = { "\x1b[31m", "\xff\xfe",  "\xe6\x97\xa5\xe6\x9c\xac",
						     "\xc2\x9b", "e\xcc\x81", "\xf0\x9f\x90\xb3",
						     "x",        "\\" };

		snprintf(paths[i], sizeof(paths[i]), "/");
		for (unsigned k = 0; k <= i; k++)
			strncat(paths[i], nasty[(i + k) % 8], sizeof(paths[i]) - strlen(paths[i]) - 1);
		*snapshot_energy(&f.snap, f.snap.n_rows, 0) = 1000 * i;
		add(&f, paths[i], 1 + i, 1, 1)->traffic.rx_bytes = 1ull << i;
	}
	for (unsigned i = 0; i < 4; i++) {
		fixture_create(&f, &encode_table,
			       &(struct encode_options){ .width = wide[i], .height = wide[i] ? 40 : 0 });
		fixture_encode(&f);
		assert_true(widest((char *)f.out.data) <= (int)(wide[i] ? wide[i] : 80));
		assert_int_equal(lines((char *)f.out.data), wide[i] ? 39 : 23); /* the cursor's line is free */
		encode_table.destroy(f.encoder);
		f.ops = NULL;
	}
	fixture_free(&f);
}

/* The numbers of a column, between two positions of the line, of all lines after the heading. */
static double column_sum(const char *text, unsigned column)
{
	double sum = 0;

	text = strchr(strstr(text, "cgroup\n"), '\n') + 1;
	for (; *text == ' '; text = strchr(text, '\n') + 1) {
		const char *at = text;

		for (unsigned i = 0; i < column; i++) {
			at += strspn(at, " ");
			at += strcspn(at, " ");
		}
		sum += strtod(at, NULL);
	}
	return sum;
}

static void test_sums(void **state)
{
	struct fixture f;

	machine(&f);
	f.snap.rows[7].selected = false; /* left out by name, kept in the sum */
	for (unsigned limit = 1; limit < 9; limit++) {
		const char *text;

		fixture_create(&f, &encode_table, &(struct encode_options){ .limit = limit });
		text = fixture_encode(&f);
		assert_null(strstr(text, "cron"));
		assert_true(fabs(column_sum(text, 0) - 7.0) < 1e-9); /* 10 - 2.5 - 0.5 */
		assert_true(fabs(column_sum(text, 1) - 1.5) < 1e-9);
		assert_true(fabs(column_sum(text, 2) - 70.5) < 1e-9); /* without idle */
		encode_table.destroy(f.encoder);
		f.ops = NULL;
	}
	fixture_free(&f);
}

static void test_no_energy(void **state)
{
	struct fixture f;
	const char *text;

	machine(&f);
	f.schema.n_domains = 0;
	f.schema.core.n = 1;
	fixture_create(&f, &encode_table, &(struct encode_options){ .limit = 2 });
	text = fixture_encode(&f);
	assert_non_null(strstr(text, "\nno energy source: counters only\n  CPU %    task ms  rx/s  tx/s  cgroup\n"
				     "   40.0      400.0     0     0  kernel\n"
				     "   20.0      200.0  1.5k  5.0M  /system.slice/nginx.service\n"
				     "   10.5"));
	assert_null(strstr(text, " W"));
	fixture_free(&f);
}

static void test_not_split(void **state)
{
	struct fixture f;
	const char *text;

	machine(&f);
	snprintf(f.snap.formula, sizeof(f.snap.formula), "none");
	f.snap.domains[1].quality = QUALITY_LOST;
	fixture_create(&f, &encode_table, &(struct encode_options){ .limit = 1 });
	text = fixture_encode(&f);
	assert_non_null(strstr(text, "package-0          10.00 W     10.00 J \n"));
	assert_non_null(strstr(text, "dram-0                 - W!        - J!\n"));
	assert_non_null(strstr(text, "       -        -    40.0 "));
	assert_non_null(strstr(text, "! lost"));
	fixture_free(&f);
}

static void test_many_domains(void **state)
{
	struct fixture f;

	machine(&f);
	f.schema.n_domains = 0;
	for (unsigned i = 0; i < 3; i++) {
		fixture_domain(&f, DOMAIN_PACKAGE, i, "p");
		f.snap.domains[i].energy_uj = 1000000;
	}
	fixture_domain(&f, DOMAIN_PSYS, 0, "psys");
	fixture_domain(&f, DOMAIN_DRAM, 0, "dram-0");
	fixture_ready(&f);
	fixture_create(&f, &encode_table, &(struct encode_options){ .limit = 1 });
	assert_non_null(strstr(fixture_encode(&f), "\npackage x 3        3.000 W     3.000 J "));
	assert_non_null(strstr((char *)f.out.data, "\npsys               0.000 W "));
	fixture_free(&f);
}

static void test_terminal(void **state)
{
	struct fixture f;
	const char *text;

	machine(&f);
	f.snap.suspended_ns = 2000000000;
	f.snap.losses.lost_reads = 7;
	fixture_create(&f, &encode_table, &(struct encode_options){ .colour = true, .clear = true });
	text = fixture_encode(&f);
	assert_int_equal(strncmp(text, "\033[H\033[J\033[1m2023", 14), 0);
	assert_non_null(strstr(text, "\033[7m   pkg W"));
	assert_non_null(strstr(text, "note: 2000 ms suspended, 7 counter reads lost\n"));
	encode_table.destroy(f.encoder);
	fixture_create(&f, &encode_table, &(struct encode_options){ .limit = 5 });
	assert_null(strchr(fixture_encode(&f), '\033'));
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),    cmocka_unit_test(test_fits),      cmocka_unit_test(test_sums),
		cmocka_unit_test(test_no_energy), cmocka_unit_test(test_not_split), cmocka_unit_test(test_many_domains),
		cmocka_unit_test(test_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
