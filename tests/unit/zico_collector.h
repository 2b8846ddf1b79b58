/* SPDX-License-Identifier: Apache-2.0 */
/* A collector in a thread: register, session and submit of one release, and ways to be in trouble. */
#ifndef ZICO_COLLECTOR_H
#define ZICO_COLLECTOR_H
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define REQUEST_MAX 65536

enum release { R_190, R_1906, R_2 };

static struct collector {
	enum release release;
	int fd;
	uint16_t port;
	pthread_t thread;
	/* what it keeps */
	char agent[40], key[40], session[40];
	bool told; /* agent data in this session */
	unsigned agents, sessions, n_agent, n_trace;
	/* what is wrong with it */
	int lose_sessions; /* forget so many sessions when they are used */
	int fail; /* answer so many requests with 500 */
	bool fail_traces, forget_agent, refuse_key, no_profile;
	int deny_traces; /* the status for them; 0 = not */
	int deny_once; /* the status for the next trace */
	int deny_session; /* the status for the next session */
	enum { TAKES_AGAIN, FAILS_WITH_ATTRS, FAILS } again; /* a known host registers as what it is */
	bool fails_attrs; /* any registration with attributes */
	char ways[64]; /* of each registration: i with identity, a with attributes */
	const char *garbage; /* instead of any answer's body */
	size_t huge;
	char log[4096];
	char last_agent[4096], last_trace[4096]; /* bodies */
	char traces[4096]; /* uuids */
} col;

struct reply {
	int status;
	char body[512];
};

static const char *header(const char *head, const char *name, char *dst, size_t size)
{
	const char *at = strcasestr(head, name);
	size_t n;

	dst[0] = '\0';
	if (!at)
		return dst;
	at += strlen(name) + 2;
	n = strcspn(at, "\r");
	snprintf(dst, size, "%.*s", (int)n, at);
	return dst;
}

/* The text of a key; numbers too. */
static const char *field(const char *json, const char *key, char *dst, size_t size)
{
	char quoted[40];
	const char *at;

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(json, quoted);
	dst[0] = '\0';
	if (!at)
		return dst;
	at += strlen(quoted);
	at += *at == '"';
	snprintf(dst, size, "%.*s", (int)strcspn(at, "\",}"), at);
	return dst;
}

static void on_register(const char *body, struct reply *r)
{
	char rkey[64], id[64], akey[64];
	const char *idname = col.release == R_1906 ? "id" : "uuid";

	field(body, "rkey", rkey, sizeof(rkey));
	field(body, idname, id, sizeof(id));
	field(body, "akey", akey, sizeof(akey));
	snprintf(col.ways + strlen(col.ways), sizeof(col.ways) - strlen(col.ways), "%s%s ", *id ? "i" : "",
		 strstr(body, "\"attrs\"") ? "a" : "");
	r->status = 401;
	if (col.release == R_2) {
		r->status = 404;
	} else if (((*id && !strcmp(id, col.agent) && col.again == FAILS) ||
		    (*id && !strcmp(id, col.agent) && col.again == FAILS_WITH_ATTRS && strstr(body, "\"attrs\"")) ||
		    (col.fails_attrs && strstr(body, "\"attrs\"")))) {
		r->status = 500;
		snprintf(r->body, sizeof(r->body), "{\"error\":\"Internal error.\"}");
	} else if (col.release == R_1906 && strstr(body, "\"uuid\"")) {
		r->status = 400; /* a closed schema */
	} else if (!strcmp(rkey, "zorka") && !col.refuse_key &&
		   !(*id && !strcmp(id, col.agent) && strcmp(akey, col.key))) {
		r->status = col.release == R_1906 || (*id && !strcmp(id, col.agent)) ? 200 : 201;
		if (strcmp(id, col.agent) != 0 || !*id) {
			snprintf(col.agent, sizeof(col.agent),
				 col.release == R_1906 ? "%u" : "21c00000-0501-0000-0001-%012u", ++col.agents);
			snprintf(col.key, sizeof(col.key), "KEY%u", col.agents);
		}
		snprintf(r->body, sizeof(r->body),
			 col.release == R_1906 ? "{\"id\":%s,\"authkey\":\"%s\"}" :
						 "{\"uuid\":\"%s\",\"authkey\":\"%s\"}",
			 col.agent, col.key);
	}
}

static void on_session(const char *body, struct reply *r)
{
	char id[64], key[64];

	field(body, col.release == R_1906 ? "id" : "uuid", id, sizeof(id));
	field(body, "authkey", key, sizeof(key));
	if (col.deny_session) {
		r->status = col.deny_session;
		col.deny_session = 0;
		return;
	}
	if (!*id || strcmp(id, col.agent) != 0) {
		r->status = 400;
		snprintf(r->body, sizeof(r->body), "{\"error\":\"No such agent.\"}");
		return;
	}
	r->status = strcmp(key, col.key) ? 401 : 200;
	snprintf(col.session, sizeof(col.session), "5e551014-0000-0000-0000-%012u", ++col.sessions);
	col.told = false;
	snprintf(r->body, sizeof(r->body), "{\"session\":\"%s\"}", col.session);
}

static bool session_ok(const char *head)
{
	char id[64], session[64], agent[64], reset[16];

	if (col.release == R_2) {
		header(head, "X-Zorka-Session-ID", id, sizeof(id));
		if (!strcmp(header(head, "X-Zorka-Session-Reset", reset, sizeof(reset)), "true")) {
			snprintf(col.session, sizeof(col.session), "%.39s", id);
			col.sessions++;
		}
		return *id && !strcmp(id, col.session);
	}
	header(head, col.release == R_1906 ? "X-Zorka-Agent-ID" : "X-Zorka-Agent-UUID", agent, sizeof(agent));
	header(head, "X-Zorka-Session-UUID", session, sizeof(session));
	return *session && !strcmp(session, col.session) && !strcmp(agent, col.agent);
}

static void on_submit(const char *head, const char *body, size_t len, bool trace, struct reply *r)
{
	char uuid[64];

	header(head, col.release == R_2 ? "X-Zorka-Trace-ID" : "X-Zorka-Trace-UUID", uuid, sizeof(uuid));
	if (col.lose_sessions && col.lose_sessions-- > 0) {
		col.session[0] = '\0';
	}
	/* read before the session is looked for */
	if (col.release == R_190 && !strncmp(body, "agent~", 6)) {
		r->status = 500;
		return;
	}
	if (trace && col.deny_once) {
		r->status = col.deny_once;
		col.deny_once = 0;
		return;
	}
	if (!session_ok(head)) {
		r->status = col.release == R_190 ? 412 : col.release == R_2 || trace ? 401 : 400;
		return;
	}
	if (trace && col.deny_traces) {
		r->status = col.deny_traces;
		return;
	}
	if (trace && (col.fail_traces || !col.told || !*uuid)) {
		r->status = 500;
		snprintf(r->body, sizeof(r->body), "{\"error\":\"Internal error.\"}");
		return;
	}
	r->status = 202;
	snprintf(trace ? col.last_trace : col.last_agent, 4096, "%.*s", (int)len, body);
	if (!trace) {
		col.told = true;
		col.n_agent++;
		return;
	}
	col.n_trace++;
	if (!strstr(col.traces, uuid))
		strncat(col.traces, uuid, sizeof(col.traces) - strlen(col.traces) - 1);
}

static void answer(const char *head, const char *body, size_t len, struct reply *r)
{
	char path[64] = "";

	sscanf(head, "POST %63s", path);
	strncat(col.log, path, sizeof(col.log) - strlen(col.log) - 1);
	strncat(col.log, " ", sizeof(col.log) - strlen(col.log) - 1);
	r->status = 404;
	if (col.fail && col.fail-- > 0)
		r->status = 500;
	else if (!strcmp(path, "/agent/register"))
		on_register(body, r);
	else if (!strcmp(path, "/agent/session") && col.release != R_2)
		on_session(body, r);
	else if (!strcmp(path, "/agent/submit/agd") || !strcmp(path, "/submit/agent"))
		on_submit(head, body, len, false, r);
	else if (!strcmp(path, "/agent/submit/trc"))
		on_submit(head, body, len, true, r);
	if (col.garbage)
		snprintf(r->body, sizeof(r->body), "%s", col.garbage);
}

static size_t read_request(int fd, char *text, size_t *ret_head)
{
	size_t n = 0, want = SIZE_MAX;
	char number[16];

	while (n < want && n < REQUEST_MAX - 1) {
		ssize_t got = read(fd, text + n, REQUEST_MAX - 1 - n);
		char *end;

		if (got <= 0)
			return 0;
		n += (size_t)got;
		text[n] = '\0';
		end = want == SIZE_MAX ? strstr(text, "\r\n\r\n") : NULL;
		if (end) {
			*ret_head = (size_t)(end - text) + 4;
			want = *ret_head + strtoul(header(text, "Content-Length", number, sizeof(number)), NULL, 10);
		}
	}
	return n;
}

static void *serve(void *arg)
{
	static char text[REQUEST_MAX], out[1 << 20];
	int fd;

	while ((fd = accept(col.fd, NULL, NULL)) >= 0) {
		size_t head, n;

		while ((n = read_request(fd, text, &head))) {
			struct reply r = { 0 };
			size_t len;

			answer(text, text + head, n - head, &r);
			len = col.huge ? col.huge : strlen(r.body);
			n = (size_t)snprintf(out, sizeof(out), "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", r.status,
					     len);
			memset(out + n, ' ', len);
			memcpy(out + n, r.body, strlen(r.body));
			if (send(fd, out, n + len, MSG_NOSIGNAL) < 0)
				break;
		}
		close(fd);
	}
	return NULL;
}

static void open_collector(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int on = 1;

	col.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(col.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(col.fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(col.fd, 8), 0);
	assert_int_equal(getsockname(col.fd, (struct sockaddr *)&a, &len), 0);
	col.port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&col.thread, NULL, serve, NULL), 0);
}

#endif
