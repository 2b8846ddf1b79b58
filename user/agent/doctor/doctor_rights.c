/* SPDX-License-Identifier: Apache-2.0 */
/* jouled doctor, rights: the words are those of the table in privileges.c. */
#include <bpf/libbpf.h>
#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "doctor.h"
#include "agent/sandbox/landlock.h"
#include "agent/sandbox/privileges.h"
#include "agent/sandbox/seccomp.h"

/* Kernels before 5.11 count maps as locked memory. Like libbpf (probe_memcg_account, src/bpf.c), this tests for
 * a helper that came with the change. The test needs CAP_BPF itself. */
static void tell_locked_memory(void)
{
	struct rlimit lim = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &lim);
	if (lim.rlim_cur == RLIM_INFINITY || !capng_have_capability(CAPNG_EFFECTIVE, CAP_BPF) ||
	    libbpf_probe_bpf_helper(BPF_PROG_TYPE_SOCKET_FILTER, BPF_FUNC_ktime_get_coarse_ns, NULL) != 0)
		return;
	if (capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_RESOURCE))
		doctor_line("CAP_SYS_RESOURCE", "ok", "for maps, which this kernel counts as locked memory");
	else
		doctor_line("CAP_SYS_RESOURCE", "denied",
			    "for maps, which this kernel counts as locked memory, %llu KiB at most here; run as root, "
			    "give it, or raise the limit (LimitMEMLOCK=infinity)",
			    (unsigned long long)lim.rlim_cur / 1024);
}

/* True for capabilities that CAP_SYS_ADMIN has included since they exist (capabilities(7)). */
static bool is_in_admin(unsigned cap)
{
	return cap == CAP_BPF || cap == CAP_PERFMON;
}

static void tell_capability(const struct machine *m, const struct privilege *p)
{
	bool have = capng_have_capability(CAPNG_EFFECTIVE, p->cap);

	if (p->cap == CAP_SYS_ADMIN && !privileges_paranoid(m->root))
		return; /* no part of the agent needs it */
	if (is_in_admin(p->cap))
		have |= capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN) != 0;
	if (p->cap == CAP_SYS_NICE)
		have |= privileges_realtime();
	doctor_line(p->name, have ? "ok" : "denied", "for %s%s", p->buys,
		    have                   ? "" :
		    p->cap == CAP_SYS_NICE ? "; run as root, or give LimitRTPRIO=1" :
					     "; run as root, or give it with AmbientCapabilities= or setcap");
}

static void tell_capabilities(const struct machine *m)
{
	if (capng_get_caps_process() != 0) {
		doctor_line("capabilities", "absent", "/proc cannot be read; mount it");
		return;
	}
	for (const struct privilege *p = privileges; p->name; p++)
		tell_capability(m, p);
	tell_locked_memory();
}

static void tell_fences(const struct config *c)
{
	const char *reason;
	int abi = landlock_abi();

	if (c->sandbox.seccomp == FILTER_OFF)
		doctor_line("seccomp", "ok", "off: every system call may be made");
	else if (!filter_available(&reason))
		doctor_line("seccomp", "absent", "%s", reason);
	else
		doctor_line("seccomp", "ok",
			    c->sandbox.seccomp == FILTER_LOG ? "log: what is not needed is named and let through" :
							       "on: what is not needed is refused and named");
	if (!c->sandbox.landlock)
		doctor_line("landlock", "ok", "off: files may be written everywhere");
	else if (!abi)
		doctor_line("landlock", "absent",
			    "not in this kernel, not enabled (lsm=landlock,...) or kept from this container");
	else if (c->machine.spans.n_functions)
		doctor_line("landlock", "ok", "not used: spans.functions looks into other containers");
	else
		doctor_line("landlock", "ok", "ABI %d: written are only directories of the configuration", abi);
}

/* Reports the PMU with which perf_event_open probes a function (Documentation/trace/uprobetracer.rst). */
static void tell_uprobes(const struct machine *m)
{
	char type[16];

	if (fsroot_read(m->root, "/sys/bus/event_source/devices/uprobe/type", type, sizeof(type)) > 0)
		doctor_line("uprobe", "ok", "PMU %s, for spans of functions", type);
	else
		doctor_line("uprobe", "absent",
			    "no PMU of that name, so no spans of functions; boot a kernel with CONFIG_UPROBE_EVENTS");
}

/* Tests the executable of process 1, which belongs to another user wherever this matters. */
static void tell_executables(const struct machine *m)
{
	char path[8];
	int dir = fsroot_openat(m->root, "/proc/1", O_PATH | O_DIRECTORY), rc = dir;

	if (dir >= 0) {
		rc = readlinkat(dir, "exe", path, sizeof(path)) < 0 ? -errno : 0;
		close(dir);
	}
	if (!rc)
		doctor_line("executables", "ok", "of others can be read, for spans");
	else
		doctor_line("executables", rc == -EACCES || rc == -EPERM ? "denied" : "absent", "of process 1: %s; %s",
			    strerror(-rc),
			    capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_PTRACE) ?
				    "another security module or user namespace keeps it; spans name what they can" :
				    "give CAP_SYS_PTRACE");
}

void doctor_tell_rights(const struct machine *m, const struct config *c)
{
	tell_capabilities(m);
	tell_fences(c);
	tell_uprobes(m);
	tell_executables(m);
}
