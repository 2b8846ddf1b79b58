// SPDX-License-Identifier: Apache-2.0
/* The limit program of a start: the skeletons of the programs that jouled loads, with the sizes and constants that it gives
 * them, loaded and attached by libbpf, kept for a while and closed. It opens no counter, fills no map and walks no cgroups. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"
#include "block.skel.h"
#include "counters.skel.h"
#include "lifecycle.skel.h"
#include "network.skel.h"
#include "source/bpf_load.h"
#include "source/cgroup/hierarchy.h"
#include "source/counters/rows.h"

#define MAX_CGROUPS 4096 /* jouled's own default */
#define N_EVENTS 1 /* as agent.py configures */

struct programs {
	struct lifecycle_bpf *lifecycle;
	struct counters_bpf *counters;
	struct network_bpf *network;
	struct block_bpf *block;
	struct bpf_link *links[2]; /* of the counters */
};

static void must(int rc, const char *what)
{
	if (rc)
		bench_die(what, rc < 0 ? -rc : rc);
}

static void start_lifecycle(struct programs *p, const struct hierarchy *h)
{
	struct lifecycle_bpf *s = p->lifecycle = lifecycle_bpf__open();

	must(s ? 0 : errno, "lifecycle");
	s->rodata->hierarchy_id = (int)h->id;
	bpf_choose_entries(s->obj, true);
	must(bpf_load_attach(s->skeleton), "lifecycle");
}

static void size_counters(struct counters_bpf *s, struct counters *c)
{
	const __u32 rows = c->n_cpus * JD_BANKS * c->bank_rows;

	bpf_map__set_max_entries(s->maps.events, (JD_MAX_EVENTS + JD_MAX_MSR_EVENTS) * c->n_cpus);
	bpf_map__set_max_entries(s->maps.states, c->n_cpus);
	bpf_map__set_value_size(s->maps.rows, (__u32)c->row_bytes);
	bpf_map__set_max_entries(s->maps.rows, rows);
	bpf_map__set_max_entries(s->maps.row_slots, rows);
	bpf_map__set_max_entries(s->maps.mux_rows, 1);
	bpf_map__set_max_entries(s->maps.full, (__u32)sysconf(_SC_PAGESIZE));
	bpf_map__set_max_entries(s->maps.places, c->n_cpus * c->max_slots);
	bpf_map__set_max_entries(s->maps.slots, c->max_slots);
	bpf_map__set_max_entries(s->maps.free_slots, c->max_slots);
	bpf_map__set_max_entries(s->maps.slot_info, c->max_slots);
	bpf_map__set_max_entries(s->maps.subtrees, c->max_slots * JD_QUOTA_LEVELS);
}

static void start_counters(struct programs *p, const struct hierarchy *h)
{
	const struct counters_options o = { .max_cgroups = MAX_CGROUPS };
	struct schema schema = { .core.n = N_EVENTS };
	struct counters c = { .o = &o, .schema = &schema, .max_slots = MAX_CGROUPS + JD_FIRST_SLOT };
	struct counters_bpf *s = p->counters = counters_bpf__open();

	must(s ? 0 : errno, "counters");
	c.n_cpus = schema.n_cpus = (unsigned)libbpf_num_possible_cpus();
	counters_set_sizes(&c);
	size_counters(s, &c);
	bpf_choose_entries(s->obj, true);
	bpf_program__set_autoload(s->progs.switch_perf, false);
	s->rodata->n_cpus = c.n_cpus;
	s->rodata->max_slots = c.max_slots;
	s->rodata->bank_rows = c.bank_rows;
	s->rodata->wake_row = c.wake_row;
	s->rodata->core_mask = (1u << N_EVENTS) - 1;
	s->rodata->quota = MAX_CGROUPS / 4;
	s->rodata->hierarchy_v1 = !h->v2;
	must(counters_bpf__load(s), "counters");
	p->links[0] = bpf_program__attach(s->progs.switch_btf);
	p->links[1] = bpf_program__attach(s->progs.attach_btf);
	must(p->links[0] && p->links[1] ? 0 : errno, "counters");
}

static void start_network(struct programs *p, const struct hierarchy *h)
{
	struct network_bpf *s = p->network = network_bpf__open();
	int fd = open(h->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(s && fd >= 0 ? 0 : errno, "network");
	bpf_map__set_max_entries(s->maps.traffic, MAX_CGROUPS + 1);
	must(network_bpf__load(s), "network");
	s->links.ingress = bpf_program__attach_cgroup(s->progs.ingress, fd);
	s->links.egress = bpf_program__attach_cgroup(s->progs.egress, fd);
	must(s->links.ingress && s->links.egress ? 0 : errno, "network");
	close(fd);
}

static void start_block(struct programs *p, const struct hierarchy *h)
{
	struct block_bpf *s = p->block = block_bpf__open();

	must(s ? 0 : errno, "block");
	bpf_map__set_max_entries(s->maps.work, MAX_CGROUPS + 1);
	bpf_map__set_max_entries(s->maps.hot, (__u32)libbpf_num_possible_cpus());
	s->rodata->hierarchy_id = (int)h->id;
	s->rodata->typed_task = true;
	bpf_choose_entries(s->obj, true);
	bpf_program__set_autoload(s->progs.begin_old_btf, false); /* of kernels before 5.11 */
	must(bpf_load_attach(s->skeleton), "block");
}

int bench_start(int argc, char **argv)
{
	unsigned ms = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	static struct hierarchy h;
	struct programs p = { 0 };
	struct fsroot *root;
	struct err err = { 0 };

	bench_unpin();
	if (fsroot_open("/", &root) || hierarchy_detect(root, HIERARCHY_AUTO, &h, &err))
		bench_die("cgroup hierarchy", ENOENT);
	start_lifecycle(&p, &h);
	start_counters(&p, &h);
	if (h.v2)
		start_network(&p, &h);
	start_block(&p, &h);
	usleep(ms * 1000);
	block_bpf__destroy(p.block);
	network_bpf__destroy(p.network);
	for (unsigned i = 0; i < 2; i++)
		bpf_link__destroy(p.links[i]);
	counters_bpf__destroy(p.counters);
	lifecycle_bpf__destroy(p.lifecycle);
	fsroot_close(root);
	return 0;
}
