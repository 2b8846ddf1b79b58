/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that asks. Its table is replaced as a whole, so a look for a name takes the lock for a moment only. */
#include "kubelet.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/clock.h"
#include "../base/thread.h"
#include "kubelet_internal.h"

#define PAUSE_NS NS_PER_S
#define LONGEST_PAUSE_NS (15 * NS_PER_S) /* after failures */
#define STACK_BYTES (512u << 10) /* the JSON reader's depth is 2048 */
/* A sandbox never comes, what has just begun comes when the kubelet has looked at its runtime: a second or two. */
#define MISSING 256 /* a power of two */
#define MISSING_ANSWERS 5

/* What was not in an answer. */
struct missing {
	char key[KUBELET_ID_LEN + 1];
	unsigned answers;
};

struct kubelet {
	struct kubelet_options o;
	struct kubelet_http *http;
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

int kubelet_open(const struct kubelet_options *o, struct kubelet **ret)
{
	struct kubelet *k = calloc(1, sizeof(*k));
	pthread_condattr_t attr;
	bool failed = false;

	if (!k)
		return -ENOMEM;
	k->o = (struct kubelet_options){ o->root, copy(o->url, &failed), copy(o->token_file, &failed),
					 copy(o->ca_file, &failed), o->insecure };
	k->http = failed ? NULL : kubelet_http_new(&k->o, &k->stop);
	if (!k->http) {
		options_free(&k->o);
		free(k);
		return -ENOMEM;
	}
	pthread_mutex_init(&k->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&k->wake, &attr);
	pthread_condattr_destroy(&attr);
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

int kubelet_ask(struct kubelet *k, struct err *err)
{
	struct kubelet_table t = { 0 };
	int rc = kubelet_http_pods(k->http, &t, err), n = (int)t.n_pods;

	pthread_mutex_lock(&k->lock);
	take(k, rc, &t, err);
	pthread_mutex_unlock(&k->lock);
	kubelet_table_free(&t);
	return rc ? rc : n;
}

static void wait_until(struct kubelet *k, uint64_t ns)
{
	const struct timespec until = { (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };

	pthread_cond_timedwait(&k->wake, &k->lock, &until);
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
			wait_until(k, next_ns);
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
	kubelet_http_free(k->http);
	kubelet_table_free(&k->table);
	pthread_cond_destroy(&k->wake);
	pthread_mutex_destroy(&k->lock);
	options_free(&k->o);
	free(k);
}

/* With the lock held. What was missing in several answers is not asked for again; a later one takes its place. */
static void want(struct kubelet *k, const char *key)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */
	struct missing *m;

	for (const char *s = key; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	m = &k->missing[(h ^ h >> 32) & (MISSING - 1)];
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
