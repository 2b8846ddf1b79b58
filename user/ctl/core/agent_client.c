/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "agent.h"

#define GET_LIMIT_MS 60000L /* of a whole answer that has an end */
#define CONNECT_LIMIT_MS 5000L
#define LOOK_MS 100 /* at *stop */
#define ERROR_MAX 8192u /* bytes kept of an answer that is no 200 */

struct agent {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	CURL *easy;
	CURLM *multi;
	struct curl_slist *headers;
	bool trusted;
	int also; /* a descriptor whose input ends waiting; -1 = none */
	bool running; /* easy is in multi: a stream that was begun */
	CURLcode result; /* of a stream that ended */
	struct buf *body; /* where bytes of a 200 go: answer or stream */
	struct buf answer;
	struct buf stream; /* they came, nobody took them */
	size_t taken; /* of stream */
	struct buf refusal; /* body of another status */
};

static const char *remedy(int code)
{
	switch (code) {
	case -ENOENT:
		return "is jouled running? Start it (systemctl start jouled), or name its socket with --socket";
	case -ECONNREFUSED:
		return "the agent that made it has ended; start it again (systemctl start jouled)";
	case -EACCES:
	case -EPERM:
		return "become root, or join the socket's group (usually jouled) and log in again";
	case -ETIMEDOUT:
		return "is the agent stopped or overloaded?";
	default:
		return "is that the socket of a running jouled?";
	}
}

static int unreachable(const struct agent *a, int code, struct err *err)
{
	return err_set(err, code, "%s: %s; %s", a->path, code == -ENOENT ? "no agent there" : strerrordesc_np(-code),
		       remedy(code));
}

/* One connection of our own, for curl's error for a socket it may not touch names nothing. */
static int try_connect(struct agent *a, struct err *err)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(peer);
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), code;

	if (fd < 0)
		return unreachable(a, -errno, err);
	memcpy(to.sun_path, a->path, sizeof(to.sun_path));
	code = connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 ? 0 : unreachable(a, -errno, err);
	a->trusted = !code && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
		     (peer.uid == 0 || peer.uid == geteuid());
	close(fd);
	return code;
}

static size_t take_body(char *piece, size_t size, size_t n, void *arg)
{
	struct agent *a = arg;
	long status = 0;

	curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200) {
		buf_add(a->body, piece, n);
		return a->body->failed ? 0 : n;
	}
	if (a->refusal.len < ERROR_MAX)
		buf_add(&a->refusal, piece, n);
	return n;
}

static int set_up(struct agent *a)
{
	CURL *c = a->easy;

	/* No proxy, whatever the environment says: it is a socket of this machine. */
	if (curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, a->path) || curl_easy_setopt(c, CURLOPT_PROXY, "") ||
	    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) || curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http") ||
	    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ||
	    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_LIMIT_MS) ||
	    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body) || curl_easy_setopt(c, CURLOPT_WRITEDATA, a))
		return -ENOSYS;
	return 0;
}

int agent_open(const char *socket_path, struct agent **ret, struct err *err)
{
	struct agent *a = calloc(1, sizeof(*a));
	const char *path = socket_path ? socket_path : getenv("JOULED_SOCKET");
	int code;

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
	code = try_connect(a, err);
	if (!code && !curl_global_init(CURL_GLOBAL_NOTHING)) {
		a->easy = curl_easy_init();
		a->multi = curl_multi_init();
	}
	if (!code && (!a->easy || !a->multi || set_up(a)))
		code = err_set(err, -ENOMEM, "agent: libcurl cannot be used; it lacks memory or Unix sockets");
	if (code) {
		agent_close(a);
		return code;
	}
	*ret = a;
	return 0;
}

bool agent_is_trusted(const struct agent *a)
{
	return a->trusted;
}

static void stop_stream(struct agent *a)
{
	if (a->running)
		curl_multi_remove_handle(a->multi, a->easy);
	a->running = false;
}

void agent_close(struct agent *a)
{
	if (!a)
		return;
	stop_stream(a);
	curl_easy_cleanup(a->easy);
	curl_multi_cleanup(a->multi);
	curl_slist_free_all(a->headers);
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

static int prepare(struct agent *a, const char *path, const char *accept, struct err *err)
{
	char url[8192], header[256];

	stop_stream(a);
	curl_slist_free_all(a->headers);
	snprintf(header, sizeof(header), "Accept: %s", accept ? accept : "application/json");
	a->headers = curl_slist_append(NULL, header);
	if ((size_t)snprintf(url, sizeof(url), "http://jouled%s", path) >= sizeof(url))
		return err_set(err, -ENAMETOOLONG, "request: %.64s... is too long; ask for less", path);
	if (!a->headers || curl_easy_setopt(a->easy, CURLOPT_URL, url) ||
	    curl_easy_setopt(a->easy, CURLOPT_HTTPHEADER, a->headers))
		return err_set(err, -ENOMEM, "request: out of memory; free some");
	curl_easy_setopt(a->easy, CURLOPT_HTTPGET, 1L);
	buf_reset(&a->refusal);
	return 0;
}

/* {"error":"subject: cause; remedy"}; the agent's own words where it is jouled that answered. */
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

/* What a transfer came to. */
static int judge(struct agent *a, CURLcode result, struct err *err)
{
	long status = 0, os = 0;

	curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(a->easy, CURLINFO_OS_ERRNO, &os);
	if (a->body->failed)
		return err_set(err, -EFBIG, "%s: the answer is larger than memory or %zu MiB; ask for less", a->path,
			       AGENT_BODY_MAX >> 20);
	if (result == CURLE_COULDNT_CONNECT)
		return unreachable(a, os ? (int)-os : -ECONNREFUSED, err);
	if (result == CURLE_OPERATION_TIMEDOUT)
		return unreachable(a, -ETIMEDOUT, err);
	if (result)
		return err_set(err, -ECONNRESET, "%s: %s; %s", a->path, curl_easy_strerror(result),
			       "did the agent end? Try again");
	return status == 200 ? 0 : refused(a, status, err);
}

static int fetch(struct agent *a, struct buf *ret_body, struct err *err)
{
	int code;

	a->answer = (struct buf){ .limit = AGENT_BODY_MAX };
	a->body = &a->answer;
	curl_easy_setopt(a->easy, CURLOPT_TIMEOUT_MS, GET_LIMIT_MS);
	code = judge(a, curl_easy_perform(a->easy), err);
	if (code) {
		buf_free(&a->answer);
		return code;
	}
	buf_free(ret_body);
	*ret_body = a->answer;
	a->answer = (struct buf){ 0 };
	return 0;
}

int agent_get(struct agent *a, const char *path, const char *accept, struct buf *ret_body, struct err *err)
{
	int code = prepare(a, path, accept, err);

	return code ? code : fetch(a, ret_body, err);
}

int agent_post(struct agent *a, const char *path, struct buf *ret_body, struct err *err)
{
	int code = prepare(a, path, NULL, err);

	if (code)
		return code;
	curl_easy_setopt(a->easy, CURLOPT_POST, 1L);
	curl_easy_setopt(a->easy, CURLOPT_POSTFIELDS, "");
	curl_easy_setopt(a->easy, CURLOPT_POSTFIELDSIZE, 0L);
	return fetch(a, ret_body, err);
}

int agent_begin(struct agent *a, const char *path, const char *accept, struct err *err)
{
	int code = prepare(a, path, accept, err);

	if (code)
		return code;
	a->body = &a->stream;
	buf_reset(&a->stream);
	a->taken = 0;
	curl_easy_setopt(a->easy, CURLOPT_TIMEOUT_MS, 0L);
	if (curl_multi_add_handle(a->multi, a->easy))
		return err_set(err, -ENOMEM, "request: out of memory; free some");
	a->running = true;
	return 0;
}

/* Lets curl work, for a moment at most. An end that the agent's death brought is an end like any other. */
static int turn(struct agent *a, struct err *err)
{
	struct curl_waitfd also = { .fd = a->also, .events = CURL_WAIT_POLLIN };
	CURLMsg *m;
	long status = 0;
	int n;

	if (curl_multi_perform(a->multi, &n) ||
	    (a->taken == a->stream.len && n &&
	     curl_multi_poll(a->multi, &also, a->also >= 0, LOOK_MS, NULL) != CURLM_OK))
		return err_set(err, -EIO, "%s: libcurl failed; try again", a->path);
	m = curl_multi_info_read(a->multi, &n);
	if (!m || m->msg != CURLMSG_DONE)
		return 0;
	a->result = m->data.result;
	stop_stream(a);
	curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200 && !a->stream.failed)
		return 0;
	return judge(a, a->result, err);
}

ssize_t agent_read(struct agent *a, void *dst, size_t n, const volatile bool *stop, struct err *err)
{
	while (a->taken == a->stream.len) {
		int code;

		if (!a->running || *stop)
			return 0;
		buf_reset(&a->stream);
		a->taken = 0;
		code = turn(a, err);
		if (!code && a->also >= 0 && a->running && a->taken == a->stream.len)
			code = -EAGAIN;
		if (code)
			return code;
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

int agent_stream(struct agent *a, const char *path, const char *accept,
		 int (*take)(void *arg, const char *piece, size_t size), void *arg, const volatile bool *stop,
		 struct err *err)
{
	char piece[16384];
	ssize_t n = 0;
	int code = agent_begin(a, path, accept, err);

	if (code)
		return code;
	while (!code && !*stop && (n = agent_read(a, piece, sizeof(piece), stop, err)) > 0)
		code = take(arg, piece, (size_t)n);
	stop_stream(a);
	return code ? code : n < 0 ? (int)n : 0;
}
