/* SPDX-License-Identifier: Apache-2.0 */
/* Names of libpfm4: its encodings against the manuals, each in a child, because it looks at its
 * environment once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/wait.h>

#include "events_fixture.h"

static int in_child(void (*fn)(void))
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		fn();
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool encodes(const char *name, uint32_t type, uint64_t config, uint64_t config1)
{
	struct fsroot *root;

	if (fsroot_open("/", &root) < 0)
		return false;
	resolve(root, &yes, false, name);
	fsroot_close(root);
	if (out.rc == 0 && out.absent.n == 0 && out.set.n == 1 && out.set.ev[0].type == type &&
	    out.set.ev[0].config == config && out.set.ev[0].config1 == config1)
		return true;
	printf("%s: rc %d %s, type %u config %llx %llx\n", name, out.rc, out.err.text, out.set.ev[0].type,
	       (unsigned long long)out.set.ev[0].config, (unsigned long long)out.set.ev[0].config1);
	return false;
}

/* Event codes: Intel SDM vol. 3, performance monitoring events of Skylake (event | umask << 8). */
static void skylake(void)
{
	setenv("LIBPFM_FORCE_PMU", "skl", 1);
	if (!encodes("INST_RETIRED:ANY_P", 4, 0x00c0, 0) || !encodes("MEM_LOAD_RETIRED:L3_MISS", 4, 0x20d1, 0) ||
	    !encodes("CPU_CLK_THREAD_UNHALTED:REF_XCLK", 4, 0x013c, 0) ||
	    !encodes("br_misp_retired:all_branches", 4, 0x00c5, 0) ||
	    !encodes("skl::INST_RETIRED:ANY_P", 4, 0x00c0, 0) || !encodes("INST_RETIRED:ANY_P:c=1", 4, 0x10000c0, 0) ||
	    !encodes("LLC_MISSES", 0, 3, 0))
		exit(1);
}

static void skylake_refusals(void)
{
	struct fsroot *root;

	setenv("LIBPFM_FORCE_PMU", "skl", 1);
	if (fsroot_open("/", &root) < 0)
		exit(2);
	resolve(root, &yes, false, "INST_RETIRED:ANY_P:u");
	if (out.rc != -EINVAL || !strstr(out.err.text, "remove :u or :k"))
		exit(3);
	resolve(root, &yes, false, "INST_RETIRED:NOPE");
	if (out.rc != -EINVAL || !strstr(out.err.text, "libpfm"))
		exit(4);
	resolve(root, &yes, false, "RETIRED_UOPS");
	if (out.rc != 0 || out.absent.n != 1 || !strstr(out.absent.ev[0].reason, "not for this CPU"))
		exit(5);
	resolve(root, &yes, false, "INST_RETIERD:ANY_P");
	if (out.rc != -EINVAL || !strstr(out.err.text, "did you mean INST_RETIRED?"))
		exit(6);
	fsroot_close(root);
}

static void test_libpfm(void **state)
{
	(void)state;
#if defined(__x86_64__)
	assert_int_equal(in_child(skylake), 0);
	assert_int_equal(in_child(skylake_refusals), 0);
#else
	printf("SKIP events_libpfm: libpfm has Intel's tables on x86 only\n");
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libpfm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
