/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/array.h"
#include "sink/url.h"
#include "writes.h"

static int add(struct writes *w, const char *resolved)
{
	for (unsigned i = 0; i < w->n; i++)
		if (strcmp(w->tree[i], resolved) == 0)
			return 0;
	if (ARRAY_RESIZE(w->tree, w->n + 1) != 0)
		return -ENOMEM;
	w->tree[w->n] = strdup(resolved);
	return w->tree[w->n] ? (w->n++, 0) : -ENOMEM;
}

/* Cuts off the last name. Never returns the root, so the root never stands for a deeper missing directory. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

/* Adds the directory, or its nearest existing parent, in which the missing ones are made. */
static int add_directory(struct writes *w, char *path)
{
	char resolved[PATH_MAX];
	struct stat st;

	do {
		if (realpath(path, resolved) && stat(resolved, &st) == 0 && S_ISDIR(st.st_mode))
			return add(w, resolved);
	} while (go_up(path));
	return *path == '/' ? 0 : add(w, realpath(".", resolved) ? resolved : "/");
}

/* Adds the directory of a file, so that the file can be made again after it was moved away. */
static int add_file(struct writes *w, const char *file)
{
	char path[PATH_MAX];

	if (!file || strlen(file) >= sizeof(path))
		return 0;
	snprintf(path, sizeof(path), "%s", file);
	if (!go_up(path))
		snprintf(path, sizeof(path), *file == '/' ? "/" : ".");
	return add_directory(w, path);
}

static bool is_csv(const struct output_config *o)
{
	return o->file_format && strcmp(o->file_format, "csv") == 0;
}

static int add_output(struct writes *w, const struct output_config *o)
{
	struct sink_url u;
	int rc = add_file(w, o->port_file);

	if (rc || sink_url_scheme(o->to, &u, NULL) != 0 ||
	    (strcmp(u.scheme, "file") != 0 && strcmp(u.scheme, "unix-listen") != 0) ||
	    sink_url_rest(o->to, SINK_URL_PATH, &u, NULL) != 0)
		return rc;
	rc = add_file(w, u.path);
	/* CSV reports of several groups: the path is a directory */
	return rc || !is_csv(o) ? rc : add_directory(w, u.path);
}

/* Adds the directories that systemd made for the service (systemd.exec(5)): a reload may need them. */
static int add_service(struct writes *w)
{
	static const char *const names[] = { "STATE_DIRECTORY", "LOGS_DIRECTORY", "RUNTIME_DIRECTORY" };
	char path[PATH_MAX];
	int rc = 0;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]) && !rc; i++) {
		const char *dir = getenv(names[i]);

		if (!dir || *dir != '/' || strlen(dir) >= sizeof(path) || strchr(dir, ':'))
			continue;
		snprintf(path, sizeof(path), "%s", dir);
		rc = add_directory(w, path);
	}
	return rc;
}

int writes_list(const struct config *c, struct writes *ret, struct err *err)
{
	struct writes w = { 0 };
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s", c->state_dir);
	rc = add_directory(&w, path);
	if (!rc)
		rc = add_service(&w);
	if (!rc)
		rc = add_file(&w, c->serving.socket.path);
	if (!rc)
		rc = add_file(&w, c->serving.history.path);
	if (!rc && c->serving.web.listen)
		rc = add_file(&w, c->serving.web.token_file);
	for (unsigned i = 0; i < c->outputs.n && !rc; i++)
		rc = add_output(&w, &c->outputs.v[i]);
	if (rc) {
		writes_free(&w);
		return err_set(err, rc, "landlock: out of memory; free some");
	}
	*ret = w;
	return 0;
}

void writes_free(struct writes *w)
{
	for (unsigned i = 0; i < w->n; i++)
		free(w->tree[i]);
	free(w->tree);
	*w = (struct writes){ 0 };
}
