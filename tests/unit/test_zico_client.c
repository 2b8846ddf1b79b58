/* SPDX-License-Identifier: Apache-2.0 */
/* The client against collectors of this file: each release's answers as docs/formats/zico.md has them, and
 * what is done when they forget, refuse, restart, or are no collectors at all. */
#include <signal.h>
#include <sys/resource.h>
#include "zico_collector.h"
#include "sink/zico/collector.h"

/* The encoder's side: definitions are pending until told. */
static struct {
	unsigned begun, told, encoded;
	bool pending;
	char profile[32];
} enc;
static char state_file[64];
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
	const struct http_client_options http = { .timeout_ns = 5000000000ull };
	struct zico_client_options o = {
		.url = url,
		.profile = profile,
		.key = key,
		.name = "node",
		.app = "shop",
		.env = "prod",
		.state_file = state_file,
		.form = form,
		.http = &http,
	};
	struct err err = { 0 };

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", col.port);
	assert_int_equal(zico_client_new(&o, &client, &err), 0);
}

static int start(void **state)
{
	unlink(state_file);
	setenv("no_proxy", "127.0.0.1", 1);
	memset(&col, 0, sizeof(col));
	memset(&enc, 0, sizeof(enc));
	open_collector(0);
	return 0;
}

static int stop(void **state)
{
	zico_client_free(client);
	client = NULL;
	shutdown(col.fd, SHUT_RDWR);
	pthread_join(col.thread, NULL);
	close(col.fd);
	unlink(state_file);
	return 0;
}

static void delivers(uint8_t n)
{
	struct err err = { 0 };
	int rc = send_trace(n, &err);

	if (rc)
		fail_msg("trace %u: %d %s; asked: %s", n, rc, err.text, col.log);
}

static void test_190(void **state)
{
	struct stat st;

	open_client("auto", "zorka", NULL);
	delivers(1);
	delivers(2);
	assert_string_equal(enc.profile, "zico-1.90");
	assert_string_equal(zico_client_profile(client), "zico-1.90");
	assert_string_equal(col.log,
			    "/agent/register /agent/session /agent/submit/agd /agent/submit/trc /agent/submit/trc ");
	assert_string_equal(col.last_agent, "YWdlbnR+P2RhdGE=");
	assert_string_equal(col.last_trace, "dHJhY2U=");
	assert_string_equal(col.traces, "01cd0000-0000-0000-0000-00000000000002cd0000-0000-0000-0000-000000000000");
	assert_int_equal(stat(state_file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* another start: who we are is known */
	zico_client_free(client);
	col.log[0] = '\0';
	open_client("auto", "zorka", NULL);
	delivers(3);
	assert_string_equal(col.log, "/agent/session /agent/submit/agd /agent/submit/trc ");
	assert_int_equal(col.agents, 1);
}

static void test_1906(void **state)
{
	col.release = R_1906;
	open_client("auto", "zorka", NULL);
	delivers(1);
	assert_string_equal(enc.profile, "zico-1.90.6");
	assert_string_equal(col.last_trace, "trace");
	col.lose_sessions = 1;
	delivers(2);
	assert_int_equal(enc.begun, 2);
	assert_int_equal(col.agents, 1);
}

static void test_2(void **state)
{
	col.release = R_2;
	open_client("auto", "zorka", NULL);
	delivers(1);
	assert_string_equal(enc.profile, "zico-2");
	assert_string_equal(col.traces, "01cd0000000000000000000000000000");
	col.lose_sessions = 1;
	delivers(2);
	assert_int_equal(col.sessions, 2);
	assert_int_equal(enc.told, 2);
}

/* 401 is for a lost session and for a trace that cannot be read alike: one such trace must not stop all others. */
static void test_2_refused(void **state)
{
	struct err err = { 0 };

	col.release = R_2;
	open_client("auto", "zorka", NULL);
	delivers(1);
	col.deny_traces = 401;
	assert_int_equal(send_trace(2, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "each new session"));
	col.deny_traces = 412; /* a session that is lost each time is not the trace's fault */
	assert_int_equal(send_trace(2, &err), -EAGAIN);
	col.deny_traces = 0;
	delivers(3);
}

/* A full disk must not keep traces from being delivered; who we are is written once there is room. */
static void test_unsaved(void **state)
{
	struct err err = { 0 };

	state_file[strlen(state_file) - 1] = '/'; /* a folder that is not there */
	open_client("auto", "zorka", NULL);
	state_file[strlen(state_file) - 1] = 'n';
	assert_int_equal(send_trace(1, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "No such file or directory"));
	assert_non_null(strstr(err.text, "create the directory first"));
	delivers(1);
	assert_int_equal(col.agents, 1);
}

/* A disk that takes only the beginning of the file: the cause is told, and no half of an identity is left. */
static void test_unsaved_half(void **state)
{
	struct rlimit was, small = { .rlim_cur = 20, .rlim_max = RLIM_INFINITY };
	char next[sizeof(state_file) + 8];
	struct err err = { 0 };

	open_client("auto", "zorka", NULL);
	getrlimit(RLIMIT_FSIZE, &was);
	small.rlim_max = was.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(send_trace(1, &err), -EAGAIN);
	setrlimit(RLIMIT_FSIZE, &was);
	signal(SIGXFSZ, SIG_DFL);
	assert_non_null(strstr(err.text, "File too large: the identity at the collector is not kept; raise the limit"));
	snprintf(next, sizeof(next), "%s.new", state_file);
	assert_int_equal(access(next, F_OK), -1);
	assert_int_equal(access(state_file, F_OK), -1);
	delivers(1);
}

/* Somebody on the way does not find it: no reason for another session, for what was told, or to register. */
static void test_404(void **state)
{
	struct err err = { 0 };

	col.again = FAILS_WITH_ATTRS;
	open_client("auto", "zorka", NULL);
	delivers(1);
	for (unsigned i = 0; i < 2; i++) {
		col.deny_once = i ? 405 : 404;
		assert_int_equal(send_trace(2, &err), -EAGAIN);
		delivers(2);
	}
	assert_int_equal(col.sessions, 1);
	assert_int_equal(enc.told, 1);
	assert_string_equal(col.ways, "a ");
	/* a session that is not found once is no other release; twice it may be */
	col.session[0] = '\0';
	col.deny_session = 404;
	assert_int_equal(send_trace(3, &err), -EAGAIN);
	delivers(3);
	assert_string_equal(col.ways, "a ");
	col.session[0] = '\0';
	col.release = R_2;
	assert_int_equal(send_trace(4, &err), 0);
	assert_string_equal(zico_client_profile(client), "zico-2");
}

static void fails_to_register(uint8_t n)
{
	struct err err = { 0 };
	int rc = send_trace(n, &err);

	if (rc != -EREMOTEIO)
		fail_msg("trace %u: %d %s; asked: %s", n, rc, err.text, col.log);
}

/* 500 to a host that registers as what it is. */
static void test_again(void **state)
{
	col.again = FAILS_WITH_ATTRS;
	open_client("auto", "zorka", NULL);
	delivers(1);
	col.session[0] = '\0';
	col.deny_session = 401;
	fails_to_register(2);
	delivers(2);
	assert_string_equal(col.ways, "a ia i ");
	assert_int_equal(col.agents, 1);
	/* also without attributes */
	col.again = FAILS;
	col.session[0] = '\0';
	col.deny_session = 401;
	fails_to_register(3);
	fails_to_register(3);
	delivers(3);
	assert_string_equal(col.ways, "a ia i ia i a ");
	assert_int_equal(col.agents, 2);
	/* the new identity is the one that is kept */
	zico_client_free(client);
	open_client("auto", "zorka", NULL);
	delivers(4);
	assert_string_equal(col.ways, "a ia i ia i a ");
}

/* An attribute that does not fit: a host without them is better than none. */
static void test_unfit_attributes(void **state)
{
	col.fails_attrs = true;
	open_client("auto", "zorka", NULL);
	fails_to_register(1);
	delivers(1);
	assert_string_equal(col.ways, "a  ");
	assert_int_equal(col.agents, 1);
}

/* A 1.90 cannot read traces of zico-2 and answers them with 500, as it does for a trace that it refuses. No trace may
 * be given up before the collector was asked for its profile. */
static void test_replaced(void **state)
{
	struct err err = { 0 };

	col.release = R_2;
	open_client("auto", "zorka", NULL);
	delivers(1);
	col.release = R_190;
	col.session[0] = '\0';
	delivers(2);
	assert_string_equal(zico_client_profile(client), "zico-1.90");
	/* where the agent data is taken there is nothing to ask */
	col.ways[0] = '\0';
	col.fail_traces = true;
	assert_int_equal(send_trace(3, &err), -EBADMSG);
	assert_string_equal(col.ways, "");
	col.fail_traces = false;
	/* who names the profile is not asked */
	zico_client_free(client);
	unlink(state_file);
	open_client("zico-2", "zorka", NULL);
	assert_int_equal(send_trace(4, &err), -EBADMSG);
	assert_string_equal(col.ways, "");
}

static void test_document(void **state)
{
	open_client("document", "zorka", "data");
	delivers(1);
	assert_string_equal(col.log, "/agent/register /agent/session /submit/agent /agent/submit/trc ");
	assert_string_equal(col.last_agent, "host=21c00000-0501-0000-0001-000000000001&data=YWdlbnR%2BP2RhdGE%3D");
	zico_client_free(client);
	open_client("document", "zorka", "zdata");
	delivers(2);
	assert_non_null(strstr(col.last_agent, "&zdata=eJ")); /* zlib: 78 9c */
	zico_client_free(client);
	open_client("document", "zorka", "ldata");
	delivers(3);
	assert_non_null(strstr(col.last_agent, "&ldata=BCJNG")); /* LZ4 frame: 04 22 4d 18 */
}

static void test_lost_sessions(void **state)
{
	struct err err = { 0 };

	open_client("auto", "zorka", NULL);
	delivers(1);
	col.lose_sessions = 2;
	delivers(2);
	assert_int_equal(col.agents, 1);
	/* a storm: later, the same trace */
	col.lose_sessions = 1000;
	assert_int_equal(send_trace(3, &err), -EAGAIN);
	assert_true(col.lose_sessions > 980);
	col.lose_sessions = 0;
	delivers(3);
}

static void test_restarted_collector(void **state)
{
	open_client("auto", "zorka", NULL);
	delivers(1);
	/* another data base: it has never heard of us */
	snprintf(col.agent, sizeof(col.agent), "21c00000-other");
	col.session[0] = '\0';
	delivers(2);
	assert_int_equal(col.agents, 2);
	assert_int_equal(col.n_trace, 2);
}

static void test_changed_key(void **state)
{
	open_client("auto", "zorka", NULL);
	delivers(1);
	snprintf(col.key, sizeof(col.key), "ANOTHER");
	col.session[0] = '\0';
	delivers(2);
	assert_int_equal(col.agents, 2);
}

static void test_another_release(void **state)
{
	open_client("auto", "zorka", NULL);
	delivers(1);
	col.release = R_2;
	col.session[0] = '\0';
	delivers(2);
	assert_string_equal(zico_client_profile(client), "zico-2");
	col.release = R_1906;
	col.session[0] = '\0';
	col.agent[0] = '\0';
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
	col.fail_traces = true;
	assert_int_equal(send_trace(2, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "500 (Internal error.)"));
	col.fail_traces = false;
	delivers(3);
	/* once is forgiven, in a new session */
	col.fail = 1;
	delivers(4);
	col.fail = 1000;
	assert_int_not_equal(send_trace(5, &err), 0);
	assert_true(col.fail > 990);
	col.fail = 0;
	delivers(5);
}

static void test_no_collector(void **state)
{
	static const char *const bodies[] = {
		"",
		"<html>",
		"[]",
		"{\"uuid\":5}",
		"{\"uuid\":\"a b\\r\\nX: y\",\"authkey\":\"k\"}",
		"{\"uuid\":\"\",\"authkey\":\"k\"}",
		"{\"uuid\":\"a\",\"uuid\":\"b\",\"authkey\":\"k\"}",
		"{\"id\":-1,\"authkey\":\"k\"}",
		"{\"id\":1e99,\"authkey\":\"k\"}",
	};
	struct err err = { 0 };

	open_client("auto", "zorka", NULL);
	for (unsigned i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		col.garbage = bodies[i];
		assert_int_equal(send_trace(1, &err), -EAGAIN);
	}
	col.garbage = NULL;
	col.huge = 100000;
	assert_int_equal(send_trace(1, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "longer than 65536"));
	col.huge = 0;
	delivers(1);
	shutdown(col.fd, SHUT_RDWR);
}

static void test_nobody(void **state)
{
	struct err err = { 0 };

	open_client("auto", "zorka", NULL);
	snprintf(url, sizeof(url), "http://127.0.0.1:1");
	zico_client_free(client);
	assert_int_equal(
		zico_client_new(&(struct zico_client_options){ .url = url, .profile = "auto", .key = "k", .name = "n" },
				&client, &err),
		0);
	assert_int_equal(send_trace(1, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "127.0.0.1"));
	assert_int_equal(
		zico_client_new(
			&(struct zico_client_options){ .url = "ftp://x", .profile = "auto", .key = "k", .name = "n" },
			&client, &err),
		-EINVAL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		T(test_190),
		T(test_1906),
		T(test_2),
		T(test_2_refused),
		T(test_unsaved),
		T(test_unsaved_half),
		T(test_document),
		T(test_404),
		T(test_again),
		T(test_unfit_attributes),
		T(test_replaced),
		T(test_lost_sessions),
		T(test_restarted_collector),
		T(test_changed_key),
		T(test_another_release),
		T(test_refused),
		T(test_no_collector),
		T(test_nobody),
	};

	snprintf(state_file, sizeof(state_file), "/tmp/jouled-zico-client-%d.json", getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
