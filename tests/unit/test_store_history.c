/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the history: what was handed over is what is answered, at every step, whatever happened
 * to the file, the disk or the process in between. */
#include "history_world.h"
#include <sys/syscall.h>
#include <unistd.h>

/* Over the end of minutes and of an hour; readings of any length in between; two agents. */
static void test_sums(void **state)
{
	struct world w;

	begin(&w);
	srand(1);
	open_store(&w, 0);
	for (unsigned i = 0; i < 300; i++)
		hand_over(&w, NS_PER_S + (uint64_t)(rand() % 2000) * 1000);
	for (unsigned i = 0; i < 100; i++)
		hand_over(&w, 10 * NS_PER_MS + (uint64_t)rand() % NS_PER_S);
	for (unsigned i = 0; i < 300; i++)
		hand_over(&w, 11 * NS_PER_S);
	wait_written(&w);
	history_close(w.h);
	w.now_ns += 100 * (int64_t)NS_PER_S;
	open_store(&w, 0);
	for (unsigned i = 0; i < 100; i++)
		hand_over(&w, NS_PER_S);
	history_close(w.h);
	open_store(&w, 0);
	w.handed = 0;
	check_steps(&w);
	end(&w);
	remove_files();
}

static int64_t ask_sql(const char *sql)
{
	sqlite3_stmt *q = NULL;
	sqlite3 *db;
	int64_t v;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	v = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return v;
}

/* Each minute in the file is the sum of the seconds that it is made of. */
static void test_ledger_of_steps(void **state)
{
	struct history_answer fine = { 0 }, coarse = { 0 };
	struct history_query q = { .limit = 100 };
	struct world w;
	uint64_t at = 0;

	begin(&w);
	srand(2);
	open_store(&w, 0);
	for (unsigned i = 0; i < 280; i++)
		hand_over(&w, NS_PER_S);
	wait_written(&w);
	q.since_ns = START_NS + 40 * (int64_t)NS_PER_S;
	q.until_ns = q.since_ns + 240 * (int64_t)NS_PER_S;
	q.step_ns = NS_PER_S;
	assert_int_equal(history_read(w.h, &q, &fine, NULL), 0);
	q.step_ns = 60 * NS_PER_S;
	assert_int_equal(history_read(w.h, &q, &coarse, NULL), 0);
	for (unsigned i = 0; i < coarse.n_series; i++) {
		const struct history_series *c = &coarse.series[i], *f = &fine.series[i];

		assert_string_equal(c->cgroup, f->cgroup);
		at = 0;
		for (unsigned k = 0; k < c->n; k++) {
			uint64_t sum = 0;

			for (; at < f->n && f->points[at].end_ns <= c->points[k].end_ns; at++)
				sum += fine.energy_uj[f->points[at].energy];
			assert_int_equal(coarse.energy_uj[c->points[k].energy], sum);
		}
		assert_int_equal(at, f->n);
	}
	assert_true(coarse.n_series >= SERIES);
	assert_true(ask_sql("SELECT count(*) FROM points_1m") >= 4);
	assert_int_equal(
		ask_sql("SELECT count(*) FROM points_1m m WHERE "
			"start_ns <> (SELECT min(start_ns) FROM points_1s s WHERE s.slot / 60000000000 = m.slot / 60000000000) OR "
			"end_ns <> (SELECT max(end_ns) FROM points_1s s WHERE s.slot / 60000000000 = m.slot / 60000000000)"),
		0);
	history_answer_free(&fine);
	history_answer_free(&coarse);
	end(&w);
	remove_files();
}

static void write_garbage(const char *text, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	close(fd);
}

static void run_sql(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static unsigned files_like(const char *part)
{
	char command[160];
	FILE *p;
	unsigned n = 0;

	snprintf(command, sizeof(command), "ls %s | grep -c -- '%s'", dir, part);
	p = popen(command, "r");
	assert_non_null(p);
	assert_int_equal(fscanf(p, "%u", &n), 1);
	pclose(p);
	return n;
}

static void check_begins_anew(const char *why)
{
	struct world w;

	begin(&w);
	open_store(&w, 0);
	if (!strstr(w.note.text, why))
		fail_msg("\"%s\" does not say \"%s\"", w.note.text, why);
	assert_int_equal(files_like("\\.old$"), 1);
	hand_over(&w, NS_PER_S);
	check_steps(&w);
	end(&w);
	remove_files();
}

/* An agent that began within a minute which has ended since: its seconds are the finest of all it has. */
static void test_finest_step(void **state)
{
	struct history_answer a = { 0 };
	struct history_query q = { .limit = 100 };
	struct world w;

	begin(&w);
	open_store(&w, 0);
	hand_over(&w, 20 * NS_PER_S + NS_PER_S / 2);
	for (unsigned i = 0; i < 100; i++)
		hand_over(&w, NS_PER_S);
	wait_written(&w);
	q.since_ns = START_NS - 600 * (int64_t)NS_PER_S;
	q.until_ns = w.now_ns;
	assert_int_equal(history_read(w.h, &q, &a, NULL), 0);
	assert_int_equal(a.step_ns, NS_PER_S);
	history_answer_free(&a);
	end(&w);
	remove_files();
}

static void test_wrong_files(void **state)
{
	char garbage[8192];

	memset(garbage, 'x', sizeof(garbage));
	write_garbage(garbage, sizeof(garbage));
	check_begins_anew("; it is now");
	memcpy(garbage, "SQLite format 3", 16);
	write_garbage(garbage, sizeof(garbage));
	check_begins_anew("; it is now");
	run_sql("CREATE TABLE cake(slice); PRAGMA user_version=1");
	check_begins_anew("another program");
	run_sql("CREATE TABLE boot(x); PRAGMA application_id=1785689452; PRAGMA user_version=2");
	check_begins_anew("newer version");
	run_sql("CREATE TABLE boot(x); PRAGMA application_id=1785689452; PRAGMA user_version=1");
	check_begins_anew("not those of a history");
}

/* Pages that turn bad while it runs: it is moved aside, and what comes next is kept. */
static void test_broken_while_running(void **state)
{
	struct world w;
	char zeros[4096] = { 1 };
	int fd;

	begin(&w);
	open_store(&w, 0);
	for (unsigned i = 0; i < 100; i++)
		hand_over(&w, NS_PER_S);
	wait_written(&w);
	history_close(w.h);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	for (int i = 1; i < 30; i++)
		assert_int_equal(pwrite(fd, zeros, sizeof(zeros), i * 4096), sizeof(zeros));
	close(fd);
	open_store(&w, 0);
	assert_true(strstr(w.note.text, "it is now"));
	memset(w.sum, 0, sizeof(w.sum));
	memset(w.measured, 0, sizeof(w.measured));
	w.interval_ns = 0;
	for (unsigned i = 0; i < 20; i++)
		hand_over(&w, NS_PER_S);
	check_steps(&w);
	end(&w);
	remove_files();
}

/* The wall clock of this program, so much before that of the kernel: what waits by it waits as after a step back. */
static _Atomic int64_t ahead_s;

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (id == CLOCK_REALTIME)
		ts->tv_sec += ahead_s;
	return rc;
}

/* Somebody holds the lock: nobody waits, what fits is kept, what does not is counted and named. While it is held the clock
 * is set back by an hour: the next try comes when it would have come. */
static void test_locked(void **state)
{
	struct history_query q = { .limit = 10 };
	struct history_answer a = { 0 };
	struct world w;
	unsigned refused = 0;
	sqlite3 *db;

	begin(&w);
	open_store(&w, 0);
	hand_over(&w, NS_PER_S);
	wait_written(&w);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	ahead_s = 3600;
	for (unsigned i = 0; i < 50; i++) {
		make_interval(&w, NS_PER_S);
		if (history_put(w.h, &w.f.snap, NULL, NULL))
			w.handed++;
		else
			refused++;
	}
	assert_in_range(refused, 1, 30);
	assert_int_equal(figures(&w).lost_intervals, refused);
	for (int i = 0; i < 5000 && strcmp(figures(&w).state, "failing") != 0; i++)
		pause_ms(1);
	assert_string_equal(figures(&w).state, "failing");
	assert_int_equal(figures(&w).written, 1);
	ahead_s = 0;
	assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	wait_written(&w);
	hand_over(&w, NS_PER_S);
	wait_written(&w);
	assert_string_equal(figures(&w).state, "ok");
	q.since_ns = START_NS;
	q.until_ns = w.now_ns;
	assert_int_equal(history_read(w.h, &q, &a, NULL), 0);
	assert_int_equal(a.n_lost, 1);
	assert_int_equal(a.lost[0].until_ns - a.lost[0].from_ns, (int64_t)refused * (int64_t)NS_PER_S);
	assert_string_equal(a.lost[0].reason, "the disk did not keep up");
	history_answer_free(&a);
	sqlite3_close(db);
	end(&w);
	remove_files();
}

/* The limit holds whatever is handed over, and the newest is there. */
static void test_size(void **state)
{
	struct history_query q = { .limit = 10 };
	struct history_answer a = { 0 };
	struct world w;
	struct stat st;

	begin(&w);
	open_store(&w, 300 << 10);
	for (unsigned i = 0; i < 4000; i++)
		hand_over(&w, i < 2000 ? NS_PER_S : 61 * NS_PER_S);
	wait_written(&w);
	assert_string_equal(figures(&w).state, "ok");
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, 50 << 10, 300 << 10);
	q.since_ns = w.now_ns - 600 * (int64_t)NS_PER_S;
	q.until_ns = w.now_ns;
	assert_int_equal(history_read(w.h, &q, &a, NULL), 0);
	assert_true(a.n_series >= SERIES);
	history_answer_free(&a);
	end(&w);
	remove_files();
}

static int64_t oldest_minute(void)
{
	sqlite3_stmt *q = NULL;
	int64_t slot = 0;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT min(slot) FROM points_1m", -1, &q, NULL), SQLITE_OK);
	if (sqlite3_step(q) == SQLITE_ROW)
		slot = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return slot;
}

/* Where minutes made room, their hours are whole: a question across the oldest minute gets all energy. */
static void test_room(void **state)
{
	struct history_query q = { .since_ns = START_NS, .step_ns = 600 * NS_PER_S, .limit = 10 };
	struct history_answer a = { 0 };
	uint64_t sum[2];
	struct world w;

	begin(&w);
	open_store(&w, 300 << 10);
	for (unsigned i = 0; i < 1500; i++)
		hand_over(&w, 61 * NS_PER_S);
	wait_written(&w);
	assert_in_range(oldest_minute(), START_NS + 3600 * (int64_t)NS_PER_S, w.now_ns - 3600 * (int64_t)NS_PER_S);
	q.until_ns = w.now_ns;
	assert_int_equal(history_read(w.h, &q, &a, NULL), 0);
	sum_of(&a, NULL, sum);
	assert_int_equal(sum[0], w.measured[0]);
	assert_int_equal(sum[1], w.measured[1]);
	history_answer_free(&a);
	end(&w);
	remove_files();
}

/* A path that the store knows, in a time in which it used nothing, is no error; one that it does not know is. */
static void test_idle_path(void **state)
{
	struct history_query q = { .cgroup = names[0], .since_ns = START_NS };
	struct history_answer a = { 0 };
	struct err err = { 0 };
	struct world w;

	begin(&w);
	open_store(&w, 0);
	for (unsigned i = 0; i < 20; i++)
		hand_over(&w, NS_PER_S);
	wait_written(&w);
	q.since_ns = w.now_ns + (int64_t)NS_PER_S;
	q.until_ns = q.since_ns + (int64_t)NS_PER_S;
	assert_int_equal(history_read(w.h, &q, &a, &err), 0);
	assert_int_equal(a.n_series, 0);
	history_answer_free(&a);
	q.cgroup = "/none";
	assert_int_equal(history_read(w.h, &q, &a, &err), -ENOENT);
	end(&w);
	remove_files();
}

/* A cgroup is its id: a new name takes the points along; another boot's ids are others. */
static void test_names(void **state)
{
	struct history_query q = { .cgroup = "/new", .limit = 10 };
	struct history_answer a = { 0 };
	struct world w;
	uint64_t sum[2], want;

	begin(&w);
	open_store(&w, 0);
	for (unsigned i = 0; i < 5; i++)
		hand_over(&w, NS_PER_S);
	w.f.snap.rows[READING_SPECIAL_ROWS].path = "/new";
	for (unsigned i = 0; i < 20; i++)
		hand_over(&w, NS_PER_S);
	wait_written(&w);
	want = w.sum[0][0];
	history_close(w.h);
	snprintf(w.f.schema.boot_id, sizeof(w.f.schema.boot_id), "11111111-boot");
	w.f.snap.rows[READING_SPECIAL_ROWS].path = "/other";
	open_store(&w, 0);
	for (unsigned i = 0; i < 5; i++)
		hand_over(&w, NS_PER_S);
	wait_written(&w);
	q.since_ns = START_NS;
	q.until_ns = w.now_ns;
	assert_int_equal(history_read(w.h, &q, &a, NULL), 0);
	assert_int_equal(a.n_series, 1);
	sum_of(&a, NULL, sum);
	assert_int_equal(sum[0], want);
	history_answer_free(&a);
	q.cgroup = "/nobody";
	assert_int_equal(history_read(w.h, &q, &a, NULL), -ENOENT);
	end(&w);
	remove_files();
}

static void assert_same(const struct history_answer *a, const struct history_answer *b)
{
	assert_int_equal(a->step_ns, b->step_ns);
	assert_int_equal(a->n_series, b->n_series);
	assert_int_equal(a->n_energy, b->n_energy);
	assert_memory_equal(a->energy_uj, b->energy_uj, a->n_energy * sizeof(*a->energy_uj));
	for (unsigned i = 0; i < a->n_series; i++) {
		assert_string_equal(a->series[i].cgroup, b->series[i].cgroup);
		assert_int_equal(a->series[i].n, b->series[i].n);
		for (unsigned k = 0; k < a->series[i].n; k++) {
			const struct history_point *x = &a->series[i].points[k], *y = &b->series[i].points[k];

			assert_true(x->end_ns == y->end_ns && x->interval_ns == y->interval_ns &&
				    x->quality == y->quality && x->energy == y->energy);
		}
	}
}

/* Turns as small as can be, with time and other intervals between them: the answer is that of one go. */
static void test_turns(void **state)
{
	struct history_query q = { .since_ns = START_NS, .limit = 2 };
	struct history_answer whole = { 0 }, turned = { 0 };
	struct history_look *l = NULL, *other = NULL;
	struct err err = { 0 };
	unsigned turns = 0;
	struct world w;
	int rc;

	begin(&w);
	open_store(&w, 0);
	for (unsigned i = 0; i < 150; i++)
		hand_over(&w, NS_PER_S);
	wait_written(&w);
	q.until_ns = w.now_ns;
	assert_int_equal(history_read(w.h, &q, &whole, NULL), 0);
	assert_int_equal(history_look_begin(w.h, &q, &l, &err), 0);
	assert_int_equal(history_look_begin(w.h, &q, &other, &err), -EBUSY);
	while ((rc = history_look_go_on(l, 1, &turned, &err)) == 1)
		if (turns++ % 100 == 0) {
			pause_ms(100);
			hand_over(&w, NS_PER_S);
		}
	assert_int_equal(rc, 0);
	assert_true(turns > 250);
	history_look_end(l);
	assert_same(&whole, &turned);
	history_answer_free(&turned);
	/* one that is left in the middle is in nobody's way */
	assert_int_equal(history_look_begin(w.h, &q, &l, &err), 0);
	assert_int_equal(history_look_go_on(l, 1, &turned, &err), 1);
	history_look_end(l);
	wait_written(&w);
	assert_int_equal(history_read(w.h, &q, &turned, NULL), 0);
	assert_same(&whole, &turned);
	history_answer_free(&turned);
	history_answer_free(&whole);
	end(&w);
	remove_files();
}

/* n points of a second, each of a million rows of one series. */
static void put_large(struct world *w, unsigned n)
{
	enum { ROWS = 1000000 };
	uint8_t *data = malloc(8 + 4 * ROWS), *at = data;
	sqlite3_stmt *q = NULL;
	sqlite3 *db = NULL;

	for (unsigned v = ROWS; v > 0x7f; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = ROWS >> 14;
	memset(at, 0, 4 * ROWS);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 20000);
	assert_int_equal(
		sqlite3_prepare_v2(
			db,
			"INSERT INTO points_1s(slot, domains, start_ns, end_ns, interval_ns, data) SELECT ?1 - 1, "
			"min(id), ?1 - 1000000000, ?1, 1000000000, ?2 FROM domains",
			-1, &q, NULL),
		SQLITE_OK);
	for (unsigned i = 0; i < n; i++) {
		sqlite3_bind_int64(q, 1, w->now_ns + (int64_t)(i + 1) * (int64_t)NS_PER_S);
		sqlite3_bind_blob(q, 2, data, (int)(at - data) + 4 * ROWS, SQLITE_STATIC);
		assert_int_equal(sqlite3_step(q), SQLITE_DONE);
		sqlite3_reset(q);
	}
	sqlite3_finalize(q);
	sqlite3_close(db);
	free(data);
}

/* A question is refused by the size of its answer. */
static void test_too_much(void **state)
{
	struct history_query q = { .limit = 2 };
	struct history_answer a = { 0 };
	struct err err = { 0 };
	struct world w;

	begin(&w);
	open_store(&w, 0);
	hand_over(&w, NS_PER_S);
	wait_written(&w);
	put_large(&w, 11);
	q.since_ns = w.now_ns;
	q.until_ns = w.now_ns + 11 * (int64_t)NS_PER_S;
	assert_int_equal(history_read(w.h, &q, &a, &err), -E2BIG);
	assert_non_null(strstr(err.text, "ask for a shorter time or a longer step"));
	q.until_ns = w.now_ns + 9 * (int64_t)NS_PER_S;
	assert_int_equal(history_read(w.h, &q, &a, &err), 0);
	assert_int_equal(interval_of(&a), 9 * NS_PER_S);
	history_answer_free(&a);
	end(&w);
	remove_files();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_ledger_of_steps),
		cmocka_unit_test(test_finest_step),
		cmocka_unit_test(test_wrong_files),
		cmocka_unit_test(test_broken_while_running),
		cmocka_unit_test(test_locked),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_idle_path),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_too_much),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
