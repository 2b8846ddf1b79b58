/* SPDX-License-Identifier: Apache-2.0 */
/* The client against collectors of this file: each release's answers as docs/formats/zico.md has them, and
 * what is done when they forget, refuse, restart, or are no collectors at all. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "sink/zico_client.h"

#define REQUEST_MAX 65536

enum release { R_190, R_1906, R_2 };

static struct collector {
	enum release release;
	int fd;
	uint16_t port;
	pthread_t thread;
	/* what it keeps */
	char agent[40], key[40], session[40];
	bool told;                     /* agent data in this session */
	unsigned agents, sessions, n_agent, n_trace;
	/* what is wrong with it */
	int lose_sessions;             /* forget so many sessions when they are used */
	int fail;                      /* answer so many requests with 500 */
	bool fail_traces, forget_agent, refuse_key, no_profile;
	const char *garbage;           /* instead of any answer's body */
	size_t huge;
	char log[4096];
	char last_agent[4096], last_trace[4096];   /* bodies */
	char traces[4096];             /* uuids */
} c;

struct reply { int status; char body[512]; };

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
	const char *idname = c.release == R_1906 ? "id" : "uuid";

	field(body, "rkey", rkey, sizeof(rkey));
	field(body, idname, id, sizeof(id));
	field(body, "akey", akey, sizeof(akey));
	r->status = 401;
	if (c.release == R_2) {
		r->status = 404;
	} else if (c.release == R_1906 && strstr(body, "\"uuid\"")) {
		r->status = 400;       /* a closed schema */
	} else if (!strcmp(rkey, "zorka") && !c.refuse_key && !(*id && !strcmp(id, c.agent) && strcmp(akey, c.key))) {
		r->status = c.release == R_1906 || (*id && !strcmp(id, c.agent)) ? 200 : 201;
		if (strcmp(id, c.agent) != 0 || !*id) {
			snprintf(c.agent, sizeof(c.agent), c.release == R_1906 ? "%u" : "21c00000-0501-0000-0001-%012u", ++c.agents);
			snprintf(c.key, sizeof(c.key), "KEY%u", c.agents);
		}
		snprintf(r->body, sizeof(r->body), c.release == R_1906 ? "{\"id\":%s,\"authkey\":\"%s\"}" :
			 "{\"uuid\":\"%s\",\"authkey\":\"%s\"}", c.agent, c.key);
	}
}

static void on_session(const char *body, struct reply *r)
{
	char id[64], key[64];

	field(body, c.release == R_1906 ? "id" : "uuid", id, sizeof(id));
	field(body, "authkey", key, sizeof(key));
	if (!*id || strcmp(id, c.agent) != 0) {
		r->status = 400;
		snprintf(r->body, sizeof(r->body), "{\"error\":\"No such agent.\"}");
		return;
	}
	r->status = strcmp(key, c.key) ? 401 : 200;
	snprintf(c.session, sizeof(c.session), "5e551014-0000-0000-0000-%012u", ++c.sessions);
	c.told = false;
	snprintf(r->body, sizeof(r->body), "{\"session\":\"%s\"}", c.session);
}

static bool session_ok(const char *head)
{
	char id[64], session[64], agent[64], reset[16];

	if (c.release == R_2) {
		header(head, "X-Zorka-Session-ID", id, sizeof(id));
		if (!strcmp(header(head, "X-Zorka-Session-Reset", reset, sizeof(reset)), "true")) {
			snprintf(c.session, sizeof(c.session), "%.39s", id);
			c.sessions++;
		}
		return *id && !strcmp(id, c.session);
	}
	header(head, c.release == R_1906 ? "X-Zorka-Agent-ID" : "X-Zorka-Agent-UUID", agent, sizeof(agent));
	header(head, "X-Zorka-Session-UUID", session, sizeof(session));
	return *session && !strcmp(session, c.session) && !strcmp(agent, c.agent);
}

static void on_submit(const char *head, const char *body, size_t len, bool trace, struct reply *r)
{
	char uuid[64];

	header(head, c.release == R_2 ? "X-Zorka-Trace-ID" : "X-Zorka-Trace-UUID", uuid, sizeof(uuid));
	if (c.lose_sessions && c.lose_sessions-- > 0) {
		c.session[0] = '\0';
	}
	if (!session_ok(head)) {
		r->status = c.release == R_190 ? 412 : c.release == R_2 || trace ? 401 : 400;
		return;
	}
	if (trace && (c.fail_traces || !c.told || !*uuid)) {
		r->status = 500;
		snprintf(r->body, sizeof(r->body), "{\"error\":\"Internal error.\"}");
		return;
	}
	r->status = 202;
	snprintf(trace ? c.last_trace : c.last_agent, 4096, "%.*s", (int)len, body);
	if (!trace) {
		c.told = true;
		c.n_agent++;
		return;
	}
	c.n_trace++;
	if (!strstr(c.traces, uuid))
		strncat(c.traces, uuid, sizeof(c.traces) - strlen(c.traces) - 1);
}

static void answer(const char *head, const char *body, size_t len, struct reply *r)
{
	char path[64] = "";

	sscanf(head, "POST %63s", path);
	strncat(c.log, path, sizeof(c.log) - strlen(c.log) - 1);
	strncat(c.log, " ", sizeof(c.log) - strlen(c.log) - 1);
	r->status = 404;
	if (c.fail && c.fail-- > 0)
		r->status = 500;
	else if (!strcmp(path, "/agent/register"))
		on_register(body, r);
	else if (!strcmp(path, "/agent/session") && c.release != R_2)
		on_session(body, r);
	else if (!strcmp(path, "/agent/submit/agd") || !strcmp(path, "/submit/agent"))
		on_submit(head, body, len, false, r);
	else if (!strcmp(path, "/agent/submit/trc"))
		on_submit(head, body, len, true, r);
	if (c.garbage)
		snprintf(r->body, sizeof(r->body), "%s", c.garbage);
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

	while ((fd = accept(c.fd, NULL, NULL)) >= 0) {
		size_t head, n;

		while ((n = read_request(fd, text, &head))) {
			struct reply r = { 0 };
			size_t len;

			answer(text, text + head, n - head, &r);
			len = c.huge ? c.huge : strlen(r.body);
			n = (size_t)snprintf(out, sizeof(out), "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", r.status, len);
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
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int on = 1;

	c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(c.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(c.fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(c.fd, 8), 0);
	assert_int_equal(getsockname(c.fd, (struct sockaddr *)&a, &len), 0);
	c.port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&c.thread, NULL, serve, NULL), 0);
}

/* The encoder's side: definitions are pending until told. */
static struct { unsigned begun, told, encoded; bool pending; char profile[32]; } enc;
static char state_file[] = "/tmp/jouled-zico-client-state.json";
static struct zico_client *client;
static char url[64];

static int on_begin(void *arg, const char *profile, struct err *err)
{
	enc.begun++;
	enc.pending = true;
	snprintf(enc.profile, sizeof(enc.profile), "%s", profile);
	return 0;
}

static int on_encode(void *arg, struct buf *agent, struct buf *trace, struct err *err)
{
	enc.encoded++;
	if (enc.pending)
		buf_add_str(agent, "agent~?data");
	buf_add_str(trace, "trace");
	return 0;
}

static void on_told(void *arg)
{
	enc.told++;
	enc.pending = false;
}

static int send_trace(uint8_t n, struct err *err)
{
	const struct zico_encoding e = { NULL, on_begin, on_encode, on_told };
	const uint8_t uuid[16] = { n, 0xcd };

	return zico_client_send(client, uuid, &e, err);
}

static void open_client(const char *profile, const char *key, const char *form)
{
	struct zico_client_options o = {
		.url = url, .profile = profile, .key = key, .name = "node", .app = "shop", .env = "prod", .state_file = state_file,
		.form = form, .timeout_ns = 5000000000ull,
	};
	struct err err = { 0 };

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", c.port);
	assert_int_equal(zico_client_new(&o, &client, &err), 0);
}

static int start(void **state)
{
	unlink(state_file);
	setenv("no_proxy", "127.0.0.1", 1);
	memset(&c, 0, sizeof(c));
	memset(&enc, 0, sizeof(enc));
	open_collector(0);
	return 0;
}

static int stop(void **state)
{
	zico_client_free(client);
	client = NULL;
	shutdown(c.fd, SHUT_RDWR);
	pthread_join(c.thread, NULL);
	close(c.fd);
	unlink(state_file);
	return 0;
}

static void delivers(uint8_t n)
{
	struct err err = { 0 };
	int rc = send_trace(n, &err);

	if (rc)
		fail_msg("trace %u: %d %s; asked: %s", n, rc, err.text, c.log);
}

static void test_190(void **state)
{
	struct stat st;

	open_client("auto", "zorka", NULL);
	delivers(1);
	delivers(2);
	assert_string_equal(enc.profile, "zico-1.90");
	assert_string_equal(zico_client_profile(client), "zico-1.90");
	assert_string_equal(c.log, "/agent/register /agent/session /agent/submit/agd /agent/submit/trc /agent/submit/trc ");
	assert_string_equal(c.last_agent, "YWdlbnR+P2RhdGE=");
	assert_string_equal(c.last_trace, "dHJhY2U=");
	assert_string_equal(c.traces, "01cd0000-0000-0000-0000-00000000000002cd0000-0000-0000-0000-000000000000");
	assert_int_equal(stat(state_file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* another start: who we are is known */
	zico_client_free(client);
	c.log[0] = '\0';
	open_client("auto", "zorka", NULL);
	delivers(3);
	assert_string_equal(c.log, "/agent/session /agent/submit/agd /agent/submit/trc ");
	assert_int_equal(c.agents, 1);
}

static void test_1906(void **state)
{
	c.release = R_1906;
	open_client("auto", "zorka", NULL);
	delivers(1);
	assert_string_equal(enc.profile, "zico-1.90.6");
	assert_string_equal(c.last_trace, "trace");
	c.lose_sessions = 1;
	delivers(2);
	assert_int_equal(enc.begun, 2);
	assert_int_equal(c.agents, 1);
}

static void test_2(void **state)
{
	c.release = R_2;
	open_client("auto", "zorka", NULL);
	delivers(1);
	assert_string_equal(enc.profile, "zico-2");
	assert_string_equal(c.traces, "01cd0000000000000000000000000000");
	c.lose_sessions = 1;
	delivers(2);
	assert_int_equal(c.sessions, 2);
	assert_int_equal(enc.told, 2);
}

static void test_document(void **state)
{
	open_client("document", "zorka", "data");
	delivers(1);
	assert_string_equal(c.log, "/agent/register /agent/session /submit/agent /agent/submit/trc ");
	assert_string_equal(c.last_agent, "host=21c00000-0501-0000-0001-000000000001&data=YWdlbnR%2BP2RhdGE%3D");
	zico_client_free(client);
	open_client("document", "zorka", "zdata");
	delivers(2);
	assert_non_null(strstr(c.last_agent, "&zdata=eJ"));      /* zlib: 78 9c */
	zico_client_free(client);
	open_client("document", "zorka", "ldata");
	delivers(3);
	assert_non_null(strstr(c.last_agent, "&ldata=BCJNG"));   /* LZ4 frame: 04 22 4d 18 */
}

static void test_lost_sessions(void **state)
{
	struct err err = { 0 };

	open_client("auto", "zorka", NULL);
	delivers(1);
	c.lose_sessions = 2;
	delivers(2);
	assert_int_equal(c.agents, 1);
	/* a storm: later, the same trace */
	c.lose_sessions = 1000;
	assert_int_equal(send_trace(3, &err), -EAGAIN);
	assert_true(c.lose_sessions > 980);
	c.lose_sessions = 0;
	delivers(3);
}

static void test_restarted_collector(void **state)
{
	open_client("auto", "zorka", NULL);
	delivers(1);
	/* another data base: it has never heard of us */
	snprintf(c.agent, sizeof(c.agent), "21c00000-other");
	c.session[0] = '\0';
	delivers(2);
	assert_int_equal(c.agents, 2);
	assert_int_equal(c.n_trace, 2);
}

static void test_changed_key(void **state)
{
	open_client("auto", "zorka", NULL);
	delivers(1);
	snprintf(c.key, sizeof(c.key), "ANOTHER");
	c.session[0] = '\0';
	delivers(2);
	assert_int_equal(c.agents, 2);
}

static void test_another_release(void **state)
{
	open_client("auto", "zorka", NULL);
	delivers(1);
	c.release = R_2;
	c.session[0] = '\0';
	delivers(2);
	assert_string_equal(zico_client_profile(client), "zico-2");
	c.release = R_1906;
	c.session[0] = '\0';
	c.agent[0] = '\0';
	zico_client_free(client);
	open_client("auto", "zorka", NULL);
	delivers(3);
	assert_string_equal(zico_client_profile(client), "zico-1.90.6");
}

static void test_refused(void **state)
{
	struct err err = { 0 };

	open_client("auto", "wrong", NULL);
	assert_int_equal(send_trace(1, &err), -EACCES);
	assert_non_null(strstr(err.text, "registration key"));
	zico_client_free(client);
	open_client("auto", "zorka", NULL);
	delivers(1);
	c.fail_traces = true;
	assert_int_equal(send_trace(2, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "500 (Internal error.)"));
	c.fail_traces = false;
	delivers(3);
	/* once is forgiven, in a new session */
	c.fail = 1;
	delivers(4);
	c.fail = 1000;
	assert_int_not_equal(send_trace(5, &err), 0);
	assert_true(c.fail > 990);
	c.fail = 0;
	delivers(5);
}

static void test_no_collector(void **state)
{
	static const char *const bodies[] = {
		"", "<html>", "[]", "{\"uuid\":5}", "{\"uuid\":\"a b\\r\\nX: y\",\"authkey\":\"k\"}", "{\"uuid\":\"\",\"authkey\":\"k\"}",
		"{\"uuid\":\"a\",\"uuid\":\"b\",\"authkey\":\"k\"}", "{\"id\":-1,\"authkey\":\"k\"}", "{\"id\":1e99,\"authkey\":\"k\"}",
	};
	struct err err = { 0 };

	open_client("auto", "zorka", NULL);
	for (unsigned i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		c.garbage = bodies[i];
		assert_int_equal(send_trace(1, &err), -EAGAIN);
	}
	c.garbage = NULL;
	c.huge = 100000;
	assert_int_equal(send_trace(1, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "longer than 65536"));
	c.huge = 0;
	delivers(1);
	shutdown(c.fd, SHUT_RDWR);
}

static void test_nobody(void **state)
{
	struct err err = { 0 };

	open_client("auto", "zorka", NULL);
	snprintf(url, sizeof(url), "http://127.0.0.1:1");
	zico_client_free(client);
	assert_int_equal(zico_client_new(&(struct zico_client_options){ .url = url, .profile = "auto", .key = "k", .name = "n" },
					 &client, &err), 0);
	assert_int_equal(send_trace(1, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "127.0.0.1"));
	assert_int_equal(zico_client_new(&(struct zico_client_options){ .url = "ftp://x", .profile = "auto", .key = "k", .name = "n" },
					 &client, &err), -EINVAL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		T(test_190), T(test_1906), T(test_2), T(test_document), T(test_lost_sessions), T(test_restarted_collector),
		T(test_changed_key), T(test_another_release), T(test_refused), T(test_no_collector), T(test_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
