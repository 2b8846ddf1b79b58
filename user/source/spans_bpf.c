// SPDX-License-Identifier: Apache-2.0
/* Loading of bpf/spans.bpf.c: the same programs as tp_btf or, where those are refused, raw_tp. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include "bpf_log.h"
#include "spans.skel.h"
#include "spans_internal.h"

static void choose(struct spans_bpf *skel, bool btf)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, skel->obj)
	{
		const char *name = bpf_program__name(prog);
		size_t n = strlen(name);

		bpf_program__set_autoload(prog, n > 4 && strcmp(name + n - 4, btf ? "_btf" : "_raw") == 0);
	}
}

/* Maps of functions shrink to nothing where there are none. */
static void set_sizes(struct spans_bpf *skel, bool functions)
{
	if (functions)
		return;
	bpf_map__set_max_entries(skel->maps.stacks, 1);
	bpf_map__set_max_entries(skel->maps.sums_even, 1);
	bpf_map__set_max_entries(skel->maps.sums_odd, 1);
}

static int try_open(struct spans *s, const struct spans_options *o, bool btf)
{
	struct bpf_object_open_opts opts = { .sz = sizeof(opts), .btf_custom_path = o->btf };
	struct spans_bpf *skel = spans_bpf__open_opts(&opts);
	int r;

	if (!skel)
		return -errno;
	skel->rodata->hierarchy_v1 = !o->hierarchy->v2;
	skel->rodata->functions = o->n_functions != 0;
	set_sizes(skel, o->n_functions != 0);
	choose(skel, btf);
	r = spans_bpf__load(skel);
	if (!r)
		r = spans_bpf__attach(skel);
	if (r) {
		spans_bpf__destroy(skel);
		return r;
	}
	s->skel = skel;
	return 0;
}

static int explain(const struct spans *s, struct err *err, int r)
{
	const char *why = bpf_log_last();

	if (r == -EINVAL && bpf_locked_down(s->root))
		return err_set(err, -EPERM, "spans: " BPF_LOCKED_DOWN ", or set spans.processes: false");
	if (r == -EPERM || r == -EACCES)
		return err_set(err, r,
			       "spans: the kernel refused the programs; give CAP_BPF and CAP_PERFMON "
			       "(CAP_SYS_ADMIN before Linux 5.8) or set spans.processes: false");
	if (r == -ESRCH)
		return err_set(err, r,
			       "spans: no kernel BTF; boot a kernel with CONFIG_DEBUG_INFO_BTF, give --btf FILE, "
			       "or set spans.processes: false");
	return err_set(err, r, "spans: %s; check jouled doctor, or set spans.processes: false",
		       *why ? why : strerror(-r));
}

int spans_bpf_open(struct spans *s, const struct spans_options *o, struct err *err)
{
	int r;

	bpf_log_capture();
	bpf_log_reset();
	r = try_open(s, o, true);
	if (r)
		r = try_open(s, o, false);
	if (r)
		return explain(s, err, r);
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.events), spans_record, s, NULL);
	return s->ring ? 0 : explain(s, err, -errno);
}

/* A program that was interrupted by itself is left out by the kernel, which counts that (since 5.12). */
static uint64_t left_out(const struct spans *s)
{
	struct bpf_program *prog;
	uint64_t n = 0;

	bpf_object__for_each_program(prog, s->skel->obj)
	{
		struct bpf_prog_info info = { 0 };
		__u32 size = sizeof(info);

		if (bpf_program__autoload(prog) && bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size) == 0)
			n += info.recursion_misses;
	}
	return n;
}

uint64_t spans_bpf_lost(const struct spans *s)
{
	return left_out(s) + __atomic_load_n(&s->skel->bss->lost_births, __ATOMIC_RELAXED) +
	       __atomic_load_n(&s->skel->bss->lost_ends, __ATOMIC_RELAXED);
}

void spans_bpf_close(struct spans *s)
{
	ring_buffer__free(s->ring);
	spans_bpf__destroy(s->skel);
	s->ring = NULL;
	s->skel = NULL;
}
