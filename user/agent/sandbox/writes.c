/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../sink/url.h"
#include "writes.h"

static int add(struct writes *w, const char *resolved)
{
	char **more;

	for (unsigned i = 0; i < w->n; i++)
		if (strcmp(w->tree[i], resolved) == 0)
			return 0;
	more = realloc(w->tree, (w->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	w->tree = more;
	w->tree[w->n] = strdup(resolved);
	return w->tree[w->n] ? (w->n++, 0) : -ENOMEM;
}

/* Cuts the last name off. The root is never given away for want of something deeper. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

/* The directory itself, or the nearest above that exists: what is missing is made in it. */
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

/* Of a file: where it lies, so that it can be made anew after it was moved away. */
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

/* What systemd has made for the service (systemd.exec(5)): a reload may come to need it. */
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
		rc = add_file(&w, c->socket);
	if (!rc)
		rc = add_file(&w, c->history);
	if (!rc && c->web_listen)
		rc = add_file(&w, c->web_token_file);
	for (unsigned i = 0; i < c->n_outputs && !rc; i++)
		rc = add_output(&w, &c->outputs[i]);
	if (rc) {
		writes_free(&w);
		return err_set(err, rc, "landlock: out of memory");
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
