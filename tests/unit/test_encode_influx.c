/* SPDX-License-Identifier: Apache-2.0 */
/* Line protocol: what is escaped, what a label cannot carry, types, times, and items for the sender. tests/e2e/push.py
 * compares whole documents with the metrics page. */
#include "encode/push.h"
#include "unit/encode_fixture.h"

extern const struct encoder_ops encode_influx;
extern const struct push_format push_influx;

static const char *lines(struct fixture *f, const char *sensor)
{
	fixture_init(f, 1, 1);
	snprintf(f->schema.sensor, sizeof(f->schema.sensor), "%s", sensor);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(f);
	f->snap.domains[0].energy_uj = 3000001;
	fixture_row(f, "/a b,c=d", 10)->switches = 7;
	fixture_row(f, "/x\\x2dy\\,z\\", 11)->time_ns = 1500000000;
	fixture_row(f, "/sent", 12)->traffic.tx_packets = 2;
	*snapshot_energy(&f->snap, 4, 0) = 2500001;
	*snapshot_energy(&f->snap, 5, 0) = 500000;
	fixture_create(f, &encode_influx, &(struct encode_options){ .sensor = f->schema.sensor });
	return fixture_encode(f);
}

static bool has_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *at = strstr(text, line); at; at = strstr(at + 1, line))
		if ((at == text || at[-1] == '\n') && at[n] == '\n')
			return true;
	return false;
}

static void test_lines(void **state)
{
	struct fixture f;
	const char *text = lines(&f, "node 7");

	assert_true(has_line(text, "jouled,domain=package,package=0,instance=node\\ 7,job=jouled "
				   "energy_joules_total=3.000001 1673603482630000000"));
	assert_true(has_line(text, "jouled,cgroup=/a\\ b\\,c\\=d,domain=package,instance=node\\ 7,job=jouled "
				   "cgroup_energy_joules_total=2.500001 1673603482630000000"));
	assert_true(has_line(text, "jouled,cgroup=/a\\ b\\,c\\=d,instance=node\\ 7,job=jouled cgroup_switches_total=7i "
				   "1673603482630000000"));
	/* a backslash that two servers read in two ways, and one at the end; systemd's own stays */
	assert_true(has_line(text, "jouled,cgroup=/x\\x2dy\xef\xbf\xbd\\,z\xef\xbf\xbd,instance=node\\ 7,job=jouled "
				   "cgroup_cpu_seconds_total=1.5 1673603482630000000"));
	/* network of what has sent or received something, and of nothing else */
	assert_true(has_line(
		text, "jouled,cgroup=/sent,instance=node\\ 7,job=jouled cgroup_network_transmit_packets_total=2i "
		      "1673603482630000000"));
	assert_true(has_line(text,
			     "jouled,cgroup=/sent,instance=node\\ 7,job=jouled cgroup_network_receive_bytes_total=0i "
			     "1673603482630000000"));
	assert_null(strstr(text, "d\\=d,instance=node\\ 7,job=jouled cgroup_network"));
	assert_null(strstr(strstr(text, "cgroup_network") + 1, "cgroup_network_receive_bytes"));
	fixture_free(&f);
}

static void test_items(void **state)
{
	struct fixture f;
	const char *text = lines(&f, "n");
	size_t n = strlen(text), items = 0, at = 0, len;
	char name[64];

	while (at < n && (len = push_influx.item(text + at, n - at))) {
		assert_int_equal(text[at + len - 1], '\n');
		at += len;
		items++;
	}
	assert_int_equal(at, n);
	assert_true(items > 20);
	assert_int_equal(push_influx.item("cut", 3), 0);
	push_influx.name("jouled,a=\x1b[1m b=1 2\nnext", 24, name, sizeof(name));
	assert_string_equal(name, "jouled,a=\\x1b[1m b=1 2");
	assert_string_equal(push_influx.token_scheme("https://h/api/v2/write?org=o"), "Token");
	assert_string_equal(push_influx.token_scheme("https://h/write?db=x"), "Bearer");
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_items) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
