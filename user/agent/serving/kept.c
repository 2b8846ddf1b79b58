/* SPDX-License-Identifier: Apache-2.0 */
/* The history's place in the agent: opened with the socket, whose totals go on from it and whose
 * snapshots it keeps. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../base/log.h"
#include "../encode/totals_keep.h"
#include "serving_internal.h"

static int take_totals(void *arg, const void *data, size_t size)
{
	return totals_load(arg, data, size);
}

/* The totals of an earlier agent on this boot, or new ones: a text that cannot be read changes nothing. */
static int resume(struct serving *sv, const struct schema *s, const struct totals_options *o)
{
	int rc = history_load(sv->history, take_totals, sv->totals);

	if (!rc)
		rc = sv->totals->adds ? totals_loaded(sv->totals) : 0;
	if (!rc)
		return 0;
	if (rc == -ESTALE)
		log_warn("history: events, energy domains or this program have changed: totals begin anew");
	else
		log_warn("history: the totals of before cannot be used (%s): they begin anew", strerrordesc_np(-rc));
	totals_free(sv->totals);
	free(sv->totals);
	sv->totals = totals_new(s, o);
	return sv->totals ? 0 : -ENOMEM;
}

/* One level, as for the socket: a misspelt path should not become a tree. */
static void make_directory(const char *path)
{
	char dir[4096];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = '\0';
		mkdir(dir, 0700); /* what fails here is said by opening the file in it */
	}
}

static void kept(void *arg, uint64_t seq)
{
	struct serving *sv = arg;

	serve_totals_kept(sv->serve, seq);
}

int serving_history_open(struct serving *sv, const struct schema *s, const struct config *c,
			 const struct totals_options *to)
{
	struct history_options o = { .path = c->history,
				     .keep_ns = c->history_keep_ns,
				     .size = c->history_size,
				     .schema = s,
				     .kept = kept,
				     .arg = sv };
	struct err note = { 0 }, err = { 0 };
	int rc;

	if (!c->history) {
		snprintf(sv->no_history, sizeof(sv->no_history),
			 "this agent keeps none; write history: { path: FILE }");
		return 0;
	}
	make_directory(c->history);
	rc = history_open(&o, &sv->history, &note, &err);
	if (note.text[0])
		log_warn("%s", note.text);
	if (!rc)
		return resume(sv, s, to);
	/* measuring goes on whatever the disk does */
	log_warn("%s; nothing is kept until then", err.text);
	snprintf(sv->no_history, sizeof(sv->no_history), "%.200s", err.text);
	return 0;
}

int serving_history_start(struct serving *sv, struct err *err)
{
	return sv->history ? history_start(sv->history, err) : 0;
}

/* Main thread: what the disk does is said when it changes. */
void serving_history_say(struct serving *sv)
{
	struct history_figures f;

	if (!sv->history)
		return;
	history_figures(sv->history, &f);
	if (strcmp(f.state, sv->history_state) == 0)
		return;
	if (strcmp(f.state, "ok") != 0)
		log_warn("history %s: %s; points are lost until it is mended", f.path, f.reason);
	else if (sv->history_state[0])
		log_warn("history %s: works again%s%s", f.path, f.reason[0] ? ": " : "", f.reason);
	snprintf(sv->history_state, sizeof(sv->history_state), "%s", f.state);
}

static void save(void *arg, bool all, struct buf *out)
{
	struct serving *sv = arg;

	totals_save(sv->totals, all ? 0 : sv->saved, out);
}

uint64_t serving_history_put(struct serving *sv, const struct snapshot *s)
{
	uint64_t seq;

	if (!sv->history)
		return 0;
	seq = history_put(sv->history, s, save, sv);
	if (seq)
		sv->saved = sv->totals->adds;
	return seq;
}
