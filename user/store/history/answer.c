/* SPDX-License-Identifier: Apache-2.0 */
/* Turns points into series: their names, the series that are shown, and the points of one step. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "model/job_path.h"
#include "answer.h"

#define IDS_MAX (1u << 19)

/* A cgroup has ended when its last second is among those that are told, so what is told as ended never changes. Where
 * seconds are no longer kept: when it had ended by the end of the time asked for. */
static int look_names(struct history_look *l)
{
	int rc = sqlite3_prepare_v2(l->h->reader,
				    "SELECT CAST(path AS TEXT), ended > 0, ended > ?2 FROM series WHERE id=?1", -1,
				    &l->path, NULL);
	char last[96];

	snprintf(last, sizeof(last), "SELECT max(slot) + 1 FROM points_1s WHERE slot < %lld",
		 (long long)l->q->until_ns);
	l->a->told_ns = db_number(l->h->reader, last, 0);
	l->a->told_ns = l->a->told_ns ? l->a->told_ns : l->q->until_ns;
	return rc == SQLITE_OK ? sqlite3_bind_int64(l->path, 2, l->a->told_ns) : rc;
}

static void look_free(struct history_look *l)
{
	for (unsigned i = 0; i < l->n_names; i++)
		free(l->names[i].path);
	sqlite3_finalize(l->path);
	free(l->names);
	hash_free(&l->by_path);
	hash_free(&l->by_id);
	free(l->touched);
	free(l->energy_uj);
}

/* Returns the number of a name, which it adds if new; -ENOMEM. */
static int64_t add_name(struct history_look *l, const char *path, const char *row, struct look_end end)
{
	const uint64_t hash = hash_text(path);
	char *copy;

	for (struct hash_walk w = hash_walk(&l->by_path, hash); hash_step(&w);)
		if (l->names[w.at].row == row && strcmp(l->names[w.at].path, path) == 0) {
			l->names[w.at].end.ended &= end.ended;
			l->names[w.at].end.ending |= end.ending;
			return w.at;
		}
	if (ARRAY_ROOM(l->names, l->cap_names, l->n_names + 1) || hash_reserve(&l->by_path, l->n_names + 1))
		return -ENOMEM;
	if (!(copy = strdup(path)))
		return -ENOMEM;
	l->names[l->n_names] = (struct look_name){ .path = copy, .row = row, .end = end, .series = LOOK_NONE };
	hash_add(&l->by_path, hash, l->n_names);
	return l->n_names++;
}

/* Finds the name of the step that a cgroup is of. */
static int64_t find_step(struct history_look *l, const char *path, struct look_end end)
{
	char name[JOB_NAME_MAX];
	struct job_path job;

	if (!job_path_parse(path, &job) || strcmp(job.id, l->q->job) != 0)
		return LOOK_NONE;
	job_path_name(&job, name);
	return add_name(l, name, "job", end);
}

static bool is_asked(const struct history_look *l, const char *path)
{
	return !l->q->cgroup || strcmp(path, l->q->cgroup) == 0;
}

/* Finds the name of a stored series: special rows have fixed names, cgroups their path. */
static int64_t find_name(struct history_look *l, uint64_t id)
{
	static const char *const special[] = { [ROW_IDLE] = "idle",
					       [ROW_KERNEL] = "kernel",
					       [ROW_IRQ_STEAL] = "irq+steal",
					       [ROW_OTHER] = "other",
					       [SERIES_IDLE_POWER] = "idle-power",
					       [SERIES_RESIDUAL] = "residual",
					       [SERIES_CAUSES] = "supply",
					       [SERIES_CAUSES + 1] = "fans",
					       [SERIES_CAUSES + 2] = "disk",
					       [SERIES_CAUSES + 3] = "network" };
	const bool all = !l->q->cgroup && !l->q->job;
	const struct look_end lives = { false, false };
	int64_t name = LOOK_NONE;

	if (id < SERIES_FIXED)
		return all ? add_name(l, special[id], special[id], lives) : (int64_t)LOOK_NONE;
	sqlite3_bind_int64(l->path, 1, (int64_t)id);
	if (sqlite3_step(l->path) == SQLITE_ROW) {
		const char *path = (const char *)sqlite3_column_text(l->path, 0);
		const bool ending = sqlite3_column_int(l->path, 2);
		const struct look_end end = { sqlite3_column_int(l->path, 1) && !ending, ending };

		if (path && l->q->rules && !selection_admits(l->q->rules, path))
			name = all ? add_name(l, special[ROW_OTHER], special[ROW_OTHER], lives) : (int64_t)LOOK_NONE;
		else if (path && l->q->job)
			name = find_step(l, path, end);
		else if (path && is_asked(l, path))
			name = add_name(l, path, "cgroup", end);
	} else if (all) {
		name = add_name(l, special[ROW_OTHER], special[ROW_OTHER], lives); /* it was swept; its sum counts on */
	}
	sqlite3_reset(l->path);
	return name;
}

static int64_t name_of(struct history_look *l, uint64_t id)
{
	uint32_t known = hash_find(&l->by_id, id);
	int64_t name;

	if (known != HASH_NONE)
		return known;
	if (l->by_id.n == IDS_MAX)
		return -E2BIG;
	if (hash_reserve(&l->by_id, (size_t)l->by_id.n + 1) != 0)
		return -ENOMEM;
	name = find_name(l, id);
	if (name >= 0)
		hash_add(&l->by_id, id, (uint32_t)name);
	return name;
}

/* Returns the answer's column of a domain, which it adds if new; -E2BIG. */
static int column_of(struct history_answer *a, const char *name, size_t len)
{
	if (len >= sizeof(a->domains[0]))
		return -EBADMSG;
	for (unsigned i = 0; i < a->n_domains; i++)
		if (strlen(a->domains[i]) == len && memcmp(a->domains[i], name, len) == 0)
			return (int)i;
	if (a->n_domains == SCHEMA_MAX_DOMAINS)
		return -E2BIG;
	memcpy(a->domains[a->n_domains], name, len);
	a->domains[a->n_domains][len] = '\0';
	return (int)a->n_domains++;
}

static int add_set(struct history_look *l, struct look_set *set, const char *names)
{
	const char *list[SCHEMA_MAX_DOMAINS];

	while (*names) {
		size_t len = strcspn(names, ",");
		int to = column_of(l->a, names, len);

		if (to < 0)
			return to;
		if (set->n == SCHEMA_MAX_DOMAINS)
			return -EBADMSG;
		set->to[set->n++] = (unsigned)to;
		names += len + (names[len] == ',');
	}
	for (unsigned d = 0; d < set->n; d++)
		list[d] = l->a->domains[set->to[d]];
	domain_names_summed(list, set->n, set->summed);
	return 0;
}

static int use_set(struct history_look *l, int64_t id)
{
	struct look_set *set = &l->sets[l->n_sets];
	sqlite3_stmt *q = NULL;
	int rc;

	for (unsigned i = 0; i < l->n_sets; i++)
		if (l->sets[i].id == id) {
			l->set = &l->sets[i];
			return 0;
		}
	if (l->n_sets == LOOK_SETS)
		return -E2BIG;
	rc = db_prepare(l->h->reader, &q, "SELECT names FROM domains WHERE id=%lld", (long long)id);
	if (rc == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW && sqlite3_column_text(q, 0)) {
		*set = (struct look_set){ .id = id };
		rc = add_set(l, set, (const char *)sqlite3_column_text(q, 0));
		l->n_sets++;
		l->set = set;
	} else if (rc == SQLITE_OK) {
		rc = -EBADMSG;
	}
	sqlite3_finalize(q);
	return rc;
}

/* The energy by which rows are ranked. */
static uint64_t weight(const struct history_look *l, const struct point_row *r)
{
	uint64_t sum = 0;

	for (unsigned d = 0; d < l->set->n; d++)
		sum += l->set->summed[d] ? r->energy_uj[d] : 0;
	return sum;
}

static int sum_row(void *arg, const struct point_row *r)
{
	struct history_look *l = arg;
	int64_t name = name_of(l, r->series);

	if (name < 0)
		return (int)name;
	if (++l->rows > HISTORY_LOOK_ROWS_MAX)
		return -E2BIG;
	if (name != LOOK_NONE)
		l->names[name].sum += weight(l, r);
	return 0;
}

/* The first pass sums the energy of each name. */
static int look_sum(struct history_look *l, const struct stored *s)
{
	int rc = use_set(l, s->domains);

	return rc ? rc : point_read(s->data, s->size, l->set->n, sum_row, l);
}

static int by_sum(const void *a, const void *b, void *names)
{
	const struct look_name *x = &((const struct look_name *)names)[*(const uint32_t *)a];
	const struct look_name *y = &((const struct look_name *)names)[*(const uint32_t *)b];

	if (x->sum != y->sum)
		return x->sum < y->sum ? 1 : -1;
	return strcmp(x->path, y->path);
}

static int show(struct history_look *l, uint32_t name)
{
	struct history_answer *a = l->a;
	struct look_name *n = &l->names[name];

	n->series = a->n_series;
	a->series[a->n_series] = (struct history_series){
		.cgroup = strdup(n->path), .row = n->row, .ended = n->end.ended, .ending = n->end.ending
	};
	return a->series[a->n_series++].cgroup ? 0 : -ENOMEM;
}

static int look_choose(struct history_look *l)
{
	uint32_t *order;
	uint64_t shown = 0;
	int rc = 0;

	if (!l->q->cgroup && !l->q->job && l->n_names && name_of(l, ROW_OTHER) < 0)
		return -ENOMEM;
	order = calloc(l->n_names + 1, sizeof(*order));
	l->touched = calloc(l->n_names + 1, sizeof(*l->touched));
	l->a->series = calloc(l->n_names + 1, sizeof(*l->a->series));
	if (!order || !l->touched || !l->a->series) {
		free(order);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < l->n_names; i++)
		order[i] = i;
	qsort_r(order, l->n_names, sizeof(*order), by_sum, l->names);
	for (unsigned i = 0; i < l->n_names && !rc; i++) {
		if (l->q->cgroup || strcmp(l->names[order[i]].row, "cgroup") != 0 || shown++ < l->q->limit)
			rc = show(l, order[i]);
		else
			l->a->n_other++;
	}
	free(order);
	for (uint32_t i = 0; i < l->n_names; i++)
		l->a->more_other |= strcmp(l->names[i].row, "other") == 0 && l->names[i].sum;
	l->energy_uj = calloc((size_t)l->a->n_series + 1, SCHEMA_MAX_DOMAINS * sizeof(*l->energy_uj));
	return l->energy_uj ? rc : -ENOMEM;
}

static uint64_t *sums_of(const struct history_look *l, const struct look_name *n)
{
	return &l->energy_uj[(size_t)n->series * SCHEMA_MAX_DOMAINS];
}

static int append_point(struct history_look *l, const struct look_name *n)
{
	struct history_answer *a = l->a;
	struct history_series *s = &a->series[n->series];

	if (++l->n_points > HISTORY_POINTS_MAX)
		return -E2BIG;
	if (ARRAY_ROOM(s->points, s->cap, s->n + 1) ||
	    ARRAY_ROOM(a->energy_uj, a->cap_energy, a->n_energy + a->n_domains))
		return -ENOMEM;
	s->points[s->n++] = (struct history_point){ l->end_ns, l->interval_ns, n->quality, a->n_energy };
	if (a->n_domains)
		memcpy(&a->energy_uj[a->n_energy], sums_of(l, n), a->n_domains * sizeof(*a->energy_uj));
	a->n_energy += a->n_domains;
	return 0;
}

static int look_flush(struct history_look *l)
{
	int rc = 0;

	for (unsigned i = 0; i < l->n_touched && !rc; i++)
		rc = append_point(l, &l->names[l->touched[i]]);
	l->n_touched = 0;
	l->interval_ns = 0;
	return rc;
}

static int tell_row(void *arg, const struct point_row *r)
{
	struct history_look *l = arg;
	int64_t name = name_of(l, r->series);
	uint64_t *energy;

	l->rows++;
	if (name < 0 || name == LOOK_NONE)
		return name < 0 ? (int)name : 0;
	if (l->names[name].series == LOOK_NONE)
		name = name_of(l, ROW_OTHER);
	if (name < 0)
		return (int)name;
	energy = sums_of(l, &l->names[name]);
	if (l->names[name].stamp != l->stamp) {
		l->names[name].stamp = l->stamp;
		l->names[name].quality = 0;
		memset(energy, 0, SCHEMA_MAX_DOMAINS * sizeof(*energy));
		l->touched[l->n_touched++] = (uint32_t)name;
	}
	l->names[name].quality |= r->quality;
	for (unsigned d = 0; d < l->set->n; d++)
		energy[l->set->to[d]] += r->energy_uj[d];
	return 0;
}

/* Returns 0, a negative errno, or SQLite's code. */
static int look_tell(struct history_look *l, const struct stored *s)
{
	bool own = l->step_ns <= (uint64_t)history_tiers[s->tier].length_ns;
	int64_t bucket = own ? -s->end_ns : (s->end_ns - 1) / (int64_t)l->step_ns;
	int rc = use_set(l, s->domains);

	if (!rc && (bucket != l->bucket || !l->stamp)) {
		rc = look_flush(l);
		l->bucket = bucket;
		l->stamp++;
	}
	if (rc)
		return rc;
	l->end_ns = s->end_ns;
	l->interval_ns += s->interval_ns;
	return point_read(s->data, s->size, l->set->n, tell_row, l);
}

/* Answers from the store, over a read connection beside the writer. It makes two passes over the points of the
 * time asked for: the first ranks the cgroups, the second builds the answer. Limits depend on query and data
 * only, never on the clock, so a busy machine gives the same answer. */

#define LOST_MAX 1000
#define OPS_MAX 20000 /* thousands, between two points: a damaged table could be read for ever */

static int too_many_ops(void *arg)
{
	struct history_look *l = arg;

	return ++l->ops > OPS_MAX;
}

static int connect_file(struct history *h, struct err *err)
{
	uint64_t generation;

	pthread_mutex_lock(&h->lock);
	generation = h->generation;
	pthread_mutex_unlock(&h->lock);
	if (h->reader && h->reader_generation == generation)
		return 0;
	sqlite3_close(h->reader);
	h->reader = NULL;
	if (sqlite3_open_v2(h->path, &h->reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		sqlite3_close(h->reader);
		h->reader = NULL;
		return err_set(err, -EIO, "history %s: it cannot be opened; see /v1/status", h->path);
	}
	h->reader_generation = generation;
	db_exec(h->reader, "PRAGMA cache_size=-1024");
	return 0;
}

static int fail(struct history_look *l, int rc, struct err *err)
{
	if (rc == SQLITE_NOMEM || rc == -ENOMEM)
		return err_set(err, -ENOMEM, "history: out of memory; ask for less");
	if (rc == SQLITE_INTERRUPT || rc == -E2BIG)
		return err_set(
			err, -E2BIG,
			"history: too much for one answer (%u points, or %u rows of the file); ask for a shorter time or a longer "
			"step: from 1m on minutes are read, from 1h on hours",
			HISTORY_POINTS_MAX, HISTORY_LOOK_ROWS_MAX);
	if (rc == -EBADMSG)
		return err_set(err, -EIO, "history %s: a point cannot be read; see /v1/status", l->h->path);
	return err_set(err, -EIO, "history %s: %s; see /v1/status", l->h->path, sqlite3_errstr(rc));
}

/* The first slot of a tier; INT64_MAX = it has none. */
static int64_t oldest(struct history_look *l, enum tier t)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "SELECT min(slot) FROM %s", history_tiers[t].table);
	return db_number(l->h->reader, sql, INT64_MAX);
}

static int64_t floor_to(int64_t ns, int64_t length)
{
	return ns == INT64_MAX ? ns : ns / length * length;
}

/* Chooses the tier the step is made of, or without a step the finest tier that covers all of the time asked
 * for. */
static enum tier choose_tier(struct history_look *l)
{
	uint64_t step = l->q->step_ns;

	if (step)
		return step >= (uint64_t)history_tiers[TIER_HOUR].length_ns   ? TIER_HOUR :
		       step >= (uint64_t)history_tiers[TIER_MINUTE].length_ns ? TIER_MINUTE :
										TIER_SECOND;
	for (int t = TIER_SECOND; t < TIER_HOUR; t++) {
		int64_t first = oldest(l, (enum tier)t);

		/* a coarser slot that merely begins before its finer slots holds no more than they do */
		if (first <= l->q->since_ns ||
		    oldest(l, (enum tier)(t + 1)) >= floor_to(first, history_tiers[t + 1].length_ns))
			return (enum tier)t;
	}
	return TIER_HOUR;
}

static int64_t last_of(struct history_look *l, enum tier t, int64_t from, int64_t before)
{
	sqlite3_stmt *q = NULL;
	int64_t slot = from - history_tiers[t].length_ns;

	if (db_prepare(l->h->reader, &q,
		       "SELECT max(slot) FROM %s WHERE slot >= %lld AND slot < %lld AND end_ns <= %lld",
		       history_tiers[t].table, (long long)from, (long long)before,
		       (long long)l->q->until_ns) == SQLITE_OK &&
	    sqlite3_step(q) == SQLITE_ROW && sqlite3_column_type(q, 0) != SQLITE_NULL)
		slot = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return slot;
}

/* Plans the tiers from coarse to fine. A coarser tier covers what a finer one no longer has; a finer tier
 * covers what a coarser one does not have yet. No instant is in two tiers. */
static void plan(struct history_look *l)
{
	enum tier base = choose_tier(l);
	int64_t from = 0;

	for (int t = TIER_HOUR; t >= TIER_SECOND; t--) {
		int64_t length = history_tiers[t].length_ns, before = INT64_MAX;

		if (t > (int)base)
			before = floor_to(oldest(l, (enum tier)(t - 1)), length);
		if (t - 1 > (int)base && oldest(l, (enum tier)base) < oldest(l, (enum tier)(t - 1)))
			before = floor_to(oldest(l, base), length);
		if (t == TIER_SECOND)
			before = INT64_MAX;
		l->from[t] = from;
		l->before[t] = before;
		if (t > TIER_SECOND && from < before) {
			int64_t last = last_of(l, (enum tier)t, from, before);

			if (last >= from)
				from = last + length;
		}
	}
	l->step_ns = l->q->step_ns ? l->q->step_ns : (uint64_t)history_tiers[base].length_ns;
}

static int read_row(struct history_look *l, sqlite3_stmt *q, enum tier t)
{
	struct stored s = { .start_ns = sqlite3_column_int64(q, 0),
			    .end_ns = sqlite3_column_int64(q, 1),
			    .interval_ns = (uint64_t)sqlite3_column_int64(q, 2),
			    .domains = sqlite3_column_int64(q, 3),
			    .tier = t,
			    .data = sqlite3_column_blob(q, 4),
			    .size = (size_t)sqlite3_column_bytes(q, 4) };

	l->ops = 0;
	l->rows++;
	return l->telling ? look_tell(l, &s) : look_sum(l, &s);
}

static int ask_points(struct history_look *l, enum tier t)
{
	int64_t from = l->from[t], first = l->q->since_ns - history_tiers[t].length_ns;

	return db_prepare(l->h->reader, &l->points,
			  "SELECT start_ns, end_ns, interval_ns, domains, data FROM %s WHERE slot >= %lld AND "
			  "slot < %lld AND end_ns > %lld AND end_ns <= %lld ORDER BY slot",
			  history_tiers[t].table, (long long)(from > first ? from : first), (long long)l->before[t],
			  (long long)l->q->since_ns, (long long)l->q->until_ns);
}

/* Reads one point, or ends a tier. 0, a negative errno, or SQLite's code. */
static int next_point(struct history_look *l)
{
	int rc = l->points ? SQLITE_OK : ask_points(l, (enum tier)l->tier);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(l->points);
	if (rc == SQLITE_ROW)
		return read_row(l, l->points, (enum tier)l->tier);
	if (rc != SQLITE_DONE)
		return rc;
	sqlite3_finalize(l->points);
	l->points = NULL;
	l->tier--;
	return 0;
}

static int add_lost(struct history_answer *a, int64_t from_ns, int64_t until_ns, const char *reason)
{
	if (ARRAY_ROOM(a->lost, a->cap_lost, a->n_lost + 1) != 0)
		return -ENOMEM;
	a->lost[a->n_lost] = (struct history_lost){ .from_ns = from_ns, .until_ns = until_ns };
	snprintf(a->lost[a->n_lost++].reason, sizeof(a->lost[0].reason), "%s", reason);
	return 0;
}

static int read_lost(struct history_look *l)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(l->h->reader, &q,
			    "SELECT from_ns, until_ns, reason FROM gap WHERE until_ns > %lld AND from_ns < %lld "
			    "ORDER BY from_ns LIMIT %d",
			    (long long)l->q->since_ns, (long long)l->q->until_ns, LOST_MAX);

	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		const char *reason = (const char *)sqlite3_column_text(q, 2);

		rc = add_lost(l->a, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1), reason ? reason : "");
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : rc;
}

/* SQLITE_ROW = there is more, 0 = that was all, a negative errno, or SQLite's code. */
static int turn(struct history_look *l, uint64_t rows)
{
	uint64_t until = l->rows + rows;
	int rc = 0;

	while (!rc && l->rows < until) {
		if (l->tier >= TIER_SECOND) {
			rc = next_point(l);
		} else if (!l->telling) {
			rc = look_choose(l);
			l->telling = true;
			l->tier = TIER_HOUR;
		} else {
			rc = look_flush(l);
			return rc ? rc : read_lost(l);
		}
	}
	return rc ? rc : SQLITE_ROW;
}

static void set_answer(struct history_look *l, struct history_answer *ret)
{
	l->a->since_ns = l->q->since_ns;
	l->a->until_ns = l->q->until_ns;
	l->a->step_ns = l->step_ns;
	*ret = *l->a;
	*l->a = (struct history_answer){ 0 };
}

int history_look_begin(struct history *h, const struct history_query *q, struct history_look **ret, struct err *err)
{
	struct history_look *l;
	int rc;

	if (h->looking)
		return err_set(err, -EBUSY, "history: another question is being answered; ask again");
	rc = connect_file(h, err);
	if (rc)
		return rc;
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_set(err, -ENOMEM, "history: out of memory; ask for less");
	h->looking = true;
	l->h = h;
	l->query = *q;
	l->q = &l->query;
	l->a = &l->answer;
	l->tier = TIER_HOUR;
	l->query.cgroup = q->cgroup ? strdup(q->cgroup) : NULL;
	l->query.job = q->job ? strdup(q->job) : NULL;
	sqlite3_progress_handler(h->reader, 1000, too_many_ops, l);
	l->query.rules = q->rules ? selection_rules_copy(q->rules) : NULL;
	rc = (q->cgroup && !l->query.cgroup) || (q->job && !l->query.job) || (q->rules && !l->query.rules) ?
		     SQLITE_NOMEM :
		     db_exec(h->reader, "BEGIN"); /* both passes see the same */
	if (rc == SQLITE_OK)
		rc = look_names(l);
	if (rc) {
		rc = fail(l, rc, err);
		history_look_end(l);
		return rc;
	}
	plan(l);
	*ret = l;
	return 0;
}

/* True when the cgroup that is asked for is stored, and may be told, so that it used nothing in that time. */
static bool is_known(const struct history_look *l)
{
	sqlite3_stmt *q = NULL;
	bool known = !l->q->rules || selection_admits(l->q->rules, l->q->cgroup);

	if (!known ||
	    db_prepare(l->h->reader, &q, "SELECT 1 FROM series WHERE CAST(path AS TEXT)=?1 LIMIT 1") != SQLITE_OK)
		return false;
	sqlite3_bind_text(q, 1, l->q->cgroup, -1, SQLITE_STATIC);
	known = sqlite3_step(q) == SQLITE_ROW;
	sqlite3_finalize(q);
	return known;
}

int history_look_go_on(struct history_look *l, uint64_t rows, struct history_answer *ret, struct err *err)
{
	int rc = turn(l, rows);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc)
		return fail(l, rc, err);
	if (l->q->job && !l->a->n_series)
		return err_set(
			err, -ENOENT,
			"job: the history has none of this number in that time on this machine; a new one is in it "
			"after two seconds, GET /v1/history?since=-30d looks further back");
	if (l->q->cgroup && !l->a->n_series && !is_known(l))
		return err_set(err, -ENOENT,
			       "cgroup: the history knows none of this path; a new one is in it after two seconds, "
			       "GET /v1/history without it lists the largest");
	set_answer(l, ret);
	return 0;
}

void history_look_end(struct history_look *l)
{
	if (!l)
		return;
	sqlite3_finalize(l->points);
	look_free(l);
	db_exec(l->h->reader, "COMMIT");
	sqlite3_progress_handler(l->h->reader, 0, NULL, NULL);
	l->h->looking = false;
	history_answer_free(&l->answer);
	free((char *)l->query.cgroup);
	free((char *)l->query.job);
	free((struct selection_rules *)l->query.rules);
	free(l);
}

int history_read(struct history *h, const struct history_query *q, struct history_answer *ret, struct err *err)
{
	struct history_look *l = NULL;
	int rc = history_look_begin(h, q, &l, err);

	if (!rc)
		rc = history_look_go_on(l, UINT64_MAX / 2, ret, err);
	history_look_end(l);
	return rc;
}

void history_answer_free(struct history_answer *a)
{
	for (unsigned i = 0; i < a->n_series; i++) {
		free(a->series[i].cgroup);
		free(a->series[i].points);
	}
	free(a->series);
	free(a->energy_uj);
	free(a->lost);
	*a = (struct history_answer){ 0 };
}
