/* SPDX-License-Identifier: Apache-2.0 */
/* The comparisons that decide whether an output survives a reload. */
#include <string.h>
#include "output.h"

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_list(const struct str_list *a, const struct str_list *b)
{
	bool same = a->n == b->n;

	for (unsigned i = 0; i < a->n && same; i++)
		same = strcmp(a->v[i], b->v[i]) == 0;
	return same;
}

static bool same_zico(const struct zico_config *a, const struct zico_config *b)
{
	return same_text(a->profile, b->profile) && same_text(a->endian, b->endian) && same_text(a->flags, b->flags) &&
	       same_text(a->key, b->key) && same_text(a->app, b->app) && same_text(a->env, b->env) &&
	       same_text(a->trace_type, b->trace_type) && same_text(a->form, b->form) &&
	       same_list(&a->attrs, &b->attrs);
}

static bool same_push(const struct push_config *a, const struct push_config *b)
{
	return same_text(a->ca_file, b->ca_file) && same_text(a->cert_file, b->cert_file) &&
	       same_text(a->key_file, b->key_file) && same_text(a->token_file, b->token_file) &&
	       same_text(a->user, b->user) && same_text(a->password_file, b->password_file) &&
	       a->timeout_ns == b->timeout_ns && same_list(&a->config, &b->config) &&
	       a->spool_bytes == b->spool_bytes && a->spool_age_ns == b->spool_age_ns;
}

bool output_same_place(const struct output_config *a, const struct output_config *b)
{
	const enum output_place spooled = PLACE_COLLECTOR | PLACE_KAFKA;

	/* a server has one spool, and a collector one session, for all that is sent to it */
	if (output_place(a->to) & spooled || output_format_find(a->format)->traces ||
	    output_format_find(b->format)->traces)
		return same_text(a->format, b->format) && output_place(a->to) & spooled && same_text(a->to, b->to);
	/* port 0 is a new port each time, but its readers know where to look */
	return (output_place(a->to) & (PLACE_TCP_LISTEN | PLACE_UNIX_LISTEN | PLACE_HTTP_LISTEN)) &&
	       same_text(a->to, b->to) && same_text(a->port_file, b->port_file);
}

bool output_same(const struct output_config *a, const struct output_config *b)
{
	return same_text(a->format, b->format) && same_text(a->to, b->to) && same_text(a->time, b->time) &&
	       same_text(a->file_format, b->file_format) && same_text(a->port_file, b->port_file) &&
	       same_text(a->guest, b->guest) && a->leaf_only == b->leaf_only && a->stand_ins == b->stand_ins &&
	       a->metadata == b->metadata && a->queue_bytes == b->queue_bytes && a->limit == b->limit &&
	       a->keep_ns == b->keep_ns && a->top == b->top && a->max_series == b->max_series &&
	       same_text(a->by, b->by) && a->max_clients == b->max_clients && same_text(a->dialect, b->dialect) &&
	       same_list(&a->metrics, &b->metrics) && same_zico(&a->zico, &b->zico) && same_push(&a->push, &b->push);
}
