/* SPDX-License-Identifier: Apache-2.0 */
/* A text is: version, fingerprint of the columns, flags, machine, then rows. A row is its place and state and,
 * if used, its name, the names people use for it, times and values (docs/formats/history.md). With a view, the text is:
 * KEEP_VIEWED, length of the totals' own text (u32 as it lies in memory), that text, the text of the view. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/format/varint.h"
#include "base/hash.h"
#include "encode/target.h"
#include "totals.h"
#include "keep.h"

#define KEEP_VERSION 4
#define KEEP_NO_BLOCK \
	3 /* the version before it: without the columns of block devices, and without the rows of causes */
#define KEEP_VIEWED 64 /* in place of the version */
#define PLACES_MAX (1u << 20)

enum { ROW_USED = 1, ROW_NAMED = 2, ROW_ENDED = 4, ROW_SHOWN = 8 };

static uint64_t mix(uint64_t h, const char *s)
{
	return hash_fnv(hash_fnv(h, s, strlen(s)), "/", 1);
}

/* Identifies the columns: values carry no names and are told apart by their order only. */
static uint64_t fingerprint(const struct totals *t)
{
	const uint32_t by[2] = { t->options.by.kind, t->options.by.depth };
	uint64_t h = HASH_FNV;

	for (unsigned d = 0; d < t->schema->n_domains; d++)
		h = mix(h, t->schema->domains[d].name);
	h = mix(h, "");
	for (unsigned i = 0; i < t->schema->core.n; i++)
		h = mix(h, t->schema->core.ev[i].name);
	h = mix(h, "");
	for (unsigned i = 0; i < t->schema->msr.n; i++)
		h = mix(h, t->schema->msr.ev[i].name);
	h = mix(h, t->options.top ? "top" : "all");
	return t->options.by.kind ? hash_fnv(h, &by, sizeof(by)) : h;
}

static void save_machine(const struct totals *t, struct buf *out)
{
	varint_add(out, t->start_ns);
	varint_add(out, t->mono_ns);
	varint_add(out, (uint64_t)t->real_ns);
	for (unsigned d = 0; d < t->schema->n_domains; d++) {
		const struct total_domain *dom = &t->domains[d];

		varint_add(out, dom->energy_uj);
		varint_add(out, dom->idle_uj);
		varint_add(out, dom->residual_uj);
		varint_add(out, dom->quality);
		for (unsigned q = 0; q < TOTALS_QUALITIES; q++)
			varint_add(out, dom->intervals[q]);
	}
	varint_add(out, t->busy_ns);
	varint_add(out, t->idle_ns);
	varint_add(out, t->irq_steal_ns);
	varint_add(out, t->offline_ns);
	for (unsigned i = 0; i < t->schema->msr.n; i++)
		varint_add(out, t->msr[i]);
	varint_add(out, t->losses.folded);
	varint_add(out, t->losses.lost_reads);
	varint_add(out, t->losses.lost_events);
	varint_add(out, t->losses.missed_switches);
	for (unsigned i = 0; i < totals_width(t); i++)
		varint_add(out, t->retired[i]);
}

static void save_names(const struct names *n, struct buf *out)
{
	unsigned mask = 0;

	for (enum name_field f = 0; f < NAME_FIELDS; f++)
		mask |= *names_text(n, f) ? 1u << f : 0;
	varint_add(out, mask);
	for (enum name_field f = 0; f < NAME_FIELDS; f++) {
		size_t len = strlen(names_text(n, f));

		if (!len)
			continue;
		varint_add(out, len);
		buf_add(out, names_text(n, f), len);
	}
}

static void save_row(const struct totals *t, uint32_t row, uint32_t since, struct buf *out)
{
	const struct total_row *r = &t->rows[row];
	bool named = r->used && row >= TOTAL_FIRST_CGROUP && (!since || r->named > since);
	size_t len = named ? strlen(r->name) : 0;

	varint_add(out, row);
	varint_add(out, (r->used ? ROW_USED : 0) | (named ? ROW_NAMED : 0) | (r->ended ? ROW_ENDED : 0) |
				(r->shown ? ROW_SHOWN : 0));
	if (!r->used)
		return;
	if (named) {
		varint_add(out, len);
		buf_add(out, r->name, len);
		varint_add(out, r->level);
		varint_add(out, r->first_ns);
		save_names(r->names, out);
	}
	varint_add(out, r->id);
	varint_add(out, r->quality);
	varint_add(out, r->ever);
	if (r->ended)
		varint_add(out, r->ended_ns);
	for (unsigned i = 0; i < totals_width(t); i++)
		varint_add(out, totals_row(t, row)[i]);
	for (unsigned i = 0; t->hidden && i < totals_width(t); i++)
		varint_add(out, t->hidden[(size_t)row * totals_width(t) + i]);
}

static void save_text(const struct totals *t, uint32_t since, struct buf *out)
{
	varint_add(out, KEEP_VERSION);
	varint_add(out, fingerprint(t));
	varint_add(out, since);
	varint_add(out, t->adds);
	save_machine(t, out);
	for (uint32_t i = 0; i < t->n_rows; i++)
		if (since ? t->rows[i].changed > since : t->rows[i].used)
			save_row(t, i, since, out);
}

/* The view counts its own intervals: it may have begun anew where the totals went on. */
void totals_save(const struct totals *t, uint32_t since, struct buf *out)
{
	uint32_t len = 0;
	size_t at;

	if (!t->view) {
		save_text(t, since, out);
		return;
	}
	varint_add(out, KEEP_VIEWED);
	at = out->len;
	buf_add(out, &len, sizeof(len));
	save_text(t, since, out);
	len = (uint32_t)(out->len - at - sizeof(len));
	if (!out->failed)
		memcpy(out->data + at, &len, sizeof(len));
	save_text(t->view, since ? since - (t->adds - t->view->adds) : 0, out);
}

/* Takes the columns of a row. An older text has none of block devices: they begin at 0. */
static void load_columns(const struct totals *t, uint64_t *v, struct varint_reader *in, uint64_t version)
{
	for (unsigned i = 0; i < totals_width(t); i++) {
		bool missing = version == KEEP_NO_BLOCK && i >= totals_column(t, TOTAL_BLOCK) &&
			       i < totals_column(t, TOTAL_FIXED);

		v[i] = missing ? 0 : varint_take(in);
	}
}

static void load_machine(struct totals *t, struct varint_reader *in, uint64_t version)
{
	t->start_ns = varint_take(in);
	t->mono_ns = varint_take(in);
	t->real_ns = (int64_t)varint_take(in);
	for (unsigned d = 0; d < t->schema->n_domains; d++) {
		struct total_domain *dom = &t->domains[d];

		dom->energy_uj = varint_take(in);
		dom->idle_uj = varint_take(in);
		dom->residual_uj = varint_take(in);
		dom->quality = (unsigned)varint_take(in);
		for (unsigned q = 0; q < TOTALS_QUALITIES; q++)
			dom->intervals[q] = varint_take(in);
	}
	t->busy_ns = varint_take(in);
	t->idle_ns = varint_take(in);
	t->irq_steal_ns = varint_take(in);
	t->offline_ns = varint_take(in);
	for (unsigned i = 0; i < t->schema->msr.n; i++)
		t->msr[i] = varint_take(in);
	t->losses.folded = varint_take(in);
	t->losses.lost_reads = varint_take(in);
	t->losses.lost_events = varint_take(in);
	t->losses.missed_switches = varint_take(in);
	load_columns(t, t->retired, in, version);
}

static int load_names(struct totals *t, struct total_row *r, struct varint_reader *in)
{
	char text[NAME_FIELDS][NAMING_TEXT_MAX + 1];
	struct names_draft d = { 0 };
	uint64_t mask = varint_take(in);
	struct names *n = NULL;

	if (mask >> NAME_FIELDS)
		return -EBADMSG;
	for (enum name_field f = 0; f < NAME_FIELDS; f++) {
		uint64_t len = mask >> f & 1 ? varint_take(in) : 0;
		const uint8_t *bytes = len && len <= NAMING_TEXT_MAX ? varint_bytes(in, len) : NULL;

		if (mask >> f & 1 && !bytes)
			return -EBADMSG;
		if (!bytes)
			continue;
		memcpy(text[f], bytes, len);
		text[f][len] = '\0';
		d.field[f] = text[f];
	}
	if (mask && !t->options.no_names && !(n = names_new(&d)))
		return -ENOMEM;
	names_put(r->names);
	r->names = n;
	r->recalled = n;
	return 0;
}

static int load_name(struct totals *t, uint32_t row, struct varint_reader *in)
{
	struct total_row *r = &t->rows[row];
	uint64_t len = varint_take(in);
	const uint8_t *text = len && len < TARGET_NAME_MAX ? varint_bytes(in, len) : NULL;
	char *name;

	if (!text || row < TOTAL_FIRST_CGROUP || memchr(text, 0, len))
		return -EBADMSG;
	name = strndup((const char *)text, len);
	if (!name)
		return -ENOMEM;
	free((char *)r->name);
	r->name = name;
	r->used = true;
	r->level = (uint16_t)varint_take(in);
	r->first_ns = varint_take(in);
	return load_names(t, r, in);
}

static void load_values(struct totals *t, uint32_t row, struct varint_reader *in, uint64_t version)
{
	struct total_row *r = &t->rows[row];

	r->id = varint_take(in);
	r->quality = r->energy_quality = (unsigned)varint_take(in);
	for (unsigned d = 0; d < t->schema->n_domains; d++)
		r->energy_quality |= t->domains[d].quality;
	r->ever = (unsigned)varint_take(in);
	r->ended_ns = r->ended ? varint_take(in) : 0;
	load_columns(t, totals_row(t, row), in, version);
	if (t->hidden)
		load_columns(t, &t->hidden[(size_t)row * totals_width(t)], in, version);
}

static int load_row(struct totals *t, struct varint_reader *in, uint64_t version)
{
	uint64_t row = varint_take(in), flags = varint_take(in);
	struct total_row *r;
	int rc = 0;

	if (version == KEEP_NO_BLOCK && row > TOTAL_UNSELECTED)
		row += TOTAL_FIRST_CGROUP - TOTAL_UNSELECTED - 1;
	if (in->bad || row >= PLACES_MAX || (row < TOTAL_FIRST_CGROUP && !(flags & ROW_USED)))
		return -EBADMSG;
	while (t->n_rows <= row)
		if ((rc = totals_empty_place(t)) != 0)
			return rc;
	r = &t->rows[row];
	if (!(flags & ROW_USED)) {
		free((char *)r->name);
		names_put(r->names);
		*r = (struct total_row){ 0 };
		return 0;
	}
	if (flags & ROW_NAMED)
		rc = load_name(t, (uint32_t)row, in);
	else if (row >= TOTAL_FIRST_CGROUP && !r->used)
		rc = -EBADMSG;
	if (rc)
		return rc;
	r->used = true;
	r->ended = flags & ROW_ENDED && row >= TOTAL_FIRST_CGROUP;
	r->shown = flags & ROW_SHOWN || row <= TOTAL_UNSELECTED;
	load_values(t, (uint32_t)row, in, version);
	return in->bad ? -EBADMSG : 0;
}

static int load_text(struct totals *t, const void *data, size_t size)
{
	struct varint_reader in = { .at = data, .end = data ? (const uint8_t *)data + size : NULL };
	uint64_t version = varint_take(&in), print = varint_take(&in), since = varint_take(&in),
		 adds = varint_take(&in);
	int rc = 0;

	if ((version != KEEP_VERSION && version != KEEP_NO_BLOCK) || print != fingerprint(t))
		return in.bad && in.at == in.end && !size ? -EBADMSG : -ESTALE;
	if (in.bad || adds > UINT32_MAX || !adds)
		return -EBADMSG;
	if (since && since > t->adds)
		return -ENODATA;
	t->adds = (uint32_t)adds;
	load_machine(t, &in, version);
	while (!in.bad && in.at < in.end && !rc)
		rc = load_row(t, &in, version);
	return rc ? rc : in.bad ? -EBADMSG : 0;
}

/* A view whose text is missing, of another grouping or broken begins anew. */
static int load_view(struct totals *t, const void *data, size_t size)
{
	const struct totals_options o = t->view->options;
	int rc = load_text(t->view, data, size);

	if (rc == -EBADMSG || (rc == -ESTALE && t->view->adds))
		return totals_view(t, &o);
	return rc == -ENOMEM ? rc : 0;
}

int totals_load(struct totals *t, const void *data, size_t size)
{
	struct varint_reader in = { .at = data, .end = data ? (const uint8_t *)data + size : NULL };
	const uint8_t *own;
	uint32_t len = 0;
	int rc;

	if (!size || varint_take(&in) != KEEP_VIEWED) {
		rc = load_text(t, data, size);
		return rc || !t->view ? rc : load_view(t, NULL, 0);
	}
	own = varint_bytes(&in, sizeof(len));
	if (own)
		memcpy(&len, own, sizeof(len));
	own = own ? varint_bytes(&in, len) : NULL;
	if (!own)
		return -EBADMSG;
	rc = load_text(t, own, len);
	return rc || !t->view ? rc : load_view(t, in.at, (size_t)(in.end - in.at));
}

int totals_loaded(struct totals *t)
{
	int rc = totals_relink(t);

	if (rc || !t->view || !t->view->adds)
		return rc;
	rc = totals_loaded(t->view);
	if (rc == -EBADMSG) {
		const struct totals_options o = t->view->options;

		rc = totals_view(t, &o);
	}
	return rc;
}

/* Keeps the groups of cgroups that live. */
static void groups_still(struct totals *t, const struct cgroup_table *table)
{
	const struct cgroup *c;

	for (unsigned at = 0; t->n_waits && (c = cgroup_next(table, &at));) {
		int64_t row = c->ended || !c->selected ? -ENOENT : totals_group(t, c->path, c->names);

		if (row >= 0)
			t->rows[row].seen = t->adds + 1;
	}
}

void totals_still(struct totals *t, const struct cgroup_table *table)
{
	if (t->view)
		totals_still(t->view, table);
	if (t->options.by.kind) {
		groups_still(t, table);
		return;
	}
	for (uint32_t i = TOTAL_FIRST_CGROUP; t->n_waits && i < t->n_rows; i++) {
		struct total_row *r = &t->rows[i];
		const struct cgroup *c = r->waits ? cgroup_find(table, r->id) : NULL;

		if (!c || c->ended || !c->selected)
			continue;
		r->seen = t->adds + 1;
		totals_call(t, i, c->names, r->seen);
	}
}
