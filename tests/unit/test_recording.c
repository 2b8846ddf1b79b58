/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: what was written is read back field by field, by jouled and by a reader that shares no
 * code with it; cut, foreign and hostile files end in one line, never in half a snapshot. */
#include "recording_fixture.h"

#include <fcntl.h>
#include <unistd.h>

static int file_of(const struct buf *b)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	assert_int_equal(fwrite(b->data, 1, b->len, f), b->len);
	rewind(f);
	int fd = dup(fileno(f));
	assert_true(fd >= 0);
	fclose(f);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static struct recording *opened(const struct buf *b)
{
	struct recording *r = NULL;
	struct err e = { 0 };

	if (recording_open_fd(file_of(b), &r, &e))
		fail_msg("%s", e.text);
	return r;
}

static void same_event(const struct event_desc *a, const struct event_desc *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->kind, b->kind);
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
			    x->present == y->present);
	}
	assert_int_equal(a->n_domains, b->n_domains);
	for (unsigned i = 0; i < a->n_domains; i++) {
		const struct domain_desc *x = &a->domains[i], *y = &b->domains[i];

		assert_true(x->kind == y->kind && x->package == y->package && x->die == y->die && x->has_die == y->has_die &&
			    x->interface == y->interface);
		assert_string_equal(x->name, y->name);
		assert_string_equal(x->reason, y->reason);
	}
}

static void same_domain(const struct snap_domain *a, const struct snap_domain *b, bool energy)
{
	assert_true(a->start_ns == b->start_ns && a->end_ns == b->end_ns && a->quality == b->quality &&
		    a->energy_uj == b->energy_uj && a->energy_q32 == b->energy_q32);
	if (!energy) {
		assert_true(b->idle_uj == 0 && b->residual_uj == 0 && b->scale == 1 && isnan(b->uncertainty));
		return;
	}
	assert_true(a->idle_uj == b->idle_uj && a->residual_uj == b->residual_uj && a->idle_power_uw == b->idle_power_uw &&
		    a->idle_quality == b->idle_quality && a->share_quality == b->share_quality);
	assert_memory_equal(&a->scale, &b->scale, sizeof(a->scale));
	assert_true(a->uncertainty == b->uncertainty || (isnan(a->uncertainty) && isnan(b->uncertainty)));
}

static void same_cpu(const struct snap_cpu *a, const struct snap_cpu *b)
{
	assert_true(a->online == b->online && a->quality == b->quality && a->elapsed_ns == b->elapsed_ns &&
		    a->idle_ns == b->idle_ns && a->irq_steal_ns == b->irq_steal_ns && a->offline_ns == b->offline_ns &&
		    a->busy_ns == b->busy_ns && a->msr_enabled_ns == b->msr_enabled_ns && a->msr_running_ns == b->msr_running_ns);
	assert_memory_equal(a->msr, b->msr, sizeof(a->msr));
}

static void same_row(const struct snapshot *a, const struct snapshot *b, unsigned i, bool energy)
{
	const struct snap_row *x = &a->rows[i], *y = &b->rows[i];

	assert_string_equal(x->path, y->path);
	assert_true(x->kind == y->kind && x->key == y->key && x->generation == y->generation && x->id == y->id);
	assert_true(x->level == y->level && x->ended == y->ended && x->selected == y->selected && x->quality == y->quality);
	assert_true(x->time_ns == y->time_ns && x->switches == y->switches && x->enabled_ns == y->enabled_ns &&
		    x->running_ns == y->running_ns);
	assert_memory_equal(x->counters, y->counters, sizeof(x->counters));
	assert_memory_equal(&x->traffic, &y->traffic, sizeof(x->traffic));
	assert_int_equal(x->n_cells, y->n_cells);
	for (unsigned c = 0; c < x->n_cells; c++) {
		const struct snap_cell *p = &a->cells[x->first_cell + c], *q = &b->cells[y->first_cell + c];

		assert_true(p->row == q->row && p->cpu == q->cpu && p->quality == q->quality && p->time_ns == q->time_ns);
		assert_true(p->switches == q->switches && p->enabled_ns == q->enabled_ns && p->running_ns == q->running_ns);
		assert_memory_equal(p->counters, q->counters, sizeof(p->counters));
	}
	for (unsigned d = 0; d < a->schema->n_domains; d++)
		assert_true(*snapshot_energy(b, i, d) == (energy ? *snapshot_energy(a, i, d) : 0));
}

static void same_snapshot(const struct snapshot *a, const struct snapshot *b, bool energy)
{
	assert_true(a->number == b->number && a->start_ns == b->start_ns && a->end_ns == b->end_ns);
	assert_true(a->suspended_ns == b->suspended_ns && a->end_real_ns == b->end_real_ns);
	assert_true(a->nominal_ns == b->nominal_ns && a->missed == b->missed);
	assert_memory_equal(&a->losses, &b->losses, sizeof(a->losses));
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

/* The independent reader prints what it found; the same lines are made from the structs here. */
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

/* Cut at every byte: the whole snapshots before are delivered, then one line says where it ends. */
static void test_cut_anywhere(void **state)
{
	struct buf b = { 0 };
	size_t ends[4];
	struct world w;

	world_init_small(&w);
	recording_encode_header(&w.schema, &b);
	ends[0] = b.len;
	for (unsigned i = 1; i < 4; i++) {
		world_fill(&w, i);
		recording_encode(&w.snap, true, &b);
		ends[i] = b.len;
	}
	for (size_t cut = 0; cut <= b.len; cut++) {
		struct buf part = { .data = b.data, .len = cut };
		struct recording *r = NULL;
		struct snapshot *s = NULL;
		struct err e = { 0 };
		unsigned n = 0;
		char at[40];

		int code = recording_open_fd(file_of(&part), &r, &e);
		while (!code && (code = recording_next(r, &s, &e)) == 1) {
			n++;
			code = 0;
		}
		unsigned whole = cut < ends[0] ? 0 : cut < ends[1] ? 0 : cut < ends[2] ? 1 : cut < ends[3] ? 2 : 3;
		assert_int_equal(n, whole);
		if (cut == ends[whole] && cut >= ends[0]) {
			assert_int_equal(code, 0);
		} else {
			snprintf(at, sizeof(at), "the end of the file at byte %zu;", cut);
			assert_int_equal(code, -EBADMSG);
			if (!strstr(e.text, at) || !strstr(e.text, "expected"))
				fail_msg("cut at %zu: %s", cut, e.text);
			/* And stays so. */
			if (r) {
				assert_int_equal(recording_next(r, &s, &e), -EBADMSG);
				assert_non_null(strstr(e.text, at));
			}
		}
		recording_close(r);
	}
	world_free(&w, true);
	buf_free(&b);
}

/* One byte changed anywhere: read or refused, and nothing else (the sanitizers watch). */
static void test_damaged_anywhere(void **state)
{
	struct buf b = { 0 };
	struct world w;
	unsigned refused = 0;

	world_init_small(&w);
	recording_encode_header(&w.schema, &b);
	world_fill(&w, 1);
	recording_encode(&w.snap, true, &b);
	for (size_t i = 0; i < b.len * 3; i++) {
		struct recording *r = NULL;
		struct snapshot *s;
		struct err e = { 0 };
		uint8_t was = b.data[i / 3], now[] = { 0xff, (uint8_t)(was + 1), (uint8_t)(was ^ 0x60) };

		b.data[i / 3] = now[i % 3];
		int code = recording_open_fd(file_of(&b), &r, &e);
		while (!code && (code = recording_next(r, &s, &e)) == 1)
			code = 0;
		if (code) {
			refused++;
			assert_non_null(strstr(e.text, "; "));
		}
		recording_close(r);
		b.data[i / 3] = was;
	}
	/* Most bytes are digits of numbers, which nothing can tell from others. */
	assert_true(refused > b.len / 2);
	world_free(&w, true);
	buf_free(&b);
}

static void put_junk(struct buf *b)
{
	static const uint8_t junk[] = {
		0x86,                               /* array of 6 */
		0xbf, 0x61, 'a', 0x5f, 0x41, 'x', 0xff, 0xff,   /* open map: "a" -> byte string in pieces */
		0x9f, 0x01, 0x20, 0xff,             /* open array: 1, -1 */
		0xc1, 0xfb, 0, 0, 0, 0, 0, 0, 0, 0, /* tag 1 on a double */
		0xf6, 0xf9, 0x7e, 0x00,             /* null, half NaN */
		0x78, 0x03, 'l', 'o', 'l',          /* text with a longer head than needed */
	};

	buf_add(b, junk, sizeof(junk));
}

/* A snapshot by hand, with things a later version may bring. */
static void put_future_snapshot(struct buf *b, const struct schema *s)
{
	cbw_map(b, 7);
	cbw_str(b, "a key that is longer than any that this version knows, by far");
	put_junk(b);
	cbw_uint(b, 4711);
	put_junk(b);
	cbw_str(b, "schema");
	cbw_uint(b, recording_schema_id(s));
	cbw_str(b, "end_ns");
	cbw_uint(b, 5);
	cbw_str(b, "cpus");
	cbw_array(b, 0);
	cbw_str(b, "domains");
	cbw_array(b, 0);
	cbw_str(b, "rows");
	cbw_array(b, 5);
	for (unsigned i = 0; i < 5; i++) {
		cbw_map(b, i == 4 ? 6 : 3);
		cbw_uint(b, RF_KIND);
		cbw_uint(b, i);
		cbw_uint(b, 99);
		put_junk(b);
		cbw_uint(b, RF_KEY);
		cbw_uint(b, i);
		if (i < 4)
			continue;
		cbw_str(b, "word");
		put_junk(b);
		cbw_uint(b, RF_PATH);
		cbw_str(b, "/x");
		cbw_uint(b, RF_CELLS);
		cbw_array(b, 1);
		cbw_array(b, 8);
		for (unsigned k = 0; k < 4; k++)
			cbw_uint(b, k);
		cbw_array(b, 0);
		cbw_uint(b, 1);
		cbw_uint(b, 1);
		put_junk(b);
	}
}

static void small_schema(struct schema *s, struct cpu_desc cpus[2])
{
	memset(s, 0, sizeof(*s));
	cpus[0] = (struct cpu_desc){ .present = true };
	cpus[1] = (struct cpu_desc){ .cpu = 1, .core = 1, .present = true };
	s->cpus = cpus;
	s->n_cpus = 2;
	s->n_packages = 1;
}

static void test_unknown_keys_are_read_over(void **state)
{
	struct buf b = { 0 };
	struct cpu_desc cpus[2];
	struct schema schema;
	struct snapshot *s = NULL;

	small_schema(&schema, cpus);
	recording_encode_header(&schema, &b);
	/* Map of 15 pairs behind the tag (3 bytes): one more, with a key of the future. */
	assert_int_equal(b.data[3], 0xa0 | 15);
	b.data[3]++;
	cbw_str(&b, "future");
	put_junk(&b);
	put_future_snapshot(&b, &schema);
	struct recording *r = opened(&b);
	assert_int_equal(recording_next(r, &s, NULL), 1);
	assert_int_equal(s->n_rows, 5);
	assert_string_equal(s->rows[4].path, "/x");
	assert_int_equal(s->rows[4].time_ns, 2);
	assert_int_equal(s->rows[4].switches, 3);
	assert_int_equal(recording_next(r, &s, NULL), 0);
	recording_close(r);
	buf_free(&b);
}

/* `edit` spoils one thing; the message must name it. */
static void refused(void (*edit)(struct buf *b, struct snapshot *s), const char *word)
{
	struct buf b = { 0 };
	struct world w;
	struct recording *r = NULL;
	struct snapshot *s = NULL;
	struct err e = { 0 };

	world_init(&w, 3);
	w.max_rows = 8;
	world_fill(&w, 1);
	recording_encode_header(&w.schema, &b);
	edit(&b, &w.snap);
	int code = recording_open_fd(file_of(&b), &r, &e);
	if (!code)
		code = recording_next(r, &s, &e);
	if (code == 1)
		code = recording_next(r, &s, &e);
	if (code >= 0 || !strstr(e.text, word))
		fail_msg("%d, no \"%s\" in: %s", code, word, e.text);
	assert_null(strchr(e.text, '\n'));
	recording_close(r);
	world_free(&w, true);
	buf_free(&b);
}

static void rows_out_of_order(struct buf *b, struct snapshot *s)
{
	s->rows[1].kind = ROW_IDLE;
	recording_encode(s, false, b);
}

static void same_key(struct buf *b, struct snapshot *s)
{
	s->rows[5].key = s->rows[4].key;
	recording_encode(s, false, b);
}

static void large_key(struct buf *b, struct snapshot *s)
{
	s->rows[5].key = 1u << 20;
	recording_encode(s, false, b);
}

static void relative_path(struct buf *b, struct snapshot *s)
{
	s->rows[4].path = "x";
	recording_encode(s, false, b);
}

static void ends_before(struct buf *b, struct snapshot *s)
{
	s->start_ns = s->end_ns + 1;
	recording_encode(s, false, b);
}

static void other_schema(struct buf *b, struct snapshot *s)
{
	((struct schema *)s->schema)->sensor[0] ^= 1;
	recording_encode(s, false, b);
}

static void other_header(struct buf *b, struct snapshot *s)
{
	recording_encode(s, false, b);
	((struct schema *)s->schema)->sensor[0] ^= 1;
	recording_encode_header(s->schema, b);
}

static void endless_array(struct buf *b, struct snapshot *s)
{
	cbw_map(b, 1);
	cbw_str(b, "rows");
	cbw_array(b, UINT64_MAX);
}

static void endless_string(struct buf *b, struct snapshot *s)
{
	static const uint8_t head[] = { 0xa1, 0x61, 'x', 0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	buf_add(b, head, sizeof(head));
}

static void deep(struct buf *b, struct snapshot *s)
{
	cbw_map(b, 1);
	cbw_str(b, "x");
	for (int i = 0; i < 100000; i++)
		cbw_array(b, 1);
}

static void huge_map(struct buf *b, struct snapshot *s)
{
	cbw_map(b, 1);
	cbw_str(b, "x");
	cbw_map(b, UINT64_MAX);
}

static void reserved_byte(struct buf *b, struct snapshot *s)
{
	buf_add_char(b, 0x1c);
}

static void newer(struct buf *b, struct snapshot *s)
{
	uint8_t *v = memmem(b->data, b->len, "version\x01", 8);

	assert_non_null(v);
	v[7] = 2;
}

static void no_cpus(struct buf *b, struct snapshot *s)
{
	struct schema none = *s->schema;

	none.n_cpus = 0;
	buf_reset(b);
	recording_encode_header(&none, b);
}

static void foreign(struct buf *b, struct snapshot *s)
{
	buf_reset(b);
	buf_add_str(b, "{\"timestamp\": 1}\n");
}

static void test_refusals(void **state)
{
	refused(rows_out_of_order, "special rows first");
	refused(same_key, "key of its own");
	refused(large_key, "row's key");
	refused(relative_path, "slash");
	refused(ends_before, "ends after it begins");
	refused(other_schema, "two recordings");
	refused(other_header, "two recordings");
	refused(endless_array, "end of the file");
	refused(endless_string, "end of the file");
	refused(deep, "16 levels");
	refused(huge_map, "possible size");
	refused(reserved_byte, "0x1c");
	refused(newer, "version 2");
	refused(no_cpus, "header with CPUs");
	refused(foreign, "tag 55799");

	struct recording *r = NULL;
	struct err e = { 0 };
	assert_int_equal(recording_open("/nonexistent/x", &r, &e), -ENOENT);
	assert_non_null(strstr(e.text, "recording \"/nonexistent/x\": No such file"));
	assert_int_equal(recording_open("/tmp", &r, &e), -EISDIR);
	assert_int_equal(recording_open("/dev/null", &r, &e), -EBADMSG);
	assert_null(r);
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
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_damaged_anywhere),
		cmocka_unit_test(test_unknown_keys_are_read_over),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_same_header_again),
		cmocka_unit_test(test_no_allocation_in_steady_state),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
