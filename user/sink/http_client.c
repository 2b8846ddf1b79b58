/* SPDX-License-Identifier: Apache-2.0 */
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "http_client.h"

#define TIMEOUT_MS 60000
#define CONNECT_MS 10000

struct http_client {
	CURL *curl;
	char subject[200];
	char *ca_file;
	long timeout_ms;
	const atomic_bool *stop;
	struct buf *into;
	char error[CURL_ERROR_SIZE];
};

static void init_library(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_client_check_url(const char *url, struct err *err)
{
	CURLU *u = curl_url();
	char *host = NULL;
	CURLUcode rc = u ? curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER) : CURLUE_OUT_OF_MEMORY;
	int ret = 0;

	if (!rc)
		rc = curl_url_get(u, CURLUPART_HOST, &host, 0);
	if (rc == CURLUE_OUT_OF_MEMORY)
		ret = err_set(err, -ENOMEM, "%s: out of memory; free some", url);
	else if (rc || !*host || strstr(url, ":///"))
		ret = err_set(err, -EINVAL, "%s: no URL of a collector; expected http://HOST:PORT or https://HOST:PORT",
			      url);
	curl_free(host);
	curl_url_cleanup(u);
	return ret;
}

static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
	struct http_client *c = arg;

	if (c->into->len + size * n > HTTP_ANSWER_MAX)
		return 0;
	buf_add(c->into, data, size * n);
	return c->into->failed ? 0 : size * n;
}

static int look_up(void *arg, curl_off_t dl_total, curl_off_t dl, curl_off_t ul_total, curl_off_t ul)
{
	const struct http_client *c = arg;

	return c->stop && atomic_load(c->stop);
}

int http_client_new(const struct http_client_options *o, struct http_client **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct http_client *c = calloc(1, sizeof(*c));

	pthread_once(&once, init_library);
	if (c) {
		c->curl = curl_easy_init();
		c->ca_file = o->ca_file ? strdup(o->ca_file) : NULL;
	}
	if (!c || !c->curl || (o->ca_file && !c->ca_file)) {
		http_client_free(c);
		return err_set(err, -ENOMEM, "%s: out of memory; free some", o->subject);
	}
	strncpy(c->subject, o->subject, sizeof(c->subject) - 1);
	c->timeout_ms = o->timeout_ns ? (long)(o->timeout_ns / NS_PER_MS) : TIMEOUT_MS;
	c->stop = o->stop;
	*ret = c;
	return 0;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	if (c->curl)
		curl_easy_cleanup(c->curl);
	free(c->ca_file);
	free(c);
}

static CURLcode set_common(struct http_client *c)
{
	CURL *h = c->curl;
	CURLcode rc = CURLE_OK;

	curl_easy_reset(h); /* connections stay open */
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->error);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, look_up);
	curl_easy_setopt(h, CURLOPT_XFERINFODATA, c);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, c->timeout_ms);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, c->timeout_ms < CONNECT_MS ? c->timeout_ms : (long)CONNECT_MS);
	curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "jouled/" JOULED_VERSION);
	curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	if (c->ca_file)
		rc = curl_easy_setopt(h, CURLOPT_CAINFO, c->ca_file);
	if (!rc)
		rc = curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	if (!rc)
		rc = curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, 1L);
	if (!rc)
		rc = curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, 2L);
	return rc;
}

static struct curl_slist *add_header(struct curl_slist *list, const char *text, bool *ret_failed)
{
	struct curl_slist *longer = curl_slist_append(list, text);

	*ret_failed |= !longer;
	return longer ? longer : list;
}

static struct curl_slist *headers_of(const struct http_post *p, bool *ret_failed)
{
	struct curl_slist *list = NULL;
	char type[160];

	/* strncat instead of a format: the type is ours */
	type[0] = '\0';
	strncat(type, "Content-Type: ", sizeof(type) - 1);
	strncat(type, p->type, sizeof(type) - 1 - strlen(type));
	list = add_header(list, type, ret_failed);
	list = add_header(list, "Expect:", ret_failed);
	for (unsigned i = 0; p->headers && p->headers[i]; i++)
		list = add_header(list, p->headers[i], ret_failed);
	return list;
}

static int explain(struct http_client *c, CURLcode rc, struct err *err)
{
	const char *why = *c->error ? c->error : curl_easy_strerror(rc);

	switch (rc) {
	case CURLE_OK:
		return 0;
	case CURLE_ABORTED_BY_CALLBACK:
		return err_set(err, -ECANCELED, "%s: given up, for this program ends", c->subject);
	case CURLE_OPERATION_TIMEDOUT:
		return err_set(err, -ETIMEDOUT, "%s: %s", c->subject, why);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
		return err_set(err, -EKEYREJECTED,
			       "%s: its certificate is refused: %s; name its authority with ca-file", c->subject, why);
	case CURLE_WRITE_ERROR:
		return err_set(err, -EMSGSIZE, "%s: its answer is longer than %d bytes; this is no collector",
			       c->subject, HTTP_ANSWER_MAX);
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return err_set(err, -EINVAL, "%s: %s; expected http://HOST:PORT or https://HOST:PORT", c->subject, why);
	case CURLE_OUT_OF_MEMORY:
		return err_set(err, -ENOMEM, "%s: out of memory; free some", c->subject);
	default:
		return err_set(err, -ECONNREFUSED, "%s: %s", c->subject, why);
	}
}

int http_client_post(struct http_client *c, const struct http_post *p, struct http_reply *ret, struct err *err)
{
	bool failed = false;
	struct curl_slist *headers = headers_of(p, &failed);
	CURLcode rc = failed ? CURLE_OUT_OF_MEMORY : set_common(c);

	buf_reset(&ret->body);
	c->into = &ret->body;
	c->error[0] = '\0';
	ret->status = 0;
	curl_easy_setopt(c->curl, CURLOPT_URL, p->url);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)p->len);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, p->len ? p->body : "");
	if (!rc)
		rc = curl_easy_perform(c->curl);
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &ret->status);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(headers);
	buf_add_char(&ret->body, '\0');
	if (ret->body.failed && !rc)
		rc = CURLE_OUT_OF_MEMORY;
	if (!ret->body.failed)
		ret->body.len--;
	return explain(c, rc, err);
}
