/* SPDX-License-Identifier: Apache-2.0 */
#include "code.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/array.h"

#define MAPS_MAX 16384 /* of a process */
#define MAPS_LEAST 16 /* that an array begins with */
#define PATH_BYTES_MAX 4096
#define VDSO_BYTES_MAX (1u << 20)

static uint32_t add_file(struct code *c, const struct code_file *f)
{
	if (c->n_files >= CODE_FILES_MAX || ARRAY_ROOM(c->files, c->files_cap, c->n_files + 1) ||
	    hash_reserve(&c->by_file, c->n_files + 1)) {
		c->refused++;
		return CODE_UNKNOWN;
	}
	hash_add(&c->by_file, f->key, c->n_files);
	c->files[c->n_files] = *f;
	return c->n_files++;
}

/* Opens a mapped file as it is mapped: also one that is deleted, or in another mount namespace. Where the kernel
 * refuses that, the file that has its path in the process's root is taken if it has the same inode. */
static int open_mapped(const struct code *c, int pid, const struct code_mapped *m)
{
	char link[96];
	struct stat st;
	int found, fd;

	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)m->start,
		 (unsigned long long)(m->start + m->length));
	found = open(link, O_PATH | O_CLOEXEC);
	if (found < 0) {
		snprintf(link, sizeof(link), "/proc/%d/root", pid);
		found = fsroot_find_inside(c->root, link, m->path);
		if (found < 0 && access(link, F_OK) != 0) /* the process has ended: perhaps its root was ours */
			found = fsroot_find_inside(c->root, "/", m->path);
	}
	if (found < 0)
		return -1;
	fd = fstat(found, &st) == 0 && st.st_ino == m->inode ? fsroot_open_plain(found) : -1;
	close(found);
	return fd < 0 ? -1 : fd;
}

static uint32_t file_of(struct code *c, int pid, const struct code_mapped *m)
{
	const uint64_t key = hash_word(hash_word(hash_seed(), m->device), m->inode);
	const uint32_t known = hash_find(&c->by_file, key);
	struct code_file f = { .kind = CODE_ELF, .key = key };
	uint32_t at = hash_find(&c->by_pid, (uint64_t)pid);

	if (known != HASH_NONE)
		return known;
	f.process = at == HASH_NONE ? 0 : at;
	if (c->n_files >= CODE_FILES_MAX) {
		c->refused++;
		return CODE_UNKNOWN;
	}
	f.path = strndup(m->path, PATH_BYTES_MAX);
	if (!f.path)
		return CODE_UNKNOWN;
	f.fd = open_mapped(c, pid, m);
	at = add_file(c, &f);
	if (at == CODE_UNKNOWN) {
		free(f.path);
		if (f.fd >= 0)
			close(f.fd);
	}
	return at;
}

/* Bytes of this process's own vDSO, 0 = it has none. */
static uint64_t own_vdso_bytes(const struct code *c)
{
	unsigned long long start, end, bytes = 0;
	char *line = NULL;
	size_t cap = 0;
	const int fd = fsroot_openat(c->root, "/proc/self/maps", O_RDONLY);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;

	while (f && !bytes && getline(&line, &cap, f) > 0)
		if (strstr(line, " [vdso]\n") && sscanf(line, "%llx-%llx", &start, &end) == 2)
			bytes = end - start;
	free(line);
	if (f)
		fclose(f);
	return bytes;
}

/* The code that the kernel maps into every process is that of this one: the same image, whoever looks. */
static uint32_t vdso_of(struct code *c, uint64_t length)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct code_file f = { .kind = CODE_ELF, .key = hash_word(hash_seed(), UINT64_MAX) };
	const uint32_t known = hash_find(&c->by_file, f.key);
	uint32_t at;

	if (known != HASH_NONE)
		return known;
	if (!image || length > VDSO_BYTES_MAX || length != own_vdso_bytes(c))
		return 0;
	f.path = strdup(CODE_VDSO);
	f.fd = f.path ? memfd_create("vdso", MFD_CLOEXEC) : -1;
	if (f.fd >= 0 && write(f.fd, image, length) == (ssize_t)length && (at = add_file(c, &f)) != CODE_UNKNOWN)
		return at;
	free(f.path);
	if (f.fd >= 0)
		close(f.fd);
	return 0;
}

uint32_t code_vdso(struct code *c)
{
	return vdso_of(c, own_vdso_bytes(c));
}

static size_t bytes_of(uint32_t processes, uint32_t maps)
{
	return processes * (sizeof(struct code_process) + 2 * sizeof(struct hash_place)) +
	       maps * sizeof(struct code_map);
}

static void tell_room(const struct code *c)
{
	room_set(c->room, ROOM_MAPS, bytes_of(c->n_processes, c->maps_room));
}

/* Room for one more map of a process. Beyond what all may have together, code in it has no place. */
static bool maps_grow(struct code *c, struct code_process *p)
{
	const uint32_t had = p->cap, most = c->maps_most ? c->maps_most : CODE_MAPS_MAX;
	const uint32_t more = p->n + 1 > MAPS_LEAST ? p->n / 2 + 1 : MAPS_LEAST;

	if (p->n < p->cap)
		return true;
	if (c->maps_room + more > most || bytes_of(0, more) > room_left(c->room)) {
		c->refused++;
		return false;
	}
	if (ARRAY_ROOM(p->maps, p->cap, p->n + 1))
		return false;
	c->maps_room += p->cap - had;
	tell_room(c);
	return true;
}

static void maps_free(struct code *c, struct code_process *p)
{
	c->maps_room -= p->cap;
	tell_room(c);
	free(p->maps);
}

static void add_map(struct code *c, struct code_process *p, const struct code_map *m)
{
	for (uint32_t i = p->n; i-- > 0;)
		if (p->maps[i].start == m->start && p->maps[i].end == m->end) {
			p->maps[i] = *m;
			return;
		}
	if (p->n < MAPS_MAX && maps_grow(c, p))
		p->maps[p->n++] = *m;
}

void code_mapped(struct code *c, int pid, const struct code_mapped *m)
{
	const uint32_t at = hash_find(&c->by_pid, (uint64_t)pid);
	struct code_map map = { m->start, m->start + m->length, m->offset, 0 };

	if (at == HASH_NONE || map.end <= map.start)
		return; /* its maps are read when it is sampled */
	if (m->path[0] == '/' && m->inode)
		map.file = file_of(c, pid, m);
	else if (strcmp(m->path, CODE_VDSO) == 0)
		map.file = vdso_of(c, m->length);
	add_map(c, &c->processes[at], &map);
}

/* Reads a line of /proc/PID/maps (proc(5)). */
static void read_map(struct code *c, uint32_t process, char *line)
{
	unsigned long long start, end, offset, inode;
	unsigned major, minor;
	char rights[5];
	int path = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, rights, &offset, &major, &minor, &inode,
		   &path) < 7 ||
	    rights[2] != 'x' || end <= start)
		return;
	line[strcspn(line, "\n")] = '\0';
	code_mapped(c, c->processes[process].pid,
		    &(struct code_mapped){ start, end - start, offset, (uint64_t)major << 32 | minor, inode,
					   path ? line + path : "" });
}

static void look(struct code *c, uint32_t process)
{
	char name[64], *line = NULL;
	size_t cap = 0;
	unsigned lines = 0;
	FILE *f;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/maps", c->processes[process].pid);
	fd = fsroot_openat(c->root, name, O_RDONLY);
	f = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!f)
		return;
	while (getline(&line, &cap, f) > 0 && lines++ < 4 * MAPS_MAX)
		read_map(c, process, line);
	free(line);
	fclose(f);
}

static void forget(struct code *c, int pid)
{
	const uint32_t at = hash_find(&c->by_pid, (uint64_t)pid);

	if (at == HASH_NONE)
		return;
	hash_remove(&c->by_pid, (uint64_t)pid, at);
	if (!c->processes[at].sampled && !c->spare) {
		maps_free(c, &c->processes[at]);
		c->processes[at] = (struct code_process){ .ended = true };
		c->spare = at;
	}
}

static uint32_t add_process(struct code *c, int pid)
{
	uint32_t at = c->spare;

	forget(c, pid);
	if (!at) {
		if (c->n_processes >= CODE_PROCESSES_MAX || bytes_of(1, 0) > room_left(c->room) ||
		    ARRAY_ZEROED(c->processes, c->processes_cap, c->n_processes + 1) ||
		    hash_reserve(&c->by_pid, c->n_processes + 1)) {
			c->refused++;
			return 0;
		}
		at = c->n_processes++;
		tell_room(c);
	}
	c->spare = c->spare == at ? 0 : c->spare;
	c->processes[at] = (struct code_process){ .pid = pid, .comm = "?", .looked = c->losses };
	hash_add(&c->by_pid, (uint64_t)pid, at);
	return at;
}

void code_forked(struct code *c, int parent, int pid)
{
	const uint32_t from = hash_find(&c->by_pid, (uint64_t)parent);
	struct code_process *p;
	uint32_t at;

	forget(c, pid);
	if (from == HASH_NONE)
		return;
	at = add_process(c, pid);
	if (!at)
		return;
	p = &c->processes[at];
	p->looked = c->processes[from].looked;
	memcpy(p->comm, c->processes[from].comm, sizeof(p->comm));
	for (uint32_t i = 0; i < c->processes[from].n; i++)
		add_map(c, p, &c->processes[from].maps[i]);
}

void code_renamed(struct code *c, int pid, const char *comm, bool exec)
{
	const uint32_t before = hash_find(&c->by_pid, (uint64_t)pid);
	uint32_t at;

	/* A name that was read may be of after the exec, while the samples are from before it, in another cgroup. */
	if (exec && before != HASH_NONE && c->processes[before].read &&
	    strncmp(c->processes[before].comm, comm, sizeof(c->processes[before].comm) - 1) == 0)
		memcpy(c->processes[before].comm, "?", 2);
	at = exec ? add_process(c, pid) : before;
	if (at == HASH_NONE || !at)
		return;
	snprintf(c->processes[at].comm, sizeof(c->processes[at].comm), "%.15s", comm);
}

void code_exited(struct code *c, int pid)
{
	forget(c, pid);
}

void code_lost(struct code *c)
{
	c->losses++;
}

/* The name of a process now. False: it has ended. */
static bool read_comm(const struct code *c, int pid, char ret[16])
{
	char comm[64];

	if (fsroot_readf(c->root, comm, sizeof(comm), "/proc/%d/comm", pid) <= 0)
		return false;
	snprintf(ret, 16, "%.15s", comm);
	return true;
}

/* After a loss a process may be another program, or have other maps. What is known of one that has ended is kept. */
static uint32_t look_again(struct code *c, uint32_t at)
{
	struct code_process *p = &c->processes[at];
	struct code_process before = *p;
	char comm[16];

	if (p->looked == c->losses || !read_comm(c, p->pid, comm))
		return at;
	if (strcmp(comm, p->comm) != 0)
		return HASH_NONE;
	p->looked = c->losses;
	p->maps = NULL;
	p->n = p->cap = 0;
	look(c, at);
	if (p->n) {
		maps_free(c, &before);
	} else { /* it has ended, and its parent has not noticed yet */
		maps_free(c, p);
		*p = before;
	}
	return at;
}

uint32_t code_process(struct code *c, int pid)
{
	uint32_t at = hash_find(&c->by_pid, (uint64_t)pid);

	if (at != HASH_NONE)
		at = look_again(c, at);
	if (at == HASH_NONE) {
		at = add_process(c, pid);
		if (!at)
			return 0;
		c->processes[at].read = read_comm(c, pid, c->processes[at].comm);
		look(c, at); /* what it maps from now on is told by events */
	}
	c->processes[at].sampled = true;
	return at;
}

/* The pid of a process in its own namespace, which is in the name of its perf map. */
static int inner_pid(const struct code *c, int pid)
{
	char text[8192];
	const char *at;
	int inner = pid;

	if (fsroot_readf(c->root, text, sizeof(text), "/proc/%d/status", pid) <= 0)
		return pid;
	at = strstr(text, "\nNSpid:");
	for (at = at ? at + 7 : ""; *at && *at != '\n'; at += strspn(at, "\t ")) {
		char *end;
		const long v = strtol(at, &end, 10);

		if (end == at)
			break;
		inner = (int)v;
		at = end;
	}
	return inner;
}

/* The perf map stands in the process's own mount namespace. It grows, so it is read at the end, through a descriptor
 * that is opened now. */
static uint32_t perf_map_of(struct code *c, uint32_t process)
{
	struct code_process *p = &c->processes[process];
	struct code_file f = { .kind = CODE_PERF_MAP,
			       .pid = inner_pid(c, p->pid),
			       .process = process,
			       .key = hash_word(hash_word(hash_seed(), UINT64_MAX), process) };
	char path[64], dir[64];
	int found;

	if (p->perf_map)
		return p->perf_map;
	snprintf(dir, sizeof(dir), "/proc/%d/root", p->pid);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", f.pid);
	found = fsroot_find_inside(c->root, dir, path);
	if (found < 0)
		return 0;
	f.fd = fsroot_open_plain(found);
	close(found);
	f.path = f.fd >= 0 ? strdup(path) : NULL;
	if (!f.path)
		return 0;
	p->perf_map = add_file(c, &f);
	if (p->perf_map != CODE_UNKNOWN)
		return p->perf_map;
	p->perf_map = 0;
	free(f.path);
	close(f.fd);
	return 0;
}

static const struct code_map *find(const struct code_process *p, uint64_t address)
{
	for (uint32_t i = p->n; i-- > 0;)
		if (address >= p->maps[i].start && address < p->maps[i].end)
			return &p->maps[i];
	return NULL;
}

bool code_frame(struct code *c, uint32_t process, uint64_t address, uint64_t *ret)
{
	const struct code_map *m = process ? find(&c->processes[process], address) : NULL;
	uint32_t map;

	if (!m)
		return false;
	if (m->file) {
		*ret = frame_of(m->file, address - m->start + m->offset);
		return true;
	}
	map = perf_map_of(c, process);
	*ret = frame_of(map ? map : CODE_UNKNOWN, address);
	return true;
}

static int begin(struct code *c)
{
	const struct code_file none = { .fd = -1 };

	if (ARRAY_ZEROED(c->files, c->files_cap, 2) || ARRAY_ZEROED(c->processes, c->processes_cap, 1))
		return -ENOMEM;
	c->files[CODE_KERNEL] = c->files[CODE_UNKNOWN] = none;
	c->files[CODE_UNKNOWN].kind = CODE_UNKNOWN;
	c->n_files = 2;
	c->n_processes = 1;
	memcpy(c->processes[0].comm, "?", 2);
	return 0;
}

int code_open(struct code *c)
{
	int rc = fsroot_open("/", &c->root);

	if (rc)
		return rc;
	c->kallsyms = fsroot_openat(c->root, "/proc/kallsyms", O_RDONLY);
	return begin(c);
}

static void forget_all(struct code *c)
{
	for (uint32_t i = 0; i < c->n_files; i++) {
		free(c->files[i].path);
		if (c->files[i].fd >= 0)
			close(c->files[i].fd);
	}
	for (uint32_t i = 0; i < c->n_processes; i++)
		free(c->processes[i].maps);
	free(c->files);
	free(c->processes);
	hash_free(&c->by_file);
	hash_free(&c->by_pid);
	*c = (struct code){ .root = c->root, .kallsyms = c->kallsyms, .maps_most = c->maps_most, .room = c->room };
	tell_room(c);
}

int code_renew(struct code *c)
{
	forget_all(c);
	return begin(c);
}

void code_close(struct code *c)
{
	forget_all(c);
	if (c->root && c->kallsyms >= 0)
		close(c->kallsyms);
	fsroot_close(c->root);
	*c = (struct code){ 0 };
}
