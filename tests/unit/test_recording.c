/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: what was written is read back field by field, by jouled and by a reader that shares no
 * code with it. */
#include "recording_lines.h"

static void same_event(const struct event_desc *a, const struct event_desc *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->added, b->added);
	assert_int_equal(a->type, b->type);
	assert_true(a->config == b->config && a->config1 == b->config1 && a->config2 == b->config2);
	assert_string_equal(a->pmu, b->pmu);
	assert_string_equal(a->reason, b->reason);
	assert_int_equal(a->cpus_only_known, b->cpus_only_known);
	assert_memory_equal(a->cpus, b->cpus, sizeof(a->cpus));
}

static void same_schema(const struct schema *a, const struct schema *b)
{
	assert_string_equal(a->sensor, b->sensor);
	assert_string_equal(a->boot_id, b->boot_id);
	assert_string_equal(a->trigger, b->trigger);
	assert_string_equal(a->clock, b->clock);
	assert_int_equal(a->multiplexed, b->multiplexed);
	assert_int_equal(a->irq_separate, b->irq_separate);
	assert_int_equal(a->idle_merged, b->idle_merged);
	assert_int_equal(a->n_packages, b->n_packages);
	assert_int_equal(a->n_core_types, b->n_core_types);
	assert_int_equal(a->core.n, b->core.n);
	assert_int_equal(a->msr.n, b->msr.n);
	for (unsigned i = 0; i < a->core.n; i++)
		same_event(&a->core.ev[i], &b->core.ev[i]);
	for (unsigned i = 0; i < a->msr.n; i++)
		same_event(&a->msr.ev[i], &b->msr.ev[i]);
	assert_int_equal(a->n_cpus, b->n_cpus);
	for (unsigned i = 0; i < a->n_cpus; i++) {
		const struct cpu_desc *x = &a->cpus[i], *y = &b->cpus[i];

		assert_true(x->cpu == y->cpu && x->package == y->package && x->die == y->die && x->core == y->core &&
			    x->present == y->present && x->core_type == y->core_type);
	}
	assert_int_equal(a->n_domains, b->n_domains);
	for (unsigned i = 0; i < a->n_domains; i++) {
		const struct domain_desc *x = &a->domains[i], *y = &b->domains[i];

		assert_true(x->kind == y->kind && x->package == y->package && x->die == y->die &&
			    x->has_die == y->has_die && x->interface == y->interface &&
			    x->idle_known == y->idle_known && x->idle_uw == y->idle_uw);
		assert_string_equal(x->name, y->name);
		assert_string_equal(x->reason, y->reason);
	}
}

static void same_domain(const struct snap_domain *a, const struct snap_domain *b, bool energy)
{
	assert_true(a->start_ns == b->start_ns && a->end_ns == b->end_ns && a->quality == b->quality &&
		    a->energy_uj == b->energy_uj && a->energy_q32 == b->energy_q32);
	assert_memory_equal(&a->work, &b->work, sizeof(a->work));
	assert_int_equal(a->audit_ppm, b->audit_ppm);
	if (!energy) {
		assert_true(b->idle_uj == 0 && b->residual_uj == 0 && b->scale == 1 && isnan(b->uncertainty) &&
			    isnan(b->idle_uncertainty));
		return;
	}
	assert_true(a->idle_uj == b->idle_uj && a->residual_uj == b->residual_uj &&
		    a->idle_power_uw == b->idle_power_uw && a->idle_quality == b->idle_quality &&
		    a->share_quality == b->share_quality);
	assert_memory_equal(&a->scale, &b->scale, sizeof(a->scale));
	assert_true(a->uncertainty == b->uncertainty || (isnan(a->uncertainty) && isnan(b->uncertainty)));
	assert_true(a->idle_uncertainty == b->idle_uncertainty ||
		    (isnan(a->idle_uncertainty) && isnan(b->idle_uncertainty)));
}

static void same_cpu(const struct snap_cpu *a, const struct snap_cpu *b)
{
	assert_true(a->online == b->online && a->quality == b->quality && a->elapsed_ns == b->elapsed_ns &&
		    a->idle_ns == b->idle_ns && a->irq_steal_ns == b->irq_steal_ns && a->offline_ns == b->offline_ns &&
		    a->busy_ns == b->busy_ns && a->msr_enabled_ns == b->msr_enabled_ns &&
		    a->msr_running_ns == b->msr_running_ns);
	assert_memory_equal(a->msr, b->msr, sizeof(a->msr));
}

static void same_row(const struct snapshot *a, const struct snapshot *b, unsigned i, bool energy)
{
	const struct snap_row *x = &a->rows[i], *y = &b->rows[i];

	assert_string_equal(x->path, y->path);
	assert_true(x->kind == y->kind && x->key == y->key && x->generation == y->generation && x->id == y->id);
	assert_true(x->level == y->level && x->ended == y->ended && x->selected == y->selected &&
		    x->quality == y->quality);
	assert_true(x->time_ns == y->time_ns && x->switches == y->switches && x->enabled_ns == y->enabled_ns &&
		    x->running_ns == y->running_ns);
	assert_memory_equal(x->counters, y->counters, sizeof(x->counters));
	assert_memory_equal(&x->traffic, &y->traffic, sizeof(x->traffic));
	assert_int_equal(x->n_cells, y->n_cells);
	for (unsigned c = 0; c < x->n_cells; c++) {
		const struct snap_cell *p = &a->cells[x->first_cell + c], *q = &b->cells[y->first_cell + c];

		assert_true(p->row == q->row && p->cpu == q->cpu && p->quality == q->quality &&
			    p->time_ns == q->time_ns);
		assert_true(p->switches == q->switches && p->enabled_ns == q->enabled_ns &&
			    p->running_ns == q->running_ns);
		assert_memory_equal(p->counters, q->counters, sizeof(p->counters));
	}
	for (unsigned d = 0; d < a->schema->n_domains; d++)
		assert_true(*snapshot_energy(b, i, d) == (energy ? *snapshot_energy(a, i, d) : 0) &&
			    *snapshot_uncertainty(b, i, d) ==
				    (energy ? *snapshot_uncertainty(a, i, d) : SNAPSHOT_UNKNOWN));
}

static void same_snapshot(const struct snapshot *a, const struct snapshot *b, bool energy)
{
	assert_true(a->number == b->number && a->start_ns == b->start_ns && a->end_ns == b->end_ns);
	assert_true(a->suspended_ns == b->suspended_ns && a->end_real_ns == b->end_real_ns);
	assert_true(a->nominal_ns == b->nominal_ns && a->missed == b->missed && a->skew_ns == b->skew_ns);
	assert_memory_equal(&a->losses, &b->losses, sizeof(a->losses));
	assert_string_equal(a->audit.formula, b->audit.formula);
	assert_string_equal(a->audit.better, b->audit.better);
	assert_string_equal(b->audit.why, ""); /* words stay on the machine */
	assert_string_equal(b->formula, energy ? a->formula : "");
	assert_int_equal(b->idle_policy, energy ? a->idle_policy : IDLE_OWN);
	for (unsigned i = 0; i < a->schema->n_cpus; i++)
		same_cpu(&a->cpus[i], &b->cpus[i]);
	for (unsigned i = 0; i < a->schema->n_domains; i++)
		same_domain(&a->domains[i], &b->domains[i], energy);
	assert_int_equal(a->n_rows, b->n_rows);
	assert_int_equal(a->n_cells, b->n_cells);
	for (unsigned i = 0; i < a->n_rows; i++)
		same_row(a, b, i, energy);
}

/* 200 random machines, 5 snapshots each, with and without energy. */
static void test_round_trip(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct world w[5];
		struct buf b = { 0 };
		bool energy = seed % 2;

		world_init(&w[0], seed);
		recording_encode_header(&w[0].schema, &b);
		for (unsigned i = 0; i < 5; i++) {
			if (i)
				world_like(&w[i], &w[0]);
			world_fill(&w[i], i + 1);
			recording_encode(&w[i].snap, energy, &b);
		}
		assert_false(b.failed);
		struct recording *r = opened(&b);
		same_schema(&w[0].schema, recording_schema(r));
		for (unsigned i = 0; i < 5; i++) {
			struct snapshot *s = NULL;
			struct err e = { 0 };

			if (recording_next(r, &s, &e) != 1)
				fail_msg("%s", e.text);
			assert_ptr_equal(s->schema, recording_schema(r));
			same_snapshot(&w[i].snap, s, energy);
		}
		struct snapshot *none = NULL;
		assert_int_equal(recording_next(r, &none, NULL), 0);
		assert_null(none);
		recording_close(r);
		for (unsigned i = 0; i < 5; i++)
			world_free(&w[i], i == 0);
		buf_free(&b);
	}
	recording_close(NULL);
}

/* The schema holds, and the independent reader prints what it found: the same lines as are made from
 * the structs here. */
static void test_independent_reader(void **state)
{
	char name[] = "/tmp/jouled-recording-XXXXXX", cmd[200], *line = NULL;
	size_t cap = 0;

	if (system("python3 -c '' 2>/dev/null") != 0) {
		printf("SKIP test_independent_reader: no python3\n");
		return;
	}
	for (uint64_t seed = 1000; seed < 1012; seed++) {
		struct buf b = { 0 }, want = { 0 };
		struct world w;

		world_init(&w, seed);
		recording_encode_header(&w.schema, &b);
		print_header(&w.schema, &want);
		for (unsigned i = 0; i < 4; i++) {
			world_fill(&w, i + 1);
			recording_encode(&w.snap, i % 2, &b);
			print_snapshot(&w.snap, i % 2, &want);
		}
		strcpy(name + strlen(name) - 6, "XXXXXX");
		int fd = mkstemp(name);
		assert_int_equal(write(fd, b.data, b.len), b.len);
		close(fd);
		snprintf(cmd, sizeof(cmd), "python3 tests/golden/check_cddl.py docs/formats/snapshot.cddl %s", name);
		assert_int_equal(system(cmd), 0);
		snprintf(cmd, sizeof(cmd), "python3 tests/golden/read_snapshot.py %s", name);
		FILE *p = popen(cmd, "r");
		buf_add_char(&want, 0);
		for (char *at = (char *)want.data; *at;) {
			char *end = strchr(at, '\n');
			ssize_t n = getline(&line, &cap, p);

			assert_true(n > 0);
			*end = 0;
			line[n - 1] = 0;
			same_line(at, line);
			at = end + 1;
		}
		assert_int_equal(getline(&line, &cap, p), -1);
		assert_int_equal(pclose(p), 0);
		unlink(name);
		world_free(&w, true);
		buf_free(&b);
		buf_free(&want);
	}
	free(line);
}

/* Two runs of the same schema, one file behind the other. */
static void test_same_header_again(void **state)
{
	struct buf b = { 0 };
	struct world w;
	struct snapshot *s = NULL;

	world_init(&w, 5);
	for (unsigned i = 0; i < 2; i++) {
		recording_encode_header(&w.schema, &b);
		world_fill(&w, i + 1);
		recording_encode(&w.snap, true, &b);
	}
	recording_encode_header(&w.schema, &b);
	struct recording *r = opened(&b);
	assert_int_equal(recording_next(r, &s, NULL), 1);
	assert_int_equal(recording_next(r, &s, NULL), 1);
	same_snapshot(&w.snap, s, true);
	assert_int_equal(recording_next(r, &s, NULL), 0);
	recording_close(r);
	world_free(&w, true);
	buf_free(&b);
}

int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *p, size_t n),
					      void (*on_free)(const volatile void *p));
static unsigned allocations;

static void on_malloc(const volatile void *p, size_t n)
{
	allocations++;
}

static void on_free(const volatile void *p)
{
}

static void test_no_allocation_in_steady_state(void **state)
{
	struct buf b = { 0 };
	struct world w;

	assert_true(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0);
	world_init(&w, 9);
	world_fill(&w, 1);
	recording_encode(&w.snap, true, &b);
	allocations = 0;
	for (unsigned i = 0; i < 100; i++) {
		buf_reset(&b);
		recording_encode(&w.snap, true, &b);
	}
	assert_int_equal(allocations, 0);
	world_free(&w, true);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_independent_reader),
		cmocka_unit_test(test_same_header_again),
		cmocka_unit_test(test_no_allocation_in_steady_state),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
