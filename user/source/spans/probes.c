// SPDX-License-Identifier: Apache-2.0
/* Probed functions: a copy of bpf/spans_func.bpf.c for each, and the thread that attaches them. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/thread.h"
#include "source/bpf_load.h"
#include "spans.skel.h"
#include "spans_func.skel.h"
#include "probes.h"

#define DEFAULT_BUDGET 0.01

static int share_maps(struct spans_func_bpf *skel, const struct spans_bpf *with)
{
	int rc = bpf_map__reuse_fd(skel->maps.events, bpf_map__fd(with->maps.events));

	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.stacks, bpf_map__fd(with->maps.stacks));
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.sums_even, bpf_map__fd(with->maps.sums_even));
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.sums_odd, bpf_map__fd(with->maps.sums_odd));
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.funcs, bpf_map__fd(with->maps.funcs));
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.bank, bpf_map__fd(with->maps.bank));
	return rc;
}

static void choose(struct spans_func_bpf *skel, enum probe_kind kind)
{
	enum bpf_attach_type multi = (enum bpf_attach_type)PROBE_ATTACH_MULTI; /* the system's header may lack it */

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
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = btf);
	struct spans_func_bpf *skel = spans_func_bpf__open_opts(&opts);
	int rc;

	if (!skel)
		return -errno;
	skel->rodata->func = func;
	choose(skel, s->functions->kind);
	rc = share_maps(skel, s->skel);
	if (!rc)
		rc = spans_func_bpf__load(skel);
	if (rc) {
		spans_func_bpf__destroy(skel);
		return rc;
	}
	*ret = skel;
	return 0;
}

static int make_room(struct spans *s, struct spans_functions *f)
{
	int rc = 0;

	f->state = bpf_map_memory(s->skel->maps.funcs, true, &rc);
	f->bank = bpf_map_memory(s->skel->maps.bank, true, &rc);
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
		int rc;

		p->binary = strdup(o->functions[i].binary);
		p->symbol = strdup(o->functions[i].symbol);
		p->tokens_ns = f->budget * (double)NS_PER_S;
		p->scale[0] = p->scale[1] = 1;
		f->state[i].singles = PROBE_SINGLES_PER_S / 10;
		if (!p->binary || !p->symbol)
			return -ENOMEM;
		rc = load_copy(s, i, o->btf, &p->skel);
		if (rc)
			return rc;
	}
	return 0;
}

static int probe_measure_cost(struct spans_functions *f, struct spans_func_bpf *skel, uint64_t *ret_ns);

/* Measures the cost of a probed call, and finds the best kind of links that this kernel has. */
static void measure_cost(const struct spans *s, struct spans_functions *f, const struct spans_options *o)
{
	uint64_t cost = COST_GUESS_NS;
	int rc = -1;

	for (unsigned kind = o->probe_kind; rc && kind < PROBE_KINDS; kind++) {
		struct spans_func_bpf *skel = NULL;

		f->kind = (enum probe_kind)kind;
		rc = load_copy(s, COST_FUNC, o->btf, &skel);
		if (!rc)
			rc = probe_measure_cost(f, skel, &cost);
		spans_func_bpf__destroy(skel);
	}
	f->call_cost_ns = cost;
	memset(&f->state[COST_FUNC], 0, sizeof(f->state[COST_FUNC]));
}

static int start_thread(struct spans_functions *f)
{
	int rc = thread_start(&f->thread, "jouled-probes", 0, probe_thread, f);

	f->running = rc == 0;
	return rc;
}

int spans_functions_open(struct spans *s, const struct spans_options *o, struct err *err)
{
	struct spans_functions *f = calloc(1, sizeof(*f));
	int rc;

	if (!f || o->n_functions >= SPANS_MAX_FUNCTIONS) {
		free(f);
		return err_set(err, f ? -E2BIG : -ENOMEM, "spans.functions: %s",
			       f ? "too many, at most 63" : "out of memory");
	}
	s->functions = f;
	f->root = o->root;
	f->budget = o->budget > 0 ? o->budget : DEFAULT_BUDGET;
	pthread_mutex_init(&f->warnings_lock, NULL);
	bpf_log_begin();
	rc = make_room(s, f);
	if (!rc)
		measure_cost(s, f, o);
	bpf_log_begin();
	if (!rc)
		rc = copy_functions(s, f, o);
	if (rc)
		return err_set(err, rc, "spans.functions: %s; set none or see jouled doctor",
			       *bpf_log_last() ? bpf_log_last() : strerror(-rc));
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

/* When the queue is full, the next start of that program brings it again. */
void spans_functions_exec(struct spans *s, uint32_t pid)
{
	struct spans_functions *f = s->functions;
	uint32_t in = f ? atomic_load(&f->queue_in) : 0;

	if (!f || in - atomic_load(&f->queue_out) >= PROBE_QUEUE)
		return;
	atomic_store(&f->queue[in % PROBE_QUEUE], pid);
	atomic_store(&f->queue_in, in + 1);
}

/* Never waits: a warning that the other thread is writing is told next time. */
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
	bpf_map_release(f->state, s->skel->maps.funcs);
	bpf_map_release(f->bank, s->skel->maps.bank);
	free(f->keys);
	free(f->sums);
	free(f->ids);
	hash_free(&f->by_call);
	pthread_mutex_destroy(&f->warnings_lock);
	free(f);
	s->functions = NULL;
}

/* Attaching of function probes. A probe belongs to a file (its inode), so a container's copy of a binary needs one
 * of its own: it is looked for below the root directory of a process of the container (/proc/PID/root), and links
 * stay within that directory. Others may change a path. Each time it is opened anew it must lead to the file whose
 * symbols were read, or the breakpoint would be put into the middle of an instruction. */

#define COST_CALLS 1000
#define COST_ROUNDS 3
#define ROOT_TEXT 32

static void probe_warn(struct spans_functions *f, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&f->warnings_lock);
	if (f->n_warnings < PROBE_WARNINGS) {
		va_start(ap, fmt);
		vsnprintf(f->warnings[f->n_warnings++], sizeof(f->warnings[0]), fmt, ap);
		va_end(ap);
	}
	pthread_mutex_unlock(&f->warnings_lock);
}

static int64_t mtime_of(const struct stat *st)
{
	return st->st_mtim.tv_sec * (int64_t)NS_PER_S + st->st_mtim.tv_nsec;
}

/* Root directory of a process, "" = ours. */
static const char *root_of(uint32_t pid, char ret_text[ROOT_TEXT])
{
	snprintf(ret_text, ROOT_TEXT, pid ? "/proc/%u/root" : "", pid);
	return ret_text;
}

/* The binary as a process sees it, as an O_PATH descriptor. */
static int find_binary(const struct spans_functions *f, uint32_t pid, const char *binary)
{
	char root[ROOT_TEXT];

	return pid ? fsroot_find_inside(f->root, root_of(pid, root), binary) : fsroot_openat(f->root, binary, O_PATH);
}

/* The file where it was found, without reading it. A descriptor, or -ENOENT: gone, or another is in its place. */
static int open_same(const struct spans_functions *f, const struct probed *p, const struct probe_file *file)
{
	int fd = find_binary(f, file->pid, p->binary);
	struct stat st;

	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
		return fd;
	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &st) == 0 && st.st_dev == file->dev && st.st_ino == file->ino && mtime_of(&st) == file->mtime_ns)
		return fd;
	close(fd);
	return -ENOENT;
}

/* The entry counts calls that trap, so it is attached first and detached last. */
static unsigned plan_attach(const struct spans_functions *f, struct probed *p, struct probe_file *file,
			    const char *path, struct probe_change *ret)
{
	const struct probe_change both = { .path = path, .offset = file->offset, .kind = f->kind };

	ret[0] = ret[1] = both;
	ret[0].link = &file->entry;
	ret[0].prog = f->kind == PROBE_SESSION ? p->skel->progs.func_session : p->skel->progs.func_entry;
	if (f->kind == PROBE_SESSION)
		return 1;
	ret[1].link = &file->back;
	ret[1].prog = p->skel->progs.func_return;
	ret[1].back = true;
	return 2;
}

static unsigned plan_detach(const struct spans_functions *f, struct probe_file *file, struct probe_change *ret)
{
	const struct probe_change off = { .kind = f->kind, .off = true };
	unsigned n = 0;

	if (file->back.on) {
		ret[n] = off;
		ret[n++].link = &file->back;
	}
	if (file->entry.on) {
		ret[n] = off;
		ret[n++].link = &file->entry;
	}
	return n;
}

static void detach_file(const struct spans_functions *f, struct probe_file *file)
{
	struct probe_change c[2];

	probe_change(c, plan_detach(f, file, c));
}

/* Calls are recorded from here on. Open calls of an earlier epoch are dropped. */
static void arm(struct jd_func_state *state)
{
	__atomic_fetch_add(&state->epoch, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&state->armed, 1, __ATOMIC_RELEASE);
}

/* A file that got only one of its two probes loses it again. */
static int take_result(struct spans_functions *f, struct probe_file *file, const struct probe_change *c)
{
	int rc = c[0].rc || f->kind == PROBE_SESSION ? c[0].rc : c[1].rc; /* a session has no second one */

	if (rc)
		detach_file(f, file);
	else
		atomic_fetch_add(&f->attachments, 1);
	return rc;
}

/* A file that is to get its probes: c is its first change, NULL where it has them (rc 0) or cannot be opened. */
struct opened {
	char path[32];
	int fd, rc;
	struct probe_change *c;
};

static unsigned plan_file(const struct spans_functions *f, struct probed *p, struct probe_file *file, struct opened *o,
			  struct probe_change *ret)
{
	*o = (struct opened){ .fd = -1 };
	if (file->entry.on)
		return 0;
	o->fd = open_same(f, p, file);
	o->rc = o->fd < 0 ? o->fd : 0;
	if (o->rc)
		return 0;
	snprintf(o->path, sizeof(o->path), "/proc/self/fd/%d", o->fd);
	o->c = ret;
	return plan_attach(f, p, file, o->path, ret);
}

void probe_attach(struct spans_functions *f, struct probed *p)
{
	struct probe_change c[2 * PROBE_FILES] = { 0 };
	struct opened opened[PROBE_FILES];
	unsigned n = 0, kept = 0;
	char root[ROOT_TEXT];

	for (unsigned i = 0; i < p->n_files; i++)
		n += plan_file(f, p, &p->files[i], &opened[i], &c[n]);
	probe_change(c, n);
	for (unsigned i = 0; i < p->n_files; i++) {
		int rc = opened[i].c ? take_result(f, &p->files[i], opened[i].c) : opened[i].rc;

		if (opened[i].c)
			close(opened[i].fd);
		if (rc == -ENOENT || rc == -ESRCH) /* its container is gone: another process may bring it back */
			continue;
		if (rc)
			probe_warn(f, "spans: %s of %s%s: the probe is refused: %s; %s", p->symbol,
				   root_of(p->files[i].pid, root), p->binary, strerror(-rc),
				   rc == -EACCES ? "this kernel wants CAP_SYS_ADMIN for it" : "see jouled doctor");
		if (kept != i)
			p->files[kept] = p->files[i];
		kept++;
	}
	p->n_files = kept;
	if (!p->attached) /* one more file: calls that are open in the others go on */
		arm(&f->state[p - f->of]);
	p->attached = true;
}

void probe_detach(struct spans_functions *f, struct probed *p)
{
	struct probe_change c[2 * PROBE_FILES] = { 0 };
	unsigned n = 0;

	__atomic_store_n(&f->state[p - f->of].armed, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < p->n_files; i++)
		n += plan_detach(f, &p->files[i], &c[n]);
	probe_change(c, n);
	p->attached = false;
}

static bool is_known(const struct probed *p, const struct stat *st)
{
	for (unsigned i = 0; i < p->n_files; i++)
		if (p->files[i].dev == st->st_dev && p->files[i].ino == st->st_ino)
			return true;
	for (unsigned i = 0; i < PROBE_FILES && i < p->n_refused; i++)
		if (p->refused[i].dev == st->st_dev && p->refused[i].ino == st->st_ino)
			return true;
	return false;
}

static void refuse(struct probed *p, const struct stat *st)
{
	unsigned at = p->n_refused++ % PROBE_FILES;

	p->refused[at].dev = st->st_dev;
	p->refused[at].ino = st->st_ino;
}

/* Makes room for a file: containers end without an event. */
static bool probe_make_room(struct spans_functions *f, struct probed *p)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < p->n_files; i++) {
		int fd = open_same(f, p, &p->files[i]);

		if (fd == -ENOENT) {
			detach_file(f, &p->files[i]);
			continue;
		}
		if (fd >= 0)
			close(fd);
		if (kept != i)
			p->files[kept] = p->files[i];
		kept++;
	}
	p->n_files = kept;
	if (kept == PROBE_FILES && !p->full_told)
		probe_warn(f, "spans: %s: there are more than %d copies of %s; calls in the others are not seen",
			   p->symbol, PROBE_FILES, p->binary);
	p->full_told |= kept == PROBE_FILES;
	return kept < PROBE_FILES;
}

static const char *why(int r)
{
	return r == -ENOENT                  ? "no such function in its symbol tables" :
	       r == -ENOEXEC || r == -EINVAL ? "not an ELF file" :
	       r == -ERANGE                  ? "the place lies outside of its code" :
					       strerror(-r);
}

/* Adds the file of p as pid sees it, unless it is known. */
static void find_file(struct spans_functions *f, struct probed *p, uint32_t pid)
{
	int found = find_binary(f, pid, p->binary), fd, r;
	char root[ROOT_TEXT];
	struct stat st;
	uint64_t offset;

	if (found < 0) {
		if (!pid && !f->own_look_ns)
			probe_warn(f, "spans: %s: %s; functions are looked for when a program of that name starts",
				   p->binary, strerror(-found));
		return;
	}
	if (fstat(found, &st) || is_known(p, &st) || (p->n_files == PROBE_FILES && !probe_make_room(f, p))) {
		close(found);
		return;
	}
	fd = fsroot_open_plain(found);
	close(found);
	r = fd < 0 ? fd : symbol_offset(fd, p->symbol, &offset);
	if (fd >= 0)
		close(fd);
	if (r) {
		refuse(p, &st);
		probe_warn(f, "spans: %s in %s%s: %s; name another function or its offset, 0x...", p->symbol,
			   root_of(pid, root), p->binary, why(r));
		return;
	}
	p->files[p->n_files++] = (struct probe_file){
		.pid = pid,
		.dev = st.st_dev,
		.ino = st.st_ino,
		.offset = offset,
		.mtime_ns = mtime_of(&st),
	};
	if (p->attached)
		probe_attach(f, p);
}

static uint64_t mounts_of(const struct spans_functions *f, const char *process)
{
	struct stat st = { 0 };
	char path[64];
	int dir;

	snprintf(path, sizeof(path), "/proc/%s", process);
	dir = fsroot_openat(f->root, path, O_PATH | O_DIRECTORY);
	if (dir < 0)
		return 0;
	if (fstatat(dir, "ns/mnt", &st, 0))
		st.st_ino = 0;
	close(dir);
	return st.st_ino;
}

/* A process with our mounts shows no new files, except a file that was not there before. */
void probe_find_files(struct spans_functions *f, uint32_t pid)
{
	char process[16] = "self";
	uint64_t mounts;

	if (pid)
		snprintf(process, sizeof(process), "%u", pid);
	mounts = mounts_of(f, process);
	if (pid && !mounts) /* it has ended */
		return;
	if (!pid)
		f->own_mounts = mounts;
	for (unsigned i = 0; i < f->n; i++)
		if (!pid || mounts != f->own_mounts || !f->of[i].n_files)
			find_file(f, &f->of[i], pid);
	if (!pid)
		f->own_look_ns = clock_mono_ns();
}

/* A call of this function costs as much as a probed call of any function: two traps and our programs. */
static __attribute__((noinline)) void probe_target(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Place of our own function in our own file: /proc/self/maps knows which part of it lies where. */
static int own_offset(const struct spans_functions *f, uint64_t *ret)
{
	char path[] = "/proc/self/maps", text[16384], *line, *save = NULL;
	unsigned long at = (unsigned long)probe_target, start, end, offset;
	ssize_t n;
	int fd = fsroot_openat(f->root, path, O_RDONLY);

	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -EIO;
	text[n] = '\0';
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && at >= start && at < end) {
			*ret = at - start + offset;
			return 0;
		}
	return -ENOENT;
}

static uint64_t time_calls(void)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < COST_ROUNDS; round++) {
		uint64_t begin = clock_thread_cpu_ns(), took;

		for (int i = 0; i < COST_CALLS; i++)
			probe_target();
		took = clock_thread_cpu_ns() - begin;
		best = took < best ? took : best;
	}
	return best / COST_CALLS;
}

/* CPU time that one call of a probed function costs here, with a probe of f's kind. 0, or -errno
 * where it cannot be attached. */
static int probe_measure_cost(struct spans_functions *f, struct spans_func_bpf *skel, uint64_t *ret_ns)
{
	struct probed own = { .skel = skel }; /* not one of f's: its calls are not reported */
	struct probe_file file = { 0 };
	struct probe_change c[2] = { 0 };
	uint64_t cost;
	int rc = own_offset(f, &file.offset);

	if (rc)
		return rc;
	probe_change(c, plan_attach(f, &own, &file, "/proc/self/exe", c));
	rc = c[0].rc ? c[0].rc : c[1].rc;
	if (!rc) {
		arm(&f->state[COST_FUNC]);
		cost = time_calls();
		*ret_ns = cost > COST_GUESS_NS / 10 ? cost : COST_GUESS_NS;
	}
	detach_file(f, &file);
	return rc;
}
