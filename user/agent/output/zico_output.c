/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/log.h"
#include "base/thread.h"
#include "zico_output.h"

#define CLOSE_NS (20 * NS_PER_MS)
#define DOCUMENT_MAX ((size_t)64 << 20)

static bool to_collector(const char *to)
{
	return output_place(to) == PLACE_COLLECTOR;
}

static struct zico_options options_of(const struct output_config *oc)
{
	const char *flags = oc->zico.flags ? oc->zico.flags : "none";

	return (struct zico_options){
		.profile = oc->zico.profile ? oc->zico.profile : "document",
		.type = oc->zico.trace_type,
		.big_endian = oc->zico.endian && strcmp(oc->zico.endian, "be") == 0,
		.flags = !strcmp(flags, "1.90.3") ? ZICO_FLAGS_TOKEN :
			 !strcmp(flags, "1.90.4") ? ZICO_FLAGS_MASK :
						    ZICO_FLAGS_NONE,
	};
}

/* The profile whose limits apply. `auto` may meet any release, and releases with registration have the tightest
 * limits. */
static const struct zico_profile *narrowest(const struct output_config *oc)
{
	const char *name = oc->zico.profile ? oc->zico.profile : to_collector(oc->to) ? "auto" : "document";

	return zico_profile(!strcmp(name, "auto") ? "zico-1.90" : name);
}

/* Checks the options. With `auto` only the type can be wrong, because flags are left out where a release does
 * not accept them. */
static int try_options(const struct output_config *oc, struct err *err)
{
	struct zico_options o = options_of(oc);
	struct zico *z = NULL;
	int rc;

	if (!strcmp(o.profile, "auto"))
		o.profile = "zico-1.90";
	rc = zico_new(&o, &z, err);
	zico_free(z);
	return rc;
}

static int check_options(const struct output_config *oc, const char *sensor, struct err *err)
{
	int rc = try_options(oc, err);

	return rc || !to_collector(oc->to) ? rc : zico_about_fits(oc, narrowest(oc), sensor, err);
}

int zico_output_check(const struct output_config *oc, const char *sensor, struct err *err)
{
	int rc = to_collector(oc->to) ? http_client_check_url(oc->to, err) : sink_check_url(oc->to, err);

	return rc ? rc : check_options(oc, sensor, err);
}

static int open_sink(struct zico_output *z, const struct output_config *oc, struct loop *loop, struct err *err)
{
	struct sink_options so = { .queue_bytes = oc->queue_bytes,
				   .port_file = oc->port_file,
				   .max_clients = (unsigned)oc->max_clients };
	int rc = zico_new(&z->options, &z->encoder, err);

	zico_host(z->state_dir, z->host);
	z->text.limit = DOCUMENT_MAX;
	return rc ? rc : sink_open(oc->to, &so, loop, &z->sink, err);
}

static struct zico_output *make(const struct output_config *oc, const struct output_context *c)
{
	struct zico_output *z = calloc(1, sizeof(*z));

	if (!z)
		return NULL;
	pthread_mutex_init(&z->lock, NULL);
	pthread_cond_init(&z->queued, NULL);
	thread_cond_init(&z->arrived);
	z->last = &z->first;
	strncpy(z->to, oc->to, sizeof(z->to) - 1);
	z->queue_bytes = oc->queue_bytes ? oc->queue_bytes : (size_t)4 << 20;
	zico_about(&z->about, c->formula, c->schema, narrowest(oc)->attribute_max, z->to);
	z->options = options_of(oc);
	z->options.agent = z->about.attrs;
	z->options.n_agent = z->about.n;
	z->type = z->options.type ? strdup(z->options.type) : NULL;
	z->options.type = z->type;
	zico_output_select(z, oc, &c->machine->cgroups);
	z->state_dir = c->state_dir;
	if (c->state_dir)
		mkdir(c->state_dir, 0755); /* failures show when files in it are opened */
	return z;
}

static int zico_deliver_open(struct zico_output *z, const struct output_config *oc, struct err *err);

int zico_output_open(const struct output_config *oc, const struct output_context *c, struct zico_output **ret,
		     struct err *err)
{
	struct zico_output *z = NULL;
	int rc = check_options(oc, c->schema->sensor, err);

	if (!rc && !(z = make(oc, c)))
		rc = err_set(err, -ENOMEM, "output %s: out of memory; free some", oc->to);
	if (!rc)
		rc = to_collector(oc->to) ? zico_deliver_open(z, oc, err) : open_sink(z, oc, c->loop, err);
	if (rc)
		zico_output_close(z, NULL);
	else
		*ret = z;
	return rc;
}

static int zico_deliver_check(struct zico_output *z, const struct output_config *oc, struct err *err);

int zico_output_prepare(const struct output_config *oc, const struct output_context *c, struct zico_output **ret,
			struct err *err)
{
	struct zico_output *z = NULL;
	int rc = check_options(oc, c->schema->sensor, err);

	if (!rc && !(z = make(oc, c)))
		rc = err_set(err, -ENOMEM, "output %s: out of memory; free some", oc->to);
	if (!rc)
		rc = zico_deliver_check(z, oc, err);
	if (rc) {
		zico_output_close(z, NULL);
		return rc;
	}
	*ret = z;
	return 0;
}

void zico_output_begin(struct zico_output *z, const struct output_config *oc)
{
	struct err err = { 0 };

	if (zico_deliver_open(z, oc, &err) != 0)
		log_error("output %s: nothing is sent: %s", z->to, err.text);
}

static int submit_document(struct zico_output *z, const struct trace *t)
{
	struct err err = { 0 };
	int rc;

	buf_reset(&z->text);
	rc = zico_enclose(z->encoder, t, z->host, &z->text, &err);
	if (!rc)
		return sink_submit(z->sink, z->text.data, z->text.len);
	pthread_mutex_lock(&z->lock);
	z->figures.unfit++;
	memcpy(z->figures.state, err.text, sizeof(z->figures.state));
	pthread_mutex_unlock(&z->lock);
	return rc;
}

void zico_output_select(struct zico_output *z, const struct output_config *oc, const struct cgroups_config *c)
{
	pthread_mutex_lock(&z->lock);
	z->rules = config_rules(c);
	z->rules.of_output = oc->cgroups.v;
	z->rules.n_of_output = oc->cgroups.n;
	pthread_mutex_unlock(&z->lock);
}

bool zico_output_admits(struct zico_output *z, const char *cgroup)
{
	bool admitted;

	pthread_mutex_lock(&z->lock);
	admitted = selection_admits(&z->rules, cgroup);
	pthread_mutex_unlock(&z->lock);
	return admitted;
}

static int zico_deliver_submit(struct zico_output *z, const struct trace *t);

int zico_output_submit(struct zico_output *z, const struct trace *t)
{
	if (t->n_spans && !zico_output_admits(z, t->spans[0].cgroup))
		return 0;
	return z->sink ? submit_document(z, t) : zico_deliver_submit(z, t);
}

uint32_t zico_output_waiting(struct zico_output *z, bool away)
{
	struct sink_stats st;
	uint32_t n = 0;

	if (z->sink) {
		sink_get_stats(z->sink, &st);
		return st.up || away ? st.queued : 0;
	}
	pthread_mutex_lock(&z->lock);
	for (const struct zico_waiting *w = z->first; w; w = w->next)
		n++;
	pthread_mutex_unlock(&z->lock);
	return n;
}

void zico_output_stats(struct zico_output *z, struct sink_stats *ret, uint64_t *ret_spooled)
{
	struct spool_stats sp = { 0 };
	struct zico_figures f;

	*ret_spooled = 0;
	if (z->sink) {
		sink_get_stats(z->sink, ret);
		return;
	}
	if (z->spool)
		spool_get_stats(z->spool, &sp);
	pthread_mutex_lock(&z->lock);
	f = z->figures;
	pthread_mutex_unlock(&z->lock);
	*ret = (struct sink_stats){
		.up = f.delivered && !f.failures,
		.documents = f.delivered,
		.bytes = f.delivered_bytes,
		.dropped_documents = f.dropped_queue + f.refused + f.unfit + sp.dropped_full + sp.dropped_old,
		.queued = zico_output_waiting(z, false),
	};
	snprintf(ret->state, sizeof(ret->state), "%.159s", *f.state ? f.state : "nothing was sent yet");
	snprintf(ret->why, sizeof(ret->why), "%s",
		 f.refused       ? "refused by the collector" :
		 sp.dropped_full ? "no room in the spool" :
		 sp.dropped_old  ? "older than spool-age" :
		 f.dropped_queue ? "the disk of the spool is too slow" :
		 f.unfit         ? "they could not be encoded" :
				   "");
	*ret_spooled = sp.waiting;
}

static void say_sink(struct zico_output *z)
{
	struct sink_stats st;

	sink_get_stats(z->sink, &st);
	if (st.up != z->told.up && *st.state)
		log_info("output %s: %s", z->to, st.state);
	if (st.dropped_documents != z->told.dropped_documents)
		log_warn("output %s: %llu traces dropped so far: %s", z->to, (unsigned long long)st.dropped_documents,
			 *st.why ? st.why : "the reader is too slow");
	z->told = st;
}

static const char *spool_remedy(int rc)
{
	if (!rc || rc == -EMSGSIZE)
		return "raise spool-size";
	return rc == -ENOSPC || rc == -EDQUOT ? "make room on its disk" : "look for that disk in the kernel's log";
}

static void say_spool(struct zico_output *z)
{
	struct spool_stats st;

	spool_get_stats(z->spool, &st);
	if (st.dropped_full != z->said_spool.dropped_full)
		log_warn("output %s: %llu traces dropped so far: %s; %s", z->to, (unsigned long long)st.dropped_full,
			 st.error ? strerrordesc_np(-st.error) : "the spool is full", spool_remedy(st.error));
	if (st.sync_error && !z->said_spool.sync_error)
		log_warn(
			"output %s: the disk of the spool did not take it: %s; a power failure now would lose traces; %s",
			z->to, strerrordesc_np(-st.sync_error), spool_remedy(st.sync_error));
	if (st.dropped_old != z->said_spool.dropped_old)
		log_warn("output %s: %llu traces dropped so far: older than spool-age", z->to,
			 (unsigned long long)st.dropped_old);
	if (st.damaged_bytes != z->said_spool.damaged_bytes)
		log_warn("output %s: %llu bytes of the spool are damaged and were read over", z->to,
			 (unsigned long long)st.damaged_bytes);
	z->said_spool = st;
}

void zico_output_say(struct zico_output *z)
{
	struct zico_figures f;

	pthread_mutex_lock(&z->lock);
	f = z->figures;
	pthread_mutex_unlock(&z->lock);
	if (z->sink)
		say_sink(z);
	else if (z->spool)
		say_spool(z);
	if (strcmp(f.state, z->said.state) != 0 && *f.state)
		log_msg(f.failures ? LOG_LVL_WARN : LOG_LVL_INFO, "output %s: %s", z->to, f.state);
	if (f.refused != z->said.refused)
		log_warn("output %s: %llu traces refused by the collector so far and dropped", z->to,
			 (unsigned long long)f.refused);
	if (f.withheld != z->said.withheld)
		log_warn(
			"output %s: %llu traces that waited on disk are not sent: their cgroups are not selected any more",
			z->to, (unsigned long long)f.withheld);
	if (f.unfit != z->said.unfit)
		log_warn("output %s: %llu traces could not be encoded so far: %s", z->to, (unsigned long long)f.unfit,
			 f.state);
	if (f.dropped_queue != z->said.dropped_queue)
		log_warn("output %s: %llu traces dropped so far: the disk of the spool is too slow", z->to,
			 (unsigned long long)f.dropped_queue);
	z->said = f;
}

static void zico_deliver_close(struct zico_output *z);

static void zico_deliver_end(struct zico_output *z);

void zico_output_close(struct zico_output *z, struct sink_stats *ret)
{
	struct sink_stats st;
	uint64_t spooled;

	if (!z)
		return;
	zico_deliver_end(z);
	if (z->sink)
		sink_end(z->sink, CLOSE_NS, &st);
	else
		zico_output_stats(z, &st, &spooled);
	st.dropped_documents += z->sink ? z->figures.unfit : 0;
	z->sink = NULL;
	zico_deliver_close(z);
	if (ret)
		*ret = st;
	zico_free(z->encoder);
	buf_free(&z->text);
	free(z->type);
	pthread_cond_destroy(&z->arrived);
	pthread_cond_destroy(&z->queued);
	pthread_mutex_destroy(&z->lock);
	free(z);
}

/* Output to a collector: the queue, the spool and the threads. */

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

/* Removes a trace that is on disk now; until then it counts as waiting. True when it was the last one. */
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

/* Ends when it is told to and everything is on disk. */
static void *writer(void *arg)
{
	struct zico_output *z = arg;
	struct zico_waiting *w;

	while ((w = take(z))) {
		spool_append(z->spool, w->real_ns, w->data, w->len); /* the spool counts failures */
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

static int open_client(struct zico_output *z, const struct output_config *oc, const char *name, const char *state_file,
		       struct err *err)
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

/* Derives the paths of spool and identity from collector and name: two outputs to one collector under one name
 * would compete for its session. */
static void places(const struct zico_output *z, const struct output_config *oc, const char *name, char *spool,
		   char *identity)
{
	const char *dir = z->state_dir ? z->state_dir : ".";
	uLong crc = crc32(0, (const Bytef *)oc->to, (uInt)strlen(oc->to));

	crc = crc32(crc, (const Bytef *)name, (uInt)strlen(name));
	snprintf(spool, ZICO_PATH_MAX, "%s/zico-%08lx.spool", dir, crc);
	snprintf(identity, ZICO_PATH_MAX, "%s/zico-%08lx.json", dir, crc);
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

static int zico_deliver_check(struct zico_output *z, const struct output_config *oc, struct err *err)
{
	int rc = open_client(z, oc, "", NULL, err);

	zico_client_free(z->client);
	z->client = NULL;
	return rc;
}

static int zico_deliver_open(struct zico_output *z, const struct output_config *oc, struct err *err)
{
	char spool_dir[ZICO_PATH_MAX], identity[ZICO_PATH_MAX];
	const char *name = z->about.n ? z->about.attrs[0].value : "jouled";
	struct spool_options so = { .dir = spool_dir,
				    .max_bytes = oc->zico.spool_bytes,
				    .max_age_ns = oc->zico.spool_age_ns };
	int rc;

	places(z, oc, name, spool_dir, identity);
	z->state_dir = NULL;
	rc = open_client(z, oc, name, identity, err);
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

/* Queues a trace in memory, also while another output still has the spool. */
static int zico_deliver_submit(struct zico_output *z, const struct trace *t)
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

/* Ends the threads. All that waited is then on disk, or counted as lost. */
static void zico_deliver_end(struct zico_output *z)
{
	pthread_mutex_lock(&z->lock);
	atomic_store(&z->stop, true);
	pthread_cond_broadcast(&z->queued);
	pthread_cond_broadcast(&z->arrived);
	pthread_mutex_unlock(&z->lock);
	if (z->writing)
		pthread_join(z->writer, NULL);
	if (z->sending)
		pthread_join(z->sender, NULL);
	z->writing = z->sending = false;
}

static void zico_deliver_close(struct zico_output *z)
{
	struct zico_waiting *w;

	while ((w = z->first)) {
		z->first = w->next;
		free(w);
	}
	zico_client_free(z->client);
	spool_close(z->spool);
	z->client = NULL;
	z->spool = NULL;
}
