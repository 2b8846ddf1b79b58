/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a cgroup's path gives by itself, for every runtime, driver and hierarchy, and those that it must not
 * give. The expected values are written by hand from docs/formats/names.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "source/names/look.h"

#define ID "d0f631ca1ddba8db3bcfcb9e057cdc98d0379f1bee00e75a545147a27dadd982"
#define ID2 "6ab9f1eb8f7d3388f4f9d586f66e99fd54080df2c446f0e58668b09c08a16dd0"
#define POD "0d5f1c1e-8f2b-4b7a-9f61-2f1f0a5c7d11"
#define POD_ "0d5f1c1e_8f2b_4b7a_9f61_2f1f0a5c7d11"
#define STATIC_POD "9d1f0e3c5b7a48629d1f0e3c5b7a4862"
#define KUBE "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice"
#define SLURM "/system.slice/slurmstepd.scope"
#define USER "/user.slice/user-1000.slice/user@1000.service"

struct expected {
	const char *path;
	enum place_kind kind;
	const char *pod_uid, *id, *name, *unit;
	const char *end; /* the part of the path that says it */
	uid_t user;
};

#define NOBODY NAMING_NOBODY

static const struct expected table[] = {
	/* Kubernetes, systemd driver */
	{ "/kubepods.slice", PLACE_NONE, "", "", "", "kubepods.slice", "", NOBODY },
	{ KUBE, PLACE_POD, POD, "", "", "", KUBE, NOBODY },
	{ KUBE "/cri-containerd-" ID ".scope", PLACE_POD_CONTAINER, POD, ID, "", "",
	  KUBE "/cri-containerd-" ID ".scope", NOBODY },
	{ KUBE "/crio-" ID ".scope", PLACE_POD_CONTAINER, POD, ID, "", "", KUBE "/crio-" ID ".scope", NOBODY },
	{ KUBE "/crio-" ID ".scope/container", PLACE_POD_CONTAINER, POD, ID, "", "", KUBE "/crio-" ID ".scope",
	  NOBODY },
	{ KUBE "/crio-conmon-" ID ".scope", PLACE_POD, POD, "", "", "", KUBE, NOBODY },
	{ KUBE "/docker-" ID ".scope", PLACE_POD_CONTAINER, POD, ID, "", "", KUBE "/docker-" ID ".scope", NOBODY },
	{ "/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope", PLACE_POD_CONTAINER, POD, ID, "",
	  "", "/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope", NOBODY },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" STATIC_POD ".slice", PLACE_POD,
	  STATIC_POD, "", "", "",
	  "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" STATIC_POD ".slice", NOBODY },
	{ "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope",
	  PLACE_POD_CONTAINER, POD, ID, "", "",
	  "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope",
	  NOBODY },
	{ "/system.slice/containerd.service/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" ID,
	  PLACE_POD_CONTAINER, POD, ID, "", "containerd.service",
	  "/system.slice/containerd.service/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" ID, NOBODY },
	/* cgroupfs driver; the same in the perf_event hierarchy of v1 */
	{ "/kubepods/burstable/pod" POD, PLACE_POD, POD, "", "", "", "/kubepods/burstable/pod" POD, NOBODY },
	{ "/kubepods/burstable/pod" POD "/" ID, PLACE_POD_CONTAINER, POD, ID, "", "",
	  "/kubepods/burstable/pod" POD "/" ID, NOBODY },
	{ "/kubepods/pod" POD "/crio-" ID, PLACE_POD_CONTAINER, POD, ID, "", "", "/kubepods/pod" POD "/crio-" ID,
	  NOBODY },
	{ "/kubelet/kubepods/pod" POD "/" ID, PLACE_POD_CONTAINER, POD, ID, "", "", "/kubelet/kubepods/pod" POD "/" ID,
	  NOBODY },
	/* Docker */
	{ "/docker/" ID, PLACE_DOCKER, "", ID, "", "", "/docker/" ID, NOBODY },
	{ "/system.slice/docker-" ID ".scope", PLACE_DOCKER, "", ID, "", "", "/system.slice/docker-" ID ".scope",
	  NOBODY },
	{ "/system.slice/docker-" ID ".scope/init", PLACE_DOCKER, "", ID, "", "", "/system.slice/docker-" ID ".scope",
	  NOBODY },
	{ USER "/user.slice/docker-" ID ".scope", PLACE_DOCKER, "", ID, "", "user@1000.service",
	  USER "/user.slice/docker-" ID ".scope", 1000 },
	{ "/batch/" ID, PLACE_BARE, "", ID, "", "", "/batch/" ID, NOBODY },
	/* podman */
	{ "/machine.slice/libpod-" ID ".scope", PLACE_PODMAN, "", ID, "", "", "/machine.slice/libpod-" ID ".scope",
	  NOBODY },
	{ "/machine.slice/libpod-" ID ".scope/container", PLACE_PODMAN, "", ID, "", "",
	  "/machine.slice/libpod-" ID ".scope", NOBODY },
	{ "/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope", PLACE_PODMAN, "", ID, "", "",
	  "/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope", NOBODY },
	{ "/libpod_parent/libpod-" ID, PLACE_PODMAN, "", ID, "", "", "/libpod_parent/libpod-" ID, NOBODY },
	{ "/machine.slice/libpod-conmon-" ID ".scope", PLACE_NONE, "", "", "", "libpod-conmon-" ID ".scope", "",
	  NOBODY },
	{ USER "/user.slice/libpod-" ID ".scope/container", PLACE_PODMAN, "", ID, "", "user@1000.service",
	  USER "/user.slice/libpod-" ID ".scope", 1000 },
	{ "/system.slice/web.service/libpod-payload-" ID, PLACE_PODMAN, "", ID, "", "web.service",
	  "/system.slice/web.service/libpod-payload-" ID, NOBODY },
	{ "/system.slice/nerdctl-" ID ".scope", PLACE_CONTAINERD, "", ID, "", "", "/system.slice/nerdctl-" ID ".scope",
	  NOBODY },
	/* machines */
	{ "/machine.slice/machine-qemu\\x2d1\\x2dubuntu\\x2d24.scope/libvirt/vcpu0", PLACE_MACHINE, "", "", "ubuntu-24",
	  "", "/machine.slice/machine-qemu\\x2d1\\x2dubuntu\\x2d24.scope", NOBODY },
	{ "/machine.slice/machine-lxc\\x2d77\\x2dbox.scope", PLACE_MACHINE, "", "", "box", "",
	  "/machine.slice/machine-lxc\\x2d77\\x2dbox.scope", NOBODY },
	{ "/machine.slice/machine-debian.scope", PLACE_MACHINE, "", "", "debian", "",
	  "/machine.slice/machine-debian.scope", NOBODY },
	/* systemd-nspawn */
	{ "/machine.slice/machine-debian.scope/payload", PLACE_NSPAWN, "", "", "debian", "",
	  "/machine.slice/machine-debian.scope/payload", NOBODY },
	{ "/machine.slice/machine-debian.scope/payload/system.slice/ssh.service", PLACE_NSPAWN, "", "", "debian", "",
	  "/machine.slice/machine-debian.scope/payload", NOBODY },
	{ "/machine.slice/machine-debian.scope/supervisor", PLACE_NSPAWN, "", "", "debian", "",
	  "/machine.slice/machine-debian.scope/supervisor", NOBODY },
	{ "/machine.slice/machine-lxc\\x2d77\\x2dbox.scope/payload", PLACE_MACHINE, "", "", "box", "",
	  "/machine.slice/machine-lxc\\x2d77\\x2dbox.scope", NOBODY },
	{ "/machine.slice/systemd-nspawn@build\\x2d1.service", PLACE_NSPAWN, "", "", "build-1", "",
	  "/machine.slice/systemd-nspawn@build\\x2d1.service", NOBODY },
	{ "/machine/qemu-2-old.libvirt-qemu/emulator", PLACE_MACHINE, "", "", "old", "",
	  "/machine/qemu-2-old.libvirt-qemu", NOBODY },
	/* LXC */
	{ "/lxc.payload.alpine/init.scope", PLACE_LXC, "", "", "alpine", "", "/lxc.payload.alpine", NOBODY },
	{ "/lxc/alpine", PLACE_LXC, "", "", "alpine", "", "/lxc/alpine", NOBODY },
	{ "/lxc.monitor.alpine", PLACE_LXC, "", "", "alpine", "", "/lxc.monitor.alpine", NOBODY },
	{ "/lxc.monitor/alpine", PLACE_LXC, "", "", "alpine", "", "/lxc.monitor/alpine", NOBODY },
	{ "/lxc.payload.shop_web/system.slice/cron.service", PLACE_LXC, "", "", "shop_web", "", "/lxc.payload.shop_web",
	  NOBODY },
	{ "/lxc.payload.", PLACE_NONE, "", "", "", "", "", NOBODY },
	{ "/lxc.payloads", PLACE_NONE, "", "", "", "", "", NOBODY },
	{ USER "/app.slice/lxc-1.scope/lxc.payload.mine", PLACE_LXC, "", "", "mine", "user@1000.service/lxc-1.scope",
	  USER "/app.slice/lxc-1.scope/lxc.payload.mine", 1000 },
	/* Nomad */
	{ "/nomad.slice/share.slice/" POD ".web.scope", PLACE_NOMAD, "", POD, "web", "",
	  "/nomad.slice/share.slice/" POD ".web.scope", NOBODY },
	{ "/nomad.slice/reserve.slice/" POD ".a.b.scope/x", PLACE_NOMAD, "", POD, "a.b", "",
	  "/nomad.slice/reserve.slice/" POD ".a.b.scope", NOBODY },
	{ "/nomad.slice/" POD ".web.scope", PLACE_NOMAD, "", POD, "web", "", "/nomad.slice/" POD ".web.scope", NOBODY },
	{ "/nomad/" POD ".web", PLACE_NOMAD, "", POD, "web", "", "/nomad/" POD ".web", NOBODY },
	{ "/nomad/share/" POD ".web", PLACE_NOMAD, "", POD, "web", "", "/nomad/share/" POD ".web", NOBODY },
	{ "/nomad/" POD ".", PLACE_NONE, "", "", "", "", "", NOBODY },
	{ "/nomad.slice/share.slice/" POD "..scope", PLACE_NONE, "", "", "", POD "..scope", "", NOBODY },
	{ "/nomad.slice/share.slice/0d5f1c1e.web.scope", PLACE_NONE, "", "", "", "0d5f1c1e.web.scope", "", NOBODY },
	{ "/x/nomad/" POD ".web", PLACE_NONE, "", "", "", "", "", NOBODY },
	/* Slurm, cgroup/v2 */
	{ SLURM, PLACE_NONE, "", "", "", "slurmstepd.scope", "", NOBODY },
	{ SLURM "/system", PLACE_NONE, "", "", "", "slurmstepd.scope", "", NOBODY },
	/* Slurm, cgroup/v1 */
	{ "/slurm/uid_1000", PLACE_NONE, "", "", "", "", "", NOBODY },
	/* what looks like a job */
	{ SLURM "/job_", PLACE_NONE, "", "", "", "slurmstepd.scope", "", NOBODY },
	{ SLURM "/job_4294967296", PLACE_NONE, "", "", "", "slurmstepd.scope", "", NOBODY },
	{ SLURM "/job_00000000001", PLACE_NONE, "", "", "", "slurmstepd.scope", "", NOBODY },
	{ SLURM "/job_01", PLACE_NONE, "", "", "", "slurmstepd.scope", "", NOBODY },
	{ SLURM "/job_1x", PLACE_NONE, "", "", "", "slurmstepd.scope", "", NOBODY },
	{ SLURM "/job_-1", PLACE_NONE, "", "", "", "slurmstepd.scope", "", NOBODY },
	{ SLURM "/x/job_1", PLACE_NONE, "", "", "", "slurmstepd.scope", "", NOBODY },
	{ "/slurmstepd.scope/job_1", PLACE_NONE, "", "", "", "slurmstepd.scope", "", NOBODY },
	{ "/system.slice/x.service/slurmstepd.scope/job_1", PLACE_NONE, "", "", "", "x.service", "", NOBODY },
	{ USER "/app.slice/slurmstepd.scope/job_1/step_0", PLACE_NONE, "", "", "", "user@1000.service/slurmstepd.scope",
	  "", 1000 },
	{ "/x/slurm/uid_1/job_1", PLACE_NONE, "", "", "", "", "", NOBODY },
	{ "/slurm.slice/uid_1/job_1", PLACE_NONE, "", "", "", "slurm.slice", "", NOBODY },
	{ "/system.slice/xslurmstepd.scope/job_1", PLACE_NONE, "", "", "", "xslurmstepd.scope", "", NOBODY },
	{ "/slurm/job_1", PLACE_NONE, "", "", "", "", "", NOBODY },
	{ "/slurm/uid_4294967295/job_1", PLACE_NONE, "", "", "", "", "", NOBODY },
	{ "/slurm/uid_99999999999/job_1", PLACE_NONE, "", "", "", "", "", NOBODY },
	{ "/docker/" ID "/system.slice/slurmstepd.scope/job_1", PLACE_DOCKER, "", ID, "", "", "/docker/" ID, NOBODY },
	/* systemd */
	{ "/", PLACE_NONE, "", "", "", "", "", NOBODY },
	{ "/init.scope", PLACE_NONE, "", "", "", "init.scope", "", NOBODY },
	{ "/system.slice", PLACE_NONE, "", "", "", "system.slice", "", NOBODY },
	{ "/system.slice/nginx.service", PLACE_NONE, "", "", "", "nginx.service", "", NOBODY },
	{ "/system.slice/nginx.service/worker/deep.service", PLACE_NONE, "", "", "", "nginx.service", "", NOBODY },
	{ "/system.slice/system-serial\\x2dgetty.slice/serial-getty@ttyS0.service", PLACE_NONE, "", "", "",
	  "serial-getty@ttyS0.service", "", NOBODY },
	{ "/user.slice/user-1000.slice", PLACE_NONE, "", "", "", "user-1000.slice", "", 1000 },
	{ "/user.slice/user-1000.slice/session-3.scope", PLACE_NONE, "", "", "", "session-3.scope", "", 1000 },
	{ USER "/init.scope", PLACE_NONE, "", "", "", "user@1000.service/init.scope", "", 1000 },
	{ USER "/app.slice/app-firefox.scope/sub", PLACE_NONE, "", "", "", "user@1000.service/app-firefox.scope", "",
	  1000 },
	/* what must not be believed: the outermost is who it is */
	{ "/docker/" ID "/kubepods/burstable/pod" POD "/" ID2, PLACE_DOCKER, "", ID, "", "", "/docker/" ID, NOBODY },
	{ KUBE "/cri-containerd-" ID ".scope/docker-" ID2 ".scope", PLACE_POD_CONTAINER, POD, ID, "", "",
	  KUBE "/cri-containerd-" ID ".scope", NOBODY },
	{ "/kubepods/pod" POD "/helper/" ID2, PLACE_POD, POD, "", "", "", "/kubepods/pod" POD, NOBODY },
	{ "/lxc.payload.a/machine.slice/machine-b.scope", PLACE_LXC, "", "", "a", "", "/lxc.payload.a", NOBODY },
	{ USER "/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-x.scope", PLACE_NONE, "", "", "",
	  "user@1000.service/cri-containerd-x.scope", "", 1000 },
	{ USER "/machine.slice/machine-bank.scope", PLACE_NONE, "", "", "", "user@1000.service/machine-bank.scope", "",
	  1000 },
	{ "/system.slice/x.service/user-0.slice/nginx.service", PLACE_NONE, "", "", "", "x.service", "", NOBODY },
	{ "/system.slice/x.service/lxc.payload.bank", PLACE_NONE, "", "", "", "x.service", "", NOBODY },
	{ "/x/kubepods/pod" POD, PLACE_NONE, "", "", "", "", "", NOBODY },
	/* not quite */
	{ "/docker/" ID "0", PLACE_NONE, "", "", "", "", "", NOBODY },
	{ "/docker/D0f631ca1ddba8db3bcfcb9e057cdc98d0379f1bee00e75a545147a27dadd982", PLACE_NONE, "", "", "", "", "",
	  NOBODY },
	{ "/kubepods/pod../../etc", PLACE_NONE, "", "", "", "", "", NOBODY },
	{ "/machine.slice/machine-\\x00.scope", PLACE_NONE, "", "", "", "machine-\\x00.scope", "", NOBODY },
	{ "/user.slice/user-99999999999.slice", PLACE_NONE, "", "", "", "user-99999999999.slice", "", NOBODY },
};

static const struct {
	const char *path, *job, *step, *unit, *end;
	uid_t user;
} jobs[] = {
	{ SLURM "/job_4711", "4711", "", "slurmstepd.scope", SLURM "/job_4711", NOBODY },
	{ SLURM "/job_4711/step_0/user/task_0", "4711", "0", "slurmstepd.scope", SLURM "/job_4711/step_0", NOBODY },
	{ SLURM "/job_4711/step_0/slurm", "4711", "0", "slurmstepd.scope", SLURM "/job_4711/step_0", NOBODY },
	{ SLURM "/job_4711/step_batch/user/task_special", "4711", "batch", "slurmstepd.scope",
	  SLURM "/job_4711/step_batch", NOBODY },
	{ SLURM "/job_4711/step_0+1/user", "4711", "0+1", "slurmstepd.scope", SLURM "/job_4711/step_0+1", NOBODY },
	{ "/system.slice/node7_slurmstepd.scope/job_12/step_extern/user/task_special", "12", "extern",
	  "node7_slurmstepd.scope", "/system.slice/node7_slurmstepd.scope/job_12/step_extern", NOBODY },
	{ "/slurm/uid_1000/job_42", "42", "", "", "/slurm/uid_1000/job_42", 1000 },
	{ "/slurm/uid_0/job_4294967295/step_interactive/task_3", "4294967295", "interactive", "",
	  "/slurm/uid_0/job_4294967295/step_interactive", 0 },
	{ "/slurm_node7/uid_7/job_1/step_batch", "1", "batch", "", "/slurm_node7/uid_7/job_1/step_batch", 7 },
	{ SLURM "/job_4711/step_", "4711", "", "slurmstepd.scope", SLURM "/job_4711", NOBODY },
	{ SLURM "/job_4711/step_A;b/user", "4711", "", "slurmstepd.scope", SLURM "/job_4711/step_A;b", NOBODY },
	{ SLURM "/job_4711/step_000000000000000000000000000000000", "4711", "", "slurmstepd.scope",
	  SLURM "/job_4711/step_000000000000000000000000000000000", NOBODY },
	{ SLURM "/job_4711/docker/" ID, "4711", "", "slurmstepd.scope", SLURM "/job_4711", NOBODY },
};

static void test_jobs(void **state)
{
	for (unsigned i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		struct place p;

		naming_parse(jobs[i].path, &p);
		if (p.kind != PLACE_JOB || strcmp(p.job.id, jobs[i].job) || strcmp(p.job.step, jobs[i].step) ||
		    strcmp(p.unit, jobs[i].unit) || p.user != jobs[i].user || *p.id || *p.pod_uid || *p.name)
			fail_msg("%s: kind %d job %s step %s unit %s user %u", jobs[i].path, p.kind, p.job.id,
				 p.job.step, p.unit, p.user);
		assert_int_equal(p.end, strlen(jobs[i].end));
		assert_memory_equal(jobs[i].path, jobs[i].end, p.end);
	}
}

static void test_paths(void **state)
{
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct expected *e = &table[i];
		struct place p;

		naming_parse(e->path, &p);
		if (p.kind != e->kind || strcmp(p.pod_uid, e->pod_uid) || strcmp(p.id, e->id) ||
		    strcmp(p.name, e->name) || strcmp(p.unit, e->unit) || p.user != e->user)
			fail_msg("%s: kind %d pod %s id %s name %s unit %s user %u job %s step %s", e->path, p.kind,
				 p.pod_uid, p.id, p.name, p.unit, p.user, p.job.id, p.job.step);
		assert_int_equal(p.end, strlen(e->end));
		assert_memory_equal(e->path, e->end, p.end);
		assert_true(p.kind == PLACE_NONE || (p.above < p.end && e->path[p.above - 1] == '/'));
	}
}

/* A unit name of any length: none rather than a part of one. */
static void test_long(void **state)
{
	char path[4096] = "/user.slice/user-1000.slice/user@1000.service/", *s = path + strlen(path);
	struct place p;

	memset(s, 'a', 600);
	strcpy(s + 600, ".service");
	naming_parse(path, &p);
	assert_string_equal(p.unit, "");
	memset(path, 'b', 3000);
	memcpy(path, "/lxc.payload.", 13);
	path[3000] = '\0';
	naming_parse(path, &p);
	assert_int_equal(p.kind, PLACE_NONE);
}

static void test_unescape(void **state)
{
	char text[8];

	assert_true(naming_unescape("a\\x2db", 6, text, sizeof(text)));
	assert_string_equal(text, "a-b");
	assert_true(naming_unescape("\\x2", 3, text, sizeof(text)));
	assert_string_equal(text, "\\x2");
	assert_false(naming_unescape("12345678", 8, text, sizeof(text)));
	assert_false(naming_unescape("a\\x00", 5, text, sizeof(text)));
	assert_false(naming_unescape("", 0, text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_unescape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
