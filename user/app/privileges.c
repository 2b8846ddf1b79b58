/* SPDX-License-Identifier: Apache-2.0 */
#include <cap-ng.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include "privileges.h"

/* What stays, and for what (capabilities(7)). CAP_SYS_ADMIN goes where the two newer ones do. */
static const struct { unsigned cap; const char *need; } kept[] = {
	{ CAP_BPF, "flushing by test run" },
	{ CAP_PERFMON, "events of CPUs that come online" },
	{ CAP_DAC_READ_SEARCH, "cgroup paths by id, energy_uj" },
	{ CAP_DAC_OVERRIDE, "files and sockets of outputs that a reload adds" },
	{ CAP_SYS_NICE, "readings in time on a busy machine" },
	{ CAP_NET_BIND_SERVICE, "outputs that listen below port 1024" },
};

static bool uses_msr(const struct machine *m)
{
	for (unsigned i = 0; i < m->schema.n_domains; i++)
		if (m->schema.domains[i].interface == ENERGY_MSR)
			return true;
	return false;
}

/* Debian's kernels have levels above 2, at which only CAP_SYS_ADMIN opens perf events: without it the
 * counters of a CPU that comes online, or an energy event whose CPU went, would be lost for good. */
static bool needs_admin(const struct machine *m)
{
	char text[32];
	long level = 0;

	if (fsroot_read(m->root, "/proc/sys/kernel/perf_event_paranoid", text, sizeof(text)) >= 0)
		level = strtol(text, NULL, 10);
	return level > 2;
}

int privileges_drop(const struct machine *m, struct err *err)
{
	bool have[sizeof(kept) / sizeof(kept[0])], raw_io, admin;

	/* nothing below is started by exec, but a hole in it must not become a way up */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (capng_get_caps_process() != 0)
		return 0;   /* no /proc: capabilities are not known, so they are left alone */
	raw_io = uses_msr(m) && capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_RAWIO);
	admin = needs_admin(m) && capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN);
	for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		have[i] = capng_have_capability(CAPNG_EFFECTIVE, kept[i].cap);
	capng_clear(CAPNG_SELECT_CAPS);
	for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (have[i])
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, kept[i].cap);
	if (raw_io)
		capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_SYS_RAWIO);
	if (admin)
		capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_SYS_ADMIN);
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		return err_set(err, -EPERM, "capabilities: cannot be given up: %s; start with fewer", strerror(errno));
	return 0;
}
