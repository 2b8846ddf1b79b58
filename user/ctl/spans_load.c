/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../store/spool_read.h"
#include "../store/trace_record.h"
#include "agent.h"
#include "choice.h"
#include "source.h"
#include "spans.h"

#define FILE_MAX ((size_t)256 << 20)
#define MOST_SPANS 100000

int spans_list_add(struct spans_list *l, struct trace *t, void *doc)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 16;
		struct trace **v = realloc(l->v, cap * sizeof(struct trace *));
		void **docs;

		if (v)
			l->v = v;
		docs = v ? realloc(l->docs, cap * sizeof(void *)) : NULL;
		if (!docs)
			return -ENOMEM;
		l->docs = docs;
		l->cap = cap;
	}
	l->v[l->n] = t;
	l->docs[l->n++] = doc;
	return 0;
}

void spans_list_free(struct spans_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->docs[i])
			free(l->v[i]);
		else
			trace_record_free(l->v[i]);
		json_decref(l->docs[i]);
	}
	free(l->v);
	free(l->docs);
	*l = (struct spans_list){ 0 };
}

struct from_spool {
	struct spans_list *list;
	struct trace_pick pick;
	struct err *err;
};

/* A record of another version, or a damaged one, does not hide the others. */
static int take_record(void *ctx, int64_t real_ns, const void *data, size_t len)
{
	struct from_spool *f = ctx;
	struct trace *t;
	int rc = trace_record_read(data, len, &t, f->err);

	if (rc)
		return rc == -ENOMEM ? rc : 0;
	if (!trace_picked(t, &f->pick)) {
		trace_record_free(t);
		return 0;
	}
	rc = spans_list_add(f->list, t, NULL);
	if (rc)
		trace_record_free(t);
	return rc;
}

static int read_all(const char *path, struct buf *b, struct err *err)
{
	int fd = source_open(path, err), rc = 0;

	if (fd < 0)
		return fd;
	b->limit = FILE_MAX + 65536;
	for (ssize_t n = 1; n && !rc;) {
		uint8_t *to = b->len > FILE_MAX ? NULL : buf_reserve(b, 65536);

		n = to ? read(fd, to, 65536) : -1;
		if (n > 0)
			b->len += (size_t)n;
		else if (!to)
			rc = err_set(err, -EFBIG, "%s: more than 256 MiB; ask for less", path);
		else if (n < 0 && errno != EINTR)
			rc = err_set(err, -errno, "%s: %s; name a file that can be read", path, strerrordesc_np(errno));
	}
	close(fd);
	return rc;
}

/* Those that were asked for, of a file that holds more. */
static void pick(struct spans_list *l, const struct trace_pick *p)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (trace_picked(l->v[i], p)) {
			l->docs[n] = l->docs[i];
			l->v[n++] = l->v[i];
			continue;
		}
		json_decref(l->docs[i]);
		free(l->v[i]);
	}
	l->n = n;
}

static void reverse(struct spans_list *l)
{
	for (size_t i = 0; i < l->n / 2; i++) {
		struct trace *t = l->v[i];

		l->v[i] = l->v[l->n - 1 - i];
		l->v[l->n - 1 - i] = t;
	}
}

static int load_file(const struct verb_call *call, struct spans_list *l, struct err *err)
{
	const char *path = call->args[0];
	struct from_spool f = { .list = l,
				.err = err,
				.pick = { .cgroup = call->option[SPANS_CGROUP],
					  .since_ns = INT64_MIN,
					  .uuid = call->option[SPANS_TRACE],
					  .command = call->option[SPANS_COMMAND],
					  .until_ns = INT64_MIN } };
	struct buf text = { 0 };
	int rc = strcmp(path, "-") == 0 ? -ENODATA : spool_read(path, take_record, &f, err);

	if (rc != -ENODATA) {
		reverse(l); /* all are records: docs are all NULL */
		return rc;
	}
	rc = read_all(path, &text, err);
	if (!rc)
		rc = spans_read_json(l, (const char *)text.data, text.len, path, err);
	if (!rc)
		pick(l, &f.pick);
	buf_free(&text);
	return rc;
}

static void add_parameter(struct buf *b, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(b, "&%s=", name);
	agent_escape(b, value);
}

static int load_agent(const struct verb_call *call, uint64_t limit, struct spans_list *l, struct err *err)
{
	struct buf path = { 0 }, body = { 0 };
	struct agent *a = NULL;
	int rc = agent_open(call->option[SPANS_SOCKET], &a, err);

	if (rc)
		return rc;
	buf_printf(&path, "/v1/spans?limit=%llu", (unsigned long long)limit);
	add_parameter(&path, "cgroup", call->option[SPANS_CGROUP]);
	add_parameter(&path, "command", call->option[SPANS_COMMAND]);
	add_parameter(&path, "since", call->option[SPANS_SINCE]);
	add_parameter(&path, "until", call->option[SPANS_UNTIL]);
	add_parameter(&path, "trace", call->option[SPANS_TRACE]);
	buf_add_char(&path, '\0');
	rc = path.failed ? err_set(err, -ENOMEM, "spans: out of memory; free some") :
			   agent_get(a, (const char *)path.data, NULL, &body, err);
	if (!rc)
		rc = spans_read_json(l, (const char *)body.data, body.len, "agent", err);
	buf_free(&path);
	buf_free(&body);
	agent_close(a);
	return rc;
}

int spans_load(const struct verb_call *call, struct spans_list *ret, struct err *err)
{
	uint64_t limit = 1000;
	int rc = choice_number("spans: --limit", call->option[SPANS_LIMIT], 1, MOST_SPANS, &limit, err);

	if (rc)
		return rc;
	if (call->option[SPANS_TRACE] && !trace_uuid_ok(call->option[SPANS_TRACE]))
		return err_set(err, -EINVAL, "spans: --trace: no uuid; take one of those that spans --json tells");
	if (call->n && (call->option[SPANS_SINCE] || call->option[SPANS_UNTIL] || call->option[SPANS_LIMIT]))
		return err_set(err, -EINVAL,
			       "spans: --since, --until, --limit: for the agent alone; a file is read whole");
	return call->n ? load_file(call, ret, err) : load_agent(call, limit, ret, err);
}

int spans_write(const char *path, const struct buf *b, struct err *err)
{
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : STDOUT_FILENO, rc = 0;

	if (b->failed)
		rc = err_set(err, -ENOMEM, "spans: out of memory; ask for less");
	else if (fd < 0)
		rc = err_set(err, -errno, "%s: %s; name a file that can be written", path, strerrordesc_np(errno));
	for (size_t at = 0; at < b->len && !rc;) {
		ssize_t n = write(fd, b->data + at, b->len - at);

		if (n >= 0)
			at += (size_t)n;
		else if (errno != EINTR)
			rc = err_set(err, -errno, "%s: %s; is there room?", path ? path : "standard output",
				     strerrordesc_np(errno));
	}
	if (path && fd >= 0 && close(fd) != 0 && !rc)
		rc = err_set(err, -errno, "%s: %s; is there room?", path, strerrordesc_np(errno));
	return rc;
}
