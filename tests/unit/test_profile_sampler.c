/* SPDX-License-Identifier: Apache-2.0 */
/* When the events of a sampler are dead although their CPUs are on line. */
#include "encode_fixture.h"
#include "base/clock.h"
#include "profile/sampler.h"

static void test_outdated(void **state)
{
	struct fixture f;

	fixture_init(&f, 3, 1);
	fixture_ready(&f);
	for (unsigned i = 0; i < 3; i++)
		f.snap.cpus[i] = (struct snap_cpu){ .online = i != 2, .offline_ns = i == 2 ? NS_PER_S : 0 };
	assert_false(sampler_outdated(&f.snap)); /* one stays away */
	f.snap.suspended_ns = 1000;
	assert_false(sampler_outdated(&f.snap)); /* between two clocks */
	f.snap.suspended_ns = 3600 * NS_PER_S;
	assert_true(sampler_outdated(&f.snap));
	f.snap.suspended_ns = 0;
	f.snap.cpus[1].offline_ns = 5;
	assert_true(sampler_outdated(&f.snap));
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_outdated) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
