// SPDX-License-Identifier: Apache-2.0
/* Attaching of function probes. A probe belongs to a file (its inode), so a container's copy of a binary needs one
 * of its own: it is opened through /proc/PID/root of a process that lives there. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/clock.h"
#include "bpf_log.h"
#include "spans_func.skel.h"
#include "spans_functions.h"

#define COST_CALLS 1000
#define COST_ROUNDS 3
#define COST_GUESS_NS 2000

void probe_warn(struct spans_functions *f, const char *fmt, ...)
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

/* The kernel takes tens of milliseconds for each of the two, and the breakpoint stays until the second is gone. The
 * entry counts what traps meanwhile, so it is the last to go and the first to come. */
static void detach_file(struct probe_file *file)
{
	bpf_link__destroy(file->back);
	bpf_link__destroy(file->entry);
	file->entry = file->back = NULL;
}

static int attach_file(struct probed *p, struct probe_file *file)
{
	int r;

	file->entry = bpf_program__attach_uprobe(p->skel->progs.func_entry, false, -1, file->path, file->offset);
	if (!file->entry)
		return -errno;
	file->back = bpf_program__attach_uprobe(p->skel->progs.func_return, true, -1, file->path, file->offset);
	if (file->back)
		return 0;
	r = -errno;
	detach_file(file);
	return r;
}

/* Open calls are taken note of from here on: those of an earlier epoch will not return. */
static void arm(struct jd_func_state *state)
{
	__atomic_fetch_add(&state->epoch, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&state->armed, 1, __ATOMIC_RELEASE);
}

void probe_attach(struct spans_functions *f, struct probed *p)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < p->n_files; i++) {
		struct probe_file *file = &p->files[i];
		int r = file->entry ? 0 : attach_file(p, file);

		if (r == -ENOENT || r == -ESRCH)        /* its container is gone: another process may bring it back */
			continue;
		if (r)
			probe_warn(f, "spans: %s of %s: the probe is refused: %s; see jouled doctor", p->symbol, file->path,
				   strerror(-r));
		else
			atomic_fetch_add(&f->attachments, 1);
		p->files[kept++] = *file;
	}
	p->n_files = kept;
	p->attached = true;
	arm(&f->state[p - f->of]);
}

void probe_detach(struct spans_functions *f, struct probed *p)
{
	__atomic_store_n(&f->state[p - f->of].armed, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < p->n_files; i++)
		detach_file(&p->files[i]);
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

static const char *why(int r)
{
	return r == -ENOENT ? "no such function in its symbol tables" : r == -ENOEXEC ? "not an ELF file" :
	       r == -ERANGE ? "the place lies outside of its code" : strerror(-r);
}

/* Adds the file of p as pid sees it, unless it is known. */
static void find_file(struct spans_functions *f, struct probed *p, uint32_t pid)
{
	struct probe_file *file;
	char path[sizeof(file->path)];
	struct stat st;
	uint64_t offset;
	int fd, r;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%u/root%s", pid, p->binary);
	else
		snprintf(path, sizeof(path), "%s", p->binary);
	fd = fsroot_openat(f->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		if (!pid)
			probe_warn(f, "spans: %s: %s; functions are looked for when a program of that name starts", p->binary,
				   strerror(-fd));
		return;
	}
	if (fstat(fd, &st) || is_known(p, &st) || p->n_files == PROBE_FILES) {
		close(fd);
		return;
	}
	r = symbol_offset(fd, p->symbol, &offset);
	close(fd);
	if (r) {
		refuse(p, &st);
		probe_warn(f, "spans: %s in %s: %s; name another function or its offset, 0x...", p->symbol, path, why(r));
		return;
	}
	file = &p->files[p->n_files];
	*file = (struct probe_file){ .dev = st.st_dev, .ino = st.st_ino, .offset = offset };
	memcpy(file->path, path, sizeof(path));
	p->n_files++;
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

/* Who sees the same mounts as we do has nothing new to show, but for a file that was not there before. */
void probe_find_files(struct spans_functions *f, uint32_t pid)
{
	char process[16] = "self";
	uint64_t mounts;

	if (pid)
		snprintf(process, sizeof(process), "%u", pid);
	mounts = mounts_of(f, process);
	if (!pid)
		f->own_mounts = mounts;
	for (unsigned i = 0; i < f->n; i++)
		if (!pid || mounts != f->own_mounts || !f->of[i].n_files)
			find_file(f, &f->of[i], pid);
}

/* What a call of it costs is what a probed call of any function costs: two traps and our programs. */
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

uint64_t probe_measure_cost(struct spans_functions *f, struct spans_func_bpf *skel)
{
	struct probed own = { .skel = skel };   /* not one of f's: nobody wants its calls */
	struct probe_file file = { .path = "/proc/self/exe" };
	uint64_t cost = 0;

	if (own_offset(f, &file.offset) || attach_file(&own, &file))
		return COST_GUESS_NS;
	arm(&f->state[COST_FUNC]);
	cost = time_calls();
	detach_file(&file);
	return cost > COST_GUESS_NS / 10 ? cost : COST_GUESS_NS;
}
