/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/log.h"
#include "base/text.h"
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
	strncpy(z->d.to, oc->to, sizeof(z->d.to) - 1);
	z->d.what = "traces";
	z->d.server = "the collector";
	z->d.queue_bytes = oc->queue_bytes;
	z->d.deliver = zico_deliver;
	delivery_init(&z->d);
	zico_about(&z->about, c->formula, c->schema, narrowest(oc)->attribute_max, z->d.to);
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
		rc = err_set(err, -ENOMEM, "output %.*s: out of memory; free some", TEXT_SUBJECT(oc->to));
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
		rc = err_set(err, -ENOMEM, "output %.*s: out of memory; free some", TEXT_SUBJECT(oc->to));
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
		log_error("output %.*s: nothing is sent: %s", TEXT_SUBJECT(z->d.to), err.text);
}

static int submit_document(struct zico_output *z, const struct trace *t)
{
	struct err err = { 0 };
	int rc;

	buf_reset(&z->text);
	rc = zico_enclose(z->encoder, t, z->host, &z->text, &err);
	if (!rc)
		return sink_submit_buf(z->sink, &z->text);
	pthread_mutex_lock(&z->d.lock);
	z->d.figures.unfit++;
	memcpy(z->d.figures.state, err.text, sizeof(z->d.figures.state));
	pthread_mutex_unlock(&z->d.lock);
	return rc;
}

void zico_output_select(struct zico_output *z, const struct output_config *oc, const struct cgroups_config *c)
{
	pthread_mutex_lock(&z->d.lock);
	z->rules = config_rules(c);
	z->rules.of_output = oc->cgroups.v;
	z->rules.n_of_output = oc->cgroups.n;
	pthread_mutex_unlock(&z->d.lock);
}

void zico_output_formula(struct zico_output *z, const char *formula)
{
	struct err err = { 0 };
	struct zico *made;

	if (!z->sink || strcmp(z->about.formula, formula) == 0)
		return;
	snprintf(z->about.formula, sizeof(z->about.formula), "%s", formula);
	if (zico_new(&z->options, &made, &err) != 0) {
		log_warn("output %.*s: its traces name the formula of before: %s", TEXT_SUBJECT(z->d.to), err.text);
		return;
	}
	zico_free(z->encoder);
	z->encoder = made;
}

bool zico_output_admits(struct zico_output *z, const char *cgroup)
{
	bool admitted;

	pthread_mutex_lock(&z->d.lock);
	admitted = selection_admits(&z->rules, cgroup);
	pthread_mutex_unlock(&z->d.lock);
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

	if (!z->sink)
		return delivery_waiting(&z->d);
	sink_get_stats(z->sink, &st);
	return st.up || away ? st.queued : 0;
}

void zico_output_stats(struct zico_output *z, struct sink_stats *ret, uint64_t *ret_spooled)
{
	*ret_spooled = 0;
	if (z->sink)
		sink_get_stats(z->sink, ret);
	else
		delivery_stats(&z->d, ret, ret_spooled);
}

static void say_sink(struct zico_output *z)
{
	struct sink_stats st;

	sink_get_stats(z->sink, &st);
	if (st.up != z->told.up && *st.state)
		log_info("output %.*s: %s", TEXT_SUBJECT(z->d.to), st.state);
	if (st.dropped_documents != z->told.dropped_documents)
		log_warn("output %.*s: %llu traces dropped so far: %s", TEXT_SUBJECT(z->d.to),
			 (unsigned long long)st.dropped_documents, *st.why ? st.why : "the reader is too slow");
	z->told = st;
}

void zico_output_say(struct zico_output *z)
{
	if (z->sink)
		say_sink(z);
	delivery_say(&z->d);
}

void zico_output_close(struct zico_output *z, struct sink_stats *ret)
{
	struct sink_stats st;
	uint64_t spooled;

	if (!z)
		return;
	delivery_end(&z->d);
	if (z->sink)
		sink_end(z->sink, CLOSE_NS, &st);
	else
		zico_output_stats(z, &st, &spooled);
	st.dropped_documents += z->sink ? z->d.figures.unfit : 0;
	z->sink = NULL;
	if (ret)
		*ret = st;
	delivery_free(&z->d);
	zico_client_free(z->client);
	zico_sending_free(z->sending);
	zico_free(z->encoder);
	buf_free(&z->text);
	free(z->type);
	free(z);
}

/* Output to a collector. */

#define ATTRS_MAX 32

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
	const struct http_client_options http = push_http_options(&oc->push);
	struct zico_client_options o = {
		.url = oc->to,
		.profile = oc->zico.profile ? oc->zico.profile : "auto",
		.key = oc->zico.key ? oc->zico.key : "zorka",
		.name = name,
		.app = oc->zico.app,
		.env = oc->zico.env,
		.attrs = attrs,
		.state_file = state_file,
		.http = &http,
		.form = oc->zico.form,
		.stop = &z->d.stop,
	};
	int n = attrs_of(oc, z, attrs, copies), rc;

	o.n_attrs = n > 0 ? (unsigned)n : 0;
	rc = n < 0 ? err_set(err, n, "output %.*s: out of memory; free some", TEXT_SUBJECT(oc->to)) :
		     zico_client_new(&o, &z->client, err);
	for (unsigned i = 0; i < ATTRS_MAX; i++)
		free(copies[i]);
	return rc;
}

static int zico_deliver_check(struct zico_output *z, const struct output_config *oc, struct err *err)
{
	int rc = open_client(z, oc, "", NULL, err);

	zico_client_free(z->client);
	z->client = NULL;
	return rc;
}

/* Spool and identity are of collector and name: two outputs to one collector under one name would compete for its
 * session. */
static int zico_deliver_open(struct zico_output *z, const struct output_config *oc, struct err *err)
{
	char spool_dir[DELIVERY_PATH_MAX], identity[DELIVERY_PATH_MAX];
	const char *name = z->about.n ? z->about.attrs[0].value : "jouled";
	struct spool_options so = { .dir = spool_dir,
				    .max_bytes = oc->push.spool_bytes,
				    .max_age_ns = oc->push.spool_age_ns };
	int rc;

	delivery_path(spool_dir, z->state_dir, "zico", oc->to, name, "spool");
	delivery_path(identity, z->state_dir, "zico", oc->to, name, "json");
	z->state_dir = NULL;
	z->sending = zico_sending_new(z);
	z->d.arg = z->sending;
	rc = z->sending ? open_client(z, oc, name, identity, err) :
			  err_set(err, -ENOMEM, "output %.*s: out of memory; free some", TEXT_SUBJECT(oc->to));
	return rc ? rc : delivery_begin(&z->d, &so, "jouled-zico", err);
}

/* Queues a trace in memory, also while another output still has the spool. */
static int zico_deliver_submit(struct zico_output *z, const struct trace *t)
{
	const char *wrong = t->n_spans ? trace_check(t) : "no spans";
	int rc = wrong ? -EINVAL : 0;

	buf_reset(&z->text);
	if (!rc)
		rc = trace_record_write(t, &z->text);
	if (!rc)
		return delivery_submit(&z->d, &z->text, 0);
	pthread_mutex_lock(&z->d.lock);
	z->d.figures.unfit++;
	snprintf(z->d.figures.state, sizeof(z->d.figures.state), "a trace is no trace: %s",
		 wrong ? wrong : strerror(-rc));
	pthread_mutex_unlock(&z->d.lock);
	return rc;
}
