// SPDX-License-Identifier: Apache-2.0
/* What a node of each size needs: kernel maps by their formula, and the vectors of a reading and its consumers as they grow. docs/operation.md has this table, and the DaemonSet's limit must hold what docs/kubernetes.md says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/cgroup.h"
#include "model/snapshot.h"
#include "source/counters/rows.h"

#define MIB (1u << 20)
#define BASE_MIB 24 /* code, libraries, stacks, history: "memory" of make bench */
#define MAX_CGROUPS 4096
#define CONSUMERS 2 /* an output and the query server */
#define HELD_CPUS 256 /* the limit of the manifest holds this line of the table */
#define MANIFEST "deploy/kubernetes/base/daemonset.yaml"
#define TABLE "docs/operation.md"

static const struct size {
	unsigned cpus, cgroups;
} sizes[] = { { 16, 300 }, { 64, 500 }, { 128, 500 }, { HELD_CPUS, 500 }, { 256, 1000 }, { 512, 1000 } };

/* Per cell a consumer remembers its values and its generation; per row its path, as long as those here, and numbers. */
#define SEEN_CELL (sizeof(struct cell) + sizeof(uint32_t))
#define PATH_BYTES 192
#define SEEN_ROW (PATH_BYTES + 64)

static size_t consumer_bytes(const struct reading *r, const struct snapshot *s)
{
	return r->cap_cells * SEEN_CELL + (size_t)s->cap_cells * sizeof(*s->cells) + r->cap_rows * SEEN_ROW +
	       (size_t)s->cap_rows * sizeof(*s->rows) +
	       (size_t)s->cap_energy * (sizeof(*s->energy_uj) + sizeof(*s->uncertainty_ppm));
}

static size_t reading_bytes(const struct reading *r)
{
	return r->cap_cells * (sizeof(*r->cells) + sizeof(*r->heads) + sizeof(*r->ahead_ns)) +
	       (size_t)r->cap_rows * r->schema->n_cpus * sizeof(*r->cell_of) +
	       r->cap_rows * (sizeof(*r->rows) + sizeof(*r->row_changed) + sizeof(struct cgroup) + PATH_BYTES);
}

/* A path as kubelets make them. */
static void add_rows(struct reading *r, struct cgroup_table *t, const struct size *s)
{
	char path[256];

	for (unsigned i = 0; i < s->cgroups; i++) {
		snprintf(
			path, sizeof(path),
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%032u.slice/cri-containerd-%064u.scope",
			i, i);
		struct cgroup *cg = cgroup_add(t, 1000 + i, path, 4, 0);
		int64_t row = cg ? reading_add_row(r, cg) : -1;

		assert_true(row >= 0);
		for (unsigned cpu = 0; cpu < s->cpus; cpu++)
			reading_cell(r, (uint32_t)row, (uint16_t)cpu)->time_ns = 1;
	}
}

/* Every cgroup ran on every CPU. */
static size_t heap_of(const struct size *s)
{
	struct schema schema = { .n_cpus = s->cpus, .n_packages = 2, .n_domains = 4, .core.n = 6 };
	struct consumer *consumers[CONSUMERS];
	size_t used;
	struct cgroup_table *t = cgroup_table_new();
	struct reading r;

	schema.cpus = calloc(s->cpus, sizeof(*schema.cpus));
	assert_int_equal(reading_init(&r, &schema), 0);
	for (unsigned i = 0; i < CONSUMERS; i++)
		assert_non_null(consumers[i] = consumer_new(&r));
	r.number++;
	add_rows(&r, t, s);
	used = reading_bytes(&r);
	for (unsigned i = 0; i < CONSUMERS; i++) {
		const struct snapshot *snap = consumer_snapshot(consumers[i], &r);

		assert_int_equal(snap->n_cells, s->cpus * s->cgroups);
		used += consumer_bytes(&r, snap);
	}
	for (unsigned i = 0; i < CONSUMERS; i++)
		consumer_free(consumers[i]);
	reading_free(&r);
	cgroup_table_free(t);
	free(schema.cpus);
	return used;
}

/* Kernel maps, and what the source keeps of rows: an idle CPU's are remembered. */
static size_t counters_of(const struct size *s)
{
	struct counters_options o = { .max_cgroups = MAX_CGROUPS };
	struct schema schema = { .core.n = 6 };
	struct counters c = { .o = &o, .schema = &schema, .n_cpus = s->cpus, .max_slots = MAX_CGROUPS + JD_FIRST_SLOT };
	size_t rows;

	counters_set_sizes(&c);
	rows = c.bank_rows < s->cgroups ? c.bank_rows : s->cgroups;
	return counters_map_bytes(&c) + s->cpus * (rows * sizeof(struct staged_row) + c.max_slots * sizeof(uint32_t));
}

static unsigned limit_mib(void)
{
	FILE *f = fopen(MANIFEST, "re");
	unsigned mib = 0, v;
	bool limits = false;
	char line[256];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		limits |= strstr(line, "limits:") != NULL;
		if (limits && !mib && sscanf(line, " memory: %uMi", &v) == 1)
			mib = v;
	}
	fclose(f);
	return mib;
}

static bool in_table(const char *row)
{
	FILE *f = fopen(TABLE, "re");
	bool found = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= !strncmp(line, row, strlen(row));
	fclose(f);
	return found;
}

static void test_sizes(void **state)
{
	unsigned missing = 0; /* the whole table is printed first */
	char row[128];

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const struct size *s = &sizes[i];
		unsigned need = BASE_MIB + (unsigned)((heap_of(s) + counters_of(s) + MIB - 1) / MIB);
		unsigned limit = (need + 31) / 32 *
				 32; /* of the table: it stands still while a struct grows a little */

		snprintf(row, sizeof(row), "| %u | %u | %u MiB |", s->cpus, s->cgroups, limit);
		printf("  %s (%u)\n", row, need);
		missing += !in_table(row);
		if (s->cpus <= HELD_CPUS && s->cgroups <= 500)
			assert_true(limit <= limit_mib());
	}
	assert_int_equal(missing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
