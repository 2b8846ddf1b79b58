// SPDX-License-Identifier: Apache-2.0
/* One probe at one place of a file, put there and taken away. With each the kernel waits for RCU, tens of
 * milliseconds, and the breakpoint is there until the last probe of its place has gone: a session, one probe for entry
 * and return (6.13), comes and goes once. The two links of kind uprobe_multi (6.6) wait apart from each other, so they
 * are changed at once, each by a thread. Perf events wait in turn under one lock, and since 6.17 (and in stable kernels
 * of 2025) need CAP_SYS_ADMIN. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../base/thread.h"
#include "spans_functions.h"

#define MOST_CHANGES (2 * PROBE_FILES)
#define STACK_BYTES (256 * 1024)
#define LINK_CREATE 28 /* include/uapi/linux/bpf.h: BPF_LINK_CREATE, BPF_F_UPROBE_MULTI_RETURN */
#define UPROBE_MULTI_RETURN 1

/* Beginning of union bpf_attr.link_create, whose headers may be older. */
struct multi_attr {
	__u32 prog_fd, target_fd, attach_type, flags;
	__u64 path, offsets, ref_ctr_offsets, cookies;
	__u32 cnt, multi_flags, pid, pad;
};

_Static_assert(sizeof(struct multi_attr) == 64, "layout of link_create.uprobe_multi");

static int attach_link(struct probe_change *c)
{
	struct multi_attr attr = {
		.prog_fd = (__u32)bpf_program__fd(c->prog),
		.attach_type = c->kind == PROBE_SESSION ? PROBE_ATTACH_SESSION : PROBE_ATTACH_MULTI,
		.path = (uintptr_t)c->path,
		.offsets = (uintptr_t)&c->offset,
		.cnt = 1,
		.multi_flags = c->back ? UPROBE_MULTI_RETURN : 0,
	};
	long fd = syscall(SYS_bpf, LINK_CREATE, &attr, sizeof(attr));

	if (fd < 0)
		return -errno;
	c->link->fd = (int)fd;
	c->link->on = true;
	return 0;
}

static int attach_perf(struct probe_change *c)
{
	c->link->perf = bpf_program__attach_uprobe(c->prog, c->back, -1, c->path, c->offset);
	if (!c->link->perf)
		return -errno;
	c->link->on = true;
	return 0;
}

static void *change(void *arg)
{
	struct probe_change *c = arg;

	if (!c->off) {
		c->rc = c->kind == PROBE_PERF ? attach_perf(c) : attach_link(c);
		return NULL;
	}
	if (c->kind == PROBE_PERF)
		bpf_link__destroy(c->link->perf);
	else
		close(c->link->fd);
	memset(c->link, 0, sizeof(*c->link));
	return NULL;
}

void probe_change(struct probe_change *c, unsigned n)
{
	pthread_t thread[MOST_CHANGES];
	bool started[MOST_CHANGES] = { false };

	for (unsigned i = 0; i < n; i++) {
		started[i] = c[i].kind != PROBE_PERF && i + 1 < n &&
			     thread_start(&thread[i], "jouled-probe", STACK_BYTES, change, &c[i]) == 0;
		if (!started[i])
			change(&c[i]);
	}
	for (unsigned i = 0; i < n; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
}
