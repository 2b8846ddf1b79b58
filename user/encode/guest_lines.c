/* SPDX-License-Identifier: Apache-2.0 */
#include "guest_lines.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "model/cgroup.h"
#include "model/guest_share.h"

struct encoder {
	struct encoder_stats stats;
	char *guest, *below; /* pattern, and pattern of all below it; below NULL = guest is a path */
	bool alive;
	bool gap; /* some of its use was withheld */
	/* With a pattern: the path it matches, which is the machine; now and in the line before; "" = none. */
	char root[CGROUP_PATH_MAX], before[CGROUP_PATH_MAX];
	unsigned column[SCHEMA_MAX_DOMAINS]; /* index in the schema of each of share.domains */
	struct share share;
};

static int share_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return err_set(err, -ENOMEM, "format snapshot: out of memory; free some");
	e->share.epoch = o->epoch;
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

static bool is_in(const char *path, const char *tree)
{
	size_t len = strlen(tree);

	return len && strncmp(path, tree, len) == 0 && (path[len] == '/' || !path[len]);
}

static bool of_guest(const struct encoder *e, const struct snap_row *row)
{
	if (row->kind != ROW_CGROUP)
		return false;
	return e->below ? is_in(row->path, e->root) || is_in(row->path, e->before) : is_in(row->path, e->guest);
}

/* Finds the machine of a path: the shortest of the path and its parents that the pattern matches. */
static bool find_root(const struct encoder *e, const char *path, char ret_root[CGROUP_PATH_MAX])
{
	size_t len = strlen(path);

	if (len >= CGROUP_PATH_MAX || (!text_glob(e->guest, path) && !text_glob(e->below, path)))
		return false;
	for (size_t n = 1; n <= len; n++) {
		if (path[n] && path[n] != '/')
			continue;
		memcpy(ret_root, path, n);
		ret_root[n] = '\0';
		if (text_glob(e->guest, ret_root))
			return true;
	}
	return false;
}

/* Chooses the machine of the pattern in this snapshot: the one that is alive. Ended cgroups of the machine of
 * the last line count too, because that is the same machine before its restart. False: two machines are alive,
 * and it is unknown which one is the guest's. */
static bool choose_root(struct encoder *e, const struct snapshot *s)
{
	char root[CGROUP_PATH_MAX];

	memcpy(e->before, e->root, sizeof(e->before));
	e->root[0] = '\0';
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++) {
		const struct snap_row *row = &s->rows[i];

		if (row->kind != ROW_CGROUP || row->ended || is_in(row->path, e->root) ||
		    !find_root(e, row->path, root))
			continue;
		if (*e->root)
			return false;
		memcpy(e->root, root, sizeof(e->root));
	}
	if (!*e->root)
		memcpy(e->root, e->before, sizeof(e->root));
	return true;
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

static int withhold(struct encoder *e, const char *before, const char *behind)
{
	e->stats.withheld_ticks++;
	snprintf(e->stats.reason, sizeof(e->stats.reason), "%s %.120s%s; the guest is told nothing", before, e->guest,
		 behind);
	return 0;
}

static void add_rows(struct encoder *e, const struct snapshot *s)
{
	for (unsigned i = 0; i < e->share.n; i++)
		e->share.domains[i].quality = s->domains[e->column[i]].quality |
					      s->domains[e->column[i]].share_quality | (e->gap ? QUALITY_PARTIAL : 0);
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++) {
		if (!of_guest(e, &s->rows[i]))
			continue;
		e->alive = true;
		add_row(e, s, i);
	}
}

static int share_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	e->alive = false;
	if (e->below && !choose_root(e, s)) {
		e->root[0] = '\0';
		e->gap = true;
		return withhold(e, "pattern", " is of two machines");
	}
	add_rows(e, s);
	if (!e->alive)
		return withhold(e, "no cgroup", "");
	e->gap = false;
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
	.create = share_create,
	.encode = share_encode,
	.stats = share_stats,
	.destroy = share_destroy,
};
