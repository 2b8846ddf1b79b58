/* SPDX-License-Identifier: Apache-2.0 */
/* What an audit says of formula share, on the snapshots of the agent and on the ways out that have no test of ranges elsewhere. */
#include "encode_fixture.h"
#include "agent/plan/audited.h"
#include "formula/formula.h"
#include "ctl/top/top.h"

static void add_line(struct audit *a, const char *domain, double low, double high)
{
	struct audit_line l = { .judged = true, .pairs = 9, .bias = (low + high) / 2, .low = low, .high = high };

	snprintf(l.cgroup, sizeof(l.cgroup), "compute");
	snprintf(l.domain, sizeof(l.domain), "%s", domain);
	assert_true(audit_add(a, &l));
}

/* An audit that judged package-0 within 12.5 %, dram-0 within 25 %, and no psys. */
static void make_audit(struct audit *a, const char *formula)
{
	audit_init(a);
	snprintf(a->formula, sizeof(a->formula), "%s", formula);
	add_line(a, "package-0", -0.125, 0.0625);
	add_line(a, "package-0", 0, 0.03125);
	add_line(a, "dram-0", -0.125, 0.25);
	audit_sum_up(a);
}

enum { PACKAGE, DRAM, PSYS, DOMAINS };

/* /a has energy of all domains, /b of the package. */
static void begin(struct fixture *f, const char *formula)
{
	fixture_init(f, 1, 1);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(f, DOMAIN_DRAM, 0, "dram-0");
	fixture_domain(f, DOMAIN_PSYS, 0, "psys");
	fixture_ready(f);
	fixture_row(f, "/a", 1);
	fixture_row(f, "/b", 2);
	for (unsigned d = 0; d < DOMAINS; d++)
		*snapshot_energy(&f->snap, READING_SPECIAL_ROWS, d) = 1000000;
	*snapshot_energy(&f->snap, READING_SPECIAL_ROWS + 1, PACKAGE) = 3000000;
	snprintf(f->snap.formula, sizeof(f->snap.formula), "%s", formula);
}

/* What the agent does with a snapshot that formula share has split. */
static void mark(struct fixture *f)
{
	audited_note(&f->snap);
	formula_audited(&f->snap);
}

static uint32_t range(const struct fixture *f, unsigned cgroup, unsigned d)
{
	return *snapshot_uncertainty(&f->snap, READING_SPECIAL_ROWS + cgroup, d);
}

static void assert_unmarked(const struct fixture *f)
{
	for (unsigned d = 0; d < DOMAINS; d++) {
		assert_true(isnan(f->snap.domains[d].uncertainty));
		for (unsigned i = 0; i < f->snap.n_rows; i++)
			assert_int_equal(*snapshot_uncertainty(&f->snap, i, d), SNAPSHOT_UNKNOWN);
	}
}

static void test_share_is_marked(void **state)
{
	struct fixture f;
	struct audit a;

	make_audit(&a, "share");
	audited_tell(&a);
	begin(&f, "share");
	mark(&f);
	assert_true(f.snap.domains[PACKAGE].uncertainty == 0.125 && f.snap.domains[DRAM].uncertainty == 0.25);
	assert_true(isnan(f.snap.domains[PSYS].uncertainty)); /* not judged */
	assert_int_equal(range(&f, 0, PACKAGE), 125000);
	assert_int_equal(range(&f, 1, PACKAGE), 125000);
	assert_int_equal(range(&f, 0, DRAM), 250000);
	assert_int_equal(range(&f, 1, DRAM), SNAPSHOT_UNKNOWN); /* no energy */
	assert_int_equal(range(&f, 0, PSYS), SNAPSHOT_UNKNOWN);
	fixture_free(&f);
	audited_tell(NULL);
}

/* No audit, one of another formula, another formula now, an estimate, and what the formula knows itself. */
static void test_others_are_not(void **state)
{
	struct fixture f;
	struct audit a;

	begin(&f, "share");
	audited_tell(NULL);
	mark(&f);
	assert_unmarked(&f);
	make_audit(&a, "model");
	audited_tell(&a);
	mark(&f);
	assert_unmarked(&f);
	make_audit(&a, "share");
	audited_tell(&a);
	snprintf(f.snap.formula, sizeof(f.snap.formula), "model");
	mark(&f);
	assert_unmarked(&f);
	snprintf(f.snap.formula, sizeof(f.snap.formula), "share");
	f.snap.domains[PACKAGE].quality = QUALITY_ESTIMATED;
	f.snap.domains[DRAM].uncertainty = 0.5;
	mark(&f);
	assert_true(isnan(f.snap.domains[PACKAGE].uncertainty) && f.snap.domains[DRAM].uncertainty == 0.5);
	assert_int_equal(range(&f, 0, PACKAGE), SNAPSHOT_UNKNOWN);
	assert_int_equal(range(&f, 0, DRAM), SNAPSHOT_UNKNOWN);
	fixture_free(&f);
	audited_tell(NULL);
}

static bool has(const struct fixture *f, const char *text)
{
	return strstr((const char *)f->out.data, text);
}

static void test_top_tells(void **state)
{
	struct fixture f;
	struct audit a;

	make_audit(&a, "share");
	audited_tell(&a);
	begin(&f, "share");
	top_json(&f.snap, &f.out);
	buf_add_char(&f.out, '\0');
	assert_false(has(&f, "uncertainty")); /* not told: no zero */
	f.out.len = 0;
	mark(&f);
	top_json(&f.snap, &f.out);
	buf_add_char(&f.out, '\0');
	assert_true(has(&f, "\"split_uncertainty\":0.125}") && has(&f, "\"split_uncertainty\":0.25}"));
	assert_true(has(&f, "\"energy_uncertainty\":{\"package-0\":0.125,\"dram-0\":0.25}"));
	assert_true(has(&f, "\"energy_uncertainty\":{\"package-0\":0.125}"));
	fixture_free(&f);
	audited_tell(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_is_marked),
		cmocka_unit_test(test_others_are_not),
		cmocka_unit_test(test_top_tells),
	};

	return cmocka_run_group_tests_name("audited", tests, NULL, NULL);
}
