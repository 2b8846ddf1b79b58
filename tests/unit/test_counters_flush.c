// SPDX-License-Identifier: Apache-2.0
/* Readings of a machine with many CPUs, without a kernel: every CPU is flushed once a reading, whoever does it, and before
 * anything is taken. The flush is played here. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <cmocka.h>

#include "base/clock.h"
#include "source/counters/rows.h"
#include "unit/temp_root.h"

#define CPUS 70
#define SLOTS 8
#define ROWS JD_ROWS_ALIGN
#define RAN_NS 1000

struct machine {
	struct counters c;
	struct schema schema;
	struct reading r;
	struct cgroup_table *table;
	struct temp_root root;
	uint64_t row_slots[CPUS * JD_BANKS * ROWS];
	struct jd_row rows[CPUS * JD_BANKS * ROWS];
	struct jd_slot_info info[SLOTS];
	struct cpu_source cpus[CPUS];
	uint8_t online_bits[CPUS / 8 + 128], gone_bits[CPUS / 8 + 1];
	unsigned to_flush[CPUS];
	uint32_t slot_cells[CPUS * SLOTS], slot_row[SLOTS];
	uint64_t taken_ns; /* before the reading */
	atomic_uint flushes[CPUS], by_helpers;
	pthread_t reader;
};

static struct machine *m;

static uint64_t elapsed_ns(void)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		sum += m->r.cpus[cpu].elapsed_ns;
	return sum;
}

/* The kernel's part: the CPU ran one cgroup since the last flush, and turns to its other bank. */
int bpf_prog_test_run_opts(int fd, struct bpf_test_run_opts *opts)
{
	unsigned cpu = opts->cpu;
	struct jd_cpu_state *st = &m->c.states[cpu];
	size_t at = row_index(&m->c, cpu, st->bank, JD_FIRST_SLOT);

	assert_int_equal(elapsed_ns(), m->taken_ns); /* nothing was taken yet */
	*row_at(&m->c, at) = (struct jd_row){ .time_ns = RAN_NS, .switches = 1 };
	m->row_slots[at] = JD_FIRST_SLOT + cpu % 3;
	st->n_rows[st->bank] = JD_FIRST_SLOT + 1;
	st->flush_mono_ns = clock_mono_ns();
	st->bank ^= 1;
	st->n_rows[st->bank] = JD_FIRST_SLOT;
	atomic_fetch_add(&m->flushes[cpu], 1);
	if (!pthread_equal(pthread_self(), m->reader))
		atomic_fetch_add(&m->by_helpers, 1);
	usleep(20); /* as if it waited for the CPU */
	opts->retval = JD_FLUSHED;
	return 0;
}

static void machine_make(void)
{
	m = calloc(1, sizeof(*m));
	assert_non_null(m);
	m->root = temp_root_new();
	temp_root_put(&m->root, "/sys/devices/system/cpu/online", "0-69\n");
	m->schema = (struct schema){ .n_cpus = CPUS, .cpus = calloc(CPUS, sizeof(struct cpu_desc)), .n_packages = 1 };
	m->c = (struct counters){ .schema = &m->schema,
				  .root = m->root.root,
				  .n_cpus = CPUS,
				  .max_slots = SLOTS,
				  .bank_rows = ROWS,
				  .row_bytes = sizeof(m->rows[0]),
				  .states = aligned_alloc(128, CPUS * sizeof(struct jd_cpu_state)),
				  .rows = (uint8_t *)m->rows,
				  .row_slots = m->row_slots,
				  .info = m->info,
				  .slot_cells = m->slot_cells,
				  .cpus = m->cpus,
				  .slot_row = m->slot_row,
				  .to_flush = m->to_flush,
				  .online_bits = m->online_bits,
				  .gone_bits = m->gone_bits,
				  .tsc_event = -1 };
	assert_non_null(m->c.states);
	memset(m->c.states, 0, CPUS * sizeof(*m->c.states));
	memset(m->slot_row, 0xff, sizeof(m->slot_row));
	assert_int_equal(online_open(m->root.root, &m->c.online), 0);
	assert_int_equal(online_watch(m->c.online, CPUS), 0);
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		m->cpus[cpu].online = true;
		m->c.states[cpu].key = 4711;
	}
	for (unsigned slot = JD_FIRST_SLOT; slot < SLOTS; slot++)
		m->info[slot].key = 4711 + slot;
	assert_int_equal(reading_init(&m->r, &m->schema), 0);
	m->table = cgroup_table_new();
	m->reader = pthread_self();
}

static void machine_unmake(void)
{
	online_close(m->c.online);
	temp_root_free(&m->root);
	reading_free(&m->r);
	cgroup_table_free(m->table);
	free(m->c.states);
	free(m->schema.cpus);
	free(m);
}

static void read_once(unsigned n)
{
	m->taken_ns = elapsed_ns();
	m->r.number++;
	assert_int_equal(counters_read(&m->c, &m->r, m->table, NULL), 0);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(atomic_load(&m->flushes[cpu]), n);
	assert_int_equal(elapsed_ns(), (uint64_t)n * CPUS * RAN_NS);
}

static void test_one_thread(void **state)
{
	machine_make();
	for (unsigned i = 1; i <= 20; i++)
		read_once(i);
	assert_int_equal(atomic_load(&m->by_helpers), 0);
	machine_unmake();
}

static void test_helpers(void **state)
{
	unsigned n = 0;

	machine_make();
	assert_int_equal(counters_helpers_start(&m->c, 3, 0), 0);
	while (n < 200 || (n < 20000 && !atomic_load(&m->by_helpers)))
		read_once(++n);
	printf("  %u of %u flushes by helpers\n", atomic_load(&m->by_helpers), n * CPUS);
	assert_int_not_equal(atomic_load(&m->by_helpers), 0);
	counters_helpers_stop(&m->c);
	read_once(++n);
	machine_unmake();
}

/* A machine that is read in less time than helpers are worth leaves them asleep. */
static void test_helpers_asleep(void **state)
{
	machine_make();
	assert_int_equal(counters_helpers_start(&m->c, 2, UINT64_MAX), 0);
	for (unsigned i = 1; i <= 20; i++)
		read_once(i);
	assert_int_equal(atomic_load(&m->by_helpers), 0);
	counters_helpers_stop(&m->c);
	machine_unmake();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread),
		cmocka_unit_test(test_helpers),
		cmocka_unit_test(test_helpers_asleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
