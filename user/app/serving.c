/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "../base/log.h"
#include "serving_internal.h"

static bool has_pages(const struct config *c)
{
	for (unsigned i = 0; i < c->n_outputs; i++)
		if (page_is(&c->outputs[i]))
			return true;
	return false;
}

/* The socket and the page. Where nobody asked for either, what is missing is said. */
static int open_ports(struct serving *sv, const struct config *c, struct err *err)
{
	int rc = c->socket ? serving_listen(&sv->socket, c, err) : 0;

	if (!rc)
		rc = serving_web_open(&sv->web, c, sv->socket.group, err);
	if (!rc || c->socket_asked || c->web_listen)
		return rc;
	log_warn("%s, or --socket none; nobody can query this agent", err->text);
	return 0;
}

int serving_open(const struct config *c, struct serving **ret, struct err *err)
{
	struct serving *sv;
	int rc;

	*ret = NULL;
	if (!c->socket && c->web_listen)
		return err_set(err, -EINVAL, "web.listen: needs the query socket; leave --socket none out");
	if (!c->socket && !has_pages(c))
		return 0;
	sv = calloc(1, sizeof(*sv));
	if (!sv)
		return err_set(err, -ENOMEM, "socket: out of memory; free some");
	sv->socket.fd = -1;
	sv->socket.group = (gid_t)-1;
	sv->web.fd = -1;
	sv->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = sv->wake_fd < 0 ? err_set(err, -errno, "socket: %s; raise the limit of open files", strerror(errno)) :
			       open_ports(sv, c, err);
	sv->pages_only = sv->socket.fd < 0;
	if (!rc && (!sv->pages_only || has_pages(c)))
		*ret = sv;
	else
		serving_stop(sv);
	return rc;
}

/* Any thread. */
static void wake(void *arg)
{
	struct serving *sv = arg;

	eventfd_write(sv->wake_fd, 1);
}

static void fill_options(struct serve_options *o, struct serving *sv, const struct machine *m, const struct plan *p)
{
	o->fd = sv->socket.fd;
	o->web_fd = sv->web.fd;
	o->web = sv->web.guard;
	o->group = sv->socket.group;
	o->others_coarse = strcmp(p->config->socket_others, "coarse") == 0;
	if (m->have_hierarchy && fsroot_is_live(m->root))
		snprintf(o->mount, sizeof(o->mount), "%s", m->hierarchy.mount);
	o->history = sv->history;
	memcpy(o->no_history, sv->no_history, sizeof(o->no_history));
	o->spans = m->spans;
	o->trace_bytes = p->config->spans_keep;
	o->devices = serving_devices(sv, m, p->config->gpu_library);
	o->schema = &m->schema;
	o->interval_ns = serving_feed_interval(sv, p);
	o->wake = wake;
	o->arg = sv;
}

int serving_start(struct serving *sv, struct machine *m, const struct plan *p, struct loop *loop, struct err *err)
{
	struct totals_options to = { .keep_ns = p->config->metrics_keep_ns,
				     .top = (unsigned)p->config->metrics_top,
				     .no_names = p->config->cgroups_names == NAMES_OFF };
	struct serve_options *o;
	struct serve_source *sources;
	int rc = -ENOMEM;

	if (!sv)
		return 0;
	o = calloc(1, sizeof(*o));
	sources = serving_sources(m, o ? &o->n_sources : NULL);
	sv->totals = totals_new(&m->schema, &to);
	if (o && sources && sv->totals && serving_history_open(sv, &m->schema, p->config, &to) == 0) {
		fill_options(o, sv, m, p);
		o->sources = sources;
		rc = serve_start(o, loop, &sv->serve, err);
		if (!rc)
			sv->socket.fd = sv->web.fd = -1; /* the server's now */
	} else {
		err_set(err, rc, "socket: out of memory; free some");
	}
	free(sources);
	free(o);
	if (!rc)
		serving_use(sv, p);
	if (!rc)
		rc = serving_pages(sv, p, err);
	return rc ? rc : serving_history_start(sv, err);
}

int serving_pages(struct serving *sv, const struct plan *p, struct err *err)
{
	int rc = 0;

	for (const struct output *o = p->outputs; o && !rc; o = o->next)
		if (o->page && !sv)
			rc = err_set(
				err, -EBUSY,
				"output %s: this agent was started without query socket and without such an output; "
				"restart jouled",
				o->config.to);
		else if (o->page)
			rc = page_start(o->page, sv->serve, err);
	return rc;
}

static void tap_close(struct serving *sv, struct tap *t)
{
	consumer_free(t->consumer);
	if (t->formula)
		sv->formula->destroy(t->formula);
	*t = (struct tap){ 0 };
}

void serving_stop(struct serving *sv)
{
	if (!sv)
		return;
	history_stop(sv->history); /* it tells the server what is kept */
	serve_stop(sv->serve);
	history_close(sv->history);
	for (unsigned i = 0; i < SERVE_FEEDS; i++)
		tap_close(sv, &sv->taps[i]);
	tap_close(sv, &sv->sums);
	totals_free(sv->totals);
	free(sv->totals);
	if (sv->socket.own_file)
		unix_listen_remove(&sv->socket.file);
	if (sv->socket.fd >= 0)
		close(sv->socket.fd);
	serving_web_close(&sv->web);
	if (sv->wake_fd >= 0)
		close(sv->wake_fd);
	free(sv->gpu_library);
	free(sv);
}

/* Notes are fixed; the figures belong to the measuring thread and are only looked at. */
static void tell_encoder(struct serve_output *to, const struct output_part *p)
{
	const struct encoder_stats *st = p->encoder ? p->ops->stats(p->encoder) : NULL;
	const char *note;

	if (!st)
		return;
	to->withheld_rows = __atomic_load_n(&st->withheld_rows, __ATOMIC_RELAXED);
	to->folded_rows = __atomic_load_n(&st->folded_rows, __ATOMIC_RELAXED);
	for (; p->ops->note && to->n_notes < SERVE_NOTES && (note = p->ops->note(p->encoder, to->n_notes));
	     to->n_notes++)
		snprintf(to->notes[to->n_notes], sizeof(to->notes[0]), "%s", note);
}

static struct serve_output output_facts(const struct output *o, const struct sink_stats *st)
{
	struct serve_output to = {
		.up = st->up,
		.documents = st->documents,
		.bytes = st->bytes,
		.dropped_bytes = st->dropped_bytes,
		.dropped_documents = st->dropped_documents,
		.reconnects = st->reconnects,
		.queued = st->queued,
		.clients = st->clients,
	};

	snprintf(to.format, sizeof(to.format), "%s", o->config.format);
	snprintf(to.to, sizeof(to.to), "%s", o->config.to);
	snprintf(to.state, sizeof(to.state), "%s", st->state);
	return to;
}

void serving_tell(struct serving *sv, const struct plan *p)
{
	static struct serve_output list[64]; /* main thread only */
	unsigned n = 0;

	if (!sv || !sv->serve)
		return;
	serving_history_say(sv);
	for (const struct output *o = p->outputs; o; o = o->next) {
		if (o->zico && n < sizeof(list) / sizeof(list[0])) {
			struct sink_stats st;
			uint64_t spooled;

			zico_output_stats(o->zico, &st, &spooled);
			list[n] = output_facts(o, &st);
			list[n++].spooled = spooled;
		}
		if (o->page && n < sizeof(list) / sizeof(list[0])) {
			struct sink_stats st;
			uint64_t number;

			page_stats(o->page, &st, &number);
			list[n] = output_facts(o, &st);
			list[n++].page = number;
		}
		for (unsigned i = 0; i < o->n_parts && n < sizeof(list) / sizeof(list[0]); i++) {
			struct serve_output *to = &list[n];
			struct sink_stats st;

			if (!o->parts[i].sink)
				continue;
			sink_get_stats(o->parts[i].sink, &st);
			*to = output_facts(o, &st);
			tell_encoder(to, &o->parts[i]);
			n++;
		}
	}
	serve_tell_outputs(sv->serve, list, n);
}
