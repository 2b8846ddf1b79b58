/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "../model/event_find.h"
#include "../sink/url.h"
#include "output.h"

#define TEXT_LIMIT ((size_t)256 << 20)
#define URL_MAX 4400
#define CLOSE_NS (20 * NS_PER_MS) /* plan_drain has waited already */

const struct output_config output_default = {
	.format = "table",
	.to = "stdout:",
	.file_format = "json",
	.stand_ins = true,
};

static const char *const csv_groups[OUTPUT_PARTS] = { "rapl", "msr", "core" };

static bool is_socket(const char *to)
{
	return strncmp(to, "tcp", 3) == 0 || strncmp(to, "unix", 4) == 0;
}

static bool is_csv(const struct output_config *oc)
{
	return oc->file_format && strcmp(oc->file_format, "csv") == 0;
}

static bool is_zico(const struct output_config *oc)
{
	return strcmp(oc->format, "zico") == 0;
}

static bool in_directory(const struct output_config *oc)
{
	return is_csv(oc) && strcmp(oc->format, "hwpc") == 0 && strncmp(oc->to, "file:", 5) == 0;
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
		.keep_ns = oc->keep_ns,
		.top = (unsigned)oc->top,
		.limit = (unsigned)oc->limit,
		.guest = oc->guest,
		.epoch = (uint64_t)clock_real_ns(),
		.dialect_v02 = oc->dialect && strcmp(oc->dialect, "v0.2") == 0,
		.metrics = oc->metrics.v,
		.n_metrics = oc->metrics.n,
		.iso_time = oc->time ? strcmp(oc->time, "iso") == 0 : !is_csv(oc) && !is_socket(oc->to),
	};
	int rc;

	p->text.limit = TEXT_LIMIT;
	p->ops = output_guests_are(oc) ? NULL : encoder_find(oc->guest ? "share" : oc->format);
	if (!p->ops)
		return 0;
	look_at_terminal(oc, &o);
	rc = p->ops->create(&o, s, &p->encoder, err);
	if (rc || !p->ops->preamble)
		return rc;
	rc = p->ops->preamble(p->encoder, s, &p->text);
	if (rc || p->text.failed)
		return err_set(err, rc ? rc : -ENOMEM, "output %s: %s; free memory", oc->to,
			       strerror(rc ? -rc : ENOMEM));
	rc = p->sink ? sink_set_preamble(p->sink, p->text.data, p->text.len) : 0;
	return rc ? err_set(err, rc, "output %s: out of memory; free memory", oc->to) : 0;
}

/* Formats that begin with what explains them cannot be continued by another run. */
static bool begins_anew(const struct output_config *oc)
{
	return strcmp(oc->format, "snapshot") == 0 || strcmp(oc->format, "vjoule") == 0;
}

static int open_sink(struct output *o, unsigned i, struct loop *loop, struct err *err)
{
	const struct output_config *oc = &o->config;
	struct sink_options so = {
		.queue_bytes = oc->queue_bytes,
		.port_file = oc->port_file,
		.truncate = begins_anew(oc),
		.max_clients = (unsigned)oc->max_clients,
	};
	char url[URL_MAX];

	snprintf(url, sizeof(url), in_directory(oc) ? "%s/%s.csv" : "%s", oc->to, csv_groups[i]);
	output_guests_admit(o->guests, &so);
	return sink_open(url, &so, loop, &o->parts[i].sink, err);
}

static int open_parts(struct output *o, const struct schema *s, struct loop *loop, struct err *err)
{
	bool csv = is_csv(&o->config) && strcmp(o->config.format, "hwpc") == 0;
	int rc = 0;

	for (unsigned i = 0; i < o->n_parts && !rc; i++) {
		rc = o->place ? 0 : open_sink(o, i, loop, err);
		if (!rc)
			rc = open_encoder(&o->parts[i], &o->config, csv ? csv_groups[i] : NULL, s, err);
	}
	return rc;
}

/* The directory of the CSV files, one level: a misspelt path should not become a tree. */
static void make_directory(const struct output_config *oc)
{
	struct sink_url u;
	struct err ignored;

	if (sink_url_scheme(oc->to, &u, &ignored) == 0 && sink_url_rest(oc->to, SINK_URL_PATH, &u, &ignored) == 0)
		mkdir(u.path, 0755); /* what fails here is said by opening the file in it */
}

static bool is_counted(const char *event, const struct config *c)
{
	for (unsigned i = 0; i < c->events_core.n; i++)
		if (strcasecmp(c->events_core.v[i], event) == 0)
			return true;
	return strcasecmp(event, "TASK_CLOCK") == 0;
}

/* A name alone may be of an event that is counted under another name; anything else is a mistake. A
 * recording has events of its own. */
static int check_metrics(const struct output_config *oc, const struct config *c, struct err *err)
{
	for (unsigned i = 0; i < oc->metrics.n && !c->replay; i++) {
		const char *name = oc->metrics.v[i], *is = strchr(name, '=');

		if (is ? is_counted(is + 1, c) : is_counted(name, c) || event_is_cycles(name) || event_is_misses(name))
			continue;
		return err_set(err, -EINVAL, "output %s: metrics: %s is not counted; add it to events.core", oc->to,
			       is ? is + 1 : name);
	}
	return 0;
}

/* What its format cannot say is said here, once. */
static void say_notes(const struct output *o)
{
	for (unsigned i = 0; i < o->n_parts; i++) {
		const struct output_part *p = &o->parts[i];
		const char *note;

		for (unsigned n = 0; p->ops && p->ops->note && (note = p->ops->note(p->encoder, n)); n++)
			log_warn("output %s: %s", o->config.to, note);
	}
}

static int open_at(struct output *o, const struct config *c, const struct schema *s, struct loop *loop, struct err *err)
{
	const struct output_config *oc = &o->config;
	int rc = check_metrics(oc, c, err);

	o->interval_ns = oc->interval_ns ? oc->interval_ns : c->interval_ns;
	if (!rc && page_is(oc))
		return page_open(oc, c, &o->page, err);
	if (!rc && is_zico(oc))
		return o->place ? zico_output_prepare(oc, c, s, &o->zico, err) :
				  zico_output_open(oc, c, s, loop, &o->zico, err);
	o->n_parts = in_directory(oc) || (is_csv(oc) && strcmp(oc->format, "hwpc") == 0) ? OUTPUT_PARTS : 1;
	if (!rc && in_directory(oc))
		make_directory(oc);
	if (!rc && output_guests_are(oc))
		rc = output_guests_open(oc, c, &o->guests, err);
	if (!rc)
		rc = open_parts(o, s, loop, err);
	if (!rc)
		say_notes(o);
	return rc;
}

int output_open(const struct output_config *oc, const struct config *c, const struct schema *s, struct loop *loop,
		struct output **ret, struct err *err)
{
	struct output *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return err_set(err, -ENOMEM, "output %s: out of memory", oc->to);
	o->config = *oc;
	rc = open_at(o, c, s, loop, err);
	if (rc)
		output_close(o);
	else
		*ret = o;
	return rc;
}

int output_open_at(const struct output_config *oc, const struct config *c, const struct schema *s, struct output *place,
		   struct output **ret, struct err *err)
{
	struct output *o;
	int rc;

	if (!is_zico(oc) &&
	    (oc->queue_bytes != place->config.queue_bytes || oc->max_clients != place->config.max_clients))
		return err_set(err, -EBUSY,
			       "output %s: queue and max-clients cannot change while it listens; restart jouled",
			       oc->to);
	o = calloc(1, sizeof(*o));
	if (!o)
		return err_set(err, -ENOMEM, "output %s: out of memory", oc->to);
	o->config = *oc;
	o->place = place;
	place->heir = o;
	rc = open_at(o, c, s, NULL, err);
	if (rc)
		output_close(o);
	else
		*ret = o;
	return rc;
}

/* Listening outputs have one part. Its text is still the preamble: nothing was sent yet. */
void output_move_in(struct output *o)
{
	struct output_part *to = &o->parts[0], *from = &o->place->parts[0];

	if (o->zico)
		return; /* when the other one is closed */
	if (sink_restart(from->sink, to->text.data, to->text.len) != 0)
		log_error("output %s: out of memory: its readers get reports without their header", o->config.to);
	to->sink = from->sink;
	to->said = from->said;
	from->sink = NULL;
	o->place->heir = NULL;
	o->place = NULL;
}

int output_check(const struct output_config *oc, const struct config *c, struct err *err)
{
	int rc = is_zico(oc) ? zico_output_check(oc, err) :
		 page_is(oc) ? page_check(oc, c, err) :
			       sink_check_url(oc->to, err);

	return rc ? rc : check_metrics(oc, c, err);
}

/* Told at 1, 2, 4, 8 ...: a reason that stays must not fill the log. */
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
	if (worth_telling(&p->told.withheld_ticks, st->withheld_ticks))
		log_warn("output %s: %llu reports withheld: %s", o->config.to, (unsigned long long)st->withheld_ticks,
			 st->reason);
	else if (worth_telling(&p->told.withheld_rows, st->withheld_rows))
		log_warn("output %s: %llu rows withheld: %s", o->config.to, (unsigned long long)st->withheld_rows,
			 st->reason);
	if (worth_telling(&p->told.renamed_rows, st->renamed_rows))
		log_warn("output %s: %llu rows renamed: their cgroups' names have bytes that the format cannot carry",
			 o->config.to, (unsigned long long)st->renamed_rows);
	if (worth_telling(&p->told.folded_rows, st->folded_rows))
		log_warn("output %s: %llu rows folded: the format has no room for more", o->config.to,
			 (unsigned long long)st->folded_rows);
}

bool output_wants_gauges(const struct output *o)
{
	return strcmp(o->config.format, "vjoule") == 0 && o->config.dialect && strcmp(o->config.dialect, "v0.2") == 0;
}

static void send_part(struct output *o, struct output_part *p, const struct snapshot *s)
{
	int rc;

	buf_reset(&p->text);
	rc = p->ops->encode(p->encoder, s, &p->text);
	if (rc || p->text.failed)
		log_warn("output %s: a report could not be made: %s", o->config.to, strerror(rc ? -rc : ENOMEM));
	else if (p->text.len)
		sink_submit(p->sink, p->text.data, p->text.len);
	say_encoder(o, p);
}

void output_send(struct output *o, struct snapshot *s)
{
	const struct str_list *globs = &o->config.cgroups;

	if (globs->n && selection_put(&o->selection, s, globs->v, globs->n) != 0) {
		log_warn("output %s: a report could not be made: %s", o->config.to, strerror(ENOMEM));
		return;
	}
	output_guests_send(o->guests, o->parts[0].sink, s);
	for (unsigned i = 0; i < o->n_parts; i++)
		if (o->parts[i].ops)
			send_part(o, &o->parts[i], s);
	if (globs->n)
		selection_take_off(&o->selection, s);
}

void output_trace(struct output *o, const struct trace *t)
{
	if (o->zico)
		zico_output_submit(o->zico, t); /* what it drops it counts and says */
}

uint32_t output_waiting(struct output *o, bool away)
{
	struct sink_stats st;
	uint32_t most = o->zico ? zico_output_waiting(o->zico, away) : 0;

	for (unsigned i = 0; i < o->n_parts; i++) {
		if (!o->parts[i].sink)
			continue; /* another output has it now */
		sink_get_stats(o->parts[i].sink, &st);
		if ((st.up || away) && st.queued > most)
			most = st.queued;
	}
	return most;
}

static void say_state(const struct output *o, struct output_part *p, const struct sink_stats *st)
{
	if (st->up && p->said_away)
		log_warn("output %s: %s", o->config.to, st->state);
	else if (st->up && !p->said.up)
		log_info("output %s: %s", o->config.to, st->state);
	else if (!st->up && *st->state && !p->said_away)
		log_warn("output %s: %s", o->config.to, st->state);
	p->said_away = !st->up && *st->state;
}

void output_say(struct output *o)
{
	struct sink_stats st;

	if (o->zico)
		zico_output_say(o->zico);
	output_guests_say(o->guests);
	for (unsigned i = 0; i < o->n_parts; i++) {
		struct output_part *p = &o->parts[i];

		sink_get_stats(p->sink, &st);
		say_state(o, p, &st);
		if (st.dropped_documents != p->said.dropped_documents)
			log_warn("output %s: %llu documents dropped so far: %s", o->config.to,
				 (unsigned long long)st.dropped_documents,
				 *st.state ? st.state : "the reader is too slow");
		p->said = st;
	}
}

/* plan_drain has waited for them already. */
static void say_undelivered(const struct output *o, struct output_part *p)
{
	struct sink_stats st;

	if (!p->sink)
		return;
	sink_get_stats(p->sink, &st);
	if (st.queued)
		log_warn("output %s: %u documents could not be delivered in time: %s", o->config.to, st.queued,
			 *st.state ? st.state : "the reader is too slow");
}

void output_close(struct output *o)
{
	if (!o)
		return;
	if (o->place)
		o->place->heir = NULL;
	selection_free(&o->selection);
	page_close(o->page);
	zico_output_close(o->zico);
	if (o->zico && o->heir) {
		zico_output_begin(o->heir->zico, &o->heir->config);
		o->heir->place = NULL;
	}
	for (unsigned i = 0; i < o->n_parts; i++) {
		struct output_part *p = &o->parts[i];

		say_undelivered(o, p);
		sink_close(p->sink, CLOSE_NS);
		if (p->ops && p->encoder)
			p->ops->destroy(p->encoder);
		buf_free(&p->text);
	}
	output_guests_close(o->guests);
	free(o);
}
