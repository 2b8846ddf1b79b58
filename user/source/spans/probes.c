// SPDX-License-Identifier: Apache-2.0
/* Attaching of function probes. A probe belongs to a file (its inode), so a container's copy of a binary needs one
 * of its own: it is opened through /proc/PID/root of a process that lives there. A path is somebody else's to change:
 * each time it is opened anew it must lead to the file whose symbols were read, or the breakpoint would be put into the
 * midst of an instruction. */
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

static int64_t mtime_of(const struct stat *st)
{
	return st->st_mtim.tv_sec * (int64_t)NS_PER_S + st->st_mtim.tv_nsec;
}

/* The file where it was found, without reading it. A descriptor, or -ENOENT: gone, or another is in its place. */
static int open_same(const struct spans_functions *f, const struct probe_file *file)
{
	int fd = fsroot_openat(f->root, file->path, O_PATH);
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

/* The entry counts what traps, so it is the first to come and the last to go. */
static unsigned plan_attach(const struct spans_functions *f, struct probed *p, struct probe_file *file,
			    struct probe_change *ret)
{
	const struct probe_change both = { .path = file->path, .offset = file->offset, .kind = f->kind };

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

/* Open calls are taken note of from here on: those of an earlier epoch will not return. */
static void arm(struct jd_func_state *state)
{
	__atomic_fetch_add(&state->epoch, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&state->armed, 1, __ATOMIC_RELEASE);
}

/* One that got only one of its probes loses it again. */
static int take_result(struct spans_functions *f, struct probe_file *file, const struct probe_change *c)
{
	int r = c[0].rc || f->kind == PROBE_SESSION ? c[0].rc : c[1].rc; /* a session has no second one */

	if (r)
		detach_file(f, file);
	else
		atomic_fetch_add(&f->attachments, 1);
	return r;
}

/* A file that is to get its probes: c is its first change, NULL where it has them (rc 0) or cannot be had. */
struct opened {
	char path[32];
	int fd, rc;
	struct probe_change *c;
};

static unsigned plan_file(const struct spans_functions *f, struct probed *p, struct probe_file *file, struct opened *o,
			  struct probe_change *ret)
{
	unsigned n;

	*o = (struct opened){ .fd = -1 };
	if (file->entry.on)
		return 0;
	o->fd = open_same(f, file);
	o->rc = o->fd < 0 ? o->fd : 0;
	if (o->rc)
		return 0;
	snprintf(o->path, sizeof(o->path), "/proc/self/fd/%d", o->fd);
	n = plan_attach(f, p, file, ret);
	for (unsigned i = 0; i < n; i++)
		ret[i].path = o->path;
	o->c = ret;
	return n;
}

void probe_attach(struct spans_functions *f, struct probed *p)
{
	struct probe_change c[2 * PROBE_FILES] = { 0 };
	struct opened opened[PROBE_FILES];
	unsigned n = 0, kept = 0;

	for (unsigned i = 0; i < p->n_files; i++)
		n += plan_file(f, p, &p->files[i], &opened[i], &c[n]);
	probe_change(c, n);
	for (unsigned i = 0; i < p->n_files; i++) {
		int r = opened[i].c ? take_result(f, &p->files[i], opened[i].c) : opened[i].rc;

		if (opened[i].c)
			close(opened[i].fd);
		if (r == -ENOENT || r == -ESRCH) /* its container is gone: another process may bring it back */
			continue;
		if (r)
			probe_warn(f, "spans: %s of %s: the probe is refused: %s; %s", p->symbol, p->files[i].path,
				   strerror(-r),
				   r == -EACCES ? "this kernel wants CAP_SYS_ADMIN for it" : "see jouled doctor");
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

/* Containers end, and nobody says so. */
static bool make_room(struct spans_functions *f, struct probed *p)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < p->n_files; i++) {
		int fd = open_same(f, &p->files[i]);

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
	return r == -ENOENT  ? "no such function in its symbol tables" :
	       r == -ENOEXEC ? "not an ELF file" :
	       r == -ERANGE  ? "the place lies outside of its code" :
			       strerror(-r);
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
		if (!pid && !f->own_look_ns)
			probe_warn(f, "spans: %s: %s; functions are looked for when a program of that name starts",
				   p->binary, strerror(-fd));
		return;
	}
	if (fstat(fd, &st) || is_known(p, &st) || (p->n_files == PROBE_FILES && !make_room(f, p))) {
		close(fd);
		return;
	}
	r = symbol_offset(fd, p->symbol, &offset);
	close(fd);
	if (r) {
		refuse(p, &st);
		probe_warn(f, "spans: %s in %s: %s; name another function or its offset, 0x...", p->symbol, path,
			   why(r));
		return;
	}
	file = &p->files[p->n_files];
	*file = (struct probe_file){ .dev = st.st_dev, .ino = st.st_ino, .offset = offset, .mtime_ns = mtime_of(&st) };
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

int probe_measure_cost(struct spans_functions *f, struct spans_func_bpf *skel, uint64_t *ret_ns)
{
	struct probed own = { .skel = skel }; /* not one of f's: nobody wants its calls */
	struct probe_file file = { .path = "/proc/self/exe" };
	struct probe_change c[2] = { 0 };
	uint64_t cost;
	int r = own_offset(f, &file.offset);

	if (r)
		return r;
	probe_change(c, plan_attach(f, &own, &file, c));
	r = c[0].rc ? c[0].rc : c[1].rc;
	if (!r) {
		arm(&f->state[COST_FUNC]);
		cost = time_calls();
		*ret_ns = cost > COST_GUESS_NS / 10 ? cost : COST_GUESS_NS;
	}
	detach_file(f, &file);
	return r;
}
