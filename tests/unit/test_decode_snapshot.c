/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: what is known of the snapshots that went in stands in what comes out (the end-to-end test
 * compares all of it with an independent reader). */
#include "decode_fixture.h"
#include "recording_fixture.h"

static const char *find_line(const char *text, unsigned n)
{
	while (n--)
		text = strchr(text, '\n') + 1;
	return text;
}

/* The line holds "key":value. */
static void holds(const char *line, const char *format, ...)
{
	char want[700], *end = strndup(line, strcspn(line, "\n"));
	va_list ap;

	va_start(ap, format);
	vsnprintf(want, sizeof(want), format, ap);
	va_end(ap);
	if (!strstr(end, want))
		fail_msg("no %s in %.2000s", want, end);
	free(end);
}

static void test_fields(void **state)
{
	struct buf b = { 0 };
	struct decoded d;
	struct world w;
	size_t at;

	world_init(&w, 11);
	recording_encode_header(&w.schema, &b);
	at = b.len;
	world_fill(&w, 1);
	recording_encode(&w.snap, true, &b);
	decode_bytes(b.data, b.len, "", &d);
	assert_int_equal(d.code, 0);
	assert_int_equal(d.records, 2);
	holds(decoded_text(&d), "{\"format\":\"snapshot\",\"kind\":\"header\",\"record\":1,\"offset\":0,");
	holds(decoded_text(&d), "\"packages\":%u,", w.schema.n_packages);
	for (unsigned i = 0; i < w.schema.n_domains; i++)
		holds(decoded_text(&d), "{\"name\":\"%s\",\"kind\":\"%s\"", w.schema.domains[i].name,
		      domain_kind_name(w.schema.domains[i].kind));
	const char *line = find_line(decoded_text(&d), 1);
	holds(line,
	      "{\"format\":\"snapshot\",\"kind\":\"snapshot\",\"record\":2,\"offset\":%zu,\"number\":%llu,\"start_ns\":%llu,",
	      at, (unsigned long long)w.snap.number, (unsigned long long)w.snap.start_ns);
	for (unsigned i = 0; i < w.snap.n_rows; i++) {
		const struct snap_row *r = &w.snap.rows[i];

		holds(line, "\"id\":%llu,\"key\":%u,\"generation\":%u,\"level\":%u,\"ended\":%s,",
		      (unsigned long long)r->id, r->key, r->generation, r->level, r->ended ? "true" : "false");
		holds(line, "\"time_ns\":%llu,\"switches\":%llu,\"enabled_ns\":%llu,\"running_ns\":%llu,\"counters\":[",
		      (unsigned long long)r->time_ns, (unsigned long long)r->switches,
		      (unsigned long long)r->enabled_ns, (unsigned long long)r->running_ns);
	}
	for (unsigned i = 0; i < w.snap.n_cells; i++)
		holds(line, "{\"cpu\":%u,\"quality\":", w.snap.cells[i].cpu);
	buf_free(&d.text);
	world_free(&w, true);
	buf_free(&b);
}

static void test_every_cut_and_change(void **state)
{
	struct buf b = { 0 };
	struct world w;

	world_init_small(&w);
	recording_encode_header(&w.schema, &b);
	for (unsigned i = 1; i < 3; i++) {
		world_fill(&w, i);
		recording_encode(&w.snap, true, &b);
	}
	survives(b.data, b.len, "format=snapshot");
	world_free(&w, true);
	buf_free(&b);
}

/* A snapshot that would take more than its share of memory is refused before it does. */
static void test_large(void **state)
{
	struct buf b = { 0 };
	struct cpu_desc cpu = { .present = true };
	struct schema s = { .cpus = &cpu, .n_cpus = 1, .n_packages = 1 };
	struct decoded d;

	recording_encode_header(&s, &b);
	cbw_map(&b, 1);
	cbw_str(&b, "rows");
	cbw_array(&b, 400000);
	for (unsigned i = 0; i < 400000; i++) {
		cbw_map(&b, i < 4 ? 2 : 3);
		cbw_uint(&b, RF_KIND);
		cbw_uint(&b, i < 4 ? i : ROW_CGROUP);
		cbw_uint(&b, RF_KEY);
		cbw_uint(&b, i);
		if (i < 4)
			continue;
		cbw_uint(&b, RF_PATH);
		cbw_str(&b, "/");
	}
	decode_bytes(b.data, b.len, "", &d);
	assert_int_equal(d.code, -EBADMSG);
	assert_non_null(strstr(d.error, "more rows and cells"));
	assert_int_equal(d.records, 1);
	buf_free(&d.text);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_every_cut_and_change),
		cmocka_unit_test(test_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
