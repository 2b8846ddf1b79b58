/* SPDX-License-Identifier: Apache-2.0 */
/* A batch job in the history: each step's series is the sum of what was handed over of its cgroups, in every domain, at
 * every step of time, after the job has ended, after a restart of the store, and beside jobs whose numbers are alike. */
#include "history_world.h"

#define JOB "/system.slice/slurmstepd.scope/job_"
static const char *const paths[] = {
	JOB "4711/step_0/user/task_0",
	JOB "4711/step_0/user/task_1",
	JOB "4711/step_batch/user/task_special",
	JOB "4711/step_batch/slurm",
	JOB "4711",
	"/slurm/uid_1000/job_4711/step_0/task_0",
	JOB "471/step_0/user/task_0",
	JOB "47110/step_0/user/task_0",
	JOB "1/step_4711/user/task_0",
	"/docker/4711",
	"/a.service/job_4711/step_0",
};
enum { N = sizeof(paths) / sizeof(paths[0]), OF_JOB = 6 };
static const struct {
	const char *name;
	unsigned rows; /* bits of paths */
} steps[] = { { "4711.0", 0x23 }, { "4711.batch", 0x0c }, { "4711", 0x10 } };

struct jobs {
	struct world w;
	uint64_t sum[2][N];
	bool over; /* the job's cgroups have ended */
};

static void begin_jobs(struct jobs *j)
{
	struct world *w = &j->w;

	memset(j, 0, sizeof(*j));
	fixture_init(&w->f, 2, 1);
	snprintf(w->f.schema.boot_id, sizeof(w->f.schema.boot_id), "00000000-boot");
	fixture_domain(&w->f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(&w->f, DOMAIN_DRAM, 0, "dram-0");
	fixture_ready(&w->f);
	for (unsigned i = 0; i < N; i++)
		fixture_row(&w->f, paths[i], 100 + i);
	w->now_ns = START_NS;
}

static void put_interval(struct jobs *j, uint64_t interval_ns, bool ended)
{
	struct snapshot *s = &j->w.f.snap;

	s->start_ns = s->end_ns;
	s->end_ns += interval_ns;
	s->end_real_ns = j->w.now_ns += (int64_t)interval_ns;
	for (unsigned i = 0; i < N; i++) {
		s->rows[READING_SPECIAL_ROWS + i].ended = ended && i < OF_JOB;
		for (unsigned d = 0; d < 2; d++) {
			bool used = rand() % 3 && !(j->over && i < OF_JOB);
			uint64_t uj = used ? (uint64_t)rand() * 1000 : 0;

			*snapshot_energy(s, READING_SPECIAL_ROWS + i, d) = uj;
			j->sum[d][i] += uj;
		}
	}
	assert_true(history_put(j->w.h, s, NULL, NULL) > 0);
	j->over |= ended;
	j->w.handed++;
	wait_written(&j->w);
}

static void put(struct jobs *j, bool ended)
{
	put_interval(j, 7 * NS_PER_S, ended);
}

static void check(struct jobs *j, uint64_t step_ns, bool ended)
{
	struct history_query q = { .job = "4711", .until_ns = j->w.now_ns, .step_ns = step_ns, .limit = 1 };
	struct history_answer a = { 0 };
	struct err err = { 0 };

	q.since_ns = q.until_ns - 24 * 3600 * (int64_t)NS_PER_S;
	if (history_read(j->w.h, &q, &a, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(a.n_series, 3);
	assert_int_equal(a.n_other, 0);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t is[2] = { 0 }, want[2] = { 0 };
		unsigned k = 0;

		while (k < 3 && strcmp(a.series[k].cgroup, steps[i].name) != 0)
			k++;
		assert_true(k < 3);
		assert_string_equal(a.series[k].row, "job");
		assert_int_equal(a.series[k].ended, ended);
		for (unsigned d = 0; d < 2; d++) {
			for (unsigned p = 0; p < a.series[k].n; p++)
				is[d] += a.energy_uj[a.series[k].points[p].energy + d];
			for (unsigned p = 0; p < N; p++)
				want[d] += steps[i].rows >> p & 1 ? j->sum[d][p] : 0;
			assert_true(want[d] > 0);
			assert_int_equal(is[d], want[d]);
		}
	}
	history_answer_free(&a);
}

static void check_times(struct jobs *j, bool ended)
{
	static const uint64_t lengths_s[] = { 0, 1, 60, 600, 3600, 86400 };

	for (unsigned i = 0; i < sizeof(lengths_s) / sizeof(lengths_s[0]); i++)
		check(j, lengths_s[i] * NS_PER_S, ended);
}

static void test_job(void **state)
{
	struct jobs j;

	begin_jobs(&j);
	srand(4711);
	open_store(&j.w, 0);
	for (unsigned i = 0; i < 200; i++)
		put(&j, false);
	check_times(&j, false);
	put(&j, true);
	check_times(&j, true);
	history_close(j.w.h);
	open_store(&j.w, 0);
	check_times(&j, true);
	end(&j.w);
	remove_files();
}

static bool any_ended(struct jobs *j, int64_t until_ns)
{
	struct history_query q = { .job = "4711", .until_ns = until_ns, .limit = 1 };
	struct history_answer a = { 0 };
	struct err err = { 0 };
	bool any = false;

	assert_int_equal(history_read(j->w.h, &q, &a, &err), 0);
	for (unsigned i = 0; i < a.n_series; i++)
		any |= a.series[i].ended;
	for (unsigned i = 0; i < a.n_series; i++)
		assert_true(a.series[i].ending);
	history_answer_free(&a);
	return any;
}

/* A job that ends within a second is told as ended when that second is stored, with all its energy. */
static void test_ended_with_its_energy(void **state)
{
	struct jobs j;

	begin_jobs(&j);
	srand(13);
	open_store(&j.w, 0);
	for (unsigned i = 0; i < 20; i++)
		put(&j, false);
	put_interval(&j, NS_PER_S / 10 * 6, true);
	assert_false(any_ended(&j, j.w.now_ns));
	put_interval(&j, NS_PER_S / 10 * 4, false);
	/* a question of the instant before: the second is stored when it is answered, and is not in the answer */
	assert_false(any_ended(&j, j.w.now_ns - 1));
	check_times(&j, true);
	end(&j.w);
	remove_files();
}

/* Who may not see a cgroup does not see its part of the job either; an unknown job is an error, not a zero. */
static void test_hidden(void **state)
{
	struct history_query q = { .job = "4711", .limit = 20 };
	struct history_answer a = { 0 };
	struct err err = { 0 };
	struct jobs j;
	char *const exclude[] = { (char *)"/system.slice/**" };
	const struct selection_rules rules = { .exclude = exclude, .n_exclude = 1 };

	begin_jobs(&j);
	open_store(&j.w, 0);
	put(&j, false);
	q.until_ns = j.w.now_ns;
	q.job = "12";
	assert_int_equal(history_read(j.w.h, &q, &a, &err), -ENOENT);
	assert_non_null(strstr(err.text, "job"));
	q.job = "4711";
	q.rules = &rules;
	assert_int_equal(history_read(j.w.h, &q, &a, &err), 0);
	assert_int_equal(a.n_series, 1);
	assert_string_equal(a.series[0].cgroup, "4711.0");
	assert_int_equal(a.energy_uj[a.series[0].points[0].energy], j.sum[0][5]);
	history_answer_free(&a);
	end(&j.w);
	remove_files();
}

/* A limit is for cgroups that nobody asked for. */
static void test_one_cgroup_without_limit(void **state)
{
	struct history_query q = { .cgroup = paths[0], .limit = 0 };
	struct history_answer a = { 0 };
	struct err err = { 0 };
	struct jobs j;

	begin_jobs(&j);
	open_store(&j.w, 0);
	put(&j, false);
	q.until_ns = j.w.now_ns;
	assert_int_equal(history_read(j.w.h, &q, &a, &err), 0);
	assert_int_equal(a.n_series, 1);
	assert_string_equal(a.series[0].cgroup, paths[0]);
	history_answer_free(&a);
	end(&j.w);
	remove_files();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_job),
		cmocka_unit_test(test_ended_with_its_energy),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_one_cgroup_without_limit),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
