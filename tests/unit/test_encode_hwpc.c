/* SPDX-License-Identifier: Apache-2.0 */
/* HWPC reports. The golden files hold the figures of PowerAPI's own documentation, laid out by hand
 * as docs/formats/hwpc.md says. */
#include "unit/encode_fixture.h"

#define Q32_EXAMPLE 5709496320u /* the document's RAPL_ENERGY_PKG */

/* The machine of PowerAPI's examples, with its target `influxdb`. */
static void document_machine(struct fixture *f)
{
	static const uint64_t msr[2][4] = { { 29646849, 12319312, 2122153094, 1006580601 },
					    { 20587012, 19838920, 2122185970, 1006560540 } };
	static const uint64_t core[2][5] = { { 75510, 2271, 1077, 31693, 167403 }, { 43801, 1318, 750, 15011, 99324 } };
	struct snap_row *r;

	fixture_init(f, 2, 1);
	snprintf(f->schema.sensor, sizeof(f->schema.sensor), "sensor_test");
	fixture_event(&f->schema.msr, "MPERF", EVENT_PERF);
	fixture_event(&f->schema.msr, "APERF", EVENT_PERF);
	fixture_event(&f->schema.msr, "TSC", EVENT_PERF);
	fixture_event(&f->schema.core, "CPU_CLK_THREAD_UNHALTED:THREAD_P", EVENT_PERF);
	fixture_event(&f->schema.core, "CPU_CLK_THREAD_UNHALTED:REF_P", EVENT_PERF);
	fixture_event(&f->schema.core, "LLC_MISSES", EVENT_PERF);
	fixture_event(&f->schema.core, "INSTRUCTIONS_RETIRED", EVENT_PERF);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(f);
	f->snap.domains[0].end_ns = f->snap.domains[0].start_ns + 1006717449;
	f->snap.domains[0].energy_q32 = Q32_EXAMPLE;
	for (unsigned c = 0; c < 2; c++) {
		memcpy(f->snap.cpus[c].msr, msr[c], 3 * sizeof(uint64_t));
		f->snap.cpus[c].msr_enabled_ns = f->snap.cpus[c].msr_running_ns = msr[c][3];
	}
	r = fixture_row(f, "/influxdb", 4711);
	for (unsigned c = 0; c < 2; c++)
		memcpy(fixture_cell(f, r, c, core[c][4])->counters, core[c], 4 * sizeof(uint64_t));
}

static void same_as_golden(struct fixture *f, const char *name, const struct encode_options *o)
{
	char *golden = fixture_golden(name);
	struct buf all = { 0 };

	document_machine(f);
	fixture_create(f, &encode_hwpc, o);
	assert_int_equal(f->ops->preamble(f->encoder, &f->schema, &all), 0);
	buf_add_str(&all, fixture_encode(f));
	buf_add_char(&all, '\0');
	assert_string_equal((const char *)all.data, golden);
	assert_string_equal(f->ops->stats(f->encoder)->reason, "");
	free(golden);
	buf_free(&all);
	fixture_free(f);
}

static void test_document_example(void **state)
{
	struct fixture f;

	same_as_golden(&f, "hwpc-iso.jsonl", &(struct encode_options){ .iso_time = true, .stand_ins = true });
	same_as_golden(&f, "hwpc-ms.jsonl", &(struct encode_options){ .stand_ins = true });
	same_as_golden(&f, "hwpc-rapl.csv",
		       &(struct encode_options){ .csv = true, .csv_group = "rapl", .stand_ins = true });
	same_as_golden(&f, "hwpc-msr.csv",
		       &(struct encode_options){ .csv = true, .csv_group = "msr", .stand_ins = true });
	same_as_golden(&f, "hwpc-core.csv",
		       &(struct encode_options){ .csv = true, .csv_group = "core", .stand_ins = true });
}

/* No report is sent, the withheld one is counted, and the reason has this word in it. */
static void withheld(struct fixture *f, const char *word)
{
	uint64_t before = f->ops->stats(f->encoder)->withheld_ticks;

	assert_string_equal(fixture_encode(f), "");
	assert_int_equal(f->ops->stats(f->encoder)->withheld_ticks, before + 1);
	if (!strstr(f->ops->stats(f->encoder)->reason, word))
		fail_msg("reason is '%s', expected '%s'", f->ops->stats(f->encoder)->reason, word);
}

/* A tick is sent, counts nothing as withheld; the clock goes on to the next. */
static const char *sent(struct fixture *f)
{
	uint64_t before = f->ops->stats(f->encoder)->withheld_ticks;
	const char *text = fixture_encode(f);

	assert_int_equal(f->ops->stats(f->encoder)->withheld_ticks, before);
	assert_true(*text);
	f->snap.end_real_ns += 1000000000;
	return text;
}

static void test_late_ticks(void **state)
{
	struct fixture f;

	document_machine(&f);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	f.snap.missed = 1;
	withheld(&f, "missed");
	f.snap.missed = 0;
	f.snap.suspended_ns = 3000000000;
	withheld(&f, "suspended");
	f.snap.suspended_ns = 20000; /* the distance between two clock reads */
	sent(&f);
	f.snap.end_ns = f.snap.start_ns + 1510000000;
	withheld(&f, "1510 ms instead of 1000 ms");
	f.snap.end_ns = f.snap.start_ns + 1490000000;
	sent(&f);
	f.snap.nominal_ns = 0;
	f.snap.end_ns = f.snap.start_ns + 9000000000;
	sent(&f);
	f.snap.end_real_ns -= 1000000000;
	withheld(&f, "clock"); /* a second tick of one millisecond */
	f.snap.end_real_ns -= 1000000000;
	sent(&f); /* set back: readers of a socket know only equality */
	fixture_free(&f);
}

static void test_incomplete_energy(void **state)
{
	static const unsigned bad[] = { QUALITY_LOST, QUALITY_STALE, QUALITY_PARTIAL,
					QUALITY_PARTIAL | QUALITY_ESTIMATED };
	struct fixture f;

	document_machine(&f);
	fixture_domain(&f, DOMAIN_DRAM, 0, "dram-0");
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	for (unsigned i = 0; i < 4; i++) {
		f.snap.domains[1].quality = bad[i];
		withheld(&f, "dram-0");
	}
	f.snap.domains[1].quality = QUALITY_WRAPPED;
	assert_non_null(strstr(sent(&f), "\"metadata\":{\"quality\":\"measured\","));
	f.snap.domains[0].end_ns = f.snap.domains[0].start_ns;
	withheld(&f, "package-0");
	f.schema.n_domains = 0;
	withheld(&f, "no package energy");
	fixture_free(&f);
}

static void test_energy_groups(void **state)
{
	struct fixture f;
	const char *text;

	document_machine(&f);
	fixture_domain(&f, DOMAIN_PSYS, 0, "psys");
	fixture_domain(&f, DOMAIN_UNCORE, 0, "uncore-0");
	fixture_domain(&f, DOMAIN_CORE, 0, "core-0");
	fixture_domain(&f, DOMAIN_DRAM, 0, "dram-0");
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0-die-1");
	fixture_domain(&f, DOMAIN_GPU, 0, "gpu-0");
	for (unsigned i = 0; i < 7; i++)
		f.snap.domains[i].energy_q32 = 1ull << (8 * i);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	text = sent(&f);
	/* 2^0 + 2^40: the dies of the package together */
	assert_non_null(strstr(
		text, "\"rapl\":{\"0\":{\"0\":{\"RAPL_ENERGY_PKG\":1099511627777,\"RAPL_ENERGY_DRAM\":4294967296,"
		      "\"RAPL_ENERGY_CORES\":16777216,\"RAPL_ENERGY_GPU\":65536,\"RAPL_ENERGY_PSYS\":256,\"time_"));
	fixture_free(&f);
}

static void test_frequency(void **state)
{
	struct fixture f;

	document_machine(&f);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	f.snap.cpus[0].msr[1] = f.snap.cpus[1].msr[1] = 1000000; /* 2 / 50 million: 84 MHz of 2100 */
	withheld(&f, "APERF / MPERF");
	f.snap.cpus[0].msr[1] = f.snap.cpus[1].msr[1] = 200000000;
	withheld(&f, "APERF / MPERF");
	f.snap.cpus[0].msr[0] = f.snap.cpus[1].msr[0] = 0; /* no layer divides by nothing */
	withheld(&f, "APERF / MPERF");
	f.snap.cpus[0].msr[1] = f.snap.cpus[1].msr[1] = 0; /* asleep throughout */
	sent(&f);
	f.snap.cpus[1].msr_running_ns = 0;
	withheld(&f, "cpu 1");
	f.snap.cpus[1].msr_running_ns = 5;
	f.snap.cpus[1].quality = QUALITY_STALE;
	sent(&f);
	fixture_free(&f);
}

/* time_running is not time_enabled: events that had turns, in every group and form, also of rows that are one target. */
static void test_time_running(void **state)
{
	static const char joined[] =
		"\"LLC_MISSES\":2000,\"INSTRUCTIONS_RETIRED\":0,\"time_enabled\":900,\"time_running\":360}";
	static const char *const wants[] = { ",900,360\n", ",5000,4000\n" }, *const groups[] = { "core", "msr" };
	struct snap_cell *c;
	struct fixture f;

	document_machine(&f);
	f.snap.cpus[0].msr_enabled_ns = 5000;
	f.snap.cpus[0].msr_running_ns = 4000;
	for (unsigned i = 0; i < 2; i++) { /* one path twice: removed and made again */
		c = fixture_cell(&f, fixture_row(&f, "/twice", 5 + i), 0, i ? 500 : 400);
		c->counters[2] = 1000;
		c->running_ns = i ? 260 : 100;
	}
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	assert_non_null(strstr(sent(&f), joined));
	assert_non_null(strstr(f.out.data ? (char *)f.out.data : "", "\"time_enabled\":5000,\"time_running\":4000}"));
	for (unsigned i = 0; i < 2; i++) {
		encode_hwpc.destroy(f.encoder);
		fixture_create(&f, &encode_hwpc,
			       &(struct encode_options){ .stand_ins = true, .csv = true, .csv_group = groups[i] });
		assert_non_null(strstr(sent(&f), wants[i]));
	}
	fixture_free(&f);
}

static void test_stand_ins(void **state)
{
	static const char all[] = "\"msr\":{\"0\":{\"0\":{\"TSC\":2122153094,\"APERF\":2122153094,\"MPERF\":2122153094,";
	static const char meta[] =
		",\"metadata\":{\"quality\":\"measured\",\"stand_in_rapl\":\"none\",\"stand_in_msr\":\"APERF=MPERF=TSC\"}}\n";
	struct fixture f;
	const char *text;

	document_machine(&f);
	snprintf(f.schema.msr.ev[0].name, SCHEMA_NAME_MAX, "SMI"); /* no MPERF, then */
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	text = sent(&f);
	assert_null(strstr(text, all));
	assert_non_null(strstr(text, "\"SMI\":29646849,\"TSC\":2122153094,\"APERF\":2122153094,\"MPERF\":2122153094,"));
	for (unsigned i = 0; i < 3; i++, text++) { /* in every report: formulas carry it on */
		text = strstr(text, meta);
		assert_non_null(text);
	}
	/* a TSC that brought nothing is not stood in for by nanoseconds under the same name */
	f.snap.cpus[0].msr[2] = 0;
	f.snap.end_real_ns += 1000000000;
	text = sent(&f);
	assert_non_null(strstr(text, "\"SMI\":29646849,\"TSC\":0,\"APERF\":0,\"MPERF\":0,"));
	encode_hwpc.destroy(f.encoder);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = false });
	withheld(&f, "APERF");
	encode_hwpc.destroy(f.encoder);
	f.schema.msr.n = 0;
	f.snap.domains[0].quality = QUALITY_ESTIMATED;
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true, .iso_time = true });
	text = sent(&f);
	assert_non_null(strstr(
		text, "\"msr\":{\"0\":{\"0\":{\"APERF\":1000000000,\"MPERF\":1000000000,\"time_enabled\":1000000000,"));
	assert_non_null(strstr(text, "}}},\"metadata\":{\"quality\":\"estimated\",\"stand_in_rapl\":\"estimate\","
				     "\"stand_in_msr\":\"APERF=MPERF=elapsed ns\"}}\n"));
	encode_hwpc.destroy(f.encoder);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = false });
	withheld(&f, "estimated");
	fixture_free(&f);
}

static void test_without_metadata(void **state)
{
	struct encode_options o = { .stand_ins = true, .no_metadata = true };
	struct fixture f;

	document_machine(&f);
	fixture_create(&f, &encode_hwpc, &o);
	assert_null(strstr(sent(&f), "metadata"));
	assert_null(encode_hwpc.note(f.encoder, 0));
	encode_hwpc.destroy(f.encoder);
	f.schema.msr.n = 0;
	f.schema.domains[0].interface = ENERGY_ESTIMATE;
	f.snap.domains[0].quality = QUALITY_ESTIMATED;
	fixture_create(&f, &encode_hwpc, &o);
	assert_null(strstr(sent(&f), "metadata"));
	assert_non_null(strstr(encode_hwpc.note(f.encoder, 0), "APERF and MPERF"));
	assert_non_null(strstr(encode_hwpc.note(f.encoder, 1), "estimate"));
	assert_null(encode_hwpc.note(f.encoder, 2));
	encode_hwpc.destroy(f.encoder);
	o.iso_time = true; /* readers of files need the object */
	fixture_create(&f, &encode_hwpc, &o);
	assert_non_null(strstr(sent(&f), ",\"metadata\":{}}\n"));
	fixture_free(&f);
}

/* A file has no metadata: the stand-ins have a column. */
static void test_stand_ins_csv(void **state)
{
	struct fixture f;
	struct buf header = { 0 };

	document_machine(&f);
	f.schema.msr.n = 0;
	f.schema.domains[0].interface = ENERGY_ESTIMATE;
	f.snap.domains[0].quality = QUALITY_ESTIMATED;
	fixture_create(&f, &encode_hwpc,
		       &(struct encode_options){ .stand_ins = true, .csv = true, .csv_group = "msr" });
	assert_string_equal(sent(&f),
			    "1673603482630,sensor_test,all,0,0,1000000000,1000000000,1,1000000000,1000000000\n"
			    "1673603482630,sensor_test,all,0,1,1000000000,1000000000,1,1000000000,1000000000\n");
	encode_hwpc.destroy(f.encoder);
	fixture_create(&f, &encode_hwpc,
		       &(struct encode_options){ .stand_ins = true, .csv = true, .csv_group = "rapl" });
	assert_string_equal(sent(&f), "1673603483630,sensor_test,all,0,0,5709496320,1,1006717449,1006717449\n");
	assert_int_equal(f.ops->preamble(f.encoder, &f.schema, &header), 0);
	buf_add_char(&header, '\0');
	assert_string_equal((char *)header.data,
			    "timestamp,sensor,target,socket,cpu,RAPL_ENERGY_PKG,stand_in,time_enabled,time_running\n");
	f.snap.end_real_ns -= 5000000000;
	withheld(&f, "clock"); /* timestamps of a file may not go back */
	buf_free(&header);
	fixture_free(&f);
}

/* What was added for the formula is in no report; alone, it leaves the time. */
static void test_added_events(void **state)
{
	struct fixture f;

	fixture_init(&f, 2, 1);
	fixture_event(&f.schema.core, "SIBLING_BUSY", EVENT_SIBLING_BUSY);
	fixture_event(&f.schema.core, "CYCLES", EVENT_PERF);
	f.schema.core.ev[0].added = true;
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(&f);
	struct snap_row *r = fixture_row(&f, "/a", 1);
	struct snap_cell *c = fixture_cell(&f, r, 0, 5);

	c->counters[0] = r->counters[0] = 41;
	c->counters[1] = r->counters[1] = 43;
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	const char *text = sent(&f);

	assert_non_null(strstr(text, "\"CYCLES\":43,"));
	assert_null(strstr(text, "SIBLING_BUSY"));
	fixture_free(&f);
}

static void test_two_sockets(void **state)
{
	static const char idle[] = "\"target\":\"/idle\",\"groups\":{\"core\":{"
				   "\"0\":{\"0\":{\"TASK_CLOCK\":0,\"time_enabled\":0,\"time_running\":0}},"
				   "\"1\":{\"3\":{\"TASK_CLOCK\":0,\"time_enabled\":0,\"time_running\":0}}}}";
	static const char busy[] = "\"target\":\"/busy\",\"groups\":{\"core\":{"
				   "\"0\":{\"0\":{\"TASK_CLOCK\":0,\"time_enabled\":0,\"time_running\":0}},"
				   "\"1\":{\"3\":{\"TASK_CLOCK\":70,\"time_enabled\":70,\"time_running\":70},"
				   "\"5\":{\"TASK_CLOCK\":90,\"time_enabled\":90,\"time_running\":90}}}}";
	struct fixture f;
	struct snap_row *r;
	const char *text;

	fixture_init(&f, 6, 2);
	fixture_event(&f.schema.core, "TASK_CLOCK", EVENT_TASK_CLOCK);
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(&f, DOMAIN_PACKAGE, 1, "package-1");
	fixture_ready(&f);
	f.snap.cpus[1] = (struct snap_cpu){ .online = false }; /* socket 1 begins with CPU 3 */
	fixture_row(&f, "/idle", 1);
	r = fixture_row(&f, "/busy", 2);
	fixture_cell(&f, r, 3, 70);
	fixture_cell(&f, r, 5, 90);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	text = sent(&f);
	assert_non_null(strstr(text, idle));
	assert_non_null(strstr(text, busy));
	assert_null(strstr(text, "\"1\":{\"1\""));
	f.snap.domains[1].quality = QUALITY_LOST;
	withheld(&f, "package-1");
	f.snap.domains[1].quality = 0;
	f.schema.domains[1].package = 0;
	withheld(&f, "socket 1: no package energy");
	fixture_free(&f);
}

/* The host's packages are none of a virtual machine's sockets. */
static void test_virtual_machine(void **state)
{
	for (unsigned sockets = 1; sockets <= 2; sockets++) {
		struct fixture f;

		fixture_init(&f, 2, sockets);
		fixture_event(&f.schema.core, "TASK_CLOCK", EVENT_TASK_CLOCK);
		for (unsigned i = 0; i < 2; i++) {
			fixture_domain(&f, DOMAIN_PACKAGE, i + 2, i ? "package-3" : "package-2");
			f.schema.domains[i].interface = ENERGY_HOST;
		}
		f.schema.n_packages = 4;
		fixture_ready(&f);
		f.snap.domains[0].energy_q32 = 5;
		f.snap.domains[1].energy_q32 = 7;
		fixture_row(&f, "/a", 1);
		fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
		if (sockets == 1)
			assert_non_null(strstr(sent(&f), "\"RAPL_ENERGY_PKG\":12,"));
		else
			withheld(&f, "which has 2 sockets");
		fixture_free(&f);
	}
}

/* Reports of several ticks through readers that share no code with ours. */
static void test_independent_readers(void **state)
{
	struct fixture f;
	struct buf ticks = { 0 };
	int smartwatts, schema;
	const char *tree = getenv("JOULED_TREE");
	char path[512];

	snprintf(path, sizeof(path), "%s/docs/formats/hwpc.schema.json", tree ? tree : ".");
	for (unsigned iso = 0; iso < 2; iso++) {
		const char *const input[] = { "--input", iso ? "file" : "socket", "--min-ticks", "8", NULL };

		document_machine(&f);
		fixture_row(&f, "/\xff\"\\\x01/\xe6\x97\xa5", 5);
		fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true, .iso_time = iso });
		buf_reset(&ticks);
		for (unsigned i = 0; i < 8; i++) {
			/* now it multiplexes, now it does not; the energy is wrapped, estimated, or just there */
			f.snap.rows[4].quality = i % 2 ? QUALITY_MULTIPLEXED : 0;
			f.snap.domains[0].quality = i % 3 == 2 ? QUALITY_ESTIMATED : i % 3 ? QUALITY_WRAPPED : 0;
			buf_add_str(&ticks, sent(&f));
		}
		buf_add_char(&ticks, '\0');
		smartwatts = fixture_python("check_smartwatts.py", input, (char *)ticks.data);
		schema = fixture_python("check_schema.py", (const char *const[]){ path, NULL }, (char *)ticks.data);
		if (smartwatts == 77 || schema == 77)
			printf("SKIP test_encode_hwpc.independent_readers: no python3 with jsonschema\n");
		assert_true(smartwatts == 0 || smartwatts == 77);
		assert_true(schema == 0 || schema == 77);
		fixture_free(&f);
	}
	buf_free(&ticks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_document_example),  cmocka_unit_test(test_late_ticks),
		cmocka_unit_test(test_incomplete_energy), cmocka_unit_test(test_energy_groups),
		cmocka_unit_test(test_frequency),         cmocka_unit_test(test_stand_ins),
		cmocka_unit_test(test_without_metadata),  cmocka_unit_test(test_time_running),
		cmocka_unit_test(test_stand_ins_csv),     cmocka_unit_test(test_two_sockets),
		cmocka_unit_test(test_virtual_machine),   cmocka_unit_test(test_independent_readers),
		cmocka_unit_test(test_added_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
