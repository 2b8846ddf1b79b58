/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "csv_files.h"
#include "model/event_find.h"
#include "output.h"
#include "sink/url.h"

#define TEXT_LIMIT ((size_t)256 << 20)
#define URL_MAX 4400
#define CLOSE_NS (20 * NS_PER_MS) /* short, because plan_drain has waited already */

const struct output_config output_default = {
	.format = "table",
	.to = "stdout:",
	.file_format = "json",
	.stand_ins = true,
	.metadata = true,
};

static bool is_csv(const struct output_config *oc)
{
	return oc->file_format && strcmp(oc->file_format, "csv") == 0;
}

static const struct output_format *format_of(const struct output_config *oc)
{
	return output_format_find(oc->format);
}

/* True when its documents wait in a spool for a server or for brokers. */
static bool is_pushed(const struct output_config *oc)
{
	const enum output_place place = output_place(oc->to);

	return place == PLACE_KAFKA || (format_of(oc)->push && place == PLACE_COLLECTOR);
}

/* The groups of which each has an encoder and a sink; NULL = one has all. */
static const char *const *groups_of(const struct output_config *oc)
{
	return is_csv(oc) ? format_of(oc)->csv_groups : NULL;
}

bool output_in_directory(const struct output_config *oc)
{
	return groups_of(oc) && output_place(oc->to) == PLACE_FILE;
}

static void look_at_terminal(const struct output_config *oc, struct encode_options *o)
{
	struct winsize size;

	if (strcmp(oc->to, "stdout:") != 0 || !isatty(STDOUT_FILENO))
		return;
	o->clear = true;
	o->colour = !getenv("NO_COLOR"); /* no-color.org */
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
		o->width = size.ws_col;
		o->height = size.ws_row;
	}
}

static int open_encoder(struct output_part *p, const struct output_config *oc, const char *csv_group,
			const struct schema *s, struct err *err)
{
	struct encode_options o = {
		.sensor = s->sensor,
		.csv = is_csv(oc),
		.csv_group = csv_group,
		.leaf_only = oc->leaf_only,
		.stand_ins = oc->stand_ins,
		.no_metadata = !oc->metadata,
		.keep_ns = oc->keep_ns,
		.top = (unsigned)oc->top,
		.by = config_grouping(oc->by),
		.max_series = oc->max_series,
		.limit = (unsigned)oc->limit,
		.guest = oc->guest,
		.epoch = (uint64_t)clock_real_ns(),
		.dialect_v02 = oc->dialect && strcmp(oc->dialect, "v0.2") == 0,
		.metrics = oc->metrics.v,
		.n_metrics = oc->metrics.n,
		.iso_time = oc->time ? strcmp(oc->time, "iso") == 0 :
				       !is_csv(oc) && !(output_place(oc->to) & PLACES_SOCKET),
	};
	int rc;

	p->text.limit = TEXT_LIMIT;
	if (output_place(oc->to) == PLACE_VSOCK_LISTEN)
		return 0; /* its guests have encoders of their own */
	p->ops = oc->guest ? format_of(oc)->guest : format_of(oc)->encoder;
	if (!p->ops)
		return 0;
	look_at_terminal(oc, &o);
	rc = p->ops->create(&o, s, &p->encoder, err);
	if (rc || !p->ops->preamble)
		return rc;
	rc = p->ops->preamble(p->encoder, s, &p->text);
	if (rc || p->text.failed)
		return err_set(err, rc ? rc : -ENOMEM, "output %.*s: %s; free memory", TEXT_SUBJECT(oc->to),
			       strerror(rc ? -rc : ENOMEM));
	return 0;
}

static int open_sink(struct output *o, unsigned i, struct loop *loop, struct err *err)
{
	const struct output_config *oc = &o->config;
	struct sink_options so = {
		.queue_bytes = oc->queue_bytes,
		.port_file = oc->port_file,
		.truncate = format_of(oc)->header,
		.max_clients = (unsigned)oc->max_clients,
	};
	struct output_part *p = &o->parts[i];
	char url[URL_MAX], set[16];
	int rc;

	csv_set_suffix(set, o->csv_set);
	if (output_in_directory(oc))
		snprintf(url, sizeof(url), "%s%s/%s.csv", oc->to, set, groups_of(oc)[i]);
	else
		snprintf(url, sizeof(url), "%s", oc->to);
	output_guests_admit(o->guests, &so);
	rc = sink_open(url, &so, loop, &p->sink, err);
	if (rc || !p->text.len)
		return rc;
	rc = sink_set_preamble(p->sink, p->text.data, p->text.len); /* the text holds only the preamble yet */
	return rc ? err_set(err, rc, "output %.*s: out of memory; free some", TEXT_SUBJECT(oc->to)) : 0;
}

/* Makes the directory of the CSV files, and in it that of this set if the files there cannot be continued. It
 * makes one level each, so that a misspelt path does not become a tree. Failures show when a file in it is
 * opened. */
static int make_directory(struct output *o, int64_t first_real_ns, struct err *err)
{
	int64_t first_ns = first_real_ns ? first_real_ns : clock_real_ns();
	struct csv_set set = { .names = groups_of(&o->config),
			       .n = o->n_parts,
			       .first_ms = first_ns / (int64_t)NS_PER_MS };
	char path[URL_MAX + 16], suffix[16];
	struct sink_url u;
	struct err ignored;

	if (sink_url_scheme(o->config.to, &u, &ignored) != 0 ||
	    sink_url_rest(o->config.to, SINK_URL_PATH, &u, &ignored) != 0)
		return 0;
	mkdir(u.path, 0755);
	set.dir = u.path;
	for (unsigned i = 0; i < o->n_parts; i++)
		set.headers[i] = &o->parts[i].text;
	o->csv_set = csv_set_find(&set, err);
	if (o->csv_set <= 1)
		return o->csv_set < 0 ? o->csv_set : 0;
	csv_set_suffix(suffix, o->csv_set);
	snprintf(path, sizeof(path), "%s%s", u.path, suffix);
	mkdir(path, 0755);
	log_warn("output %.*s: %s; the files of this run are in %s", TEXT_SUBJECT(o->config.to), set.why, path);
	return 0;
}

/* Opens the encoders first: the headers they write decide where a file can be continued. */
static int open_parts(struct output *o, const struct output_context *c, struct err *err)
{
	const char *const *groups = groups_of(&o->config);
	int rc = 0;

	for (unsigned i = 0; i < o->n_parts && !rc; i++)
		rc = open_encoder(&o->parts[i], &o->config, groups ? groups[i] : NULL, c->schema, err);
	if (!rc && output_in_directory(&o->config))
		rc = make_directory(o, c->first_real_ns, err);
	if (!rc && is_pushed(&o->config)) {
		rc = o->place ? push_output_prepare(&o->config, c, &o->push, err) :
				push_output_open(&o->config, c, &o->push, err);
		/* the text holds only the preamble yet */
		return rc ? rc : push_output_preamble(o->push, &o->parts[0].text, err);
	}
	for (unsigned i = 0; i < o->n_parts && !rc && !o->place; i++)
		rc = open_sink(o, i, c->loop, err);
	return rc;
}

static bool is_counted(const char *event, const struct events_config *c)
{
	for (unsigned i = 0; i < c->core.n; i++)
		if (strcasecmp(c->core.v[i], event) == 0)
			return true;
	return strcasecmp(event, "TASK_CLOCK") == 0;
}

/* Checks metrics. A name alone may stand for an event counted under another name; any other unknown name is an
 * error. A recording has events of its own, so a replay is not checked. */
static int check_metrics(const struct output_config *oc, const struct output_context *c, struct err *err)
{
	const struct events_config *events = &c->machine->events;

	for (unsigned i = 0; i < oc->metrics.n && !c->replays; i++) {
		const char *name = oc->metrics.v[i], *is = strchr(name, '=');

		if (is ? is_counted(is + 1, events) :
			 is_counted(name, events) || event_is_cycles(name) || event_is_misses(name))
			continue;
		return err_set(err, -EINVAL, "output %.*s: metrics: %s is not counted; add it to events.core",
			       TEXT_SUBJECT(oc->to), is ? is + 1 : name);
	}
	return 0;
}

/* Checks options that only a replay has or does not have. */
static int check_replay(const struct output_config *oc, bool replays, struct err *err)
{
	if (!replays && oc->waits)
		return err_set(
			err, -EINVAL,
			"output %.*s: wait: an agent measures whether or not somebody reads; it belongs to --replay",
			TEXT_SUBJECT(oc->to));
	if (replays && format_of(oc)->traces)
		return err_set(err, -EINVAL,
			       "output %.*s: a recording has no traces; replay it to another format than %s",
			       TEXT_SUBJECT(oc->to), oc->format);
	return 0;
}

/* Logs once which facts the format cannot carry. */
static void say_notes(const struct output *o)
{
	for (unsigned i = 0; i < o->n_parts; i++) {
		const struct output_part *p = &o->parts[i];
		const char *note;

		for (unsigned n = 0; p->ops && p->ops->note && (note = p->ops->note(p->encoder, n)); n++)
			log_warn("output %.*s: %s", TEXT_SUBJECT(o->config.to), note);
	}
}

/* The functions in which the kinds of outputs differ. Once open, an output works with the parts it has. */
struct output_ops {
	/* Checks the place and the options that do not depend on the machine. Opens nothing. */
	int (*check)(const struct output_config *oc, const struct output_context *c, struct err *err);
	int (*open)(struct output *o, const struct output_context *c, struct err *err);
};

static int check_reports(const struct output_config *oc, const struct output_context *c, struct err *err)
{
	return is_pushed(oc) ? push_output_check(oc, err) : sink_check_url(oc->to, err);
}

static int open_reports(struct output *o, const struct output_context *c, struct err *err)
{
	const char *const *groups = groups_of(&o->config);
	int rc = 0;

	o->n_parts = 1;
	while (groups && o->n_parts < OUTPUT_PARTS && groups[o->n_parts])
		o->n_parts++;
	if (output_place(o->config.to) == PLACE_VSOCK_LISTEN)
		rc = output_guests_open(&o->config, c->machine, &o->guests, err);
	if (!rc)
		rc = open_parts(o, c, err);
	if (!rc)
		say_notes(o);
	return rc;
}

static int open_traces(struct output *o, const struct output_context *c, struct err *err)
{
	return o->place ? zico_output_prepare(&o->config, c, &o->zico, err) :
			  zico_output_open(&o->config, c, &o->zico, err);
}

static int check_traces(const struct output_config *oc, const struct output_context *c, struct err *err)
{
	return zico_output_check(oc, c->machine->sensor, err);
}

static int check_page(const struct output_config *oc, const struct output_context *c, struct err *err)
{
	return page_check(oc, c->replays, err);
}

static int open_page(struct output *o, const struct output_context *c, struct err *err)
{
	return page_open(&o->config, c->replays, &o->page, err);
}

bool output_takes_profiles(const struct output_config *oc)
{
	return format_of(oc)->profiles;
}

const char *output_directory(const struct output *o)
{
	return o->config.to + strlen("file://");
}

static int check_profiles(const struct output_config *oc, const struct output_context *c, struct err *err)
{
	if (c->replays)
		return err_set(err, -EINVAL, "output %.*s: a recording has no profile; replay it to another format",
			       TEXT_SUBJECT(oc->to));
	if (!c->machine->profile.frequency_hz)
		return err_set(err, -EINVAL, "output %.*s: nothing is profiled; set profile: { frequency: 19 }",
			       TEXT_SUBJECT(oc->to));
	return is_pushed(oc) ? push_output_check(oc, err) : sink_check_url(oc->to, err);
}

/* Its files lie in a directory, of which one level is made. */
static int open_profiles(struct output *o, const struct output_context *c, struct err *err)
{
	struct stat st;

	if (is_pushed(&o->config))
		return open_reports(o, c, err);
	o->n_parts = 1;
	mkdir(output_directory(o), 0755);
	if (stat(output_directory(o), &st) == 0 && S_ISDIR(st.st_mode) && access(output_directory(o), W_OK) == 0)
		return 0;
	return err_set(err, -ENOTDIR, "output %.*s: no directory that can be written; name one, its files are made",
		       TEXT_SUBJECT(o->config.to));
}

static const struct output_ops *ops_of(const struct output_config *oc)
{
	static const struct output_ops reports = { check_reports, open_reports },
				       traces = { check_traces, open_traces }, page = { check_page, open_page },
				       profiles = { check_profiles, open_profiles };

	if (output_place(oc->to) == PLACE_HTTP_LISTEN)
		return &page;
	if (format_of(oc)->profiles)
		return &profiles;
	return format_of(oc)->traces && !format_of(oc)->push ? &traces : &reports;
}

static int open_at(struct output *o, const struct output_context *c, struct err *err)
{
	const struct output_config *oc = &o->config;
	int rc = check_metrics(oc, c, err);

	o->interval_ns = oc->interval_ns ? oc->interval_ns : c->interval_ns;
	o->replays = c->replays;
	return rc ? rc : ops_of(oc)->open(o, c, err);
}

int output_open(const struct output_config *oc, const struct output_context *c, struct output **ret, struct err *err)
{
	struct output *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return err_set(err, -ENOMEM, "output %.*s: out of memory; free some", TEXT_SUBJECT(oc->to));
	o->config = *oc;
	rc = open_at(o, c, err);
	if (rc)
		output_close(o);
	else
		*ret = o;
	return rc;
}

int output_open_at(const struct output_config *oc, const struct output_context *c, struct output *place,
		   struct output **ret, struct err *err)
{
	struct output *o;
	int rc;

	if (!(output_place(oc->to) & (PLACE_COLLECTOR | PLACE_KAFKA)) &&
	    (oc->queue_bytes != place->config.queue_bytes || oc->max_clients != place->config.max_clients))
		return err_set(err, -EBUSY,
			       "output %.*s: queue and max-clients cannot change while it listens; restart jouled",
			       TEXT_SUBJECT(oc->to));
	o = calloc(1, sizeof(*o));
	if (!o)
		return err_set(err, -ENOMEM, "output %.*s: out of memory; free some", TEXT_SUBJECT(oc->to));
	o->config = *oc;
	o->place = place;
	place->heir = o;
	rc = open_at(o, c, err);
	if (rc)
		output_close(o);
	else
		*ret = o;
	return rc;
}

/* Listening outputs have one part. Its text is still the preamble, because nothing was sent yet. */
void output_move_in(struct output *o)
{
	struct output_part *to = &o->parts[0], *from = &o->place->parts[0];

	if (o->push && to->ops && to->ops == from->ops && to->ops->inherit)
		to->ops->inherit(to->encoder, from->encoder);
	if (o->zico || o->push)
		return; /* happens when the other output is closed */
	if (sink_restart(from->sink, to->text.data, to->text.len) != 0)
		log_error("output %.*s: its readers get reports without their header: out of memory; free some",
			  TEXT_SUBJECT(o->config.to));
	to->sink = from->sink;
	to->said = from->said;
	to->unmade = from->unmade;
	from->sink = NULL;
	o->place->heir = NULL;
	o->place = NULL;
}

/* Makes an encoder for a machine that has only a name and the configured events. So it refuses now the options that
 * it would refuse at the start. */
static int check_encoder(const struct output_config *oc, const struct machine_config *m, struct err *err)
{
	const struct str_list *asked[] = { &m->events.msr, &m->events.core };
	struct schema *s = calloc(1, sizeof(*s));
	struct output_part p = { 0 };
	int rc;

	if (!s)
		return err_set(err, -ENOMEM, "output %.*s: out of memory; free some", TEXT_SUBJECT(oc->to));
	snprintf(s->sensor, sizeof(s->sensor), "%s", m->sensor);
	for (unsigned k = 0; k < 2; k++) {
		struct event_set *set = k ? &s->core : &s->msr;

		for (unsigned i = 0; i < asked[k]->n && i < SCHEMA_MAX_EVENTS; i++)
			snprintf(set->ev[set->n++].name, SCHEMA_NAME_MAX, "%s", asked[k]->v[i]);
	}
	rc = open_encoder(&p, oc, groups_of(oc) ? groups_of(oc)[0] : NULL, s, err);
	if (p.encoder)
		p.ops->destroy(p.encoder);
	buf_free(&p.text);
	free(s);
	return rc;
}

int output_check(const struct output_config *oc, const struct output_context *c, struct err *err)
{
	int rc = ops_of(oc)->check(oc, c, err);

	if (!rc)
		rc = check_replay(oc, c->replays, err);
	if (!rc)
		rc = check_metrics(oc, c, err);
	return rc ? rc : check_encoder(oc, c->machine, err);
}

/* True at 1, 2, 4, 8 and so on, so that a lasting reason does not fill the log. */
static bool worth_telling(uint64_t *said, uint64_t n)
{
	bool tell = n >= (*said ? *said * 2 : 1);

	if (tell)
		*said = n;
	return tell;
}

static void say_encoder(const struct output *o, struct output_part *p)
{
	const struct encoder_stats *st = p->ops->stats ? p->ops->stats(p->encoder) : NULL;

	if (!st)
		return;
	atomic_store_explicit(&p->withheld_rows, st->withheld_rows, memory_order_relaxed);
	atomic_store_explicit(&p->folded_rows, st->folded_rows, memory_order_relaxed);
	if (worth_telling(&p->told.withheld_ticks, st->withheld_ticks))
		log_warn("output %.*s: %llu reports withheld: %s", TEXT_SUBJECT(o->config.to),
			 (unsigned long long)st->withheld_ticks, st->reason);
	else if (worth_telling(&p->told.withheld_rows, st->withheld_rows))
		log_warn("output %.*s: rows withheld so far: %llu: %s", TEXT_SUBJECT(o->config.to),
			 (unsigned long long)st->withheld_rows, st->reason);
	if (worth_telling(&p->told.renamed_rows, st->renamed_rows))
		log_warn(
			"output %.*s: rows renamed so far: %llu: the format or its readers cannot take their cgroups' names",
			TEXT_SUBJECT(o->config.to), (unsigned long long)st->renamed_rows);
	if (worth_telling(&p->told.folded_rows, st->folded_rows))
		log_warn("output %.*s: rows folded so far: %llu: the format has no room for more",
			 TEXT_SUBJECT(o->config.to), (unsigned long long)st->folded_rows);
}

bool output_wants_gauges(const struct output *o)
{
	const char *dialect = format_of(&o->config)->gauges;

	return dialect && o->config.dialect && strcmp(o->config.dialect, dialect) == 0;
}

bool output_wants_self(const struct output *o)
{
	return format_of(&o->config)->push && format_of(&o->config)->encoder;
}

/* The energy of the machine in a snapshot: of the domains that are added up. */
static uint64_t energy_of(const struct snapshot *s)
{
	uint64_t sum_uj = 0;

	for (unsigned d = 0; d < s->schema->n_domains; d++)
		sum_uj += schema_sums(s->schema, d) ? s->domains[d].energy_uj : 0;
	return sum_uj;
}

static void send_part(struct output *o, struct output_part *p, const struct snapshot *s, const bool *shown)
{
	int rc;

	buf_reset(&p->text);
	rc = p->ops->encode(p->encoder, s, shown, &p->text);
	if (rc || p->text.failed) {
		p->unmade++;
		log_warn("output %.*s: a report could not be made: %s", TEXT_SUBJECT(o->config.to),
			 strerror(rc ? -rc : ENOMEM));
	} else if (p->text.len && o->push) {
		rc = push_output_submit(o->push, &p->text, energy_of(s));
		if (rc && p->ops->lost)
			p->ops->lost(p->encoder);
	} else if (p->text.len) {
		sink_submit_buf(p->sink, &p->text);
	}
	say_encoder(o, p);
}

void output_send(struct output *o, const struct snapshot *s)
{
	const struct str_list *globs = &o->config.cgroups;
	const bool *shown = globs->n ? selection_of(&o->selection, s, globs->v, globs->n) : NULL;

	if (globs->n && !shown) {
		log_warn("output %.*s: a report could not be made: %s", TEXT_SUBJECT(o->config.to), strerror(ENOMEM));
		o->parts[0].unmade++;
		return;
	}
	output_guests_send(o->guests, o->parts[0].sink, s);
	for (unsigned i = 0; i < o->n_parts; i++)
		if (o->parts[i].ops)
			send_part(o, &o->parts[i], s, shown);
}

void output_trace(struct output *o, const struct trace *t)
{
	if (o->push && format_of(&o->config)->traces)
		push_output_trace(o->push, t, &o->config.cgroups); /* it counts, too */
	if (o->zico)
		zico_output_submit(o->zico, t); /* it counts and reports the traces that it drops */
}

/* Returns the number of documents lost, from the last figures. Logs it as an error, so that it shows at every log
 * level. */
static uint64_t say_lost(const struct output *o, const struct sink_stats *st, uint64_t unmade, const char *remedy)
{
	uint64_t early = o->replays ? st->early_documents : 0,
		 lost = st->dropped_documents - st->left_documents + st->queued + early + unmade;
	uint64_t all = lost + st->documents + st->left_documents;

	if (lost)
		log_error("output %.*s: %llu of %llu documents lost: %s; %s", TEXT_SUBJECT(o->config.to),
			  (unsigned long long)lost, (unsigned long long)all,
			  unmade == lost ? "out of memory" :
			  early          ? "no client came" :
			  *st->why       ? st->why :
					   "the reader is too slow",
			  unmade == lost ? "free some" :
			  early          ? "start it first, or wait longer with wait=" :
			  st->error      ? err_write_remedy(st->error) :
					   remedy);
	return lost;
}

static uint64_t close_part(const struct output *o, struct output_part *p)
{
	struct sink_stats st = { 0 };
	const char *remedy = p->sink ? sink_remedy(p->sink) : NULL;
	uint64_t lost = 0;

	/* plan_drain has waited for these documents already */
	if (p->sink) {
		sink_end(p->sink, CLOSE_NS, &st);
		lost = say_lost(o, &st, p->unmade, remedy);
	}
	if (p->ops && p->encoder)
		p->ops->destroy(p->encoder);
	buf_free(&p->text);
	return lost;
}

static uint64_t close_delivery(const struct output *o)
{
	struct sink_stats st = { 0 };

	if (o->zico)
		zico_output_close(o->zico, &st);
	else
		push_output_close(o->push, &st);
	return say_lost(o, &st, o->push ? o->parts[0].unmade : 0,
			"see what it said above, and raise spool-size or spool-age where they were dropped for these");
}

uint64_t output_close(struct output *o)
{
	bool unmet = o && o->replays && !output_met(o);
	uint64_t lost = 0;

	if (!o)
		return 0;
	if (o->place)
		o->place->heir = NULL;
	selection_free(&o->selection);
	page_close(o->page);
	if (o->zico || o->push)
		lost += close_delivery(o);
	if ((o->zico || o->push) && o->heir) {
		if (o->zico)
			zico_output_begin(o->heir->zico, &o->heir->config);
		else
			push_output_begin(o->heir->push, &o->heir->config);
		o->heir->place = NULL;
	}
	for (unsigned i = 0; i < o->n_parts; i++)
		lost += close_part(o, &o->parts[i]);
	if (unmet && !lost) {
		/* there were no documents, or none were made without a client */
		log_error(
			"output %.*s: no reader has come, and nothing was sent; start it first, or wait longer with wait=",
			TEXT_SUBJECT(o->config.to));
		lost++;
	}
	output_guests_close(o->guests);
	free(o);
	return lost;
}
