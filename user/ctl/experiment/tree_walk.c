/* SPDX-License-Identifier: Apache-2.0 */
/* Which level a directory is of is seen from how far below it the files are: the names of the levels are free. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tree.h"

#define LOOKED_MAX 65536 /* directories, in the search for the level */

struct walk {
	struct tree *tree;
	struct tree_findings *f;
	size_t root_len; /* of what was asked for, in paths */
	unsigned looked;
	char *name[5]; /* of where the walk is */
};

struct names {
	char **list;
	unsigned n;
};

static void names_free(struct names *l)
{
	for (unsigned i = 0; i < l->n; i++)
		free(l->list[i]);
	free(l->list);
}

static int by_nature(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* All names in a directory in natural order: 9 before 10. */
static int list_names(const char *path, struct names *ret)
{
	struct names l = { 0 };
	DIR *dir = opendir(path);
	struct dirent *e;
	int rc = 0;

	if (!dir)
		return -errno;
	while (!rc && (e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (l.n == TREE_ENTRIES_MAX)
			rc = -EFBIG;
		else if (!(l.n & (l.n + 1)) || !l.list) {
			char **list = realloc(l.list, 2 * (l.n + 1) * sizeof(*list));

			rc = list ? 0 : -ENOMEM;
			l.list = list ? list : l.list;
		}
		if (!rc) {
			l.list[l.n] = strdup(e->d_name);
			rc = l.list[l.n] ? 0 : -ENOMEM;
			l.n += !rc;
		}
	}
	closedir(dir);
	if (rc) {
		names_free(&l);
		return rc;
	}
	if (l.n)
		qsort(l.list, l.n, sizeof(*l.list), by_nature);
	*ret = l;
	return 0;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_ours(const char *name)
{
	if (!strcmp(name, "timestamps.csv") || !strcmp(name, "system_info.json"))
		return true;
	for (unsigned i = 0; i < TREE_TABLES; i++)
		if (strcmp(name, tree_table_file[i]) == 0)
			return true;
	return false;
}

static bool hidden(const char *name)
{
	return *name == '_' || *name == '.';
}

static int join(char *dst, const char *path, const char *name)
{
	int n = snprintf(dst, PATH_MAX, "%s/%s", path, name);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int below_depth(int depth)
{
	return depth < 0 ? -1 : depth + 1;
}

/* How many levels below path the first repetition is, -1 = nowhere. */
static int depth_of(struct walk *w, const char *path, int left)
{
	char below[PATH_MAX];
	struct names l;
	int depth = -1;

	if (w->looked++ >= LOOKED_MAX || list_names(path, &l))
		return -1;
	for (unsigned i = 0; i < l.n && depth < 0; i++)
		if (is_ours(l.list[i]))
			depth = 0;
	for (unsigned i = 0; left && i < l.n && depth < 0; i++)
		if (!hidden(l.list[i]) && !join(below, path, l.list[i]) && is_directory(below))
			depth = below_depth(depth_of(w, below, left - 1));
	names_free(&l);
	return depth;
}

static const char *below_root(const struct walk *w, const char *path)
{
	const char *s = path + w->root_len;

	return *s == '/' ? s + 1 : *s ? s : ".";
}

static int add_place(struct walk *w, const char *path)
{
	struct tree *t = w->tree;
	struct tree_place *p;

	if (t->n == TREE_PLACES_MAX)
		return -EFBIG;
	if (t->n == t->cap) {
		unsigned cap = t->cap ? 2 * t->cap : 16;

		p = realloc(t->places, cap * sizeof(*p));
		if (!p)
			return -ENOMEM;
		t->places = p;
		t->cap = cap;
	}
	p = &t->places[t->n++];
	*p = (struct tree_place){ .path = strdup(path), .shown = strdup(below_root(w, path)) };
	for (unsigned i = TREE_EXPERIMENT; i <= TREE_REPETITION; i++) {
		p->name[i] = strdup(w->name[i] ? w->name[i] : "");
		if (!p->name[i])
			return -ENOMEM;
	}
	return p->path && p->shown ? 0 : -ENOMEM;
}

/* Traps that names are. false: the entry is passed over. */
static bool look_at_entry(struct walk *w, const char *path, const char *name, enum tree_level level)
{
	const char *shown = below_root(w, path);

	if (level == TREE_REPETITION && !is_directory(path)) {
		tree_find(w->f, TREE_ABORTS, "file-in-run", shown, 0,
			  "a plain file in a run directory: the reader takes it for a repetition");
		return false;
	}
	if (!is_directory(path)) {
		if (level == TREE_BENCHMARK)
			tree_find(w->f, TREE_NOTE, "file-in-experiment", shown, 0,
				  "a plain file among the benchmarks; keep it elsewhere");
		return false;
	}
	if (level == TREE_REPETITION && hidden(name))
		tree_find(
			w->f, TREE_WRONG, "hidden-repetition", shown, 0,
			"the reader takes it for a repetition like any other; finish it (joulectl record --recover) or move it to a name with _ beside the runs");
	else if (level == TREE_REPETITION && name[strspn(name, "0123456789")])
		tree_find(w->f, TREE_NOTE, "repetition-name", shown, 0,
			  "no integer: the writer cannot number the next repetition");
	else if (*name == '.')
		tree_find(w->f, TREE_NOTE, "dot-directory", shown, 0,
			  "only names with _ are passed over by the reader");
	return !hidden(name);
}

static int walk(struct walk *w, const char *path, enum tree_level level)
{
	char below[PATH_MAX];
	struct names l;
	int rc;

	if (level == TREE_REPETITION)
		return add_place(w, path);
	rc = list_names(path, &l);
	if (rc) {
		tree_find(w->f, TREE_ABORTS, "unreadable", below_root(w, path), 0, "%s", strerrordesc_np(-rc));
		return rc == -ENOMEM ? rc : 0;
	}
	for (unsigned i = 0; i < l.n && !rc; i++) {
		rc = join(below, path, l.list[i]);
		if (rc || !look_at_entry(w, below, l.list[i], level + 1))
			continue;
		w->name[level + 1] = l.list[i];
		rc = walk(w, below, level + 1);
	}
	names_free(&l);
	return rc;
}

/* The names of dir itself and of the levels above it. */
static void name_upwards(struct walk *w, char *real, enum tree_level level)
{
	for (int i = (int)level; i >= TREE_EXPERIMENT; i--) {
		char *slash = strrchr(real, '/');

		if (!slash)
			return;
		w->name[i] = slash + 1;
		*slash = '\0';
	}
}

int tree_walk(const char *dir, struct tree *ret, struct tree_findings *f, struct err *err)
{
	struct walk w = { .tree = ret, .f = f, .root_len = strlen(dir) };
	char real[PATH_MAX];
	int rc, depth;

	*ret = (struct tree){ 0 };
	if (!realpath(dir, real))
		return err_set(err, -errno, "%s: %s; name a directory of recorded experiments", dir,
			       strerrordesc_np(errno));
	if (!is_directory(real))
		return err_set(err, -ENOTDIR,
			       "%s: no directory; name the one that joulectl record --root wrote, or one below it",
			       dir);
	depth = depth_of(&w, dir, TREE_REPETITION);
	if (depth < 0)
		return err_set(
			err, -ENODATA,
			"%s: no recorded repetition in it or up to four levels below; write one with joulectl record",
			dir);
	ret->level = (enum tree_level)(TREE_REPETITION - depth);
	name_upwards(&w, real, ret->level);
	rc = walk(&w, dir, ret->level);
	if (rc == -EFBIG)
		return err_set(err, rc, "%s: more than %u repetitions; name a directory below it", dir,
			       TREE_PLACES_MAX);
	return rc ? err_set(err, rc, "%s: %s", dir, strerrordesc_np(-rc)) : 0;
}

void tree_free(struct tree *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		for (unsigned k = 0; k < 5; k++)
			free(t->places[i].name[k]);
		free(t->places[i].path);
		free(t->places[i].shown);
	}
	free(t->places);
	*t = (struct tree){ 0 };
}
