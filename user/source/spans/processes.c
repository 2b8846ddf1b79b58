// SPDX-License-Identifier: Apache-2.0
/* Processes that were there before the programs, from /proc (proc(5): stat, status, cmdline, cgroup). The programs
 * run already: who dies meanwhile is in the ring, who is born is there too and known by the same identity. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/parse.h"
#include "process_cgroup.h"
#include "spans_internal.h"

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
	char path[64], text[2048], *open, *close, *save = NULL, *word;
	uint64_t field[STAT_FIELDS] = { 0 };
	unsigned n = 0;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (fsroot_read(s->root, path, text, sizeof(text)) < 0)
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
	char path[64], text[8192];

	snprintf(path, sizeof(path), "/proc/%u/status", p->pid);
	if (fsroot_read(s->root, path, text, sizeof(text)) < 0)
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
	for (uint32_t i = 0; i < t->n_buckets; i++)
		for (struct process *p = t->buckets[i]; p; p = p->next) {
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
