/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the repetitions of a tree. The level of a directory follows from the depth of the files below it, because its
 * name can be anything. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/array.h"
#include "base/buf.h"
#include "tree.h"
#include "tree_files.h"

#define LOOKED_MAX 65536 /* directories that the search for the level visits */

struct walk {
	struct tree *tree;
	struct tree_findings *f;
	size_t root_len; /* length in paths of the directory that was asked for */
	unsigned looked;
	char *name[5]; /* names of the levels at the place of the walk */
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

/* Lists all names in a directory in natural order: 9 before 10. */
static int list_names(const char *path, struct names *ret)
{
	struct names l = { 0 };
	uint32_t cap = 0;
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
		else
			rc = ARRAY_ROOM(l.list, cap, l.n + 1);
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

/* Returns the number of levels from path down to the first repetition; -1 = there is none. */
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
	if (ARRAY_ROOM(t->places, t->cap, t->n + 1) != 0)
		return -ENOMEM;
	p = &t->places[t->n++];
	*p = (struct tree_place){ .path = strdup(path), .shown = strdup(below_root(w, path)) };
	for (unsigned i = TREE_EXPERIMENT; i <= TREE_REPETITION; i++) {
		p->name[i] = strdup(w->name[i] ? w->name[i] : "");
		if (!p->name[i])
			return -ENOMEM;
	}
	return p->path && p->shown ? 0 : -ENOMEM;
}

/* Reports names that are traps. Returns false where the entry is skipped. */
static bool look_at_entry(struct walk *w, const char *path, const char *name, enum tree_level level)
{
	const char *shown = below_root(w, path);

	if (level == TREE_REPETITION && !is_directory(path)) {
		tree_find(w->f, TREE_ABORTS, "file-in-run", tree_at(shown, 0),
			  "a plain file in a run directory: the reader takes it for a repetition");
		return false;
	}
	if (!is_directory(path)) {
		if (level == TREE_BENCHMARK)
			tree_find(w->f, TREE_NOTE, "file-in-experiment", tree_at(shown, 0),
				  "a plain file among the benchmarks; keep it elsewhere");
		return false;
	}
	if (level == TREE_REPETITION && hidden(name))
		tree_find(
			w->f, TREE_WRONG, "hidden-repetition", tree_at(shown, 0),
			"the reader takes it for a repetition like any other; finish it (joulectl record --recover) or move it to a name with _ beside the runs");
	else if (level == TREE_REPETITION && name[strspn(name, "0123456789")])
		tree_find(w->f, TREE_NOTE, "repetition-name", tree_at(shown, 0),
			  "no integer: the writer cannot number the next repetition");
	else if (*name == '.')
		tree_find(w->f, TREE_NOTE, "dot-directory", tree_at(shown, 0),
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
		tree_find(w->f, TREE_ABORTS, "unreadable", tree_at(below_root(w, path), 0), "%s", strerrordesc_np(-rc));
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

/* Fills in the names of dir itself and of the levels above it, from its absolute path. */
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

/* Reads the quality of energy columns: {"package-0": "estimated"}. Older recorders have one such object for both
 * files. */
static void take_quality(struct tree_repetition *r, json_t *cgroup, json_t *machine)
{
	const char *domain;
	json_t *v;

	json_object_foreach(cgroup, domain, v) {
		struct tree_quality *q = &r->quality[r->n_quality];
		const json_t *own = json_object_get(machine, domain);

		if (r->n_quality == SCHEMA_MAX_DOMAINS || strlen(domain) >= sizeof(q->domain))
			continue;
		snprintf(q->domain, sizeof(q->domain), "%s", domain);
		q->cgroup = quality_named(json_string_value(v)) & ~(unsigned)QUALITY_WRAPPED;
		q->machine = own ? quality_named(json_string_value(own)) & ~(unsigned)QUALITY_WRAPPED : q->cgroup;
		r->n_quality++;
	}
}

unsigned tree_quality_of(const struct tree_repetition *r, const char *domain, bool machine)
{
	for (unsigned i = 0; i < r->n_quality; i++)
		if (strcmp(r->quality[i].domain, domain) == 0)
			return machine ? r->quality[i].machine : r->quality[i].cgroup;
	return QUALITY_MEASURED;
}

static void take_info(struct tree_repetition *r, const json_t *doc, const char *file, struct tree_findings *f)
{
	const char *unit = json_string_value(json_object_get(doc, "external_unit"));
	const char *from = json_string_value(json_object_get(doc, "power_samples_from"));
	const char *device = json_string_value(json_object_get(doc, "device_name"));

	r->has_info = true;
	take_quality(r, json_object_get(doc, "energy_quality"), json_object_get(doc, "machine_quality"));
	if (unit && strcmp(unit, "mW") == 0)
		r->external_mw = 1;
	else if (unit && strcmp(unit, "10mW") == 0)
		r->external_mw = 10;
	else if (unit)
		tree_find(f, TREE_NOTE, "external-unit", tree_at(file, 0),
			  "external_unit is neither mW nor 10mW; taken for mW");
	snprintf(r->samples_from, sizeof(r->samples_from), "%s", from ? from : "");
	snprintf(r->device, sizeof(r->device), "%s", device ? device : "");
}

/* Reads the whole file. 0; -EFBIG: it is larger than TREE_INFO_MAX; or another negative errno. */
static int slurp(int fd, struct buf *b)
{
	for (;;) {
		uint8_t *p = buf_reserve(b, 65536);
		ssize_t n = p ? read(fd, p, 65536) : -1;

		if (n == 0)
			return 0;
		if (!p || (n < 0 && errno != EINTR))
			return p ? -errno : -ENOMEM;
		b->len += n > 0 ? (size_t)n : 0;
		if (b->len > TREE_INFO_MAX)
			return -EFBIG;
	}
}

static int read_info(int dir, const char *shown, struct tree_repetition *r, struct tree_findings *f)
{
	int fd = tree_file_open(dir, "system_info.json"), rc;
	struct buf b = { 0 };
	char file[1024];
	json_error_t why;
	json_t *doc;

	snprintf(file, sizeof(file), "%s/system_info.json", shown);
	if (fd < 0) {
		r->info_broken = fd != -ENOENT;
		if (fd != -ENOENT)
			tree_find(f, TREE_ABORTS, "unreadable", tree_at(file, 0), "%s", strerrordesc_np(-fd));
		return 0;
	}
	rc = slurp(fd, &b);
	close(fd);
	if (rc) {
		r->info_broken = true;
		tree_find(f, TREE_ABORTS, "unreadable", tree_at(file, 0), "%s", strerrordesc_np(-rc));
	} else if (!(doc = json_loadb(b.len ? (const char *)b.data : "", b.len, 0, &why))) {
		r->info_broken = true;
		tree_find(f, TREE_ABORTS, "bad-json", tree_at(file, why.line > 0 ? (unsigned long)why.line : 0),
			  "no JSON: %s", why.text);
	} else {
		take_info(r, doc, file, f);
		json_decref(doc);
	}
	buf_free(&b);
	return rc == -ENOMEM ? rc : 0;
}

void tree_repetition_free(struct tree_repetition *r)
{
	for (unsigned i = 0; i < TREE_TABLES; i++)
		tree_table_free(&r->table[i]);
	free(r->events);
	*r = (struct tree_repetition){ 0 };
}

int tree_repetition_read(const struct tree_place *p, struct tree_repetition *ret, struct tree_findings *f,
			 struct err *err)
{
	int dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	*ret = (struct tree_repetition){ 0 };
	if (dir < 0)
		return err_set(err, -errno, "%s: %s", p->path, strerrordesc_np(errno));
	rc = read_info(dir, p->shown, ret, f);
	if (!rc)
		rc = tree_events_read(dir, p->shown, ret, f);
	for (unsigned i = 0; i < TREE_TABLES && !rc; i++)
		rc = tree_table_read(dir, i, p->shown, &ret->table[i], f);
	close(dir);
	if (!rc)
		return 0;
	tree_repetition_free(ret);
	return err_set(err, rc, "%s: out of memory; name a directory below it", p->path);
}

/* The window by the rules of the original. With two or more epochs the first one is warm-up and dropped; with three or
 * more the last one is dropped too. With fewer than two the window is the time that all series have in common. Events
 * experiment_* and train_* do not matter. */

/* Finds the time of the only event with this name and number. 0 or -ENODATA. */
static int find_event(const struct tree_repetition *r, const char *name, int64_t data, int64_t *ret_ns, struct err *err)
{
	unsigned found = 0;

	for (size_t i = 0; i < r->n_events; i++)
		if (r->events[i].has_data && r->events[i].data == data && strcmp(r->events[i].name, name) == 0 &&
		    !found++)
			*ret_ns = r->events[i].t_ns;
	if (found == 1)
		return 0;
	return err_set(err, -ENODATA,
		       "timestamps.csv: %s %lld stands there %u times, not once: epochs must be counted from 0", name,
		       (long long)data, found);
}

static unsigned count_epochs(const struct tree_repetition *r)
{
	unsigned n = 0;

	for (size_t i = 0; i < r->n_events; i++)
		n += strcmp(r->events[i].name, "epoch_begin") == 0;
	return n;
}

/* Sets the window from the latest first row to the earliest last row of the tables from..to. false: they have no rows. */
static bool common(const struct tree_repetition *r, unsigned from, unsigned to, struct tree_window *w)
{
	bool any = false;

	for (unsigned k = from; k <= to; k++) {
		const struct tree_table *t = &r->table[k];
		int64_t first, last;

		if (!t->n)
			continue;
		first = last = t->t_ns[0];
		for (size_t i = 1; i < t->n; i++) {
			first = t->t_ns[i] < first ? t->t_ns[i] : first;
			last = t->t_ns[i] > last ? t->t_ns[i] : last;
		}
		w->start_ns = any && w->start_ns > first ? w->start_ns : first;
		w->end_ns = any && w->end_ns < last ? w->end_ns : last;
		any = true;
	}
	return any;
}

int tree_window_of(const struct tree_repetition *r, struct tree_window *ret, struct err *err)
{
	struct tree_window w = { .epochs = count_epochs(r) };
	int rc;

	if (w.epochs >= 2) {
		w.by_epochs = true;
		rc = find_event(r, "epoch_begin", 1, &w.start_ns, err);
		if (!rc)
			rc = find_event(r, "epoch_end", w.epochs >= 3 ? (int64_t)w.epochs - 2 : 1, &w.end_ns, err);
		if (rc)
			return rc;
	} else if (!common(r, TREE_GPU, TREE_EXTERNAL, &w) && !common(r, TREE_RAPL, TREE_CGROUP, &w)) {
		return err_set(err, -ENODATA, "no power in any file");
	}
	if (w.end_ns <= w.start_ns)
		return err_set(err, -ENODATA, "%s",
			       w.by_epochs ? "timestamps.csv: the epochs end before they begin" :
					     "the files have no time in common; are all of them in UTC?");
	*ret = w;
	return 0;
}
