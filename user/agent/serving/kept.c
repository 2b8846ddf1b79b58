/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/log.h"
#include "encode/totals/keep.h"
#include "kept.h"

static int take_totals(void *arg, const void *data, size_t size)
{
	return totals_load(arg, data, size);
}

static int begin(struct kept *k, const struct schema *s, const struct kept_totals *o)
{
	totals_free(k->totals);
	free(k->totals);
	k->totals = totals_new(s, &o->own);
	if (!k->totals)
		return -ENOMEM;
	return o->view.by.kind ? totals_view(k->totals, &o->view) : 0;
}

/* Restores the totals of an earlier agent on this boot. When the text cannot be used, the totals start again. */
static int resume(struct kept *k, const struct schema *s, const struct kept_totals *o)
{
	int rc = history_load(k->history, take_totals, k->totals);

	if (!rc)
		rc = k->totals->adds ? totals_loaded(k->totals) : 0;
	if (!rc && k->totals->view && k->totals->adds && !k->totals->view->adds)
		log_warn("history: it has no totals of these groups (metrics.by): their counters begin anew");
	if (!rc)
		return 0;
	if (rc == -ESTALE)
		log_warn("history: events, energy domains or this program have changed: totals begin anew");
	else
		log_warn("history: the totals of before cannot be used (%s): they begin anew", strerrordesc_np(-rc));
	return begin(k, s, o);
}

/* Makes one level only, as for the socket: a misspelt path should not become a tree. */
static void make_directory(const char *path)
{
	char dir[4096];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = '\0';
		mkdir(dir, 0700); /* failures show when the file is opened */
	}
}

int kept_open(struct kept *k, const struct schema *s, const struct history_config *c, const struct kept_totals *to)
{
	struct history_options o = {
		.path = c->path, .keep_ns = c->keep_ns, .size = c->size, .schema = s, .kept = k->stored, .arg = k->arg
	};
	struct err note = { 0 }, err = { 0 };
	int rc;

	rc = begin(k, s, to);
	if (rc)
		return rc;
	if (!c->path) {
		snprintf(k->no_history, sizeof(k->no_history), "this agent keeps none; write history: { path: FILE }");
		return 0;
	}
	make_directory(c->path);
	rc = history_open(&o, &k->history, &note, &err);
	if (note.text[0])
		log_warn("%s", note.text);
	if (!rc)
		return resume(k, s, to);
	/* measuring goes on without the disk */
	log_warn("%s; nothing is kept until then", err.text);
	snprintf(k->no_history, sizeof(k->no_history), "%.200s", err.text);
	return 0;
}

int kept_start(struct kept *k, struct err *err)
{
	return k->history ? history_start(k->history, err) : 0;
}

void kept_say(struct kept *k)
{
	struct history_figures f;

	if (!k->history)
		return;
	history_figures(k->history, &f);
	if (strcmp(f.state, k->state) == 0)
		return;
	if (strcmp(f.state, "ok") != 0)
		log_warn("history %s: points are lost: %s", f.path, f.reason);
	else if (k->state[0])
		log_warn("history %s: works again%s%s", f.path, f.reason[0] ? ": " : "", f.reason);
	snprintf(k->state, sizeof(k->state), "%s", f.state);
}

uint64_t kept_stop(struct kept *k)
{
	struct history_figures f;
	uint64_t lost;

	if (!k->history)
		return 0;
	history_stop(k->history);
	history_figures(k->history, &f);
	lost = f.lost_intervals + f.queued;
	if (lost)
		log_error("history %s: %llu of %llu intervals lost: %s", f.path, (unsigned long long)lost,
			  (unsigned long long)(f.written + lost),
			  *f.reason ? f.reason : "the disk was too slow; write elsewhere (history: { path: FILE })");
	return lost;
}

static void save(void *arg, bool all, struct buf *out)
{
	struct kept *k = arg;

	totals_save(k->totals, all ? 0 : k->saved, out);
}

uint64_t kept_put(struct kept *k, const struct snapshot *s)
{
	uint64_t seq;

	if (!k->history)
		return 0;
	seq = history_put(k->history, s, save, k);
	if (seq)
		k->saved = k->totals->adds;
	return seq;
}

void kept_close(struct kept *k)
{
	history_close(k->history);
	totals_free(k->totals);
	free(k->totals);
}
