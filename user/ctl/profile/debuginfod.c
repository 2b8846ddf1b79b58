/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfod.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/log.h"
#include "store/recorder/recorder.h"

#define FILE_MAX ((uint64_t)256 << 20)
#define TIMEOUT_NS (120 * NS_PER_S) /* of a file */
#define STATUS_OK 200
#define STATUS_NOT_THERE 404

static int take(void *arg, long status, const char *data, size_t n)
{
	struct debuginfod *d = arg;

	d->bytes += n;
	if (d->bytes > FILE_MAX)
		return -EMSGSIZE;
	while (status == STATUS_OK && n) {
		const ssize_t done = write(d->part, data, n);

		if (done < 0)
			return -errno;
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

static int add_server(struct debuginfod *d, const char *url, size_t n, struct err *err)
{
	struct debuginfod_server *s = &d->server[d->n];
	struct http_client_options o = { .timeout_ns = TIMEOUT_NS,
					 .proxies = true,
					 .answer_max = FILE_MAX,
					 .not_this = "put the file below --debug-dir by hand",
					 .take = take,
					 .arg = d };

	while (n && url[n - 1] == '/')
		n--;
	if (d->n == DEBUGINFOD_SERVERS_MAX)
		return err_set(err, -EINVAL, "profile: --debuginfod: more than %d servers; leave some out",
			       DEBUGINFOD_SERVERS_MAX);
	s->url = strndup(url, n);
	if (!s->url)
		return err_set(err, -ENOMEM, "profile: out of memory; free some");
	d->n++;
	if ((strncmp(s->url, "http://", 7) != 0 && strncmp(s->url, "https://", 8) != 0) ||
	    http_client_check_url(s->url, NULL) != 0)
		return err_set(err, -EINVAL,
			       "profile: --debuginfod %.200s: no server; expected http://HOST:PORT or https://HOST",
			       s->url);
	o.subject = s->url;
	return http_client_new(&o, &s->http, err);
}

int debuginfod_open(struct debuginfod *d, const char *urls, struct err *err)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n, rc = 0;

	*d = (struct debuginfod){ .part = -1 };
	if (cache && cache[0] == '/')
		n = snprintf(d->dir, sizeof(d->dir), "%s/jouled", cache);
	else
		n = snprintf(d->dir, sizeof(d->dir), "%s/.cache/jouled", home ? home : "");
	if (d->dir[0] != '/' || n >= (int)sizeof(d->dir) || strchr(d->dir, ':'))
		rc = err_set(err, -EINVAL,
			     "profile: --debuginfod: no place for its files; set XDG_CACHE_HOME to a directory");
	for (const char *at = urls; !rc && at; at = strchr(at, ','), at += at ? 1 : 0)
		rc = add_server(d, at, strcspn(at, ","), err);
	return rc;
}

/* False: the server has no such file, or failed. */
static bool ask(struct debuginfod *d, struct debuginfod_server *s, const char *build_id)
{
	struct err err = { 0 };
	struct http_answer answer = { 0 };
	char url[2048];
	int rc;

	if (snprintf(url, sizeof(url), "%s/buildid/%s/debuginfo", s->url, build_id) >= (int)sizeof(url))
		return false;
	d->bytes = 0;
	if (ftruncate(d->part, 0) != 0 || lseek(d->part, 0, SEEK_SET) != 0)
		return false;
	rc = http_client_ask(s->http, &(struct http_ask){ .url = url }, &answer, &err);
	buf_free(&answer.body);
	if (rc) {
		s->silent = rc != -EMSGSIZE;
		log_warn("profile: build id %s: %s%s", build_id, err.text,
			 s->silent ? "; the server is not asked again; look at --debuginfod" : "");
	} else if (answer.status != STATUS_OK && answer.status != STATUS_NOT_THERE) {
		log_warn("profile: build id %s: %.200s: HTTP status %ld; look at --debuginfod", build_id, s->url,
			 answer.status);
	}
	return !rc && answer.status == STATUS_OK;
}

/* Fetches into a file beside its place. True: some server had the right one. */
static bool fetch_part(struct debuginfod *d, struct symbol_files *files, const char *build_id)
{
	for (unsigned i = 0; i < d->n; i++) {
		char got[BUILD_ID_TEXT];

		if (d->server[i].silent || !ask(d, &d->server[i], build_id))
			continue;
		if (symbol_files_id(files, d->part, got) == 0 && strcmp(got, build_id) == 0)
			return true;
		log_warn("profile: build id %s: %.200s: its answer is a file of another build id, and is not believed; "
			 "look at --debuginfod",
			 build_id, d->server[i].url);
	}
	return false;
}

bool debuginfod_fetch(struct debuginfod *d, struct symbol_files *files, const char *build_id)
{
	char dir[PATH_MAX], path[PATH_MAX + BUILD_ID_TEXT + 16], part[sizeof(path) + 16];
	struct err err = { 0 };
	bool fine;

	snprintf(dir, sizeof(dir), "%s/.build-id/%.2s", d->dir, build_id);
	snprintf(path, sizeof(path), "%s/%s.debug", dir, build_id + 2);
	snprintf(part, sizeof(part), "%s.XXXXXX", path);
	if (recorder_make_dirs(dir, &err) != 0) {
		log_warn("profile: %s", err.text);
		return false;
	}
	d->part = mkostemp(part, O_CLOEXEC);
	if (d->part < 0) {
		log_warn("profile: %.300s: %s; %s", part, strerrordesc_np(errno), err_write_remedy(-errno));
		return false;
	}
	fine = fetch_part(d, files, build_id);
	if (fine && rename(part, path) != 0) {
		log_warn("profile: %.300s: %s; %s", path, strerrordesc_np(errno), err_write_remedy(-errno));
		fine = false;
	}
	if (!fine)
		unlink(part);
	close(d->part);
	d->part = -1;
	return fine;
}

void debuginfod_close(struct debuginfod *d)
{
	for (unsigned i = 0; i < d->n; i++) {
		http_client_free(d->server[i].http);
		free(d->server[i].url);
	}
	*d = (struct debuginfod){ .part = -1 };
}
