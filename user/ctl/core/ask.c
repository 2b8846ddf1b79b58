/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "agent_client.h"
#include "ask.h"
#include "base/text.h"

#define TEXTS 4 /* texts that can be used in one printf */

int ask_agent(const char *socket, const char *path, struct buf *ret_body, struct err *err)
{
	struct agent *a = NULL;
	int rc = agent_open(socket, &a, err);

	if (!rc)
		rc = agent_get(a, path, NULL, ret_body, err);
	agent_close(a);
	return rc;
}

void ask_print(const struct buf *body)
{
	fwrite(body->data, 1, body->len, stdout);
	putchar('\n');
}

json_t *ask_parse(const struct buf *body, struct err *err)
{
	json_error_t why;
	json_t *doc = json_loadb((const char *)body->data, body->len, JSON_REJECT_DUPLICATES, &why);

	if (json_is_object(doc))
		return doc;
	json_decref(doc);
	err_set(err, -EBADMSG, "agent: its answer is not the JSON that was expected (%s); is that socket jouled's?",
		doc ? "no object" : why.text);
	return NULL;
}

const char *ask_text(const json_t *object, const char *key)
{
	static char texts[TEXTS][1024];
	static unsigned next;
	const char *text = json_string_value(json_object_get(object, key));

	next = (next + 1) % TEXTS;
	return text_escape(texts[next], sizeof(texts[next]), text ? text : "?");
}

long long ask_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

bool ask_is(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

const char *ask_duration(char dst[32], long long ns)
{
	long long s = ns / 1000000000;

	if (s >= 86400)
		snprintf(dst, 32, "%lld d %lld h", s / 86400, s / 3600 % 24);
	else if (s >= 3600)
		snprintf(dst, 32, "%lld h %lld min", s / 3600, s / 60 % 60);
	else if (s >= 60)
		snprintf(dst, 32, "%lld min %lld s", s / 60, s % 60);
	else
		snprintf(dst, 32, "%.3f s", (double)ns / 1e9);
	return dst;
}

/* Splits HOST:PORT or [HOST]:PORT. 0 or -EINVAL. */
static int split_host(const char *text, char host[256], char port[6])
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return -EINVAL;
	}
	if (!n || n > 255 || !colon[1] || strlen(colon + 1) > 5 || colon[1 + strspn(colon + 1, "0123456789")])
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = 0;
	snprintf(port, 6, "%s", colon + 1);
	return 0;
}

static int connect_any(const struct addrinfo *list)
{
	int rc = -EADDRNOTAVAIL;

	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);

		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0)
			return fd;
		rc = -errno;
		if (fd >= 0)
			close(fd);
	}
	return rc;
}

static int open_tcp(const char *where, const char *rest, struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *list;
	char host[256], port[6];
	int fd, rc;

	if (split_host(rest, host, port) != 0)
		return err_set(err, -EINVAL, "%.128s: not an address; tcp://HOST:PORT", where);
	rc = getaddrinfo(host, port, &hints, &list);
	if (rc)
		return err_set(err, -EHOSTUNREACH, "%.128s: %s; check the name", where, gai_strerror(rc));
	fd = connect_any(list);
	freeaddrinfo(list);
	if (fd < 0)
		return err_set(err, fd, "%.128s: %s; is an output listening there?", where, strerrordesc_np(-fd));
	return fd;
}

static int open_unix(const char *where, const char *path, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, rc;

	if (*path != '/' || strlen(path) >= sizeof(a.sun_path))
		return err_set(err, -EINVAL, "%.128s: not a socket; unix:///PATH, at most %zu bytes", where,
			       sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	rc = -errno;
	if (fd >= 0)
		close(fd);
	return err_set(err, rc, "%.128s: %s; is an output listening there?", where, strerrordesc_np(-rc));
}

int source_open(const char *where, struct err *err)
{
	int fd, rc;

	if (!strncmp(where, "tcp://", 6))
		return open_tcp(where, where + 6, err);
	if (!strncmp(where, "unix://", 7))
		return open_unix(where, where + 7, err);
	if (!strncmp(where, "file://", 7))
		where += 7;
	fd = !strcmp(where, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(where, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	rc = -errno;
	return err_set(err, rc, "%.128s: %s; name a file that can be read", where, strerrordesc_np(-rc));
}
