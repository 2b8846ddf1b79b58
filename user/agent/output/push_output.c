/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/log.h"
#include "encode/otlp_traces.h"
#include "model/config/formats.h"
#include "model/selection.h"
#include "kafka_sender.h"
#include "push_output.h"
#include "push_sender.h"

struct push_output {
	struct delivery d;
	struct push_sender sender; /* over HTTP */
	struct kafka_sender *kafka; /* NULL = over HTTP */
	struct buf preamble; /* of each document */
	struct buf whole; /* a document with its preamble */
	char *url;
	char format[32], sensor[256];
	struct buf trace, scratch; /* measuring thread */
	const char *state_dir; /* borrowed until the spool is open; NULL = the working directory */
};

struct http_client_options push_http_options(const struct push_config *c)
{
	return (struct http_client_options){
		.ca_file = c->ca_file,
		.cert_file = c->cert_file,
		.key_file = c->key_file,
		.secrets = { .token_file = c->token_file, .user = c->user, .password_file = c->password_file },
		.timeout_ns = c->timeout_ns,
	};
}

int push_output_check(const struct output_config *oc, struct err *err)
{
	const struct push_format *f = output_format_find(oc->format)->push;
	int rc;

	if (output_place(oc->to) == PLACE_KAFKA)
		return kafka_sender_check(oc, err);
	rc = http_client_check_url(oc->to, err);
	return rc || !f->check ? rc : f->check(oc->to, err);
}

static int open_client(struct push_output *p, const struct output_config *oc, struct err *err)
{
	struct http_client_options o = push_http_options(&oc->push);

	o.subject = p->d.to;
	o.proxies = true;
	o.stop = &p->d.stop;
	o.not_this = "this is no server for it";
	o.remedy = "name its authority with ca-file";
	o.secrets.token_scheme = p->sender.format->token_scheme ? p->sender.format->token_scheme(oc->to) : NULL;
	return http_client_new(&o, &p->sender.http, err);
}

int push_output_prepare(const struct output_config *oc, const struct output_context *c, struct push_output **ret,
			struct err *err)
{
	const bool over_kafka = output_place(oc->to) == PLACE_KAFKA;
	struct push_output *p = calloc(1, sizeof(*p));
	int rc;

	if (!p || !(p->url = strdup(oc->to))) {
		free(p);
		return err_set(err, -ENOMEM, "output %s: out of memory; free some", oc->to);
	}
	snprintf(p->d.to, sizeof(p->d.to), "%s", oc->to);
	snprintf(p->format, sizeof(p->format), "%s", oc->format);
	snprintf(p->sensor, sizeof(p->sensor), "%s", c->schema->sensor);
	p->d.what = output_format_find(oc->format)->traces ? "traces" : "documents";
	p->d.items = over_kafka ? "messages" : output_format_find(oc->format)->traces ? "spans" : "series";
	p->d.server = over_kafka ? "the brokers" : "the server";
	p->d.queue_bytes = oc->queue_bytes;
	p->d.rare = output_format_find(oc->format)->profiles;
	p->d.deliver = push_deliver;
	p->d.keep = push_keep;
	p->d.arg = &p->sender;
	delivery_init(&p->d);
	p->sender.d = &p->d;
	p->sender.url = p->url;
	p->sender.format = output_format_find(oc->format)->push;
	p->state_dir = c->state_dir;
	if (c->state_dir)
		mkdir(c->state_dir, 0755); /* failures show when files in it are opened */
	rc = push_output_check(oc, err);
	if (!rc && over_kafka) {
		rc = kafka_sender_new(oc, c->schema->sensor, &p->d, &p->kafka, err);
		p->d.deliver = kafka_deliver;
		p->d.keep = NULL; /* librdkafka packs */
		p->d.arg = p->kafka;
	} else if (!rc) {
		rc = open_client(p, oc, err);
	}
	if (rc)
		push_output_close(p, NULL);
	else
		*ret = p;
	return rc;
}

static int begin(struct push_output *p, const struct output_config *oc, struct err *err)
{
	char dir[DELIVERY_PATH_MAX];
	const struct spool_options so = { .dir = dir,
					  .max_bytes = oc->push.spool_bytes,
					  .max_age_ns = oc->push.spool_age_ns };

	delivery_path(dir, p->state_dir, p->format, p->url, p->sensor, "spool");
	p->state_dir = NULL;
	return delivery_begin(&p->d, &so, "jouled-push", err);
}

int push_output_open(const struct output_config *oc, const struct output_context *c, struct push_output **ret,
		     struct err *err)
{
	int rc = push_output_prepare(oc, c, ret, err);

	if (rc)
		return rc;
	rc = begin(*ret, oc, err);
	if (rc) {
		push_output_close(*ret, NULL);
		*ret = NULL;
	}
	return rc;
}

void push_output_begin(struct push_output *p, const struct output_config *oc)
{
	struct err err = { 0 };

	if (begin(p, oc, &err) != 0)
		log_error("output %s: nothing is sent: %s", p->d.to, err.text);
}

int push_output_try(const struct output_config *oc, const struct output_context *c, struct err *err)
{
	struct output_context here = *c;
	struct push_output *p = NULL;
	int rc;

	here.state_dir = NULL; /* no directory is made */
	rc = push_output_prepare(oc, &here, &p, err);
	if (!rc)
		rc = p->kafka ? kafka_sender_try(p->kafka, err) : push_sender_try(&p->sender, err);
	push_output_close(p, NULL);
	return rc;
}

int push_output_submit(struct push_output *p, struct buf *document, uint64_t energy_uj)
{
	if (!p->preamble.len)
		return delivery_submit(&p->d, document, energy_uj);
	buf_reset(&p->whole);
	buf_add(&p->whole, p->preamble.data, p->preamble.len);
	buf_add(&p->whole, document->data, document->len);
	if (!p->whole.failed)
		return delivery_submit(&p->d, &p->whole, energy_uj);
	delivery_count(&p->d, &p->d.figures.unfit, 1);
	return -ENOMEM;
}

int push_output_preamble(struct push_output *p, const struct buf *preamble, struct err *err)
{
	buf_add(&p->preamble, preamble->data, preamble->len);
	return p->preamble.failed ? err_set(err, -ENOMEM, "output %s: out of memory; free some", p->d.to) : 0;
}

void push_output_trace(struct push_output *p, const struct trace *t, const struct str_list *cgroups)
{
	const struct selection_rules rules = { .of_output = cgroups->v, .n_of_output = cgroups->n };
	uint64_t energy_uj = 0;

	if (!t->n_spans || !selection_admits(&rules, t->spans[0].cgroup))
		return;
	buf_reset(&p->trace);
	trace_energy_uj(t, &energy_uj);
	if (otlp_trace(t, &p->scratch, &p->trace) == 0)
		push_output_submit(p, &p->trace, energy_uj);
	else
		delivery_count(&p->d, &p->d.figures.unfit, 1);
}

uint32_t push_output_waiting(struct push_output *p)
{
	struct sink_stats st;
	uint64_t spooled;
	bool fails;

	push_output_stats(p, &st, &spooled);
	pthread_mutex_lock(&p->d.lock);
	fails = p->d.figures.failures;
	pthread_mutex_unlock(&p->d.lock);
	return st.queued + (fails ? 0 : (uint32_t)(spooled < INT32_MAX ? spooled : INT32_MAX));
}

void push_output_stats(struct push_output *p, struct sink_stats *ret, uint64_t *ret_spooled)
{
	delivery_stats(&p->d, ret, ret_spooled);
}

void push_output_say(struct push_output *p)
{
	delivery_say(&p->d);
}

void push_output_close(struct push_output *p, struct sink_stats *ret)
{
	uint64_t spooled;

	if (!p)
		return;
	delivery_end(&p->d);
	if (ret)
		delivery_stats(&p->d, ret, &spooled);
	push_sender_free(&p->sender);
	kafka_sender_free(p->kafka);
	buf_free(&p->preamble);
	buf_free(&p->whole);
	delivery_free(&p->d);
	buf_free(&p->trace);
	buf_free(&p->scratch);
	free(p->url);
	free(p);
}
