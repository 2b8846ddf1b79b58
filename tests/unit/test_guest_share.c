// SPDX-License-Identifier: Apache-2.0
/* The share told to a virtual machine: the sums against another computation, the line as it is written and read. */
#include "encode_fixture.h"
#include "encode/guest_lines.h"
#include "model/guest_share.h"

#define GUEST "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope"

static const char *const paths[] = {
	"/",
	"/machine.slice",
	GUEST,
	GUEST "/libvirt",
	GUEST "/libvirt/emulator",
	GUEST "/libvirt/vcpu0",
	GUEST "x",
	GUEST "x/libvirt",
	"/machine.slice/machine-qemu\\x2d2\\x2ddb.scope",
	"/other" GUEST,
	"/kernel",
	"/machine.slice/machine-qemu",
};
#define PATHS (sizeof(paths) / sizeof(paths[0]))
static const bool of_guest[PATHS] = { [2] = true, [3] = true, [4] = true, [5] = true };

static void start(struct fixture *f, const char *guest, bool literal)
{
	const struct encode_options o = { .guest = guest, .guest_literal = literal, .epoch = 0x1234 };

	fixture_init(f, 2, 1);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(f, DOMAIN_GPU, 0, "gpu-0");
	fixture_domain(f, DOMAIN_DRAM, 0, "dram-0");
	fixture_ready(f);
	fixture_create(f, &encode_share, &o);
}

/* The number after " NAME=" in a line, by other means than the reader's. */
static uint64_t told(const char *line, const char *name)
{
	char key[80];
	const char *at;

	snprintf(key, sizeof(key), " %s=", name);
	at = strstr(line, key);
	assert_non_null(at);
	return strtoull(at + strlen(key), NULL, 10);
}

/* Cgroups come and go between intervals, and neighbours have more energy than the guest. */
static void ledger(const char *guest, bool literal)
{
	struct fixture f;
	uint64_t sum[3] = { 0 };
	unsigned seed = 7;

	start(&f, guest, literal);
	for (unsigned interval = 1; interval <= 300; interval++) {
		const char *line;

		f.snap.n_rows = READING_SPECIAL_ROWS;
		for (unsigned i = 0; i < READING_SPECIAL_ROWS; i++)
			for (unsigned d = 0; d < 3; d++)
				*snapshot_energy(&f.snap, i, d) = 1000000007ull;
		for (unsigned i = 0; i < PATHS; i++) {
			if (rand_r(&seed) % 3 == 0 && i != 2)
				continue;
			fixture_row(&f, paths[i], i + 1);
			for (unsigned d = 0; d < 3; d++) {
				uint64_t uj = (uint64_t)rand_r(&seed) * (rand_r(&seed) % 4);

				*snapshot_energy(&f.snap, f.snap.n_rows - 1, d) = uj;
				sum[d] += of_guest[i] ? uj : 0;
			}
		}
		line = fixture_encode(&f);
		assert_int_equal(told(line, "package-0"), sum[0]);
		assert_int_equal(told(line, "dram-0"), sum[2]);
		assert_int_equal(told(line, "number"), interval);
		assert_null(strstr(line, "gpu"));
		assert_null(strstr(line, "web"));
		assert_null(strstr(line, "scope"));
	}
	assert_true(share_alive(f.encoder));
	fixture_free(&f);
}

static void test_sums_are_the_subtrees(void **state)
{
	ledger(GUEST, true);
	ledger(GUEST, false);
	ledger("/machine.slice/machine-qemu*web.scope", false);
}

static void test_a_literal_path_is_no_pattern(void **state)
{
	struct fixture f;

	start(&f, "/a*", true);
	fixture_row(&f, "/ab", 1);
	assert_string_equal(fixture_encode(&f), "");
	assert_false(share_alive(f.encoder));
	fixture_row(&f, "/a*", 2);
	assert_string_not_equal(fixture_encode(&f), "");
	fixture_free(&f);
}

static void test_a_machine_that_is_not_there(void **state)
{
	struct fixture f;

	start(&f, GUEST, false);
	fixture_row(&f, "/else", 1);
	assert_string_equal(fixture_encode(&f), "");
	assert_int_equal(f.ops->stats(f.encoder)->withheld_ticks, 1);
	assert_non_null(strstr(f.ops->stats(f.encoder)->reason, "no cgroup /machine.slice"));
	fixture_free(&f);
}

static const char *tell(struct fixture *f, const char *const *all, unsigned n, unsigned ended)
{
	f->snap.n_rows = READING_SPECIAL_ROWS;
	for (unsigned i = 0; i < n; i++) {
		fixture_row(f, all[i], i + 1)->ended = ended & 1u << i;
		*snapshot_energy(&f->snap, f->snap.n_rows - 1, 0) = 1u << 4 * i;
	}
	return fixture_encode(f);
}

/* Of "web" its neighbour "intraweb" must not be told, nor the other way round. */
static void test_a_pattern_of_two_machines(void **state)
{
	static const char *const all[] = { GUEST, GUEST "/libvirt",
					   "/machine.slice/machine-qemu\\x2d2\\x2dintraweb.scope/libvirt",
					   "/machine.slice/machine-qemu\\x2d9\\x2dweb.scope" };
	struct fixture f;

	start(&f, "/machine.slice/machine-qemu*web.scope", false);
	assert_int_equal(told(tell(&f, all, 2, 0), "package-0"), 0x11);
	assert_string_equal(tell(&f, all, 3, 0), "");
	assert_false(share_alive(f.encoder));
	assert_int_equal(f.ops->stats(f.encoder)->withheld_ticks, 1);
	assert_non_null(strstr(f.ops->stats(f.encoder)->reason,
			       "pattern /machine.slice/machine-qemu*web.scope is of two machines"));
	/* the other one has ended; what came before is not known */
	assert_int_equal(told(tell(&f, all, 3, 4), "package-0"), 0x22);
	assert_non_null(strstr((char *)f.out.data, ":partial"));
	assert_int_equal(told(tell(&f, all, 2, 0), "package-0"), 0x33);
	assert_null(strstr((char *)f.out.data, ":partial"));
	/* the guest's next start: the last of the one before is its own */
	assert_int_equal(told(tell(&f, all, 4, 7), "package-0"), 0x33 + 0x1011);
	/* it has ended as well */
	assert_int_equal(told(tell(&f, all, 4, 15), "package-0"), 0x33 + 0x2011);
	assert_string_equal(tell(&f, all, 3, 7), "");
	fixture_free(&f);
}

/* Byte for byte as docs/formats/guest.md shows it. */
static void test_the_documented_line(void **state)
{
	struct fixture f;
	struct snap_row *row;

	start(&f, GUEST, false);
	row = fixture_row(&f, GUEST, 1);
	row->quality = QUALITY_PARTIAL;
	f.snap.domains[2].share_quality = QUALITY_ESTIMATED;
	*snapshot_energy(&f.snap, 4, 2) = 89;
	fixture_row(&f, GUEST "/libvirt", 2);
	*snapshot_energy(&f.snap, 5, 0) = 1234567;
	assert_string_equal(fixture_encode(&f), "jouled-share 1 epoch=0000000000001234 number=1 interval_ns=1000000000 "
						"package-0=1234567 dram-0=89:estimated+partial\n");
	fixture_free(&f);
}

static struct share full(void)
{
	struct share s = { .epoch = UINT64_MAX, .number = 1, .interval_ns = UINT64_MAX };

	for (unsigned i = 0; i < SCHEMA_MAX_DOMAINS; i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s-%u-die-%u", domain_kind_name((enum domain_kind)(i % 4)), 65534 - i,
			 65535 - i);
		assert_true(share_domain_named(name, &s.domains[s.n]));
		s.domains[s.n].uj = UINT64_MAX - i;
		s.domains[s.n++].quality = i % 64;
	}
	return s;
}

static void test_what_is_written_is_read(void **state)
{
	struct share s = full(), back = { 0 };
	struct buf b = { 0 };

	share_write(&s, &b);
	assert_in_range(b.len, 1, SHARE_LINE_MAX - 1);
	assert_int_equal(share_read((char *)b.data, b.len - 1, &back), 0);
	assert_int_equal(back.n, s.n);
	assert_true(back.epoch == s.epoch && back.number == 1 && back.interval_ns == UINT64_MAX);
	for (unsigned i = 0; i < s.n; i++) {
		assert_string_equal(back.domains[i].name, s.domains[i].name);
		assert_int_equal(back.domains[i].kind, i % 4);
		assert_int_equal(back.domains[i].package, 65534 - i);
		assert_int_equal(back.domains[i].die, 65535 - i);
		assert_true(back.domains[i].uj == UINT64_MAX - i);
		assert_int_equal(back.domains[i].quality, i % 64);
	}
	buf_free(&b);
}

static int read_text(const char *text)
{
	struct share s = { .n = 77 };
	size_t len = strlen(text);
	char *copy = malloc(len + 1);
	int rc;

	memcpy(copy, text, len + 1);
	rc = share_read(copy, len, &s);
	assert_int_equal(s.n == 77, rc != 0);
	free(copy);
	return rc;
}

#define HEAD "jouled-share 1 epoch=0000000000000001 number=1 interval_ns=1"

static void test_what_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"jouled-share",
		"jouled-share 2 epoch=0000000000000001 number=1 interval_ns=1",
		"jouled-share 1 epoch=1 number=1 interval_ns=1",
		"jouled-share 1 epoch=000000000000000G number=1 interval_ns=1",
		"jouled-share 1 epoch=00000000000000011 number=1 interval_ns=1",
		"jouled-share 1 epoch=0000000000000001 number= interval_ns=1",
		"jouled-share 1 epoch=0000000000000001 number=01 interval_ns=1",
		HEAD "x",
		HEAD " ",
		HEAD "  psys=1",
		HEAD " psys=1 ",
		HEAD " psys",
		HEAD " psys=",
		HEAD " psys=-1",
		HEAD " psys=1.5",
		HEAD " psys=0x10",
		HEAD " psys=18446744073709551616",
		HEAD " psys=1 psys=2",
		HEAD " package=1",
		HEAD " package-=1",
		HEAD " package-65535=1",
		HEAD " package-00=1",
		HEAD " package-0-die=1",
		HEAD " package-0-die-65536=1",
		HEAD " gpu-0=1",
		HEAD " external-0=1",
		HEAD " =1",
		HEAD " psys=1:",
		HEAD " psys=1:measured",
		HEAD " psys=1:partial+estimated",
		HEAD " psys=1:partial+partial",
		HEAD " psys=1+partial",
		HEAD " psys=1:stale\r",
		HEAD "\tpsys=1",
		"ckage-0=12 dram-0=3",
		HEAD " psys=12jouled-share 1 epoch=0000000000000001 number=2 interval_ns=1 psys=13",
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		print_message("%s\n", bad[i]);
		assert_int_equal(read_text(bad[i]), -EINVAL);
	}
	assert_int_equal(read_text(HEAD), 0);
	assert_int_equal(read_text(HEAD " psys=18446744073709551615"), 0);
	assert_int_equal(read_text(HEAD " psys=1:wrapped+lost package-65534-die-65535=0"), 0);
}

static void test_more_domains_than_there_can_be(void **state)
{
	struct buf b = { 0 };
	struct share s;

	buf_add_str(&b, HEAD);
	for (unsigned i = 0; i <= SCHEMA_MAX_DOMAINS; i++)
		buf_printf(&b, " package-%u=1", i);
	buf_add_char(&b, '\n');
	assert_int_equal(share_read((char *)b.data, b.len - 1, &s), -EINVAL);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_are_the_subtrees),
		cmocka_unit_test(test_a_literal_path_is_no_pattern),
		cmocka_unit_test(test_a_machine_that_is_not_there),
		cmocka_unit_test(test_a_pattern_of_two_machines),
		cmocka_unit_test(test_the_documented_line),
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_more_domains_than_there_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
