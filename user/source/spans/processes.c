// SPDX-License-Identifier: Apache-2.0
/* Processes by (pid, start time). All entries are allocated at open; text is shared along forks. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/parse.h"
#include "source/cgroup/process_cgroup.h"
#include "processes.h"

#define ID_SHIFT 22 /* pids end below 2^22: PID_MAX_LIMIT, include/linux/threads.h */
#define ID_UNIT_SHIFT 14 /* 16 us: no pid comes back that soon; 42 bits of it last 800 days */

/* Functions leave the low 22 bits empty, which no pid does. */
uint64_t process_span_id(uint32_t pid, uint64_t start_boot_ns)
{
	uint64_t id = start_boot_ns >> ID_UNIT_SHIFT << ID_SHIFT | (pid & ((1u << ID_SHIFT) - 1));

	return id ? id : 1;
}

int process_table_init(struct process_table *t, uint32_t max)
{
	t->max = max;
	t->all = calloc(max, sizeof(*t->all));
	return t->all ? hash_reserve(&t->by_pid, max) : -ENOMEM;
}

static void drop_text(struct span_text *text)
{
	if (text && --text->users == 0)
		free(text);
}

void process_table_free(struct process_table *t)
{
	for (uint32_t i = 0; i < t->n_all; i++)
		drop_text(t->all[i].text);
	free(t->all);
	hash_free(&t->by_pid);
	memset(t, 0, sizeof(*t));
}

/* A scanned start is known to the tick. */
static bool same_start(const struct process *p, uint64_t start_boot_ns)
{
	if (p->scanned)
		return p->start_boot_ns / SPANS_TICK_NS == start_boot_ns / SPANS_TICK_NS;
	return p->start_boot_ns == start_boot_ns;
}

struct process *process_find(const struct process_table *t, uint32_t pid, uint64_t start_boot_ns)
{
	struct process *found = NULL;

	for (struct hash_walk w = hash_walk(&t->by_pid, pid); hash_step(&w);)
		if (start_boot_ns ? same_start(&t->all[w.at], start_boot_ns) : !t->all[w.at].ended)
			found = &t->all[w.at]; /* the youngest of a number stands last */
	return found;
}

struct process *process_add(struct process_table *t, uint32_t pid, uint64_t start_boot_ns)
{
	struct process *p = t->free_list;

	if (p)
		t->free_list = p->next_free;
	else if (t->n_all < t->max)
		p = &t->all[t->n_all++];
	else
		return NULL;
	memset(p, 0, sizeof(*p));
	p->used = true;
	p->pid = pid;
	p->start_boot_ns = start_boot_ns;
	p->id = process_span_id(pid, start_boot_ns);
	hash_add(&t->by_pid, pid, (uint32_t)(p - t->all));
	return p;
}

static void unlink_ended(struct process_table *t, struct process *p)
{
	if (p->older)
		p->older->newer = p->newer;
	else
		t->first_ended = p->newer;
	if (p->newer)
		p->newer->older = p->older;
	else
		t->last_ended = p->older;
}

struct process *process_next(const struct process_table *t, const struct process *p)
{
	for (uint32_t i = p ? (uint32_t)(p - t->all) + 1 : 0; i < t->n_all; i++)
		if (t->all[i].used)
			return &t->all[i];
	return NULL;
}

void process_remove(struct process_table *t, struct process *p)
{
	hash_remove(&t->by_pid, p->pid, (uint32_t)(p - t->all));
	if (p->ended)
		unlink_ended(t, p);
	drop_text(p->text);
	p->text = NULL;
	p->used = false;
	p->next_free = t->free_list;
	t->free_list = p;
}

void process_mark_ended(struct process_table *t, struct process *p)
{
	if (p->ended)
		return;
	p->ended = true;
	p->older = t->last_ended;
	p->newer = NULL;
	if (t->last_ended)
		t->last_ended->newer = p;
	else
		t->first_ended = p;
	t->last_ended = p;
}

void process_share_text(struct process *p, const struct process *from)
{
	if (p->text || !from->text)
		return;
	p->text = from->text;
	p->text->users++;
}

/* Arguments joined by blanks; empty ones stay as two blanks. */
static void join(char *to, const char *args, size_t n)
{
	while (n && !args[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		to[i] = args[i] ? args[i] : ' ';
	to[n] = '\0';
}

void process_set_text(struct process *p, const char *exe, size_t n_exe, const char *args, size_t n_args)
{
	struct span_text *text;

	if (n_exe >= SPAN_PATH_MAX) { /* cut from the left, because the name matters most */
		exe += n_exe - (SPAN_PATH_MAX - 1);
		n_exe = SPAN_PATH_MAX - 1;
	}
	if (n_args >= SPAN_CMDLINE_MAX)
		n_args = SPAN_CMDLINE_MAX - 1;
	text = malloc(sizeof(*text) + n_exe + n_args + 2);
	drop_text(p->text);
	p->text = text;
	if (!text)
		return;
	text->users = 1;
	text->cmdline_at = (uint32_t)n_exe + 1;
	memcpy(text->text, exe, n_exe);
	text->text[n_exe] = '\0';
	join(text->text + text->cmdline_at, args, n_args);
}

/* Processes that were there before the programs, from /proc (proc(5): stat, status, cmdline, cgroup). The programs
 * run already, so births and ends meanwhile are in the ring, under the same identity. */

#define STAT_PPID 1 /* fields after the command's closing parenthesis; state is 0 */
#define STAT_FLAGS 6
#define STAT_START 19
#define STAT_FIELDS 20
#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

struct proc_stat {
	uint64_t ppid, start_ticks;
	bool kernel, dead;
	char comm[SPAN_COMM_MAX];
};

/* The command may hold blanks and parentheses: the last one ends it. */
static int read_stat(const struct spans *s, uint32_t pid, struct proc_stat *ret)
{
	char text[2048], *open, *close, *save = NULL, *word;
	uint64_t field[STAT_FIELDS] = { 0 };
	unsigned n = 0;

	if (fsroot_readf(s->root, text, sizeof(text), "/proc/%u/stat", pid) < 0)
		return -ESRCH;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open)
		return -EINVAL;
	*close = '\0';
	snprintf(ret->comm, sizeof(ret->comm), "%s", open + 1);
	for (word = strtok_r(close + 1, " ", &save); word && n < STAT_FIELDS; word = strtok_r(NULL, " ", &save)) {
		if (n == 0)
			ret->dead = *word == 'Z' || *word == 'X';
		else if (*word != '-')
			parse_u64(word, &field[n]);
		n++;
	}
	ret->ppid = field[STAT_PPID];
	ret->kernel = field[STAT_FLAGS] & PF_KTHREAD;
	ret->start_ticks = field[STAT_START];
	return n == STAT_FIELDS ? 0 : -EINVAL;
}

/* Value of a line "Name:\tA B C": the first or the last of its numbers. */
static uint32_t status_number(const char *status, const char *name, bool last)
{
	const char *at = strstr(status, name), *end;
	uint32_t value = 0;

	if (!at)
		return 0;
	at += strlen(name);
	for (end = at + strcspn(at, "\n"); at < end;) {
		at += strspn(at, "\t ");
		value = (uint32_t)strtoul(at, NULL, 10);
		at += strcspn(at, "\t \n");
		if (!last)
			break;
	}
	return value;
}

static void read_status(const struct spans *s, struct process *p)
{
	char text[8192];

	if (fsroot_readf(s->root, text, sizeof(text), "/proc/%u/status", p->pid) < 0)
		return;
	p->uid = status_number(text, "\nUid:", false);
	p->ns_pid = status_number(text, "\nNStgid:", true);
}

/* A file of any length, its beginning; bytes read. */
static size_t read_beginning(const struct spans *s, uint32_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = fsroot_openat(s->root, path, O_RDONLY);
	if (fd < 0)
		return 0;
	n = read(fd, text, size);
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

void spans_read_exe(const struct spans *s, uint32_t pid, char ret_path[SPAN_PATH_MAX])
{
	char link[64], path[SPAN_PATH_MAX];
	int dir;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%u", pid);
	dir = fsroot_openat(s->root, link, O_PATH | O_DIRECTORY);
	if (dir < 0)
		return;
	n = readlinkat(dir, "exe", path, sizeof(path) - 1);
	close(dir);
	if (n <= 0)
		return;
	path[n] = '\0';
	memcpy(ret_path, path, (size_t)n + 1);
}

static void scan_one(struct spans *s, uint32_t pid, uint64_t asleep)
{
	char exe[SPAN_PATH_MAX] = "", args[SPAN_CMDLINE_MAX];
	struct proc_stat st = { 0 };
	struct process *p;
	size_t n_args;

	if (read_stat(s, pid, &st) || st.kernel || st.dead)
		return;
	p = process_add(&s->table, pid, st.start_ticks * SPANS_TICK_NS);
	if (!p) {
		s->stats.lost_processes++;
		return;
	}
	p->scanned = p->was_there = true;
	p->parent_pid = (uint32_t)st.ppid;
	p->start_ns = p->start_boot_ns > asleep ? p->start_boot_ns - asleep : 1;
	memcpy(p->comm, st.comm, sizeof(p->comm));
	read_status(s, p);
	process_cgroup(s->root, s->hierarchy, p->pid, &p->cgroup_id);
	n_args = read_beginning(s, pid, "cmdline", args, sizeof(args));
	spans_read_exe(s, pid, exe);
	process_set_text(p, exe, strlen(exe), args, n_args);
}

/* A process may stand in /proc before its parent does: parents are looked up when all are known. */
static void link_parents(struct process_table *t)
{
	for (struct process *p = NULL; (p = process_next(t, p));) {
		const struct process *parent = p->parent_pid ? process_find(t, p->parent_pid, 0) : NULL;

		p->parent_id = parent ? parent->id : 0;
	}
}

int spans_scan(struct spans *s)
{
	uint64_t asleep = asleep_ns(), pid;
	DIR *d = fsroot_opendir(s->root, "/proc");
	struct dirent *e;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && parse_u64(e->d_name, &pid) == 0 && pid < UINT32_MAX)
			scan_one(s, (uint32_t)pid, asleep);
	closedir(d);
	link_parents(&s->table);
	return 0;
}
