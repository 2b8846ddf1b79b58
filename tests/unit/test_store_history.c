/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the history: what was handed over is what is answered, at every step, whatever happened
 * to the file, the disk or the process in between. */
#include "history_world.h"

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
	for (unsigned i = 0; i < 20; i++)
		hand_over(&w, NS_PER_S);
	check_steps(&w);
	end(&w);
	remove_files();
}

/* Somebody holds the lock: nobody waits, what fits is kept, what does not is counted and named. */
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
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
