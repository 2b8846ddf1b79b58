// SPDX-License-Identifier: Apache-2.0
/* Probed functions: a copy of bpf/spans_func.bpf.c for each, and the thread that attaches them. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/thread.h"
#include "bpf_log.h"
#include "spans.skel.h"
#include "spans_func.skel.h"
#include "spans_functions.h"

#define DEFAULT_BUDGET 0.01

static int share_maps(struct spans_func_bpf *skel, const struct spans_bpf *with)
{
	int r = bpf_map__reuse_fd(skel->maps.events, bpf_map__fd(with->maps.events));

	if (!r)
		r = bpf_map__reuse_fd(skel->maps.stacks, bpf_map__fd(with->maps.stacks));
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.sums_even, bpf_map__fd(with->maps.sums_even));
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.sums_odd, bpf_map__fd(with->maps.sums_odd));
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.funcs, bpf_map__fd(with->maps.funcs));
	if (!r)
		r = bpf_map__reuse_fd(skel->maps.bank, bpf_map__fd(with->maps.bank));
	return r;
}

static void choose(struct spans_func_bpf *skel, enum probe_kind kind)
{
	enum bpf_attach_type multi = (enum bpf_attach_type)PROBE_ATTACH_MULTI; /* the header may not know it */

	bpf_program__set_autoload(skel->progs.func_session, kind == PROBE_SESSION);
	bpf_program__set_autoload(skel->progs.func_entry, kind != PROBE_SESSION);
	bpf_program__set_autoload(skel->progs.func_return, kind != PROBE_SESSION);
	if (kind == PROBE_SESSION)
		bpf_program__set_expected_attach_type(skel->progs.func_session,
						      (enum bpf_attach_type)PROBE_ATTACH_SESSION);
	if (kind != PROBE_MULTI)
		return;
	bpf_program__set_expected_attach_type(skel->progs.func_entry, multi);
	bpf_program__set_expected_attach_type(skel->progs.func_return, multi);
}

static int load_copy(const struct spans *s, uint32_t func, const char *btf, struct spans_func_bpf **ret)
{
	struct bpf_object_open_opts opts = { .sz = sizeof(opts), .btf_custom_path = btf };
	struct spans_func_bpf *skel = spans_func_bpf__open_opts(&opts);
	int r;

	if (!skel)
		return -errno;
	skel->rodata->func = func;
	choose(skel, s->functions->kind);
	r = share_maps(skel, s->skel);
	if (!r)
		r = spans_func_bpf__load(skel);
	if (r) {
		spans_func_bpf__destroy(skel);
		return r;
	}
	*ret = skel;
	return 0;
}

static size_t page_multiple(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

static void *map_array(const struct bpf_map *map, size_t bytes)
{
	void *at = mmap(NULL, page_multiple(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return at == MAP_FAILED ? NULL : at;
}

static int make_room(struct spans *s, struct spans_functions *f)
{
	f->state = map_array(s->skel->maps.funcs, JD_MAX_FUNCS * sizeof(*f->state));
	f->bank = map_array(s->skel->maps.bank, sizeof(*f->bank));
	f->sums_fd[0] = bpf_map__fd(s->skel->maps.sums_even);
	f->sums_fd[1] = bpf_map__fd(s->skel->maps.sums_odd);
	f->keys = calloc(JD_CALL_SUMS, sizeof(*f->keys));
	f->sums = calloc(JD_CALL_SUMS, sizeof(*f->sums));
	f->ids = calloc(JD_CALL_SUMS, sizeof(*f->ids));
	return f->state && f->bank && f->keys && f->sums && f->ids ? 0 : -ENOMEM;
}

static int copy_functions(struct spans *s, struct spans_functions *f, const struct spans_options *o)
{
	for (unsigned i = 0; i < o->n_functions; i++) {
		struct probed *p = &f->of[f->n++];
		int r;

		p->binary = strdup(o->functions[i].binary);
		p->symbol = strdup(o->functions[i].symbol);
		p->tokens_ns = f->budget * (double)NS_PER_S;
		p->scale[0] = p->scale[1] = 1;
		f->state[i].singles = PROBE_SINGLES_PER_S / 10;
		if (!p->binary || !p->symbol)
			return -ENOMEM;
		r = load_copy(s, i, o->btf, &p->skel);
		if (r)
			return r;
	}
	return 0;
}

/* Finds out on the way which kind of links this kernel has. */
static void measure_cost(const struct spans *s, struct spans_functions *f, const struct spans_options *o)
{
	uint64_t cost = COST_GUESS_NS;
	int r = -1;

	for (unsigned kind = o->probe_kind; r && kind < PROBE_KINDS; kind++) {
		struct spans_func_bpf *skel = NULL;

		f->kind = (enum probe_kind)kind;
		r = load_copy(s, COST_FUNC, o->btf, &skel);
		if (!r)
			r = probe_measure_cost(f, skel, &cost);
		spans_func_bpf__destroy(skel);
	}
	f->call_cost_ns = cost;
	memset(&f->state[COST_FUNC], 0, sizeof(f->state[COST_FUNC]));
}

static int start_thread(struct spans_functions *f)
{
	int r = thread_start(&f->thread, "jouled-probes", 0, probe_thread, f);

	f->running = r == 0;
	return r;
}

int spans_functions_open(struct spans *s, const struct spans_options *o, struct err *err)
{
	struct spans_functions *f = calloc(1, sizeof(*f));
	int r;

	if (!f || o->n_functions >= SPANS_MAX_FUNCTIONS) {
		free(f);
		return err_set(err, f ? -E2BIG : -ENOMEM, "spans.functions: %s",
			       f ? "too many, at most 63" : "out of memory");
	}
	s->functions = f;
	f->root = o->root;
	f->budget = o->budget > 0 ? o->budget : DEFAULT_BUDGET;
	pthread_mutex_init(&f->warnings_lock, NULL);
	bpf_log_reset();
	r = make_room(s, f);
	if (!r)
		measure_cost(s, f, o);
	bpf_log_reset();
	if (!r)
		r = copy_functions(s, f, o);
	if (r)
		return err_set(err, r, "spans.functions: %s; set none or see jouled doctor",
			       *bpf_log_last() ? bpf_log_last() : strerror(-r));
	probe_find_files(f, 0);
	for (unsigned i = 0; i < f->n; i++)
		probe_attach(f, &f->of[i]);
	f->flip_ns = clock_mono_ns();
	for (unsigned i = 0; i < f->n; i++)
		f->of[i].attached_since_ns = f->of[i].counted_ns = f->of[i].scaled_until_ns = f->flip_ns;
	return 0;
}

int spans_start(struct spans *s)
{
	return s && s->functions ? start_thread(s->functions) : 0;
}

/* Full: the next start of that program brings it again. */
void spans_functions_exec(struct spans *s, uint32_t pid)
{
	struct spans_functions *f = s->functions;
	uint32_t in = f ? atomic_load(&f->queue_in) : 0;

	if (!f || in - atomic_load(&f->queue_out) >= PROBE_QUEUE)
		return;
	atomic_store(&f->queue[in % PROBE_QUEUE], pid);
	atomic_store(&f->queue_in, in + 1);
}

/* Never waits: what the other thread is writing is told next time. */
bool spans_functions_warning(struct spans *s, char *ret_text, size_t size)
{
	struct spans_functions *f = s->functions;
	bool any = false;

	if (!f || pthread_mutex_trylock(&f->warnings_lock))
		return false;
	if (f->n_warnings) {
		size_t n = strlen(f->warnings[0]);

		n = n < size ? n : size - 1;
		memcpy(ret_text, f->warnings[0], n);
		ret_text[n] = '\0';
		memmove(f->warnings[0], f->warnings[1], --f->n_warnings * sizeof(f->warnings[0]));
		any = true;
	}
	pthread_mutex_unlock(&f->warnings_lock);
	return any;
}

void spans_functions_stats(const struct spans *s, struct spans_stats *ret)
{
	const struct spans_functions *f = s->functions;

	for (unsigned i = 0; f && i < f->n; i++) {
		ret->probed_calls += f->state[i].entries;
		ret->lost_calls += f->state[i].lost + f->state[i].too_deep + f->state[i].unpaired;
	}
	if (f) {
		ret->call_cost_ns = f->call_cost_ns;
		ret->attachments = f->attachments;
	}
}

void spans_functions_close(struct spans *s)
{
	struct spans_functions *f = s->functions;

	if (!f)
		return;
	atomic_store(&f->stop, true);
	if (f->running)
		pthread_join(f->thread, NULL);
	for (unsigned i = 0; i < f->n; i++) {
		probe_detach(f, &f->of[i]);
		spans_func_bpf__destroy(f->of[i].skel);
		free(f->of[i].binary);
		free(f->of[i].symbol);
	}
	if (f->state)
		munmap(f->state, page_multiple(JD_MAX_FUNCS * sizeof(*f->state)));
	if (f->bank)
		munmap(f->bank, page_multiple(sizeof(*f->bank)));
	free(f->keys);
	free(f->sums);
	free(f->ids);
	pthread_mutex_destroy(&f->warnings_lock);
	free(f);
	s->functions = NULL;
}
