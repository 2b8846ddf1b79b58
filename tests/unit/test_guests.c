// SPDX-License-Identifier: Apache-2.0
/* Which cgroup is a guest's, on captured machines: QEMU's command lines, other people's, forged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "source/guest/guests.h"
#include "temp_root.h"

#define LIBVIRT \
	"{\"driver\":\"vhost-vsock-pci\",\"id\":\"vsock0\",\"guest-cid\":7,\"vhostfd\":\"35\",\"bus\":\"pci.7\"}"

static uint32_t cid_of(const char *line)
{
	return guests_cid_of(line, strlen(line) + 1);
}

static void test_command_lines(void **state)
{
	static const char two[] = "qemu\0-device\0vhost-vsock-pci,guest-cid=7\0-device\0vhost-vsock-pci,guest-cid=8";
	static const char apart[] = "qemu\0-device\0vhost-vsock-pci\0guest-cid=7";
	static const char cut[] = { 'v', 'h', 'o', 's', 't', '-', 'v', 's', 'o', 'c', 'k', '-',
				    ',', 'g', 'u', 'e', 's', 't', '-', 'c', 'i', 'd', '=', '9' };

	assert_int_equal(cid_of("vhost-vsock-pci,id=a,guest-cid=3"), 3);
	assert_int_equal(cid_of("vhost-vsock-ccw,guest-cid=4294967294,bus=x"), 4294967294u);
	assert_int_equal(cid_of(LIBVIRT), 7);
	assert_int_equal(cid_of("{\"driver\": \"vhost-vsock-pci\", \"guest-cid\": 7 }"), 7);
	assert_int_equal(guests_cid_of(cut, sizeof(cut)), 9);
	assert_int_equal(guests_cid_of(two, sizeof(two)), 0);
	assert_int_equal(guests_cid_of(apart, sizeof(apart)), 0);
	assert_int_equal(guests_cid_of("", 0), 0);
	assert_int_equal(guests_cid_of("\0\0\0", 3), 0);
	for (const char *const *bad =
		     (const char *const[]){
			     "vhost-vsock-pci,guest-cid=2", "vhost-vsock-pci,guest-cid=0",
			     "vhost-vsock-pci,guest-cid=4294967295", "vhost-vsock-pci,guest-cid=4294967299",
			     "vhost-vsock-pci,guest-cid=99999999999999999999", "vhost-vsock-pci,guest-cid=-7",
			     "vhost-vsock-pci,guest-cid=7x", "vhost-vsock-pci,guest-cid=", "vhost-vsock-pci,guest-cid",
			     "vhost-vsock-pci,xguest-cid=7", "guest-cid=7", "virtio-blk,guest-cid=7",
			     "vhost-vsock-pci,guest-cid=7,guest-cid=8", NULL };
	     *bad; bad++)
		assert_int_equal(cid_of(*bad), 0);
}

static void test_machines(void **state)
{
	const struct {
		const char *path, *machine;
	} all[] = {
		{ "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/emulator",
		  "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope" },
		{ "/machine.slice/machine-a.slice/machine-qemu\\x2dweb.scope",
		  "/machine.slice/machine-a.slice/machine-qemu\\x2dweb.scope" },
		{ "/machine/qemu-1-web.libvirt-qemu/emulator", "/machine/qemu-1-web.libvirt-qemu" },
		{ "/machine.slice/libpod-1.scope", NULL },
		{ "/user.slice/session-1.scope", NULL },
		{ "/", NULL },
		{ "/machine-.scope", NULL },
		{ "/machine/a.partition/b.partition/web.libvirt-qemu",
		  "/machine/a.partition/b.partition/web.libvirt-qemu" },
		{ "/a/qemu-1-web.libvirt-qemu", NULL },
		{ "/machine.slice", NULL },
		{ "", NULL },
		{ "/machine/", NULL },
		{ "//", NULL },
		/* no virtual machines; and what whoever owns a service, a scope or a container can make below it */
		{ "/machine.slice/machine-web.scope", NULL },
		{ "/machine.slice/machine-lxc\\x2d1\\x2dqemu.scope", NULL },
		{ "/user.slice/user-1.slice/user@1.service/app.slice/machine-qemu\\x2d1\\x2dweb.scope", NULL },
		{ "/user.slice/user-1.slice/user@1.service/app.slice/machine-x.scope", NULL },
		{ "/machine.slice/libpod-1.scope/machine-qemu\\x2d1\\x2dweb.scope", NULL },
		{ "/machine.slice/libpod-1.scope/machine-x.scope", NULL },
		{ "/a/machine-qemu\\x2d1\\x2dweb.scope", NULL },
		{ "/machine/lxc-1-c.libvirt-lxc/x.libvirt-qemu", NULL },
		{ "/machine/a/x.libvirt-qemu", NULL },
		{ "/machine.slice/machine-qemu\\x2d.scope", NULL },
		{ "/machine/.libvirt-qemu", NULL },
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s", all[i].path);
		assert_int_equal(guests_machine_of(path), all[i].machine != NULL);
		assert_string_equal(path, all[i].machine ? all[i].machine : all[i].path);
	}
}

static struct temp_root machine(void)
{
	struct temp_root t = temp_root_new();

	temp_root_put(&t, "/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n");
	temp_root_put(&t, "/sys/fs/cgroup/cgroup.procs", "");
	temp_root_put(&t, "/proc/uptime", "1 1\n");
	return t;
}

static void process(const struct temp_root *t, unsigned pid, const char *line, const char *cgroup)
{
	char path[256], text[256];

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	temp_root_put(t, path, line);
	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	snprintf(text, sizeof(text), "0::%s\n", cgroup);
	temp_root_put(t, path, text);
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.procs", cgroup);
	snprintf(text, sizeof(text), "%u\n", pid);
	temp_root_put(t, path, text);
}

/* The answer of a fresh look: path, or the error. */
static int find(const struct temp_root *t, uint32_t cid, char *path, struct err *why)
{
	struct guests *g;
	int rc;

	assert_int_equal(guests_open(t->dir, HIERARCHY_AUTO, &g, NULL), 0);
	rc = guests_find(g, cid, path, 256, why);
	guests_close(g);
	return rc;
}

static void expect_path(const struct temp_root *t, uint32_t cid, const char *wanted)
{
	struct err why = { 0 };
	char path[256] = "";

	assert_int_equal(find(t, cid, path, &why), 0);
	assert_string_equal(path, wanted);
}

static void expect_error(const struct temp_root *t, uint32_t cid, int rc, const char *word)
{
	struct err why = { 0 };
	char path[256] = "untouched";

	assert_int_equal(find(t, cid, path, &why), rc);
	assert_non_null(strstr(why.text, word));
	assert_string_equal(path, "untouched");
}

static void test_whose_cgroup(void **state)
{
	struct temp_root t = machine();

	process(&t, 100, LIBVIRT, "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/emulator");
	process(&t, 101, "vhost-vsock-pci,guest-cid=8", "/vms/db");
	process(&t, 102, "bash", "/user.slice/session-1.scope");
	process(&t, 103, "vhost-vsock-pci,guest-cid=9", "/user.slice/session-2.scope");
	temp_root_put(&t, "/sys/fs/cgroup/user.slice/session-2.scope/cgroup.procs", "90\n103\n");
	process(&t, 104, "vhost-vsock-pci,guest-cid=10", "/");
	expect_path(&t, 7, "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope");
	expect_path(&t, 8, "/vms/db");
	expect_error(&t, 9, -EPERM, "to itself");
	expect_error(&t, 10, -EPERM, "to itself");
	process(&t, 105, "vhost-vsock-pci,guest-cid=12", "/vms/mail");
	temp_root_put(&t, "/sys/fs/cgroup/vms/mail/other/cgroup.procs", "106\n");
	expect_error(&t, 12, -EPERM, "to itself");
	expect_error(&t, 11, -ENOENT, "no process");
	expect_error(&t, 2, -ENOENT, "no process");
	temp_root_free(&t);
}

/* Anybody may write anything on a command line. */
static void test_forged(void **state)
{
	struct temp_root t = machine();

	process(&t, 100, LIBVIRT, "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope");
	process(&t, 666, "vhost-vsock-pci,guest-cid=7", "/kubepods/evil");
	expect_path(&t, 7, "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope");
	process(&t, 101, "vhost-vsock-pci,guest-cid=8", "/vms/db");
	process(&t, 667, "vhost-vsock-pci,guest-cid=8", "/kubepods/evil2");
	expect_error(&t, 8, -EPERM, "two cgroups");
	temp_root_free(&t);
}

/* A thousand lies before and after the one true word. */
static void test_forged_in_numbers(void **state)
{
	struct temp_root t = machine();

	for (unsigned i = 0; i < 1100; i++) {
		char line[64], cgroup[64];

		snprintf(line, sizeof(line), "vhost-vsock-pci,guest-cid=%u", 1000 + i);
		snprintf(cgroup, sizeof(cgroup), "/kubepods/evil%u", i);
		process(&t, 1000 + i, line, cgroup);
	}
	process(&t, 999, LIBVIRT, "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope");
	process(&t, 3000, "vhost-vsock-pci,guest-cid=8", "/machine/qemu-2-db.libvirt-qemu");
	process(&t, 3001, "vhost-vsock-pci,guest-cid=9", "/vms/alone");
	expect_path(&t, 7, "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope");
	expect_path(&t, 8, "/machine/qemu-2-db.libvirt-qemu");
	expect_error(&t, 9, -EPERM, "more than 1024");
	temp_root_free(&t);
}

/* A machine below another one's cgroup would be told of both. */
static void test_shared(void **state)
{
	struct temp_root t = machine();

	process(&t, 100, "vhost-vsock-pci,guest-cid=8", "/vms");
	process(&t, 101, "vhost-vsock-pci,guest-cid=9", "/vms/inner");
	expect_error(&t, 8, -EPERM, "another guest's");
	expect_error(&t, 9, -EPERM, "another guest's");
	temp_root_free(&t);
}

static void test_hostile_processes(void **state)
{
	struct temp_root t = machine();
	char *huge = malloc(300001);

	memset(huge, 'x', 300000);
	memcpy(huge, "vhost-vsock-pci,guest-cid=7,", 28);
	huge[300000] = '\0';
	process(&t, 100, huge, "/vms/a");
	free(huge);
	temp_root_put(&t, "/proc/4294967297/cmdline", "vhost-vsock-pci,guest-cid=7");
	temp_root_put(&t, "/proc/12x/cmdline", "vhost-vsock-pci,guest-cid=7");
	temp_root_put(&t, "/proc/13/cmdline", "vhost-vsock-pci,guest-cid=7");
	temp_root_put(&t, "/proc/13/cgroup", "0:\n:\n/\n");
	expect_error(&t, 7, -ENOENT, "no process");
	temp_root_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command_lines),     cmocka_unit_test(test_machines),
		cmocka_unit_test(test_whose_cgroup),      cmocka_unit_test(test_forged),
		cmocka_unit_test(test_forged_in_numbers), cmocka_unit_test(test_shared),
		cmocka_unit_test(test_hostile_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
