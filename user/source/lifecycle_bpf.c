/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of bpf/lifecycle.bpf.c: the same programs as tp_btf or, where those are refused, raw_tp. */
#include "lifecycle_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "bpf_log.h"
#include "lifecycle.skel.h"

static void choose(struct lifecycle_bpf *skel, bool btf)
{
	bpf_program__set_autoload(skel->progs.mkdir_btf, btf);
	bpf_program__set_autoload(skel->progs.rmdir_btf, btf);
	bpf_program__set_autoload(skel->progs.rename_btf, btf);
	bpf_program__set_autoload(skel->progs.attach_btf, btf);
	bpf_program__set_autoload(skel->progs.mkdir_raw, !btf);
	bpf_program__set_autoload(skel->progs.rmdir_raw, !btf);
	bpf_program__set_autoload(skel->progs.rename_raw, !btf);
	bpf_program__set_autoload(skel->progs.attach_raw, !btf);
}

static int try_open(struct lifecycle *l, int hierarchy_id, const char *btf, bool tp_btf)
{
	struct bpf_object_open_opts opts = { .sz = sizeof(opts), .btf_custom_path = btf };
	struct lifecycle_bpf *skel = lifecycle_bpf__open_opts(&opts);
	int r;

	if (!skel)
		return -errno;
	skel->rodata->hierarchy_id = hierarchy_id;
	/* The root directory of every kernfs tree has inode 1 (fs/kernfs/dir.c). */
	skel->rodata->mount_id = l->mount_id == 1 ? 0 : l->mount_id;
	choose(skel, tp_btf);
	r = lifecycle_bpf__load(skel);
	if (!r)
		r = lifecycle_bpf__attach(skel);
	if (r) {
		lifecycle_bpf__destroy(skel);
		return r;
	}
	l->skel = skel;
	return 0;
}

static int explain(const struct lifecycle *l, struct err *err, int r)
{
	const char *why = bpf_log_last();

	if (r == -EINVAL && bpf_locked_down(l->root))
		return err_set(err, -EPERM, "lifecycle events: " BPF_LOCKED_DOWN ", or set trigger: none");
	if (r == -EPERM || r == -EACCES)
		return err_set(err, r,
			       "lifecycle events: the kernel refused the programs; give CAP_BPF and "
			       "CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8) or use trigger: none");
	if (r == -ESRCH) /* libbpf's answer where it finds no type information */
		return err_set(err, r,
			       "lifecycle events: no kernel BTF; boot a kernel with CONFIG_DEBUG_INFO_BTF, give "
			       "--btf FILE, or use trigger: none");
	return err_set(err, r, "lifecycle events: %s; check jouled doctor, or use trigger: none",
		       *why ? why : strerror(-r));
}

int lifecycle_bpf_open(struct lifecycle *l, int hierarchy_id, const char *btf, struct err *err)
{
	int r = try_open(l, hierarchy_id, btf, true);

	if (r)
		r = try_open(l, hierarchy_id, btf, false);
	if (r)
		return explain(l, err, r);
	l->ring = ring_buffer__new(bpf_map__fd(l->skel->maps.events), lifecycle_record, l, NULL);
	if (!l->ring)
		return explain(l, err, -errno);
	return 0;
}

void lifecycle_bpf_close(struct lifecycle *l)
{
	ring_buffer__free(l->ring);
	lifecycle_bpf__destroy(l->skel);
	l->ring = NULL;
	l->skel = NULL;
}

/* Written by the kernel while this reads. */
uint64_t lifecycle_bpf_lost_cgroups(const struct lifecycle *l)
{
	return l->skel ? __atomic_load_n(&l->skel->bss->lost_cgroups, __ATOMIC_RELAXED) : 0;
}

uint64_t lifecycle_bpf_lost_moves(const struct lifecycle *l)
{
	return l->skel ? __atomic_load_n(&l->skel->bss->lost_moves, __ATOMIC_RELAXED) : 0;
}
