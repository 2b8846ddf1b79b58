/* SPDX-License-Identifier: Apache-2.0 */
#include "url.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"

int sink_url_scheme(const char *url, struct sink_url *u, struct err *err)
{
	size_t n = strcspn(url, ":");

	memset(u, 0, sizeof(*u));
	/* Escape before cutting: escaping the whole message would push the remedy out of it. */
	text_clean(u->text, sizeof(u->text), url);
	if (url[n] != ':' || n == 0 || n >= sizeof(u->scheme))
		return err_set(err, -EINVAL,
			       "output \"%s\": no scheme; write for example stdout:, file:///path or tcp://host:port",
			       u->text);
	memcpy(u->scheme, url, n);
	return 0;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* RFC 3986 2.1. A NUL would end the path early and silently name another file. */
static int percent_decode(char *dst, size_t size, const char *s)
{
	size_t n = 0;

	for (; *s; s++) {
		int c = (unsigned char)*s;

		if (c == '%') {
			int hi = hex(s[1]), lo = hi < 0 ? -1 : hex(s[2]);

			if (lo < 0 || (hi | lo) == 0)
				return -EINVAL;
			c = hi << 4 | lo;
			s += 2;
		}
		if (n + 1 >= size)
			return -ENAMETOOLONG;
		dst[n++] = (char)c;
	}
	dst[n] = 0;
	return 0;
}

static int take_path(const char *rest, struct sink_url *u, struct err *err)
{
	int rc;

	/* RFC 8089: file:///path has an empty host; file://path would name a host called "path". */
	if (strncmp(rest, "///", 3) != 0)
		return err_set(err, -EINVAL, "output \"%s\": the path is not absolute; write %s:///absolute/path",
			       u->text, u->scheme);
	rc = percent_decode(u->path, sizeof(u->path), rest + 2);
	if (rc == -ENAMETOOLONG)
		return err_set(err, -EINVAL, "output \"%s\": the path is longer than %zu bytes; use a shorter one",
			       u->text, sizeof(u->path) - 1);
	if (rc)
		return err_set(
			err, -EINVAL,
			"output \"%s\": %% is not followed by two hex digits other than 00; write %%25 for a percent sign",
			u->text);
	return 0;
}

static int take_port(const char *s, unsigned min, struct sink_url *u, struct err *err)
{
	uint64_t port = 0;
	size_t n = strspn(s, "0123456789");

	if (n == 0 || s[n] || parse_u64(s, &port) || port < min || port > 65535)
		return err_set(err, -EINVAL, "output \"%s\": \"%.20s\" is not a port; write a number from %u to 65535",
			       u->text, s, min);
	u->port = (uint16_t)port;
	return 0;
}

static int take_host_port(const char *rest, unsigned min_port, struct sink_url *u, struct err *err)
{
	const char *host = rest + 2, *end;
	size_t n;

	if (strncmp(rest, "//", 2) != 0)
		return err_set(err, -EINVAL, "output \"%s\": no //; write %s://host:port", u->text, u->scheme);
	if (*host == '[') {
		host++;
		end = strchr(host, ']');
		if (!end || end[1] != ':')
			return err_set(
				err, -EINVAL,
				"output \"%s\": an IPv6 address needs brackets and a port; write %s://[::1]:9080",
				u->text, u->scheme);
		n = (size_t)(end - host);
		end++;
	} else {
		n = strcspn(host, ":");
		end = host + n;
		if (!*end)
			return err_set(err, -EINVAL, "output \"%s\": no port; write %s://host:port", u->text,
				       u->scheme);
		if (strchr(end + 1, ':'))
			return err_set(err, -EINVAL,
				       "output \"%s\": two colons; write an IPv6 address in brackets, %s://[::1]:9080",
				       u->text, u->scheme);
	}
	if (n == 0 || n >= sizeof(u->host))
		return err_set(err, -EINVAL, "output \"%s\": %s; write %s://%s", u->text,
			       n ? "the host name is too long" : "no host", u->scheme,
			       min_port ? "host:port" : "127.0.0.1:port, or 0.0.0.0:port for every address");
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)host[i]) && !strchr("-._:%", host[i]))
			return err_set(
				err, -EINVAL,
				"output \"%s\": a host name has letters, digits, dots and hyphens; write %s://host:port",
				u->text, u->scheme);
	memcpy(u->host, host, n);
	return take_port(end + 1, min_port, u, err);
}

int sink_url_rest(const char *url, enum sink_url_form form, struct sink_url *u, struct err *err)
{
	const char *rest = url + strlen(u->scheme) + 1;

	switch (form) {
	case SINK_URL_PATH:
		return take_path(rest, u, err);
	case SINK_URL_HOST_PORT:
		return take_host_port(rest, 1, u, err);
	case SINK_URL_ADDR_PORT:
		return take_host_port(rest, 0, u, err);
	case SINK_URL_BARE:
		break;
	}
	if (*rest)
		return err_set(err, -EINVAL, "output \"%s\": nothing may follow the colon; write %s:", u->text,
			       u->scheme);
	return 0;
}
