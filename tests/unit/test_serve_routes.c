/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the query socket, asked over a real socket: statuses, what a path hides, and who waits for whom. */
#include "encode_fixture.h"
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "base/clock.h"
#include "base/http/http.h"
#include "base/loop.h"
#include "base/unix_listen.h"
#include "model/audit.h"
#include "serve/serve.h"

static struct fixture f;
static struct loop *loop;
static struct serve *serve;
static struct totals *totals;
static struct unix_file file;
static char dir[] = "/tmp/jouled-routes-XXXXXX";
static _Atomic unsigned woken;

static void wake(void *arg)
{
	atomic_fetch_add(&woken, 1);
}

static int begin(void **state)
{
	static const struct totals_options to = { .keep_ns = NS_PER_S };
	static const struct serve_source source = { "energy package-0", "ok", "powercap" };
	struct serve_options *o = calloc(1, sizeof(*o));
	struct err err = { 0 };
	char path[64];

	fixture_init(&f, 2, 1);
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_row(&f, "/a.slice", 11);
	fixture_row(&f, "/hidden.slice", 12);
	fixture_ready(&f);
	totals = totals_new(&f.schema, &to);
	assert_non_null(totals);
	assert_non_null(o);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	assert_int_equal(loop_start(&loop), 0);
	o->fd = unix_listen_file(path, 0600, (gid_t)-1, &file);
	o->web_fd = -1;
	o->group = (gid_t)-1;
	o->schema = &f.schema;
	o->sources = &source;
	o->n_sources = 1;
	o->interval_ns = NS_PER_S;
	o->trace_bytes = 1 << 16;
	o->wake = wake;
	snprintf(o->no_history, sizeof(o->no_history), "none here");
	assert_true(o->fd >= 0);
	assert_int_equal(serve_start(o, loop, &serve, &err), 0);
	free(o);
	return 0;
}

static int end(void **state)
{
	serve_stop(serve);
	loop_stop(loop);
	unix_listen_remove(&file);
	rmdir(dir);
	totals_free(totals);
	free(totals);
	fixture_free(&f);
	return 0;
}

static int send_request(const char *head)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[512];

	memcpy(to.sun_path, file.path, sizeof(to.sun_path));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	snprintf(text, sizeof(text), "%s\r\nHost: x\r\nConnection: close\r\n\r\n", head);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

/* The whole answer, until the next call; returns its status. */
static int read_answer(int fd, const char **ret)
{
	static char text[1 << 16];
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	text[len] = '\0';
	*ret = text;
	return len > 12 ? atoi(text + 9) : 0;
}

static int ask(const char *head, const char **ret)
{
	return read_answer(send_request(head), ret);
}

static void publish_at(uint64_t end_ns)
{
	f.snap.end_ns = end_ns;
	f.snap.start_ns = f.snap.end_ns - NS_PER_S;
	serve_publish(serve, 0, &f.snap);
	totals_add(totals, &f.snap, NULL);
	serve_publish_totals(serve, totals, serve_wants_reading(serve), 0);
}

static void publish(void)
{
	publish_at(clock_mono_ns());
}

/* Before the first interval the agent is healthy and not ready. */
static void test_health(void **state)
{
	const char *text;

	assert_int_equal(ask("GET /healthz HTTP/1.1", &text), 200);
	assert_int_equal(ask("GET /readyz HTTP/1.1", &text), 503);
	assert_non_null(strstr(text, "Retry-After: 1"));
	assert_int_equal(ask("POST /healthz HTTP/1.1\r\nContent-Length: 0", &text), 405);
}

static void test_refusals(void **state)
{
	static const struct {
		int status;
		const char *head, *says;
	} refused[] = {
		{ 404, "GET /v1/nothing HTTP/1.1", "/v1/status" },
		{ 404, "GET /v1/statusx HTTP/1.1", "/v1/status" },
		{ 404, "GET /v1/status/x HTTP/1.1", "/v1/status" },
		{ 404, "GET /v1/spans HTTP/1.1", "processes: true" },
		{ 405, "POST /v1/status HTTP/1.1", "Allow: GET, HEAD" },
		{ 405, "GET /v1/reading HTTP/1.1", "Allow: POST" },
		{ 405, "HEAD /v1/reading HTTP/1.1", "Allow: POST" },
		{ 400, "GET /v1/status?x=1 HTTP/1.1", "no parameters" },
		{ 400, "GET /v1/cgroups?limit=x HTTP/1.1", "limit" },
		{ 406, "GET /v1/snapshot HTTP/1.1\r\nAccept: image/png", "application/cbor" },
		{ 503, "GET /v1/snapshot HTTP/1.1", "Retry-After: 1" },
		{ 503, "GET /v1/cgroups HTTP/1.1", "Retry-After: 1" },
	};

	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const char *text;

		assert_int_equal(ask(refused[i].head, &text), refused[i].status);
		assert_non_null(strstr(text, refused[i].says));
	}
}

/* The selection decides what is shown, and what was published before it is not shown any more. */
static void test_answers(void **state)
{
	char *all[] = { "/**" }, *hidden[] = { "/hidden.slice" };
	const struct selection_rules rules = { .include = all, .n_include = 1, .exclude = hidden, .n_exclude = 1 },
				     everything = { .include = all, .n_include = 1 };
	const char *text;

	assert_true(serve_select(serve, &rules));
	assert_false(serve_select(serve, &rules));
	f.snap.rows[READING_SPECIAL_ROWS + 1].selected = false;
	publish();
	assert_int_equal(ask("GET /v1/snapshot HTTP/1.1", &text), 200);
	assert_non_null(strstr(text, "Content-Type: application/json"));
	assert_non_null(strstr(text, "/a.slice"));
	assert_null(strstr(text, "hidden"));
	assert_null(strstr(text, "energy_uncertainty")); /* not told: no zero */
	assert_int_equal(ask("GET /v1/cgroups/a.slice HTTP/1.1", &text), 200);
	assert_non_null(strstr(text, "\"/a.slice\""));
	assert_null(strstr(text, "last_uncertainty")); /* not told: no zero */
	*snapshot_energy(&f.snap, READING_SPECIAL_ROWS, 0) = 1000;
	*snapshot_uncertainty(&f.snap, READING_SPECIAL_ROWS, 0) = 31250;
	publish();
	assert_int_equal(ask("GET /v1/cgroups/a.slice HTTP/1.1", &text), 200);
	assert_non_null(strstr(text, "\"last_uncertainty\":0.03125,"));
	assert_int_equal(ask("GET /v1/snapshot HTTP/1.1", &text), 200);
	assert_non_null(strstr(text, "\"energy_uncertainty\":{\"package-0\":0.03125},")); /* not told of the others */
	assert_int_equal(ask("GET /v1/snapshot HTTP/1.1\r\nAccept: text/plain", &text), 200);
	assert_non_null(strstr(text, "text/plain"));
	assert_true(serve_select(serve, &everything));
	assert_int_equal(ask("GET /v1/snapshot HTTP/1.1", &text), 503);
}

/* A reading is answered by the totals that follow the request, not by those before it. */
static void test_reading(void **state)
{
	struct pollfd early = { .events = POLLIN };
	const char *text;
	unsigned before;
	int fd;

	publish();
	before = atomic_load(&woken);
	assert_false(serve_wants_reading(serve));
	fd = send_request("POST /v1/reading HTTP/1.1\r\nContent-Length: 0");
	early.fd = fd;
	while (atomic_load(&woken) == before && poll(&early, 1, 1) == 0)
		;
	assert_int_not_equal(atomic_load(&woken), before); /* the first request after the start is not refused */
	publish();
	assert_int_equal(read_answer(fd, &text), 200);
	assert_non_null(strstr(text, "\"/a.slice\""));
	assert_non_null(strstr(text, "\"ranged_uj\":3000,\"range_uj\":94}")); /* since test_answers told one */
}

/* Ready once there are totals; not healthy when the last are old. */
static void test_health_late(void **state)
{
	const char *text;

	publish();
	assert_int_equal(ask("GET /healthz HTTP/1.1", &text), 200);
	assert_non_null(strstr(text, "\r\n\r\nok\n"));
	assert_int_equal(ask("GET /readyz HTTP/1.1", &text), 200);
	publish_at(clock_mono_ns() - 40 * NS_PER_S);
	assert_int_equal(ask("GET /healthz HTTP/1.1", &text), 503);
	assert_non_null(strstr(text, "health: no reading for "));
}

static int post(const char *path, const struct buf *body, const char **ret)
{
	char head[256];
	int fd;

	snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nContent-Length: %zu", path, body->len);
	fd = send_request(head);
	for (size_t at = 0; at < body->len;) {
		ssize_t n = write(fd, body->data + at, body->len - at);

		if (n <= 0)
			break; /* refused */
		at += (size_t)n;
	}
	return read_answer(fd, ret);
}

/* The longest result of an audit that there is. */
static void write_audit(struct buf *b)
{
	static struct audit a;
	const double number = -1.2345678901234567e-300;
	struct audit_line l = { .pairs = INT64_MAX,
				.charged_w = number,
				.drawn_w = number,
				.bias = number,
				.low = number,
				.high = number,
				.displaced = number };
	struct json j;

	memset(l.cgroup, '"', sizeof(l.cgroup) - 1);
	memset(l.domain, '"', sizeof(l.domain) - 1);
	memset(l.draw, '"', sizeof(l.draw) - 1);
	audit_init(&a);
	a.duration_ns = a.frozen_ns = a.seed = INT64_MAX;
	memset(a.why, '"', sizeof(a.why) - 1);
	while (audit_add(&a, &l))
		;
	json_init(&j, b);
	audit_json(&j, &a);
}

static void test_longest_audit(void **state)
{
	struct buf b = { 0 };
	const char *text;

	write_audit(&b);
	assert_false(b.failed);
	assert_true(b.len > 3 * HTTP_BODY_SHORT && b.len <= AUDIT_BYTES_MAX && b.len <= HTTP_BODY_MAX);
	for (unsigned i = 0; i < 2 * HTTP_LONG_BODIES; i++) /* each gives its place back */
		assert_int_equal(post("/v1/audit", &b, &text), 200);
	buf_free(&b);
	assert_int_equal(ask("POST /v1/audit HTTP/1.1\r\nContent-Length: 65537", &text), 413);
}

/* More than a few long bodies at once are refused, short ones never. */
static void test_long_bodies(void **state)
{
	static const char head[] = "POST /v1/audit HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 20000";
	struct buf b = { 0 };
	int fds[HTTP_LONG_BODIES];
	const char *text;
	char line[26];

	write_audit(&b);
	for (unsigned i = 0; i < HTTP_LONG_BODIES; i++) {
		fds[i] = send_request(head);
		assert_int_equal(read(fds[i], line, 25), 25);
		assert_memory_equal(line, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	}
	assert_int_equal(ask(head, &text), 503);
	assert_non_null(strstr(text, "Retry-After: 1"));
	assert_non_null(strstr(text, "8 of more than 16384 bytes are being read"));
	assert_int_equal(post("/v1/audit", &(struct buf){ .data = b.data, .len = HTTP_BODY_SHORT }, &text), 400);
	for (unsigned i = 0; i < HTTP_LONG_BODIES; i++)
		close(fds[i]);
	for (unsigned i = 0; post("/v1/audit", &b, &text) != 200; i++) {
		assert_true(i < 10000);
		poll(NULL, 0, 1);
	}
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_health),      cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_answers),     cmocka_unit_test(test_reading),
		cmocka_unit_test(test_health_late), cmocka_unit_test(test_longest_audit),
		cmocka_unit_test(test_long_bodies),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, begin, end);
}
