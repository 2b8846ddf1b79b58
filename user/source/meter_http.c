// SPDX-License-Identifier: Apache-2.0
/* Plugs over HTTP: one GET a look, on the meter's own thread. The first address that answers with a power is kept. */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/buf.h"
#include "../base/clock.h"
#include "meter_internal.h"

#define ANSWER_MAX 65536
#define TIMEOUT_MS 5000L

struct plug {
	CURL *curl;
	const struct meter *m;
	const char *const *paths;
	int (*parse)(const char *text, size_t n, int64_t *ret_uw, unsigned max);
	unsigned path;
	struct buf body;
	char error[CURL_ERROR_SIZE];
};

static void init_library(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
	struct plug *p = arg;

	if (p->body.len + size * n > ANSWER_MAX)
		return 0;
	buf_add(&p->body, data, size * n);
	return p->body.failed ? 0 : size * n;
}

static int look_up(void *arg, curl_off_t dl_total, curl_off_t dl, curl_off_t ul_total, curl_off_t ul)
{
	const struct plug *p = arg;

	return atomic_load(&p->m->all->stop);
}

static int open_plug(struct meter *m, const char *const *paths, int (*parse)(const char *, size_t, int64_t *, unsigned),
		     struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct plug *p = calloc(1, sizeof(*p));

	pthread_once(&once, init_library);
	if (p)
		p->curl = curl_easy_init();
	if (!p || !p->curl) {
		free(p);
		return err_set(err, -ENOMEM, "%s: out of memory", m->url);
	}
	p->m = m;
	p->paths = paths;
	p->parse = parse;
	m->state = p;
	return 0;
}

static int shelly_open(struct meter *m, struct err *err)
{
	static const char *const paths[] = { "/rpc/Shelly.GetStatus", "/rpc/Switch.GetStatus?id=0", "/status", NULL };

	return open_plug(m, paths, meter_shelly_parse, err);
}

static int tasmota_open(struct meter *m, struct err *err)
{
	static const char *const paths[] = { "/cm?cmnd=Status%208", "/cm?cmnd=Status%2010", NULL };

	return open_plug(m, paths, meter_tasmota_parse, err);
}

/* Redirects are not followed: an answer from elsewhere is none of this plug. */
static CURLcode get(struct plug *p, const char *path, long *ret_status)
{
	char url[640];
	CURL *h = p->curl;
	size_t len = strlen(p->m->url);
	CURLcode rc;

	while (len && p->m->url[len - 1] == '/')
		len--;
	snprintf(url, sizeof(url), "%.*s%s", (int)len, p->m->url, path);
	buf_reset(&p->body);
	p->error[0] = '\0';
	curl_easy_reset(h); /* the connection stays */
	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, p->error);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, look_up);
	curl_easy_setopt(h, CURLOPT_XFERINFODATA, p);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, p);
	curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_PROXY, ""); /* it is in the same house */
	curl_easy_setopt(h, CURLOPT_USERAGENT, "jouled/" JOULED_VERSION);
	rc = curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	if (!rc)
		rc = curl_easy_perform(h);
	*ret_status = 0;
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, ret_status);
	return rc;
}

static int explain(const struct plug *p, CURLcode rc, struct err *err)
{
	const char *why = *p->error ? p->error : curl_easy_strerror(rc);

	if (rc == CURLE_WRITE_ERROR)
		return err_set(err, -EMSGSIZE, "%s: its answer is longer than %d bytes; this is no such plug",
			       p->m->url, ANSWER_MAX);
	return err_set(err, rc == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -ECONNREFUSED, "%s: %s", p->m->url, why);
}

static int plug_look(struct meter *m, struct err *err)
{
	struct plug *p = m->state;
	int64_t uw[METER_MAX_CHANNELS];
	int n = -EBADMSG;
	long status = 0;

	for (unsigned tries = 0; n < 0 && p->paths[tries]; tries++) {
		CURLcode rc = get(p, p->paths[p->path], &status);

		if (rc)
			return explain(p, rc, err);
		n = status == 200 ? p->parse((const char *)p->body.data, p->body.len, uw, METER_MAX_CHANNELS) :
				    -EBADMSG;
		if (n < 0 && !p->paths[++p->path])
			p->path = 0;
	}
	if (n < 0)
		return err_set(err, n, "%s: no power in its answer (status %ld); is it a %s with a meter", m->url,
			       status, m->ops->type);
	if (m->answered && n != m->answered)
		return err_set(
			err, -EBADMSG,
			"%s: it had %d meters and now has %d: which is which is not known; restart jouled if it is another",
			m->url, m->answered, n);
	m->answered = n;
	for (int i = 0; i < n; i++)
		if (uw[i] != METER_NO_VALUE)
			meter_put(m, 0, (unsigned)i, uw[i]);
	return 0;
}

static void plug_close(struct meter *m)
{
	struct plug *p = m->state;

	curl_easy_cleanup(p->curl);
	buf_free(&p->body);
	free(p);
	m->state = NULL;
}

const struct meter_ops meter_shelly = { "shelly", NS_PER_S, false, shelly_open, plug_look, plug_close };
const struct meter_ops meter_tasmota = { "tasmota", NS_PER_S, false, tasmota_open, plug_look, plug_close };
