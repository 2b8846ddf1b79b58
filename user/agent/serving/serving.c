/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "agent/plan/audited.h"
#include "agent/plan/plan.h"
#include "base/clock.h"
#include "base/log.h"
#include "encode/metrics/series.h"
#include "encode/totals/keep.h"
#include "serve/serve.h"
#include "serve/status.h"
#include "facts.h"
#include "kept.h"
#include "serving.h"
#include "socket.h"
#include "web.h"

#define KEPT_NS NS_PER_S /* time between points of the history, unless a client wants shorter ones */

struct serving {
	struct serve *serve;
	struct serving_socket socket; /* fd is -1 once the server owns it */
	struct serving_web web; /* the same */
	bool pages_only; /* no socket: only totals are asked for */
	int wake_fd;
	struct serve_devices devices;
	char *gpu_library, *price, *carbon;
	struct kept kept;
	struct audit audit; /* the last one, at the start */
	/* measuring thread */
	const struct plan *plan;
	struct tap taps[SERVE_FEEDS]; /* intervals that clients want */
	struct tap sums; /* feeds the totals, at the agent's interval and on request */
	struct serve_profiling profiling;
	bool traced; /* traces are made, or a profile, with energy from the snapshots of the totals */
	bool reading; /* a request waits for a reading */
	struct switch_cost switch_cost;
	char formula[16], formula_why[FORMULA_WHY_MAX]; /* that auto has chosen */
};

static bool has_pages(const struct outputs_config *c)
{
	for (unsigned i = 0; i < c->n; i++)
		if (output_place(c->v[i].to) == PLACE_HTTP_LISTEN)
			return true;
	return false;
}

/* Opens the socket and the page. When neither was configured, a failure is only logged. */
static int open_ports(struct serving *sv, const struct serving_config *c, struct err *err)
{
	int rc = c->socket.path ? serving_listen(&sv->socket, &c->socket, err) : 0;

	if (!rc)
		rc = serving_web_open(&sv->web, &c->web, sv->socket.group, err);
	if (!rc || c->socket.asked || c->web.listen)
		return rc;
	log_warn("%s, or --socket none; nobody can query this agent", err->text);
	return 0;
}

int serving_open(const struct serving_config *c, const struct outputs_config *outputs, struct serving **ret,
		 struct err *err)
{
	struct serving *sv;
	int rc;

	*ret = NULL;
	if (!c->socket.path && c->web.listen)
		return err_set(err, -EINVAL, "web.listen: needs the query socket; leave --socket none out");
	if (!c->socket.path && !has_pages(outputs))
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
	if (!rc && (!sv->pages_only || has_pages(outputs)))
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

static uint64_t feed_interval(const struct serving *sv, const struct plan *p)
{
	return sv->pages_only ? 0 : p->config->interval_ns;
}

/* The loop's thread. */
static const char *audited(void *arg, const struct audit *a)
{
	struct serving *sv = arg;

	audited_tell(a);
	if (!sv->kept.history)
		return sv->kept.no_history;
	return history_put_audit(sv->kept.history, a) ? "out of memory" : NULL;
}

static bool find_last_audit(struct serving *sv)
{
	bool found = sv->kept.history && history_last_audit(sv->kept.history, &sv->audit);

	audited_tell(found ? &sv->audit : NULL);
	return found;
}

static void fill_options(struct serve_options *o, struct serving *sv, const struct machine *m, const struct plan *p)
{
	o->fd = sv->socket.fd;
	o->web_fd = sv->web.fd;
	o->web = sv->web.guard;
	o->group = sv->socket.group;
	o->others_coarse = strcmp(p->config->serving.socket.others, "coarse") == 0;
	if (m->have_hierarchy && fsroot_is_live(m->root))
		snprintf(o->mount, sizeof(o->mount), "%s", m->hierarchy.mount);
	o->history = sv->kept.history;
	o->price = sv->price;
	o->carbon = sv->carbon;
	memcpy(o->no_history, sv->kept.no_history, sizeof(o->no_history));
	o->spans = m->spans;
	o->profiling = sv->profiling;
	snprintf(o->no_profile, sizeof(o->no_profile),
		 "this agent makes none; set profile: { frequency: 19 } in its configuration, or use joulectl profile");
	o->trace_bytes = p->config->serving.trace_bytes;
	o->devices = m->gpus || m->meters ? &sv->devices : NULL;
	o->schema = &m->schema;
	o->interval_ns = feed_interval(sv, p);
	if (find_last_audit(sv))
		o->audit = &sv->audit;
	o->audited = audited;
	o->wake = wake;
	o->arg = sv;
}

/* The thread of the history. */
static void stored(void *arg, uint64_t seq)
{
	struct serving *sv = arg;

	serve_totals_kept(sv->serve, seq);
}

/* The totals of the query socket, and of the page, which are the same unless it shows groups. */
static int totals_of(const struct config *c, const struct schema *s, struct kept_totals *ret, struct err *err)
{
	const struct metrics_config *mc = &c->serving.metrics;
	struct err why = { 0 };
	struct totals_options to = { .keep_ns = mc->keep_ns,
				     .top = (unsigned)mc->top,
				     .by = config_grouping(mc->by),
				     .no_names = c->machine.cgroups.names == NAMES_OFF };
	int rc = totals_fit(&to, s, mc->max_series, SERIES_SELF, &why);

	if (rc)
		return err_set(err, rc, "metrics.%s", why.text);
	*ret = (struct kept_totals){ .own = to, .view = to };
	if (to.by.kind)
		ret->own = (struct totals_options){ .keep_ns = to.keep_ns, .no_names = to.no_names };
	return 0;
}

/* Restores the totals and starts the server. */
static int start_server(struct serving *sv, const struct machine *m, const struct plan *p, struct loop *loop,
			struct err *err)
{
	const struct config *c = p->config;
	struct serve_options *o = calloc(1, sizeof(*o));
	struct serve_source *sources = facts_sources(m, o ? &o->n_sources : NULL);
	struct kept_totals totals;
	int rc = totals_of(c, &m->schema, &totals, err);

	if (rc)
		goto out;
	if (!o || !sources || kept_open(&sv->kept, &m->schema, &c->serving.history, &totals) != 0) {
		rc = err_set(err, -ENOMEM, "socket: out of memory; free some");
		goto out;
	}
	sv->gpu_library = c->machine.gpu.library ? strdup(c->machine.gpu.library) : NULL;
	sv->price = c->serving.price ? strdup(c->serving.price) : NULL;
	sv->carbon = c->serving.carbon ? strdup(c->serving.carbon) : NULL;
	sv->devices = facts_devices(m, sv->gpu_library);
	fill_options(o, sv, m, p);
	o->sources = sources;
	rc = serve_start(o, loop, &sv->serve, err);
	if (!rc)
		sv->socket.fd = sv->web.fd = -1; /* owned by the server now */
out:
	free(sources);
	free(o);
	return rc;
}

int serving_start(struct serving *sv, struct machine *m, const struct plan *p, struct loop *loop,
		  struct serve_profiling profiling, struct err *err)
{
	int rc;

	if (!sv)
		return 0;
	sv->kept.stored = stored;
	sv->kept.arg = sv;
	sv->traced = m->spans || profiling.ask;
	sv->profiling = profiling;
	rc = start_server(sv, m, p, loop, err);
	if (rc)
		return rc;
	serving_use(sv, p);
	rc = serving_pages(sv, p, err);
	return rc ? rc : kept_start(&sv->kept, err);
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

uint64_t serving_stop(struct serving *sv)
{
	uint64_t lost;

	if (!sv)
		return 0;
	lost = kept_stop(&sv->kept); /* its thread calls the server */
	serve_stop(sv->serve);
	for (unsigned i = 0; i < SERVE_FEEDS; i++)
		tap_end(&sv->taps[i]);
	tap_end(&sv->sums);
	kept_close(&sv->kept);
	if (sv->socket.own_file)
		unix_listen_remove(&sv->socket.file);
	if (sv->socket.fd >= 0)
		close(sv->socket.fd);
	serving_web_close(&sv->web);
	if (sv->wake_fd >= 0)
		close(sv->wake_fd);
	free(sv->gpu_library);
	free(sv->price);
	free(sv->carbon);
	free(sv);
	return lost;
}

void serving_tell(struct serving *sv, const struct plan *p)
{
	static struct serve_output list[64]; /* main thread only */

	if (!sv || !sv->serve)
		return;
	kept_say(&sv->kept);
	serve_tell_outputs(sv->serve, list, facts_outputs(p, list, sizeof(list) / sizeof(list[0])));
}

/* The measuring thread's part. */

int serving_fd(const struct serving *sv)
{
	return sv ? sv->wake_fd : -1;
}

/* The interval of the totals when neither feed 0 nor a request makes them; 0 = never. */
static uint64_t sums_interval(const struct serving *sv)
{
	uint64_t own = sv->pages_only ? sv->plan->config->interval_ns : 0;
	bool kept = sv->kept.history || sv->traced;

	return kept && (!own || own > KEPT_NS) ? KEPT_NS : own;
}

static bool sums_due(const struct serving *sv, uint64_t now_ns)
{
	return sums_interval(sv) && sv->sums.deadline_ns <= now_ns;
}

void serving_use(struct serving *sv, const struct plan *p)
{
	const struct selection_rules rules = config_rules(&p->config->machine.cgroups);

	if (!sv)
		return;
	if (serve_select(sv->serve, &rules)) {
		totals_select(sv->kept.totals, &rules);
		sv->sums.deadline_ns = 0; /* make totals at the next reading, to show them again */
	}
	sv->plan = p;
	serve_set_interval(sv->serve, feed_interval(sv, p));
	if (sv->pages_only)
		sv->sums.deadline_ns = 0; /* the interval may be shorter now */
}

static void follow_feed(struct serving *sv, struct machine *m, unsigned feed)
{
	uint64_t interval_ns = serve_feed_interval(sv->serve, feed);
	struct tap *t = &sv->taps[feed];

	if (t->interval_ns == interval_ns)
		return;
	if (interval_ns)
		tap_begin(t, &m->reading, interval_ns);
	else
		tap_end(t);
}

uint64_t serving_deadline(struct serving *sv, struct machine *m)
{
	uint64_t first = UINT64_MAX;
	eventfd_t count;

	eventfd_read(sv->wake_fd, &count);
	if (!sv->sums.consumer) {
		tap_begin(&sv->sums, &m->reading, 0);
		sv->sums.deadline_ns += sums_interval(sv);
	}
	sv->reading |= serve_wants_reading(sv->serve);
	if (sv->reading)
		return 0;
	if (sums_interval(sv))
		first = sv->sums.deadline_ns;
	for (unsigned i = 0; i < SERVE_FEEDS; i++) {
		follow_feed(sv, m, i);
		if (sv->taps[i].interval_ns && sv->taps[i].deadline_ns < first)
			first = sv->taps[i].deadline_ns;
	}
	return first;
}

/* The interval that ends now, with its energy split. NULL = no memory; it is then joined to the next interval. */
static struct snapshot *take(struct serving *sv, struct tap *t, struct machine *m)
{
	struct snapshot *s = tap_take(t, &m->reading);

	if (!s)
		return NULL;
	tap_use(t, &sv->plan->formula);
	tap_split(t, s);
	return s;
}

static void run_tap(struct serving *sv, unsigned feed, struct machine *m)
{
	struct tap *t = &sv->taps[feed];
	uint64_t missed = tap_next(t, m->reading.mono_ns);
	struct snapshot *s = take(sv, t, m);

	if (!s)
		return;
	s->missed = missed;
	serve_publish(sv->serve, feed, s);
}

void serving_trace(struct serving *sv, struct trace *t)
{
	if (sv)
		serve_publish_trace(sv->serve, t);
	else
		free(t);
}

static void name_late(struct totals *t, struct naming *n)
{
	struct names *names;
	uint64_t id;

	while (naming_late(n, &id, &names)) {
		totals_name_late(t, id, names);
		names_put(names);
	}
}

/* The next deadline of the totals: at absolute times when nothing else sets the pace, else counted from the
 * last request. */
static uint64_t next_sums(const struct serving *sv, uint64_t now_ns)
{
	uint64_t every = sums_interval(sv), was = sv->sums.deadline_ns;

	if (!sv->pages_only || !every || !was || was > now_ns)
		return now_ns + every;
	return was + ((now_ns - was) / every + 1) * every;
}

bool serving_run(struct serving *sv, struct machine *m, struct snapshot **ret_sums)
{
	struct totals *totals = sv->kept.totals;
	bool own = sums_due(sv, m->reading.mono_ns);
	struct snapshot *s;

	for (unsigned i = 0; i < SERVE_FEEDS; i++) {
		if (!sv->taps[i].interval_ns || sv->taps[i].deadline_ns > m->reading.mono_ns)
			continue;
		run_tap(sv, i, m);
		own |= i == 0;
	}
	if (!own && !sv->reading)
		return false;
	s = take(sv, &sv->sums, m);
	sv->sums.deadline_ns = next_sums(sv, m->reading.mono_ns);
	if (s) {
		totals_still(totals, m->table);
		totals_add(totals, s, NULL);
		name_late(totals, m->naming);
	}
	*ret_sums = s;
	return true;
}

/* Keeps which formula auto has chosen, and logs it when it changes. */
static void tell_formula(struct serving *sv, const struct snapshot *s)
{
	const struct tap *t = &sv->sums;
	bool changed = strcmp(sv->formula, s->formula) != 0;

	if (!t->formula || !t->by.ops->reason) {
		sv->formula_why[0] = '\0';
		return;
	}
	snprintf(sv->formula, sizeof(sv->formula), "%s", s->formula);
	snprintf(sv->formula_why, sizeof(sv->formula_why), "%s", t->by.ops->reason(t->formula));
	if (changed)
		log_note("formula auto: %s: %s", sv->formula, sv->formula_why);
}

void serving_show(struct serving *sv, const struct machine *m, const struct snapshot *sums, struct traces_stats traces)
{
	uint64_t seq = sums ? kept_put(&sv->kept, sums) : 0;
	struct serve_facts f;

	facts_figures(m, &sv->switch_cost, &f);
	f.traces = traces;
	f.lost_spans = traces.lost_spans;
	if (sums)
		tell_formula(sv, sums);
	memcpy(f.formula, sv->formula, sizeof(f.formula));
	memcpy(f.formula_why, sv->formula_why, sizeof(f.formula_why));
	serve_tell_facts(sv->serve, &f);
	serve_publish_totals(sv->serve, sv->kept.totals, sv->reading, seq);
	sv->reading = false;
}
