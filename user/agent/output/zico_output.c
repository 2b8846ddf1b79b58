/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "../sink/http_client.h"
#include "zico_output_internal.h"

#define CLOSE_NS (20 * NS_PER_MS)
#define DOCUMENT_MAX ((size_t)64 << 20)

static bool to_collector(const char *to)
{
	return strncmp(to, "http:", 5) == 0 || strncmp(to, "https:", 6) == 0;
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

/* Of `auto` only the type can be wrong: flags are left out where a release does not take them. */
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

int zico_output_check(const struct output_config *oc, struct err *err)
{
	int rc = to_collector(oc->to) ? http_client_check_url(oc->to, err) : sink_check_url(oc->to, err);

	return rc ? rc : try_options(oc, err);
}

static int open_sink(struct zico_output *z, const struct output_config *oc, const struct config *c, struct loop *loop,
		     struct err *err)
{
	struct sink_options so = { .queue_bytes = oc->queue_bytes,
				   .port_file = oc->port_file,
				   .max_clients = (unsigned)oc->max_clients };
	int rc = zico_new(&z->options, &z->encoder, err);

	zico_host(c->state_dir, z->host);
	z->text.limit = DOCUMENT_MAX;
	return rc ? rc : sink_open(oc->to, &so, loop, &z->sink, err);
}

static struct zico_output *make(const struct output_config *oc, const struct config *c, const struct schema *s)
{
	struct zico_output *z = calloc(1, sizeof(*z));

	if (!z)
		return NULL;
	pthread_mutex_init(&z->lock, NULL);
	pthread_cond_init(&z->queued, NULL);
	pthread_cond_init(&z->arrived, NULL);
	z->last = &z->first;
	strncpy(z->to, oc->to, sizeof(z->to) - 1);
	z->queue_bytes = oc->queue_bytes ? oc->queue_bytes : (size_t)4 << 20;
	zico_about(&z->about, c, s);
	z->options = options_of(oc);
	z->options.agent = z->about.attrs;
	z->options.n_agent = z->about.n;
	z->type = z->options.type ? strdup(z->options.type) : NULL;
	z->options.type = z->type;
	if (c->state_dir)
		mkdir(c->state_dir, 0755); /* what fails here is said by opening files in it */
	return z;
}

int zico_output_open(const struct output_config *oc, const struct config *c, const struct schema *s, struct loop *loop,
		     struct zico_output **ret, struct err *err)
{
	struct zico_output *z = NULL;
	int rc = try_options(oc, err);

	if (!rc && !(z = make(oc, c, s)))
		rc = err_set(err, -ENOMEM, "output %s: out of memory; free some", oc->to);
	if (!rc)
		rc = to_collector(oc->to) ? zico_deliver_open(z, oc, c, err) : open_sink(z, oc, c, loop, err);
	if (rc)
		zico_output_close(z);
	else
		*ret = z;
	return rc;
}

int zico_output_prepare(const struct output_config *oc, const struct config *c, const struct schema *s,
			struct zico_output **ret, struct err *err)
{
	struct zico_output *z = NULL;
	int rc = try_options(oc, err);

	if (!rc && !(z = make(oc, c, s)))
		rc = err_set(err, -ENOMEM, "output %s: out of memory; free some", oc->to);
	if (!rc)
		rc = zico_deliver_check(z, oc, c, err);
	if (rc) {
		zico_output_close(z);
		return rc;
	}
	z->config = c;
	*ret = z;
	return 0;
}

void zico_output_begin(struct zico_output *z, const struct output_config *oc)
{
	struct err err = { 0 };

	if (zico_deliver_open(z, oc, z->config, &err) != 0)
		log_error("output %s: nothing is sent: %s", z->to, err.text);
	z->config = NULL;
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

int zico_output_submit(struct zico_output *z, const struct trace *t)
{
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
			 *st.state ? st.state : "the reader is too slow");
	z->told = st;
}

static void say_spool(struct zico_output *z)
{
	struct spool_stats st;

	spool_get_stats(z->spool, &st);
	if (st.dropped_full != z->said_spool.dropped_full)
		log_warn(
			"output %s: %llu traces dropped so far: no room in the spool%s%s; raise spool-size or make room on its disk",
			z->to, (unsigned long long)st.dropped_full, st.error ? ": " : "",
			st.error ? strerrordesc_np(-st.error) : "");
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
	if (f.unfit != z->said.unfit)
		log_warn("output %s: %llu traces could not be encoded so far: %s", z->to, (unsigned long long)f.unfit,
			 f.state);
	if (f.dropped_queue != z->said.dropped_queue)
		log_warn("output %s: %llu traces dropped so far: the disk of the spool is too slow", z->to,
			 (unsigned long long)f.dropped_queue);
	z->said = f;
}

void zico_output_close(struct zico_output *z)
{
	if (!z)
		return;
	zico_deliver_close(z);
	sink_close(z->sink, CLOSE_NS);
	zico_free(z->encoder);
	buf_free(&z->text);
	free(z->type);
	pthread_cond_destroy(&z->arrived);
	pthread_cond_destroy(&z->queued);
	pthread_mutex_destroy(&z->lock);
	free(z);
}
