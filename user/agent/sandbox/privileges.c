/* SPDX-License-Identifier: Apache-2.0 */
#include <cap-ng.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include "base/log.h"
#include "landlock.h"
#include "privileges.h"
#include "seccomp.h"

const struct privilege privileges[] = {
	{ CAP_BPF, "CAP_BPF", "counters, lifecycle, network, block, spans" },
	{ CAP_PERFMON, "CAP_PERFMON", "counters, block, perf events, spans, the profile" },
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "perf events while perf_event_paranoid is above 2" },
	{ CAP_NET_ADMIN, "CAP_NET_ADMIN", "network" },
	{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
	  "energy_uj of powercap, paths of cgroups by id, names from the files of container runtimes" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
	  "executables of others in spans, code of others in the profile, functions in containers, use of AMD's and Intel's GPUs" },
	{ CAP_SYS_RAWIO, "CAP_SYS_RAWIO", "rapl: msr" },
	{ CAP_SYS_NICE, "CAP_SYS_NICE", "readings in time on a busy machine" },
	{ CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE", "outputs in directories of other users" },
	{ CAP_NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE", "outputs that listen below port 1024" },
	{ 0 }
};

bool privileges_paranoid(const struct fsroot *root)
{
	char text[32];

	return fsroot_read(root, "/proc/sys/kernel/perf_event_paranoid", text, sizeof(text)) >= 0 &&
	       strtol(text, NULL, 10) > 2;
}

bool privileges_realtime(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_RTPRIO, &lim) != 0)
		return false;
	if (lim.rlim_cur >= 1)
		return true;
	lim.rlim_cur = 1;
	if (lim.rlim_max < 1)
		lim.rlim_max = 1; /* needs CAP_SYS_RESOURCE */
	return setrlimit(RLIMIT_RTPRIO, &lim) == 0;
}

/* True when a capability is still needed. The last three are for reading and for outputs that a reload opens. */
static bool stays(unsigned cap, const struct rights *r)
{
	switch (cap) {
	case CAP_BPF:
		return r->runs_bpf;
	case CAP_PERFMON:
		return r->opens_events;
	case CAP_SYS_ADMIN:
		return r->opens_events && r->events_by_admin;
	case CAP_SYS_PTRACE:
		return r->looks_into_processes;
	case CAP_SYS_RAWIO:
		return r->reads_msr;
	case CAP_SYS_NICE:
		return !privileges_realtime();
	case CAP_DAC_READ_SEARCH:
	case CAP_DAC_OVERRIDE:
	case CAP_NET_BIND_SERVICE:
		return true;
	default:
		return false;
	}
}

static int drop_capabilities(const struct rights *r, struct err *err)
{
	uint64_t keep = 0;

	if (capng_get_caps_process() != 0)
		return 0; /* no /proc: capabilities are unknown and stay */
	for (const struct privilege *p = privileges; p->name; p++)
		if (capng_have_capability(CAPNG_EFFECTIVE, p->cap) && stays(p->cap, r))
			keep |= 1ull << p->cap;
	capng_clear(CAPNG_SELECT_CAPS);
	for (const struct privilege *p = privileges; p->name; p++)
		if (keep >> p->cap & 1)
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, p->cap);
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		return err_set(err, -EPERM, "capabilities: cannot be given up: %s; start with fewer", strerror(errno));
	return 0;
}

static void restrict_files(const struct rights *r, const struct config *c)
{
	struct err err = { 0 };

	if (!c->sandbox.landlock)
		return;
	if (c->machine.spans.n_functions)
		log_info("landlock: left out, because of spans.functions: their programs lie in other containers");
	else if (r->reads_code)
		log_info(
			"landlock: left out, because of profile.frequency: the code of processes is found through /proc");
	else if (r->reads_descriptors)
		log_info(
			"landlock: left out, because who uses GPUs of AMD and Intel stands in the descriptors of processes");
	else if (landlock_enter(c, r->starts_programs, &err) != 0)
		log_info("%s", err.text);
}

int privileges_drop(const struct rights *r, const struct config *c, struct err *ret_note, struct err *err)
{
	int rc;

	/* keeps a flaw from gaining rights by exec, which is not used below; the two calls after it need this */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	rc = drop_capabilities(r, err);
	if (rc)
		return rc;
	restrict_files(r, c);
	filter_enter(c->sandbox.seccomp, r->starts_programs, ret_note);
	return 0;
}
