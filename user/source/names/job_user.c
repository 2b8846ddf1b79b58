/* SPDX-License-Identifier: Apache-2.0 */
/* The user of a batch job whose path does not tell it (Slurm on v2), by the real uid of its tasks. slurmstepd starts a
 * task in its cgroup as root and under its own name, and becomes the user before the task's program begins; its helper in
 * step_extern stays root's. So a task of another user decides, and one of root only when it is neither of the two. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "look.h"

#define ENTRIES_MAX 1024 /* of a directory */
#define PROCESSES_MAX 1024 /* of one look */
#define PATH_BYTES 8192

struct search {
	const struct look *l;
	unsigned left; /* processes that may still be looked at */
	bool helpers; /* below step_extern */
	bool found, root; /* a user's task; one of root */
	uid_t user;
};

/* Reads the first bytes of a file, NUL-terminated. A file that is not there is empty. */
static void read_start(const struct fsroot *root, const char *path, char *text, size_t size)
{
	int fd = fsroot_openat(root, path, O_RDONLY);
	size_t len = 0;
	ssize_t n = 0;

	while (fd >= 0 && len + 1 < size && (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	text[len] = '\0';
}

/* Lines "Name:" and "Uid:", which are among the first ten (proc_pid_status(5)). */
static void look_at_process(struct search *s, unsigned long pid)
{
	char path[64], text[1024];
	const char *uid;
	unsigned real;

	snprintf(path, sizeof(path), "/proc/%lu/status", pid);
	read_start(s->l->root, path, text, sizeof(text));
	uid = strstr(text, "\nUid:\t");
	if (!uid || sscanf(uid, "\nUid:\t%10u", &real) != 1 || real == NAMING_NOBODY)
		return;
	if (real) {
		s->found = true;
		s->user = real;
	} else if (!s->helpers && strncmp(text, "Name:\tslurmstepd\n", strlen("Name:\tslurmstepd\n")) != 0) {
		s->root = true;
	}
}

/* Processes outside the agent's PID namespace are listed as 0. A number that the buffer's end cuts is left out. */
static void look_at_task(struct search *s, const char *task)
{
	char path[PATH_BYTES], text[4096];
	const char *at = text;

	if (snprintf(path, sizeof(path), "%s/cgroup.procs", task) >= (int)sizeof(path))
		return;
	read_start(s->l->root, path, text, sizeof(text));
	while (s->left && !s->found && *at >= '0' && *at <= '9') {
		char *end;
		unsigned long pid = strtoul(at, &end, 10);

		if (*end != '\n')
			return;
		if (pid) {
			s->left--;
			look_at_process(s, pid);
		}
		at = end + 1;
	}
}

static void look_below(struct search *s, const char *dir, const char *word,
		       void (*look)(struct search *s, const char *path));

static void look_at_step(struct search *s, const char *step)
{
	static const char helpers[] = "/step_extern";
	size_t len = strlen(step), n = sizeof(helpers) - 1;
	char path[PATH_BYTES];

	s->helpers = len > n && strcmp(step + len - n, helpers) == 0;
	if (snprintf(path, sizeof(path), "%s/user", step) < (int)sizeof(path))
		look_below(s, path, "task_", look_at_task);
}

/* Looks at each directory whose name begins with word, until a user is found. */
static void look_below(struct search *s, const char *dir, const char *word,
		       void (*look)(struct search *s, const char *path))
{
	DIR *d = fsroot_opendir(s->l->root, dir);
	unsigned left = ENTRIES_MAX;
	const struct dirent *e;
	char path[PATH_BYTES];

	while (d && left-- && s->left && !s->found && (e = readdir(d)))
		if (strncmp(e->d_name, word, strlen(word)) == 0 &&
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < (int)sizeof(path))
			look(s, path);
	if (d)
		closedir(d);
}

bool naming_job_user(const struct look *l, uid_t *ret)
{
	struct search s = { .l = l, .left = PROCESSES_MAX };
	size_t n = l->place.above + strcspn(l->path + l->place.above, "/");
	char path[PATH_BYTES];

	if (snprintf(path, sizeof(path), "%s%.*s", l->mount, (int)n, l->path) >= (int)sizeof(path))
		return false;
	look_below(&s, path, "step_", look_at_step);
	if (s.found || s.root)
		*ret = s.user;
	return s.found || s.root;
}
