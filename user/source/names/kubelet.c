/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that asks the kubelet. Its table is replaced as a whole, so a search for a name holds the lock for a
 * moment only. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/hash.h"
#include "base/http/http_client.h"
#include "base/thread.h"
#include "kubelet.h"
#include "pod_list.h"

#define PAUSE_NS NS_PER_S
#define LONGEST_PAUSE_NS (15 * NS_PER_S) /* after failures */
#define STACK_BYTES (512u << 10) /* the JSON reader's depth is 2048 */
/* A sandbox never appears in an answer. A container that has just begun appears when the kubelet has looked at its
 * runtime, after a second or two. */
#define MISSING 256
#define MISSING_ANSWERS 5
#define TOKEN_MAX 16384
#define TIMEOUT_NS (10 * NS_PER_S)
#define CONNECT_NS (3 * NS_PER_S)

static const char token_prefix[] = "Authorization: Bearer ";

/* A pod or container that was not in an answer. */
struct missing {
	char key[KUBELET_ID_LEN + 1];
	unsigned answers;
};

struct kubelet {
	struct kubelet_options o;
	struct http_client *http;
	struct kubelet_reader reader; /* of the request under way */
	char header[sizeof(token_prefix) + TOKEN_MAX];
	atomic_bool stop;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* the rest */
	pthread_cond_t wake;
	struct kubelet_table table;
	struct missing missing[MISSING];
	bool wanted, news, failing;
	struct err why; /* of the last failure */
};

static char *copy(const char *s, bool *failed)
{
	char *c = s ? strdup(s) : NULL;

	*failed |= s && !c;
	return c;
}

static void options_free(struct kubelet_options *o)
{
	free((char *)o->url);
	free((char *)o->token_file);
	free((char *)o->ca_file);
}

static int take_body(void *arg, long status, const char *data, size_t n);

/* The kubelet is on this node: no proxy is asked, and only the cluster's authority is trusted. */
static int open_http(struct kubelet *k)
{
	char subject[200];
	const struct http_client_options o = {
		.subject = subject,
		.ca_file = k->o.ca_file,
		.only_ca_file = true,
		.insecure = k->o.insecure,
		.timeout_ns = TIMEOUT_NS,
		.connect_ns = CONNECT_NS,
		.stop = &k->stop,
		.remedy = "name its authority by kubelet.ca-file, or set kubelet.insecure",
		.take = take_body,
		.arg = k,
	};
	struct err err;

	snprintf(subject, sizeof(subject), "kubelet: %s", k->o.url);
	return http_client_new(&o, &k->http, &err);
}

int kubelet_open(const struct kubelet_options *o, struct kubelet **ret)
{
	struct kubelet *k = calloc(1, sizeof(*k));
	bool failed = false;

	if (!k)
		return -ENOMEM;
	k->o = (struct kubelet_options){ o->root, copy(o->url, &failed), copy(o->token_file, &failed),
					 copy(o->ca_file, &failed), o->insecure };
	if (failed || open_http(k) != 0) {
		options_free(&k->o);
		free(k);
		return -ENOMEM;
	}
	pthread_mutex_init(&k->lock, NULL);
	thread_cond_init(&k->wake);
	*ret = k;
	return 0;
}

/* With the lock held. */
static void take(struct kubelet *k, int rc, struct kubelet_table *t, const struct err *why)
{
	struct kubelet_table old = k->table;

	if (rc) {
		k->news = k->news || !k->failing || strcmp(k->why.text, why->text) != 0;
		k->failing = true;
		k->why = *why;
		return;
	}
	k->news = k->news || k->failing;
	k->failing = false;
	k->table = *t;
	*t = old;
	for (unsigned i = 0; i < MISSING; i++)
		k->missing[i].answers++;
}

static int get_pods(struct kubelet *k, struct kubelet_table *ret, struct err *err);

int kubelet_ask(struct kubelet *k, struct err *err)
{
	struct kubelet_table t = { 0 };
	int rc = get_pods(k, &t, err), n = (int)t.n_pods;

	pthread_mutex_lock(&k->lock);
	take(k, rc, &t, err);
	pthread_mutex_unlock(&k->lock);
	kubelet_table_free(&t);
	return rc ? rc : n;
}

static void *run(void *arg)
{
	struct kubelet *k = arg;
	uint64_t next_ns = 0, pause_ns = PAUSE_NS, now_ns;
	struct err err;

	pthread_mutex_lock(&k->lock);
	while (!k->stop) {
		now_ns = clock_mono_ns();
		if (!k->wanted) {
			pthread_cond_wait(&k->wake, &k->lock);
		} else if (now_ns < next_ns) {
			thread_cond_wait(&k->wake, &k->lock, next_ns);
		} else {
			k->wanted = false;
			pthread_mutex_unlock(&k->lock);
			pause_ns = kubelet_ask(k, &err) >= 0 ? PAUSE_NS : pause_ns * 2;
			pause_ns = pause_ns > LONGEST_PAUSE_NS ? LONGEST_PAUSE_NS : pause_ns;
			next_ns = clock_mono_ns() + pause_ns;
			pthread_mutex_lock(&k->lock);
		}
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

int kubelet_start(struct kubelet *k)
{
	int rc = thread_start(&k->thread, "kubelet", STACK_BYTES, run, k);

	k->started = !rc;
	return rc;
}

void kubelet_close(struct kubelet *k)
{
	if (!k)
		return;
	if (k->started) {
		pthread_mutex_lock(&k->lock);
		k->stop = true;
		pthread_cond_signal(&k->wake);
		pthread_mutex_unlock(&k->lock);
		pthread_join(k->thread, NULL);
	}
	http_client_free(k->http);
	kubelet_table_free(&k->table);
	pthread_cond_destroy(&k->wake);
	pthread_mutex_destroy(&k->lock);
	options_free(&k->o);
	free(k);
}

/* With the lock held. A key that was missing in several answers is not asked for again; a later one takes its place. */
static void want(struct kubelet *k, const char *key)
{
	struct missing *m = &k->missing[hash_text(key) % MISSING];

	if (strcmp(m->key, key) != 0) {
		snprintf(m->key, sizeof(m->key), "%s", key);
		m->answers = 0;
	}
	if (m->answers >= MISSING_ANSWERS || k->wanted)
		return;
	k->wanted = true;
	pthread_cond_signal(&k->wake);
}

static void put(char dst[NAMING_TEXT_MAX + 1], const struct kubelet_table *t, uint32_t at)
{
	snprintf(dst, NAMING_TEXT_MAX + 1, "%s", (const char *)t->text.data + at);
}

bool kubelet_find(struct kubelet *k, const char *pod_uid, const char *id, struct kubelet_names *ret)
{
	const struct kubelet_container *c = NULL;
	const struct kubelet_pod *p;

	*ret = (struct kubelet_names){ 0 };
	pthread_mutex_lock(&k->lock);
	p = kubelet_table_pod(&k->table, pod_uid);
	if (p) {
		put(ret->space, &k->table, p->space);
		put(ret->pod, &k->table, p->name);
		c = *id ? kubelet_table_container(&k->table, p, id) : NULL;
	}
	if (c)
		put(ret->container, &k->table, c->name);
	if (!p || (*id && !c))
		want(k, *id ? id : pod_uid);
	pthread_mutex_unlock(&k->lock);
	return p != NULL;
}

bool kubelet_failing(struct kubelet *k)
{
	bool failing;

	pthread_mutex_lock(&k->lock);
	failing = k->failing;
	pthread_mutex_unlock(&k->lock);
	return failing;
}

bool kubelet_news(struct kubelet *k, char *text, size_t size)
{
	bool news;

	if (pthread_mutex_trylock(&k->lock) != 0)
		return false;
	news = k->news;
	k->news = false;
	if (news && k->failing)
		snprintf(text, size, "%s; pods and containers that no local file names go without", k->why.text);
	else if (news)
		snprintf(text, size, "kubelet: %s: answers again", k->o.url);
	pthread_mutex_unlock(&k->lock);
	return news;
}

/* The request. Its body is read as it comes; the body of an answer other than 200 is not read. */

static int take_body(void *arg, long status, const char *data, size_t n)
{
	struct kubelet *k = arg;

	return status == 200 ? kubelet_read(&k->reader, data, n) : 0;
}

/* Reads the token: one line of characters that a header may have. */
static int read_token(struct kubelet *k, struct err *err)
{
	char *token = k->header + sizeof(token_prefix) - 1;
	int fd = fsroot_openat(k->o.root, k->o.token_file, O_RDONLY | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return err_set(err, fd, "kubelet: token %s: %s; is a service account's token mounted", k->o.token_file,
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
		return err_set(err, -EBADMSG,
			       "kubelet: token %s: not one line of text; write the token alone into that file",
			       k->o.token_file);
	memcpy(k->header, token_prefix, sizeof(token_prefix) - 1);
	return 0;
}

static int get(struct kubelet *k, struct err *err)
{
	bool tls = strncmp(k->o.url, "https://", 8) == 0;
	const char *const headers[] = { tls ? k->header : "Accept: application/json", NULL };
	struct http_answer answer = { 0 };
	size_t len = strlen(k->o.url);
	char url[640];
	int rc;

	if (tls && read_token(k, err) != 0)
		return -EACCES;
	while (len && k->o.url[len - 1] == '/')
		len--;
	snprintf(url, sizeof(url), "%.*s/pods", (int)len, k->o.url);
	rc = http_client_ask(k->http, &(struct http_ask){ .url = url, .headers = headers }, &answer, err);
	buf_free(&answer.body);
	if (rc || answer.status == 200)
		return rc;
	if (answer.status == 401 || answer.status == 403)
		return err_set(err, -EACCES,
			       "kubelet: %s: status %ld; the service account needs get on nodes/pods, before "
			       "Kubernetes 1.33 on nodes/proxy",
			       k->o.url, answer.status);
	return err_set(err, -EPROTO, "kubelet: %s: status %ld; look at its log", k->o.url, answer.status);
}

static int get_pods(struct kubelet *k, struct kubelet_table *ret, struct err *err)
{
	int rc, whole;

	k->reader = (struct kubelet_reader){ .table = ret };
	rc = get(k, err);
	whole = kubelet_read_end(&k->reader);
	if ((!rc && whole) || rc == -EMSGSIZE || rc == -EBADMSG)
		rc = err_set(err, rc ? rc : whole, "kubelet: %s: answers no list of pods; is it a kubelet", k->o.url);
	return rc;
}
