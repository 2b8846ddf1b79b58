/* SPDX-License-Identifier: Apache-2.0 */
/* A store with intervals of chance, and what was handed over beside it, to compare its answers with. */
#ifndef JD_TEST_HISTORY_WORLD_H
#define JD_TEST_HISTORY_WORLD_H
#include "encode_fixture.h"
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <time.h>
#include "base/clock.h"
#include "store/history/history.h"

#define SERIES 5 /* cgroups of the world */
#define START_NS (1790000000ll * 1000000000ll) /* 40 s before a full minute: 1790000040 is 60 x 29833334 */

static char dir[] = "/tmp/jouled-history-XXXXXX", path[64];

struct world {
	struct fixture f;
	struct history *h;
	struct err note;
	int64_t now_ns;
	uint64_t handed;
	uint64_t sum[2][SERIES], measured[2]; /* handed over, per domain */
	uint64_t interval_ns; /* handed over, in all */
};

static const char *const names[SERIES] = { "/a", "/b", "/b/c", "/system.slice/x.service", "/\xff raw" };

static void open_store(struct world *w, uint64_t size)
{
	struct history_options o = {
		.path = path, .keep_ns = 7 * 86400 * NS_PER_S, .size = size ? size : 64 << 20, .schema = &w->f.schema
	};
	struct err err = { 0 };

	w->note.text[0] = '\0';
	if (history_open(&o, &w->h, &w->note, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(history_start(w->h, &err), 0);
	w->handed = 0;
}

static void begin(struct world *w)
{
	memset(w, 0, sizeof(*w));
	fixture_init(&w->f, 2, 1);
	snprintf(w->f.schema.boot_id, sizeof(w->f.schema.boot_id), "00000000-boot");
	fixture_domain(&w->f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(&w->f, DOMAIN_DRAM, 0, "dram-0");
	fixture_ready(&w->f);
	for (unsigned i = 0; i < SERIES; i++)
		fixture_row(&w->f, names[i], 100 + i);
	w->now_ns = START_NS;
}

static void end(struct world *w)
{
	history_close(w->h);
	w->h = NULL;
	fixture_free(&w->f);
}

static void remove_files(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s/*", dir);
	assert_int_equal(system(command), 0);
}

/* A snapshot of chance, whose ledger closes; the seed decides. */
static void make_interval(struct world *w, uint64_t length_ns)
{
	struct snapshot *s = &w->f.snap;

	w->now_ns += (int64_t)length_ns;
	w->interval_ns += length_ns;
	s->start_ns = s->end_ns;
	s->end_ns += length_ns;
	s->end_real_ns = w->now_ns;
	for (unsigned d = 0; d < 2; d++) {
		s->domains[d].idle_uj = 1 + (uint64_t)(rand() % 1000);
		s->domains[d].residual_uj = rand() % 3 ? 0 : 17;
		s->domains[d].energy_uj = s->domains[d].idle_uj + s->domains[d].residual_uj;
		for (unsigned i = 0; i < s->n_rows; i++) {
			uint64_t uj = rand() % 3 ? (uint64_t)rand() * 1000 : 0;

			*snapshot_energy(s, i, d) = uj;
			s->domains[d].energy_uj += uj;
			if (i >= READING_SPECIAL_ROWS)
				w->sum[d][i - READING_SPECIAL_ROWS] += uj;
		}
		w->measured[d] += s->domains[d].energy_uj;
	}
}

static struct history_figures figures(struct world *w)
{
	struct history_figures f;

	history_figures(w->h, &f);
	return f;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

static void wait_written(struct world *w)
{
	for (int i = 0; i < 20000 && figures(w).written < w->handed; i++)
		pause_ms(1);
	assert_int_equal(figures(w).written, w->handed);
}

static void hand_over(struct world *w, uint64_t length_ns)
{
	make_interval(w, length_ns);
	assert_true(history_put(w->h, &w->f.snap, NULL, NULL) > 0);
	if (++w->handed % 16 == 0)
		wait_written(w);
}

/* Sums per domain of a series, or of all (NULL); what a point holds must not be later than the next. */
static void sum_of(const struct history_answer *a, const char *cgroup, uint64_t ret[2])
{
	ret[0] = ret[1] = 0;
	for (unsigned i = 0; i < a->n_series; i++) {
		const struct history_series *s = &a->series[i];

		if (cgroup && (strcmp(s->row, "cgroup") != 0 || strcmp(s->cgroup, cgroup) != 0))
			continue;
		for (unsigned k = 0; k < s->n; k++) {
			assert_true(!k || s->points[k].end_ns > s->points[k - 1].end_ns);
			for (unsigned d = 0; d < a->n_domains; d++)
				ret[d] += a->energy_uj[s->points[k].energy + d];
		}
	}
}

/* The machine is idle in every interval: the row idle has a point at each step. */
static uint64_t interval_of(const struct history_answer *a)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < a->n_series; i++)
		for (unsigned k = 0; k < a->series[i].n && strcmp(a->series[i].row, "idle") == 0; k++)
			sum += a->series[i].points[k].interval_ns;
	return sum;
}

static void check_answer(struct world *w, uint64_t step_ns, uint64_t limit)
{
	struct history_query q = {
		.since_ns = START_NS - NS_PER_S, .until_ns = w->now_ns, .step_ns = step_ns, .limit = limit
	};
	struct history_answer a = { 0 };
	struct err err = { 0 };
	uint64_t sum[2];

	if (history_read(w->h, &q, &a, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(a.n_domains, 2);
	assert_string_equal(a.domains[1], "dram-0");
	sum_of(&a, NULL, sum);
	assert_int_equal(sum[0], w->measured[0]);
	assert_int_equal(sum[1], w->measured[1]);
	assert_int_equal(interval_of(&a), w->interval_ns);
	for (unsigned i = 0; i < SERIES && limit >= SERIES; i++) {
		sum_of(&a, names[i], sum);
		assert_int_equal(sum[0], w->sum[0][i]);
		assert_int_equal(sum[1], w->sum[1][i]);
	}
	history_answer_free(&a);
}

static void check_steps(struct world *w)
{
	static const uint64_t steps_s[] = { 0, 1, 7, 60, 90, 3600, 86400 };

	wait_written(w);
	for (unsigned i = 0; i < sizeof(steps_s) / sizeof(steps_s[0]); i++) {
		check_answer(w, steps_s[i] * NS_PER_S, 100);
		check_answer(w, steps_s[i] * NS_PER_S, 2);
	}
}

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/history.db", dir);
	return 0;
}

static int remove_dir(void **state)
{
	remove_files();
	return rmdir(dir);
}

#endif
