/* SPDX-License-Identifier: Apache-2.0 */
#include "share.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/text.h"
#include "../model/share.h"

struct encoder {
	struct encoder_stats stats;
	char *guest, *below;       /* the pattern, and that of what is below it; below NULL = guest is a path */
	size_t len;
	bool alive;
	unsigned column[SCHEMA_MAX_DOMAINS];   /* of share.domains in the schema */
	struct share share;
};

static int share_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return err_set(err, -ENOMEM, "format snapshot: out of memory; free some");
	e->share.epoch = o->epoch;
	e->len = strlen(o->guest);
	e->guest = strdup(o->guest);
	if (!e->guest || (!o->guest_literal && strpbrk(o->guest, "*?") && asprintf(&e->below, "%s/**", o->guest) < 0)) {
		free(e->guest);
		free(e);
		return err_set(err, -ENOMEM, "format snapshot: out of memory; free some");
	}
	for (unsigned i = 0; i < s->n_domains; i++) {
		if (!share_domain_named(s->domains[i].name, &e->share.domains[e->share.n]))
			continue;
		e->column[e->share.n++] = i;
	}
	*ret = e;
	return 0;
}

static bool of_guest(const struct encoder *e, const struct snap_row *row)
{
	if (row->kind != ROW_CGROUP)
		return false;
	if (e->below)
		return text_glob(e->guest, row->path) || text_glob(e->below, row->path);
	return strncmp(row->path, e->guest, e->len) == 0 && (row->path[e->len] == '/' || !row->path[e->len]);
}

static void add_row(struct encoder *e, const struct snapshot *s, unsigned row)
{
	for (unsigned i = 0; i < e->share.n; i++) {
		uint64_t uj = *snapshot_energy(s, row, e->column[i]);

		e->share.domains[i].uj += uj;
		if (uj)
			e->share.domains[i].quality |= snapshot_energy_quality(s, row, e->column[i]);
	}
}

static int share_encode(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	e->alive = false;
	for (unsigned i = 0; i < e->share.n; i++)
		e->share.domains[i].quality = s->domains[e->column[i]].quality | s->domains[e->column[i]].share_quality;
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++) {
		if (!of_guest(e, &s->rows[i]))
			continue;
		e->alive = true;
		add_row(e, s, i);
	}
	if (!e->alive) {
		e->stats.withheld_ticks++;
		snprintf(e->stats.reason, sizeof(e->stats.reason), "no cgroup %.150s; the guest is told nothing", e->guest);
		return 0;
	}
	e->share.number++;
	e->share.interval_ns = s->nominal_ns ? s->nominal_ns : s->end_ns - s->start_ns;
	share_write(&e->share, out);
	return out->failed ? -ENOMEM : 0;
}

bool share_alive(const struct encoder *e)
{
	return e->alive;
}

static const struct encoder_stats *share_stats(const struct encoder *e)
{
	return &e->stats;
}

static void share_destroy(struct encoder *e)
{
	free(e->guest);
	free(e->below);
	free(e);
}

const struct encoder_ops encode_share = {
	.name = "share",
	.help = "a virtual machine's own totals",
	.create = share_create,
	.encode = share_encode,
	.stats = share_stats,
	.destroy = share_destroy,
};
