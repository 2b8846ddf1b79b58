/* SPDX-License-Identifier: Apache-2.0 */
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "http_client.h"

#define TIMEOUT_NS (60 * NS_PER_S)
#define CONNECT_NS (10 * NS_PER_S)
#define ANSWER_MAX 65536
#define RETRY_AFTER_MAX_S 3600 /* a server that asks for more is asked again after this */
#define LOOK_MS 100 /* time between two looks at *stop */

struct http_client {
	struct http_client_options o;
	char subject[200];
	char *unix_path, *ca_file, *cert_file, *key_file, *token_file, *user, *password_file;
	uint64_t stamp; /* of the files of certificates that the open connection was made with */
	uint64_t secret_stamp; /* of the files of secrets of the last request */
	CURL *easy;
	CURLM *multi; /* keeps connections open between requests */
	struct curl_slist *headers;
	struct buf *into;
	bool running; /* easy is in multi */
	bool came; /* a piece of a body, in this turn */
	int taken; /* negative errno of a piece that was not taken */
	char error[CURL_ERROR_SIZE];
	char login[HTTP_SECRET_MAX * 2]; /* header; wiped when the request was made */
};

static void init_library(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_client_check_url(const char *url, struct err *err)
{
	CURLU *u = curl_url();
	char *host = NULL;
	CURLUcode code = u ? curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER) : CURLUE_OUT_OF_MEMORY;
	int rc = 0;

	if (!code)
		code = curl_url_get(u, CURLUPART_HOST, &host, 0);
	if (code == CURLUE_OUT_OF_MEMORY)
		rc = err_set(err, -ENOMEM, "%s: out of memory; free some", url);
	else if (code || !*host || strstr(url, ":///"))
		rc = err_set(err, -EINVAL, "%s: no URL of a collector; expected http://HOST:PORT or https://HOST:PORT",
			     url);
	curl_free(host);
	curl_url_cleanup(u);
	return rc;
}

/* Copies the texts of the options that stay. False: no memory. */
static bool keep_texts(struct http_client *c, const struct http_client_options *o)
{
	struct {
		char **to;
		const char *from;
	} all[] = {
		{ &c->unix_path, o->unix_path },
		{ &c->ca_file, o->ca_file },
		{ &c->cert_file, o->cert_file },
		{ &c->key_file, o->key_file },
		{ &c->token_file, o->secrets.token_file },
		{ &c->user, o->secrets.user },
		{ &c->password_file, o->secrets.password_file },
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].from && !(*all[i].to = strdup(all[i].from)))
			return false;
	c->o.secrets.token_file = c->token_file;
	c->o.secrets.user = c->user;
	c->o.secrets.password_file = c->password_file;
	return true;
}

int http_client_new(const struct http_client_options *o, struct http_client **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct http_client *c = calloc(1, sizeof(*c));

	pthread_once(&once, init_library);
	if (c) {
		c->o = *o;
		c->o.timeout_ns = o->timeout_ns ? o->timeout_ns : TIMEOUT_NS;
		c->o.connect_ns = o->connect_ns ? o->connect_ns : CONNECT_NS;
		c->o.answer_max = o->answer_max ? o->answer_max : ANSWER_MAX;
		strncpy(c->subject, o->subject, sizeof(c->subject) - 1);
		c->easy = curl_easy_init();
		c->multi = curl_multi_init();
	}
	if (!c || !c->easy || !c->multi || !keep_texts(c, o)) {
		http_client_free(c);
		return err_set(err, -ENOMEM, "%s: out of memory; free some", o->subject);
	}
	*ret = c;
	return 0;
}

void http_client_stop(struct http_client *c)
{
	if (c->running)
		curl_multi_remove_handle(c->multi, c->easy); /* a connection that is done stays open */
	c->running = false;
	if (c->headers)
		curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, NULL);
	for (struct curl_slist *l = c->headers; l; l = l->next)
		explicit_bzero(l->data, strlen(l->data)); /* credentials stay in no memory that is free */
	curl_slist_free_all(c->headers);
	c->headers = NULL;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	http_client_stop(c);
	curl_easy_cleanup(c->easy);
	curl_multi_cleanup(c->multi);
	free(c->unix_path);
	free(c->ca_file);
	free(c->cert_file);
	free(c->key_file);
	free(c->token_file);
	free(c->user);
	free(c->password_file);
	free(c);
}

static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
	struct http_client *c = arg;

	c->came = true;
	if (c->o.take) {
		c->taken = c->o.take(c->o.arg, http_client_status(c), data, size * n);
	} else if (c->into->len + size * n > c->o.answer_max) {
		c->taken = -EMSGSIZE;
	} else {
		buf_add(c->into, data, size * n);
		c->taken = c->into->failed ? -ENOMEM : 0;
	}
	return c->taken ? 0 : size * n;
}

static CURLcode set_common(struct http_client *c)
{
	const struct http_client_options *o = &c->o;
	uint64_t connect_ns = o->connect_ns < o->timeout_ns ? o->connect_ns : o->timeout_ns;
	CURL *h = c->easy;
	CURLcode code;

	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->error);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_ns / NS_PER_MS));
	curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "jouled/" JOULED_VERSION);
	curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	if (!o->proxies)
		curl_easy_setopt(h, CURLOPT_PROXY, "");
	if (o->only_ca_file)
		curl_easy_setopt(h, CURLOPT_CAPATH, NULL);
	code = c->unix_path ? curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, c->unix_path) : CURLE_OK;
	if (!code && (c->ca_file || o->only_ca_file))
		code = curl_easy_setopt(h, CURLOPT_CAINFO, c->ca_file);
	if (!code && c->cert_file)
		code = curl_easy_setopt(h, CURLOPT_SSLCERT, c->cert_file);
	if (!code && c->cert_file)
		code = curl_easy_setopt(h, CURLOPT_SSLKEY, c->key_file ? c->key_file : c->cert_file);
	if (!code)
		code = curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, c->unix_path ? "http" : "http,https");
	if (!code)
		code = curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, o->insecure ? 0L : 1L);
	if (!code)
		code = curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, o->insecure ? 0L : 2L);
	return code;
}

static CURLcode add_header(struct http_client *c, const char *text)
{
	struct curl_slist *longer = curl_slist_append(c->headers, text);

	if (!longer)
		return CURLE_OUT_OF_MEMORY;
	c->headers = longer;
	return CURLE_OK;
}

static CURLcode set_headers(struct http_client *c, const struct http_ask *ask)
{
	CURLcode code = ask->post ? add_header(c, "Expect:") : CURLE_OK;
	char type[160] = "Content-Type: ";

	if (!code && ask->type) {
		strncat(type, ask->type, sizeof(type) - 1 - strlen(type));
		code = add_header(c, type);
	}
	for (unsigned i = 0; !code && ask->headers && ask->headers[i]; i++)
		code = add_header(c, ask->headers[i]);
	if (!code && *c->login)
		code = add_header(c, c->login);
	explicit_bzero(c->login, sizeof(c->login));
	return code ? code : curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers);
}

static CURLcode set_request(struct http_client *c, const struct http_ask *ask)
{
	CURLcode code = curl_easy_setopt(c->easy, CURLOPT_URL, ask->url);

	if (!ask->endless)
		curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)(c->o.timeout_ns / NS_PER_MS));
	if (ask->del)
		code = code ? code : curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, "DELETE");
	if (ask->post) {
		curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->len);
		curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, ask->len ? ask->body : "");
	}
	return code ? code : set_headers(c, ask);
}

/* Returns the errno of connect() for a Unix socket. A host may have several addresses, so it gets -ECONNREFUSED. */
static int connect_error(const struct http_client *c)
{
	long os = 0;

	curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &os);
	return c->unix_path && os ? (int)-os : -ECONNREFUSED;
}

static int explain(struct http_client *c, CURLcode code, struct err *err)
{
	const char *why = *c->error ? c->error : curl_easy_strerror(code);

	if (code == CURLE_WRITE_ERROR && c->taken == -ENOMEM)
		code = CURLE_OUT_OF_MEMORY;
	switch (code) {
	case CURLE_OK:
		return 0;
	case CURLE_OPERATION_TIMEDOUT:
		return err_set(err, -ETIMEDOUT, "%s: %s", c->subject, why);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
		return err_set(err, -EKEYREJECTED, "%s: its certificate is refused: %s; %s", c->subject, why,
			       c->o.remedy ? c->o.remedy : "check it");
	case CURLE_SSL_CERTPROBLEM:
		return err_set(err, -EACCES, "%s: %s: %s; give a PEM file with the certificate, and its key",
			       c->subject, c->cert_file ? c->cert_file : "certificate", why);
	case CURLE_WRITE_ERROR:
		return err_set(err, c->taken ? c->taken : -EIO, "%s: its answer is longer than %zu bytes; %s",
			       c->subject, c->o.answer_max, c->o.not_this ? c->o.not_this : "ask for less");
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return err_set(err, -EINVAL, "%s: %s; expected http://HOST:PORT or https://HOST:PORT", c->subject, why);
	case CURLE_OUT_OF_MEMORY:
		return err_set(err, -ENOMEM, "%s: out of memory; free some", c->subject);
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return err_set(err, connect_error(c), "%s: %s", c->subject, why);
	default:
		return err_set(err, -ECONNRESET, "%s: %s", c->subject, why);
	}
}

static uint64_t certificates(const struct http_client *c)
{
	const char *const files[] = { c->ca_file, c->cert_file, c->key_file };

	return http_files_stamp(files, sizeof(files) / sizeof(files[0]));
}

static uint64_t secrets(const struct http_client *c)
{
	const char *const files[] = { c->token_file, c->password_file };

	return http_files_stamp(files, sizeof(files) / sizeof(files[0]));
}

bool http_client_changed(const struct http_client *c)
{
	return certificates(c) != c->stamp || secrets(c) != c->secret_stamp;
}

/* Closes the idle connection when its certificates are not those of the files any more. */
static int renew(struct http_client *c)
{
	uint64_t stamp = certificates(c);
	CURLM *multi = stamp == c->stamp ? NULL : curl_multi_init();

	if (stamp == c->stamp)
		return 0;
	if (!multi)
		return -ENOMEM;
	curl_multi_cleanup(c->multi);
	c->multi = multi;
	c->stamp = stamp;
	return 0;
}

int http_client_begin(struct http_client *c, const struct http_ask *ask, struct err *err)
{
	CURLcode code;
	int rc;

	http_client_stop(c);
	if (renew(c) != 0)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", c->subject);
	c->secret_stamp = secrets(c);
	c->login[0] = '\0';
	rc = ask->anonymous ? 0 : http_secret_header(&c->o.secrets, c->login, err);
	if (rc)
		return rc;
	curl_easy_reset(c->easy);
	c->error[0] = '\0';
	c->taken = 0;
	code = set_common(c);
	if (!code)
		code = set_request(c, ask);
	if (!code && curl_multi_add_handle(c->multi, c->easy) != CURLM_OK)
		code = CURLE_OUT_OF_MEMORY;
	c->running = !code;
	return explain(c, code, err);
}

int http_client_turn(struct http_client *c, int fd, int wait_ms, struct err *err)
{
	struct curl_waitfd also = { .fd = fd, .events = CURL_WAIT_POLLIN };
	CURLMcode code;
	CURLMsg *m;
	int n = 0;

	c->came = false;
	code = curl_multi_perform(c->multi, &n);
	if (!code && n && !c->came)
		code = curl_multi_poll(c->multi, &also, fd >= 0, wait_ms, NULL);
	if (code)
		return err_set(err, -EIO, "%s: libcurl failed; try again", c->subject);
	m = curl_multi_info_read(c->multi, &n);
	if (!m || m->msg != CURLMSG_DONE)
		return 1;
	n = explain(c, m->data.result, err);
	http_client_stop(c);
	return n;
}

bool http_client_running(const struct http_client *c)
{
	return c->running;
}

long http_client_status(const struct http_client *c)
{
	long status = 0;

	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

bool http_client_header(struct http_client *c, const char *name, char *dst, size_t size)
{
	struct curl_header *h;

	*dst = '\0';
	if (curl_easy_header(c->easy, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK || strlen(h->value) >= size)
		return false;
	memcpy(dst, h->value, strlen(h->value) + 1);
	return true;
}

static uint64_t retry_after(const struct http_client *c)
{
	curl_off_t s = 0;

	curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &s);
	return s > 0 ? (uint64_t)(s < RETRY_AFTER_MAX_S ? s : RETRY_AFTER_MAX_S) * NS_PER_S : 0;
}

int http_client_ask(struct http_client *c, const struct http_ask *ask, struct http_answer *ret, struct err *err)
{
	bool began;
	int rc;

	buf_reset(&ret->body);
	c->into = &ret->body;
	rc = http_client_begin(c, ask, err);
	began = !rc;
	rc = rc ?: 1;
	while (rc > 0)
		rc = c->o.stop && !ask->last && atomic_load(c->o.stop) ?
			     err_set(err, -ECANCELED, "%s: given up, for this program ends", c->subject) :
			     http_client_turn(c, -1, LOOK_MS, err);
	http_client_stop(c);
	/* without a request the last answer is of an earlier one */
	ret->status = began ? http_client_status(c) : 0;
	ret->retry_after_ns = began ? retry_after(c) : 0;
	buf_add_char(&ret->body, '\0');
	if (ret->body.failed)
		return rc ? rc : err_set(err, -ENOMEM, "%s: out of memory; free some", c->subject);
	ret->body.len--;
	return rc;
}
