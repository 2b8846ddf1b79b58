/* SPDX-License-Identifier: Apache-2.0 */
#include <cap-ng.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include "../base/log.h"
#include "landlock.h"
#include "privileges.h"
#include "seccomp.h"

const struct privilege privileges[] = {
	{ CAP_BPF, "CAP_BPF", "counters, lifecycle, network, spans" },
	{ CAP_PERFMON, "CAP_PERFMON", "counters, perf events, spans" },
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "perf events while perf_event_paranoid is above 2" },
	{ CAP_NET_ADMIN, "CAP_NET_ADMIN", "network" },
	{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
	  "energy_uj of powercap, paths of cgroups by id, names from the files of container runtimes" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
	  "executables of others in spans, functions in containers, use of AMD's and Intel's GPUs" },
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
		lim.rlim_max = 1; /* takes CAP_SYS_RESOURCE */
	return setrlimit(RLIMIT_RTPRIO, &lim) == 0;
}

static bool uses_interface(const struct machine *m, enum energy_interface interface)
{
	for (unsigned i = 0; i < m->schema.n_domains; i++)
		if (m->schema.domains[i].interface == interface)
			return true;
	return false;
}

static bool uses_events(const struct machine *m)
{
	return m->counters || m->spans || uses_interface(m, ENERGY_PERF);
}

/* What stays, and for what: events and MSRs of CPUs that come online are opened anew, programs run by test-run, and a
 * reload opens outputs. */
static bool stays(unsigned cap, const struct machine *m, const struct config *c)
{
	switch (cap) {
	case CAP_BPF:
		return m->counters || m->lifecycle || m->network || m->spans;
	case CAP_PERFMON:
		return uses_events(m);
	case CAP_SYS_ADMIN:
		return uses_events(m) && privileges_paranoid(m->root);
	case CAP_SYS_PTRACE:
		return m->spans || gpus_look_into_processes(m->gpus);
	case CAP_SYS_RAWIO:
		return uses_interface(m, ENERGY_MSR);
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

static int drop_capabilities(const struct machine *m, const struct config *c, struct err *err)
{
	uint64_t keep = 0;

	if (capng_get_caps_process() != 0)
		return 0; /* no /proc: capabilities are not known, so they are left alone */
	for (const struct privilege *p = privileges; p->name; p++)
		if (capng_have_capability(CAPNG_EFFECTIVE, p->cap) && stays(p->cap, m, c))
			keep |= 1ull << p->cap;
	capng_clear(CAPNG_SELECT_CAPS);
	for (const struct privilege *p = privileges; p->name; p++)
		if (keep >> p->cap & 1)
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, p->cap);
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		return err_set(err, -EPERM, "capabilities: cannot be given up: %s; start with fewer", strerror(errno));
	return 0;
}

static bool starts_programs(const struct config *c)
{
	for (unsigned i = 0; i < c->n_meters; i++)
		if (c->meters[i].type && strcmp(c->meters[i].type, "command") == 0)
			return true;
	return false;
}

/* A sandboxed process may not look into others, not even by their /proc (landlock(7), ptrace restrictions). */
static void restrict_files(const struct machine *m, const struct config *c, bool programs)
{
	struct err why = { 0 };

	if (!c->landlock)
		return;
	if (c->n_spans_functions)
		log_info("landlock: left out, because of spans.functions: their programs lie in other containers");
	else if (gpus_look_into_processes(m->gpus))
		log_info(
			"landlock: left out, because who uses GPUs of AMD and Intel stands in the descriptors of processes");
	else if (landlock_enter(c, programs, &why) != 0)
		log_info("%s", why.text);
}

int privileges_drop(struct machine *m, const struct config *c, struct err *err)
{
	const bool programs = starts_programs(c);
	struct err why = { 0 };
	int rc;

	/* nothing below is started by exec, but a hole in it must not become a way up; the two after it need it */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	rc = drop_capabilities(m, c, err);
	if (rc)
		return rc;
	restrict_files(m, c, programs);
	rc = filter_enter(c->seccomp, programs, &why);
	if (rc)
		machine_note(m, "%s", why.text);
	return 0;
}
