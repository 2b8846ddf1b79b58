/* SPDX-License-Identifier: Apache-2.0 */
/* One GET a look. The body is read as it comes; redirects and proxies are not followed: the kubelet is on this node. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kubelet_internal.h"

#define TOKEN_MAX 16384
#define TIMEOUT_MS 10000L
#define CONNECT_TIMEOUT_MS 3000L

struct kubelet_http {
	CURL *curl;
	const struct kubelet_options *o;
	const atomic_bool *stop;
	struct kubelet_reader reader;
	int failed; /* of the reader */
	char header[sizeof("Authorization: Bearer ") + TOKEN_MAX];
	char error[CURL_ERROR_SIZE];
};

static void init_library(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

struct kubelet_http *kubelet_http_new(const struct kubelet_options *o, const atomic_bool *stop)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct kubelet_http *h = calloc(1, sizeof(*h));

	pthread_once(&once, init_library);
	if (h)
		h->curl = curl_easy_init();
	if (!h || !h->curl) {
		free(h);
		return NULL;
	}
	h->o = o;
	h->stop = stop;
	return h;
}

void kubelet_http_free(struct kubelet_http *h)
{
	if (!h)
		return;
	curl_easy_cleanup(h->curl);
	free(h);
}

/* What is answered instead of pods is not read. */
static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
	struct kubelet_http *h = arg;
	long status = 0;

	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200)
		h->failed = kubelet_read(&h->reader, data, size * n);
	return h->failed ? 0 : size * n;
}

static int look_up(void *arg, curl_off_t dl_total, curl_off_t dl, curl_off_t ul_total, curl_off_t ul)
{
	const struct kubelet_http *h = arg;

	return atomic_load(h->stop);
}

/* One line of what may stand in a header. */
static int read_token(struct kubelet_http *h, struct err *err)
{
	static const char prefix[] = "Authorization: Bearer ";
	char *token = h->header + sizeof(prefix) - 1;
	int fd = fsroot_openat(h->o->root, h->o->token_file, O_RDONLY | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return err_set(err, fd, "kubelet: token %s: %s; is a service account's token mounted", h->o->token_file,
			       strerror(-fd));
	n = read(fd, token, TOKEN_MAX);
	close(fd);
	while (n > 0 && (token[n - 1] == '\n' || token[n - 1] == '\r'))
		n--;
	if (n > 0 && n < TOKEN_MAX) {
		token[n] = '\0';
		for (ssize_t i = 0; i < n; i++)
			if (token[i] <= ' ' || token[i] == 0x7f)
				n = 0;
	}
	if (n <= 0 || n >= TOKEN_MAX)
		return err_set(err, -EBADMSG, "kubelet: token %s: not one line of text", h->o->token_file);
	memcpy(h->header, prefix, sizeof(prefix) - 1);
	return 0;
}

static CURLcode set_options(struct kubelet_http *h, const char *url, struct curl_slist *headers)
{
	CURL *c = h->curl;
	long verify = !h->o->insecure;
	CURLcode rc;

	curl_easy_reset(c); /* the connection stays */
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->error);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, look_up);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, h);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_USERAGENT, "jouled/" JOULED_VERSION);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	/* the cluster's authority, none of those whom browsers believe */
	curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
	rc = curl_easy_setopt(c, CURLOPT_CAINFO, h->o->ca_file);
	if (!rc)
		rc = curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, verify);
	if (!rc)
		rc = curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, verify * 2);
	if (!rc)
		rc = curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	return rc;
}

static int explain(const struct kubelet_http *h, CURLcode rc, long status, struct err *err)
{
	const char *why = *h->error ? h->error : curl_easy_strerror(rc), *url = h->o->url;

	if (rc == CURLE_WRITE_ERROR && h->failed == -ENOMEM)
		return err_set(err, -ENOMEM, "kubelet: out of memory");
	if (rc == CURLE_WRITE_ERROR)
		return err_set(err, h->failed, "kubelet: %s: answers no list of pods; is it a kubelet", url);
	if (rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE)
		return err_set(err, -EKEYREJECTED,
			       "kubelet: %s: %s; name its authority by kubelet.ca-file, or set kubelet.insecure", url,
			       why);
	if (rc)
		return err_set(err, rc == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -ECONNREFUSED, "kubelet: %s: %s", url,
			       why);
	if (status == 401 || status == 403)
		return err_set(err, -EACCES,
			       "kubelet: %s: status %ld; the service account needs get on nodes/pods, before "
			       "Kubernetes 1.33 on nodes/proxy",
			       url, status);
	return err_set(err, -EPROTO, "kubelet: %s: status %ld", url, status);
}

static int get(struct kubelet_http *h, struct err *err)
{
	bool tls = strncmp(h->o->url, "https://", 8) == 0;
	size_t len = strlen(h->o->url);
	struct curl_slist *headers;
	char url[640];
	long status = 0;
	CURLcode rc;

	if (tls && read_token(h, err) != 0)
		return -EACCES;
	while (len && h->o->url[len - 1] == '/')
		len--;
	snprintf(url, sizeof(url), "%.*s/pods", (int)len, h->o->url);
	h->error[0] = '\0';
	headers = curl_slist_append(NULL, tls ? h->header : "Accept: application/json");
	if (!headers)
		return err_set(err, -ENOMEM, "kubelet: out of memory");
	rc = set_options(h, url, headers);
	if (!rc)
		rc = curl_easy_perform(h->curl);
	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(headers);
	return rc || status != 200 ? explain(h, rc, status, err) : 0;
}

int kubelet_http_pods(struct kubelet_http *h, struct kubelet_table *ret, struct err *err)
{
	int rc, whole;

	h->reader = (struct kubelet_reader){ .table = ret };
	h->failed = 0;
	rc = get(h, err);
	whole = kubelet_read_end(&h->reader);
	if (!rc && whole)
		rc = err_set(err, whole, "kubelet: %s: answers no list of pods; is it a kubelet", h->o->url);
	return rc;
}
