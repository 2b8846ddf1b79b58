/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/http/http_client.h"
#include "agent_client.h"

#define CONNECT_LIMIT_NS (5 * NS_PER_S)
#define LOOK_MS 100 /* longest time between two looks at *stop */
#define ERROR_MAX 8192u /* bytes that are kept of an answer whose status is not 200 */

struct agent {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct http_client *http;
	bool trusted;
	long status; /* of the last answer to agent_get or agent_post */
	int also; /* waiting also ends when this descriptor has input; -1 = none */
	struct buf *body; /* takes the bytes of an answer with status 200: answer or stream */
	struct buf answer;
	struct buf stream; /* bytes received, from `taken` on not yet read */
	size_t taken; /* bytes of stream that were read */
	struct buf refusal; /* body of an answer with another status */
};

static const char *remedy(int rc)
{
	switch (rc) {
	case -ENOENT:
		return "is jouled running? Start it (systemctl start jouled, or as root: jouled), or name its socket with --socket";
	case -ECONNREFUSED:
		return "the agent that made it has ended; start it again (systemctl start jouled, or as root: jouled)";
	case -EACCES:
	case -EPERM:
		return "become root, or join the socket's group (usually jouled) and log in again";
	case -ETIMEDOUT:
		return "is the agent stopped or overloaded?";
	default:
		return "is that the socket of a running jouled?";
	}
}

static int unreachable(const struct agent *a, int rc, struct err *err)
{
	return err_set(err, rc, "%s: %s; %s", a->path, rc == -ENOENT ? "no agent there" : strerrordesc_np(-rc),
		       remedy(rc));
}

/* Connects once without libcurl, whose error for a socket without permission does not name the cause. */
static int try_connect(struct agent *a, struct err *err)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(peer);
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return unreachable(a, -errno, err);
	memcpy(to.sun_path, a->path, sizeof(to.sun_path));
	rc = connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 ? 0 : unreachable(a, -errno, err);
	a->trusted = !rc && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
		     (peer.uid == 0 || peer.uid == geteuid());
	close(fd);
	return rc;
}

static int take_body(void *arg, long status, const char *piece, size_t n)
{
	struct agent *a = arg;

	if (status == 200) {
		buf_add(a->body, piece, n);
		return a->body->failed ? -EFBIG : 0;
	}
	if (a->refusal.len < ERROR_MAX)
		buf_add(&a->refusal, piece, n);
	return 0;
}

int agent_open(const char *socket_path, struct agent **ret, struct err *err)
{
	struct agent *a = calloc(1, sizeof(*a));
	const char *path = socket_path ? socket_path : getenv("JOULED_SOCKET");
	struct http_client_options o = { .connect_ns = CONNECT_LIMIT_NS, .take = take_body, .arg = a };
	int rc;

	if (!a)
		return err_set(err, -ENOMEM, "agent: out of memory; free some");
	if (!path || !*path)
		path = "/run/jouled/jouled.sock";
	if (strlen(path) >= sizeof(a->path)) {
		free(a);
		return err_set(err, -ENAMETOOLONG, "%.128s: too long for a socket; at most 107 bytes", path);
	}
	memcpy(a->path, path, strlen(path) + 1);
	a->stream.limit = AGENT_BODY_MAX;
	a->also = -1;
	rc = try_connect(a, err);
	o.subject = o.unix_path = a->path;
	if (!rc)
		rc = http_client_new(&o, &a->http, err);
	if (rc) {
		agent_close(a);
		return rc;
	}
	*ret = a;
	return 0;
}

bool agent_is_trusted(const struct agent *a)
{
	return a->trusted;
}

void agent_close(struct agent *a)
{
	if (!a)
		return;
	http_client_free(a->http);
	buf_free(&a->stream);
	buf_free(&a->refusal);
	free(a);
}

void agent_escape(struct buf *b, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c < 0x80 && isalnum(c)) || strchr("-._~", c))
			buf_add_char(b, (char)c);
		else
			buf_printf(b, "%%%02X", c);
	}
}

static int begin(struct agent *a, const char *path, const char *accept, struct http_ask ask, struct err *err)
{
	char url[8192], header[256];
	const char *const headers[] = { header, NULL };

	snprintf(header, sizeof(header), "Accept: %s", accept ? accept : "application/json");
	if ((size_t)snprintf(url, sizeof(url), "http://jouled%s", path) >= sizeof(url))
		return err_set(err, -ENAMETOOLONG, "request: %.64s... is too long; ask for less", path);
	ask.url = url;
	ask.headers = headers;
	buf_reset(&a->refusal);
	return http_client_begin(a->http, &ask, err);
}

/* Passes on the words of an agent that answered {"error":"subject: cause; remedy"}. */
static int refused(const struct agent *a, long status, struct err *err)
{
	json_t *doc = json_loadb((const char *)a->refusal.data, a->refusal.len, 0, NULL);
	const char *text = json_string_value(json_object_get(doc, "error"));

	if (text)
		err_set(err, -EPROTO, "%s", text);
	else
		err_set(err, -EPROTO, "%s: answered with status %ld; is that the socket of jouled?", a->path, status);
	json_decref(doc);
	return -EPROTO;
}

/* Returns the result of a request that ended with `rc`, and says in err why it failed. */
static int judge(struct agent *a, int rc, const struct err *why, struct err *err)
{
	switch (rc) {
	case 0:
		a->status = http_client_status(a->http);
		return a->status == 200 ? 0 : refused(a, a->status, err);
	case -EFBIG:
		return err_set(err, -EFBIG, "%s: the answer is larger than memory or %zu MiB; ask for less", a->path,
			       AGENT_BODY_MAX >> 20);
	case -ENOMEM:
	case -EIO:
		return err_set(err, rc, "%s", why->text);
	case -ECONNRESET:
		return err_set(err, rc, "%s; did the agent end? Try again", why->text);
	default:
		return unreachable(a, rc, err);
	}
}

long agent_status(const struct agent *a)
{
	return a->status;
}

static int begin_fetch(struct agent *a, const char *path, const char *accept, struct http_ask ask, struct err *err)
{
	a->answer = (struct buf){ .limit = AGENT_BODY_MAX };
	a->body = &a->answer;
	a->status = 0;
	return begin(a, path, accept, ask, err);
}

static int fetch(struct agent *a, struct buf *ret_body, struct err *err)
{
	struct err why = { 0 };
	int rc;

	do
		rc = http_client_turn(a->http, -1, LOOK_MS, &why);
	while (rc > 0);
	rc = judge(a, rc, &why, err);
	if (rc) {
		buf_free(&a->answer);
		return rc;
	}
	buf_free(ret_body);
	*ret_body = a->answer;
	a->answer = (struct buf){ 0 };
	return 0;
}

int agent_get(struct agent *a, const char *path, const char *accept, struct buf *ret_body, struct err *err)
{
	int rc = begin_fetch(a, path, accept, (struct http_ask){ 0 }, err);

	return rc ? rc : fetch(a, ret_body, err);
}

int agent_post(struct agent *a, const char *path, struct buf *ret_body, struct err *err)
{
	int rc = begin_fetch(a, path, NULL, (struct http_ask){ .post = true }, err);

	return rc ? rc : fetch(a, ret_body, err);
}

int agent_post_json(struct agent *a, const char *path, const struct buf *json, struct buf *ret_body, struct err *err)
{
	const struct http_ask ask = { .post = true, .type = "application/json", .body = json->data, .len = json->len };
	int rc = begin_fetch(a, path, NULL, ask, err);

	return rc ? rc : fetch(a, ret_body, err);
}

int agent_begin(struct agent *a, const char *path, const char *accept, struct err *err)
{
	a->body = &a->stream;
	buf_reset(&a->stream);
	a->taken = 0;
	return begin(a, path, accept, (struct http_ask){ .endless = true }, err);
}

/* Lets the client work for at most LOOK_MS. An agent that dies in the middle of an answer with status 200 ends the
 * stream without an error. */
static int turn(struct agent *a, struct err *err)
{
	struct err why = { 0 };
	int rc = http_client_turn(a->http, a->also, LOOK_MS, &why);

	if (rc > 0 || (http_client_status(a->http) == 200 && rc != -EFBIG && rc != -EIO))
		return 0;
	return judge(a, rc, &why, err);
}

ssize_t agent_read(struct agent *a, void *dst, size_t n, const atomic_bool *stop, struct err *err)
{
	while (a->taken == a->stream.len) {
		int rc;

		if (!http_client_running(a->http) || *stop)
			return 0;
		buf_reset(&a->stream);
		a->taken = 0;
		rc = turn(a, err);
		if (!rc && a->also >= 0 && http_client_running(a->http) && a->taken == a->stream.len)
			rc = -EAGAIN;
		if (rc)
			return rc;
	}
	if (n > a->stream.len - a->taken)
		n = a->stream.len - a->taken;
	memcpy(dst, a->stream.data + a->taken, n);
	a->taken += n;
	return (ssize_t)n;
}

void agent_also_look_at(struct agent *a, int fd)
{
	a->also = fd;
}

int agent_take(struct agent *a, int (*take)(void *arg, const char *piece, size_t size), void *arg,
	       const atomic_bool *stop, struct err *err)
{
	char piece[16384];
	ssize_t n = 0;
	int rc = 0;

	while (!rc && !*stop && (n = agent_read(a, piece, sizeof(piece), stop, err)) > 0)
		rc = take(arg, piece, (size_t)n);
	http_client_stop(a->http);
	return rc ? rc : n < 0 ? (int)n : 0;
}
