/* SPDX-License-Identifier: Apache-2.0 */
/* Power reports: golden files laid out by hand as docs/formats/power.md says, and the ledger. */
#include "unit/encode_fixture.h"

/* 10 J of package energy in 1 s, 1 J of dram in 3 s; the parts chosen so that every kind has some. */
static void machine(struct fixture *f)
{
	fixture_init(f, 2, 1);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(f, DOMAIN_DRAM, 0, "dram-0");
	fixture_ready(f);
	snprintf(f->snap.formula, sizeof(f->snap.formula), "share");
	f->snap.idle_policy = IDLE_OWN;
	f->snap.domains[0].energy_uj = 10000000;
	f->snap.domains[0].idle_uj = 2000000;
	f->snap.domains[0].idle_quality = QUALITY_ESTIMATED;
	f->snap.domains[0].residual_uj = 1;
	f->snap.domains[1].end_ns = f->snap.domains[1].start_ns + 3000000000;
	f->snap.domains[1].energy_uj = 1000000;
	f->snap.domains[1].quality = f->snap.domains[1].idle_quality = QUALITY_WRAPPED;
	f->snap.domains[1].share_quality = QUALITY_ESTIMATED;
	fixture_row(f, "/", 1);
	fixture_row(f, "/system.slice/a,\"b\"", 12)->quality = QUALITY_MULTIPLEXED;
	fixture_row(f, "/left/out", 13)->selected = false;
	fixture_row(f, "/system.slice/a,\"b\"", 14)->ended = true;
	*snapshot_energy(&f->snap, ROW_IDLE, 0) = 500000;
	*snapshot_energy(&f->snap, ROW_KERNEL, 0) = 500000;
	*snapshot_energy(&f->snap, 4, 0) = 1999999;
	*snapshot_energy(&f->snap, 5, 0) = 3000000;
	*snapshot_energy(&f->snap, 6, 0) = 1000000;
	*snapshot_energy(&f->snap, 7, 0) = 1000000;
	*snapshot_energy(&f->snap, 5, 1) = 1000000;
	for (unsigned i = 0; i < f->snap.n_rows; i++)
		*snapshot_uncertainty(&f->snap, i, 1) = 125000;
}

static void same_as_golden(const char *name, const struct encode_options *o)
{
	char *golden = fixture_golden(name);
	struct buf all = { 0 };
	struct fixture f;

	machine(&f);
	fixture_create(&f, &encode_power, o);
	assert_int_equal(f.ops->preamble(f.encoder, &f.schema, &all), 0);
	buf_add_str(&all, fixture_encode(&f));
	buf_add_char(&all, '\0');
	assert_string_equal((const char *)all.data, golden);
	free(golden);
	buf_free(&all);
	fixture_free(&f);
}

static void test_golden(void **state)
{
	same_as_golden("power-ms.jsonl", &(struct encode_options){ .csv = false });
	same_as_golden("power-iso.jsonl", &(struct encode_options){ .iso_time = true });
	same_as_golden("power.csv", &(struct encode_options){ .csv = true });
}

static void test_schema(void **state)
{
	const char *tree = getenv("JOULED_TREE");
	char path[512];
	struct fixture f;
	int status;

	snprintf(path, sizeof(path), "%s/docs/formats/power.schema.json", tree ? tree : ".");
	machine(&f);
	fixture_create(&f, &encode_power, &(struct encode_options){ .iso_time = true });
	status = fixture_python("check_schema.py", (const char *const[]){ path, NULL }, fixture_encode(&f));
	if (status == 77)
		printf("SKIP test_encode_power.schema: no python3 with jsonschema\n");
	assert_true(status == 0 || status == 77);
	fixture_free(&f);
}

/* Adds up energy_uj of one domain's lines, `all` apart, by string search alone. */
static void sums(const char *text, const char *domain, uint64_t *ret_all, uint64_t *ret_parts)
{
	*ret_all = *ret_parts = 0;
	for (; *text; text = strchr(text, '\n') + 1) {
		const char *energy = strstr(text, "\"energy_uj\":"), *name = strstr(text, "\"domain\":\"");
		uint64_t uj = strtoull(energy + 12, NULL, 10);

		if (strncmp(name + 10, domain, strlen(domain)) != 0)
			continue;
		*(strncmp(strstr(text, "\"target\":"), "\"target\":\"all\"", 14) ? ret_parts : ret_all) += uj;
	}
}

static void test_parts_close(void **state)
{
	struct fixture f;
	uint64_t all, parts, seed = 1;

	machine(&f);
	fixture_row(&f, "not a path", 20);
	fixture_create(&f, &encode_power, &(struct encode_options){ .iso_time = false });
	for (unsigned round = 0; round < 200; round++) {
		struct snap_domain *d = &f.snap.domains[0];

		d->energy_uj = d->idle_uj = seed % 1000003;
		for (unsigned i = 0; i < f.snap.n_rows; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			*snapshot_energy(&f.snap, i, 0) = seed >> 40;
			d->energy_uj += seed >> 40;
			f.snap.rows[i].selected = seed & 4;
		}
		d->residual_uj = seed % 17;
		d->energy_uj += seed % 17;
		sums(fixture_encode(&f), "package-0", &all, &parts);
		assert_int_equal(all, d->energy_uj);
		assert_int_equal(parts, all);
	}
	assert_int_equal(f.ops->stats(f.encoder)->withheld_rows, 200); /* the one without a path, each time */
	fixture_free(&f);
}

/* Watts to the nanowatt, rounded half up; W = uJ x 1000 / ns, by hand. */
static void test_watts(void **state)
{
	static const struct {
		uint64_t uj, ns;
		const char *text;
	} cases[] = {
		{ 0, 1000000000, "0" },
		{ 1, 1000000000, "0.000001" },
		{ 1, 3000000000, "0.000000333" },
		{ 2, 3000000000, "0.000000667" },
		{ 123456789, 500000000, "246.913578" },
		{ 10000000, 10000000, "1000" },
		{ 9000000000000, 3600000000000, "2500" }, /* 9 MJ in an hour */
		{ 1, 2000000000000, "0.000000001" }, /* half a nanowatt */
		{ 1, 2000000000001, "0" },
	};
	struct fixture f;
	char part[64];

	machine(&f);
	f.schema.n_domains = 1;
	fixture_create(&f, &encode_power, &(struct encode_options){ .csv = true });
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f.snap.domains[0].energy_uj = cases[i].uj;
		f.snap.domains[0].end_ns = f.snap.domains[0].start_ns + cases[i].ns;
		snprintf(part, sizeof(part), ",all,%s,0,package-0,", cases[i].text);
		if (!strstr(fixture_encode(&f), part))
			fail_msg("no '%s' in %.80s", part, (char *)f.out.data);
	}
	fixture_free(&f);
}

static void test_unusable(void **state)
{
	struct fixture f;
	const char *text;

	machine(&f);
	fixture_create(&f, &encode_power, &(struct encode_options){ .csv = true });
	f.snap.domains[1].quality = QUALITY_LOST;
	text = fixture_encode(&f);
	assert_null(strstr(text, "dram-0"));
	assert_non_null(strstr(text, "package-0"));
	assert_int_equal(f.ops->stats(f.encoder)->withheld_rows, 1);
	assert_string_equal(f.ops->stats(f.encoder)->reason, "dram-0: its energy is lost in this interval");
	f.snap.domains[0].quality = QUALITY_STALE;
	assert_non_null(strstr(fixture_encode(&f), ",all,10,0,package-0,stale,")); /* a late total still counts */
	f.snap.domains[0].energy_uj = 0;
	assert_string_equal(fixture_encode(&f), "");
	assert_int_equal(f.ops->stats(f.encoder)->withheld_ticks, 1);
	f.schema.n_domains = 0;
	assert_string_equal(fixture_encode(&f), "");
	assert_int_equal(f.ops->stats(f.encoder)->withheld_ticks, 2);
	assert_non_null(strstr(f.ops->stats(f.encoder)->reason, "no energy source"));
	fixture_free(&f);
}

/* Without a split there are no zeros for rows that nobody measured. */
static void test_formula_none(void **state)
{
	struct fixture f;

	machine(&f);
	snprintf(f.snap.formula, sizeof(f.snap.formula), "none");
	f.schema.n_domains = 1;
	memset(f.snap.energy_uj, 0, 8 * f.snap.n_rows);
	f.snap.domains[0].idle_uj = 0;
	f.snap.domains[0].residual_uj = 10000000;
	fixture_create(&f, &encode_power, &(struct encode_options){ .csv = true });
	assert_string_equal(fixture_encode(&f),
			    "1673603482630,node-7,all,10,0,package-0,measured,none,own,10000000\n"
			    "1673603482630,node-7,idle,0,0,package-0,estimated,none,own,0\n"
			    "1673603482630,node-7,residual,10,0,package-0,measured,none,own,10000000\n");
	fixture_free(&f);
}

/* How the energy was split weakens the rows, not what was measured. */
static void test_share_quality(void **state)
{
	struct fixture f;
	const char *text;

	machine(&f);
	f.snap.domains[0].share_quality = QUALITY_ESTIMATED;
	f.snap.domains[1].share_quality = 0;
	fixture_create(&f, &encode_power, &(struct encode_options){ .csv = true });
	text = fixture_encode(&f);
	assert_non_null(strstr(text, ",all,10,0,package-0,measured,"));
	assert_non_null(strstr(text, ",residual,0.000001,0,package-0,measured,"));
	assert_non_null(strstr(text, ",kernel,0.5,0,package-0,estimated,"));
	assert_non_null(strstr(text, ",kernel,0,0,dram-0,wrapped,"));
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),        cmocka_unit_test(test_schema),
		cmocka_unit_test(test_parts_close),   cmocka_unit_test(test_watts),
		cmocka_unit_test(test_unusable),      cmocka_unit_test(test_formula_none),
		cmocka_unit_test(test_share_quality),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
