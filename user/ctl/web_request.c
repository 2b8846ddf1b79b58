/* SPDX-License-Identifier: Apache-2.0 */
/* The little of HTTP/1.1 (RFC 9112) that the bridge needs of a request. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "web_bridge.h"

/* Printable ASCII alone: what a browser sends, and nothing that could end a line. */
static bool printable(const char *s)
{
	for (; *s; s++)
		if (*s < 0x21 || *s > 0x7e)
			return false;
	return true;
}

static bool visible(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 && *s != '\t')
			return false;
	return true;
}

static void take_token(const char *target, struct web_request *r)
{
	const char *at = strncmp(target, "/?", 2) == 0 ? strstr(target, "token=") : NULL;
	size_t n;

	if (!at || (at[-1] != '?' && at[-1] != '&'))
		return;
	n = strcspn(at + 6, "&#");
	if (n >= sizeof(r->token))
		n = 0; /* none of ours: it will not match */
	memcpy(r->token, at + 6, n);
	r->token[n] = '\0';
	r->ask.token = r->token;
}

static int request_line(char *line, struct web_request *r)
{
	char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;

	if (!version)
		return -EINVAL;
	*target++ = '\0';
	*version++ = '\0';
	if (target[0] != '/' || !printable(line) || !printable(target) || strncmp(version, "HTTP/1.", 7) != 0)
		return -EINVAL;
	r->method = line;
	r->target = target;
	take_token(target, r);
	return 0;
}

/* A header twice is no browser's doing (RFC 9110, 5.3 allows it for lists only). */
static int keep(const char **slot, const char *value)
{
	if (*slot)
		return -EINVAL;
	*slot = value;
	return 0;
}

static int header_line(char *line, struct web_request *r)
{
	char *value = strchr(line, ':');

	if (!value || value == line || *line == ' ' || *line == '\t' || !visible(line))
		return -EINVAL;
	*value++ = '\0';
	value += strspn(value, " \t");
	if (strcasecmp(line, "Host") == 0)
		return keep(&r->ask.host, value);
	if (strcasecmp(line, "Cookie") == 0)
		return keep(&r->ask.cookie, value);
	if (strcasecmp(line, "Accept") == 0)
		return keep(&r->accept, value);
	return 0;
}

int web_parse(char *head, struct web_request *ret)
{
	struct web_request r = { 0 };
	int rc;

	memset(ret, 0, sizeof(*ret));
	for (char *line = head, *end; (end = strstr(line, "\r\n")); line = end + 2) {
		*end = '\0';
		if (!*line)
			break;
		rc = line == head ? request_line(line, &r) : header_line(line, &r);
		if (rc)
			return rc;
	}
	if (!r.method)
		return -EINVAL;
	*ret = r;
	if (r.ask.token)
		ret->ask.token = ret->token;
	return 0;
}
