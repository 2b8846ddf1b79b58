/* SPDX-License-Identifier: Apache-2.0 */
/* To a collector: the queue, the spool and the threads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "../base/clock.h"
#include "../base/thread.h"
#include "zico_output_internal.h"

#define ATTRS_MAX 32

static struct zico_waiting *take(struct zico_output *z)
{
	struct zico_waiting *w;

	pthread_mutex_lock(&z->lock);
	while (!z->first && !atomic_load(&z->stop))
		pthread_cond_wait(&z->queued, &z->lock);
	w = z->first;
	pthread_mutex_unlock(&z->lock);
	return w;
}

/* It counts as waiting until it is on disk. Was it the last one? */
static bool taken(struct zico_output *z, struct zico_waiting *w)
{
	bool last;

	pthread_mutex_lock(&z->lock);
	z->first = w->next;
	last = !z->first;
	if (last)
		z->last = &z->first;
	z->held -= sizeof(*w) + w->len;
	z->spooled++;
	pthread_cond_signal(&z->arrived);
	pthread_mutex_unlock(&z->lock);
	free(w);
	return last;
}

/* Ends when it was told to and all is on disk. */
static void *writer(void *arg)
{
	struct zico_output *z = arg;
	struct zico_waiting *w;

	while ((w = take(z))) {
		spool_append(z->spool, w->real_ns, w->data, w->len); /* failures are counted there */
		if (taken(z, w))
			spool_sync(z->spool);
	}
	return NULL;
}

static int attrs_of(const struct output_config *oc, const struct zico_output *z, struct zico_client_attr *attrs,
		    char **ret_copies)
{
	unsigned n = 0;

	for (; n < z->about.n; n++)
		attrs[n] = (struct zico_client_attr){ z->about.attrs[n].key, z->about.attrs[n].value };
	for (unsigned i = 0; i < oc->zico.attrs.n && n < ATTRS_MAX; i++) {
		char *copy = strdup(oc->zico.attrs.v[i]), *is = copy ? strchr(copy, '=') : NULL;

		if (!copy)
			return -ENOMEM;
		ret_copies[i] = copy;
		if (!is)
			continue;
		*is = '\0';
		attrs[n++] = (struct zico_client_attr){ copy, is + 1 };
	}
	return (int)n;
}

static int open_client(struct zico_output *z, const struct output_config *oc, const struct config *c, const char *name,
		       const char *state_file, struct err *err)
{
	struct zico_client_attr attrs[ATTRS_MAX];
	char *copies[ATTRS_MAX] = { 0 };
	struct zico_client_options o = {
		.url = oc->to,
		.profile = oc->zico.profile ? oc->zico.profile : "auto",
		.key = oc->zico.key ? oc->zico.key : "zorka",
		.name = name,
		.app = oc->zico.app,
		.env = oc->zico.env,
		.attrs = attrs,
		.state_file = state_file,
		.ca_file = oc->zico.ca_file,
		.form = oc->zico.form,
		.stop = &z->stop,
	};
	int n = attrs_of(oc, z, attrs, copies), rc;

	o.n_attrs = n > 0 ? (unsigned)n : 0;
	rc = n < 0 ? err_set(err, n, "output %s: out of memory; free some", oc->to) :
		     zico_client_new(&o, &z->client, err);
	for (unsigned i = 0; i < ATTRS_MAX; i++)
		free(copies[i]);
	return rc;
}

/* Two outputs to one collector under one name would fight for its session. */
static void places(const struct output_config *oc, const struct config *c, const char *name, char *spool,
		   char *identity)
{
	uLong crc = crc32(0, (const Bytef *)oc->to, (uInt)strlen(oc->to));

	crc = crc32(crc, (const Bytef *)name, (uInt)strlen(name));
	snprintf(spool, ZICO_PATH_MAX, "%s/zico-%08lx.spool", c->state_dir ? c->state_dir : ".", crc);
	snprintf(identity, ZICO_PATH_MAX, "%s/zico-%08lx.json", c->state_dir ? c->state_dir : ".", crc);
}

static int start_threads(struct zico_output *z, struct err *err)
{
	int rc = thread_start(&z->writer, "jouled-spool", 0, writer, z);

	z->writing = !rc;
	if (!rc)
		rc = thread_start(&z->sender, "jouled-zico", 0, zico_sender, z);
	z->sending = z->writing && !rc;
	return rc ? err_set(err, rc, "output %s: no thread: %s; raise the limit of tasks", z->to, strerror(-rc)) : 0;
}

int zico_deliver_check(struct zico_output *z, const struct output_config *oc, const struct config *c, struct err *err)
{
	int rc = open_client(z, oc, c, "", NULL, err);

	zico_client_free(z->client);
	z->client = NULL;
	return rc;
}

int zico_deliver_open(struct zico_output *z, const struct output_config *oc, const struct config *c, struct err *err)
{
	char spool_dir[ZICO_PATH_MAX], identity[ZICO_PATH_MAX];
	const char *name = z->about.n ? z->about.attrs[0].value : "jouled";
	struct spool_options so = { .dir = spool_dir,
				    .max_bytes = oc->zico.spool_bytes,
				    .max_age_ns = oc->zico.spool_age_ns };
	int rc;

	places(oc, c, name, spool_dir, identity);
	rc = open_client(z, oc, c, name, identity, err);
	if (!rc)
		rc = spool_open(&so, &z->spool, err);
	return rc ? rc : start_threads(z, err);
}

static int enqueue(struct zico_output *z, struct zico_waiting *w)
{
	int rc = 0;

	pthread_mutex_lock(&z->lock);
	if (z->held + sizeof(*w) + w->len > z->queue_bytes && z->first) {
		z->figures.dropped_queue++;
		rc = -ENOBUFS;
	} else {
		*z->last = w;
		z->last = &w->next;
		z->held += sizeof(*w) + w->len;
		pthread_cond_signal(&z->queued);
	}
	pthread_mutex_unlock(&z->lock);
	return rc;
}

int zico_deliver_submit(struct zico_output *z, const struct trace *t)
{
	struct zico_waiting *w = NULL;
	const char *wrong = t->n_spans ? trace_check(t) : "no spans";
	int rc = wrong ? -EINVAL : 0;

	buf_reset(&z->text);
	if (!rc)
		rc = trace_record_write(t, &z->text);
	if (!rc) {
		w = malloc(sizeof(*w) + z->text.len);
		rc = w ? 0 : -ENOMEM;
	}
	if (rc) {
		pthread_mutex_lock(&z->lock);
		z->figures.unfit++;
		snprintf(z->figures.state, sizeof(z->figures.state), "a trace is no trace: %s",
			 wrong ? wrong : strerror(-rc));
		pthread_mutex_unlock(&z->lock);
		return rc;
	}
	*w = (struct zico_waiting){ .real_ns = clock_real_ns(), .len = z->text.len };
	memcpy(w->data, z->text.data, z->text.len);
	rc = enqueue(z, w);
	if (rc)
		free(w);
	return rc;
}

void zico_deliver_close(struct zico_output *z)
{
	struct zico_waiting *w;

	pthread_mutex_lock(&z->lock);
	atomic_store(&z->stop, true);
	pthread_cond_broadcast(&z->queued);
	pthread_cond_broadcast(&z->arrived);
	pthread_mutex_unlock(&z->lock);
	if (z->writing)
		pthread_join(z->writer, NULL);
	if (z->sending)
		pthread_join(z->sender, NULL);
	while ((w = z->first)) {
		z->first = w->next;
		free(w);
	}
	zico_client_free(z->client);
	spool_close(z->spool);
	z->client = NULL;
	z->spool = NULL;
}
