/* SPDX-License-Identifier: Apache-2.0 */
/* vJoule: the two examples of its document with their bytes, v0.2 by its layout, and what is refused. */
#include "decode_fixture.h"

/* The document's header example: 56 bytes behind the length. */
#define HEADER \
	"\x38\0\0\0" \
	"\4\0\0\0" \
	"\0\0\x0f\0\0\0RAPL_ENERGY_PKG" \
	"\1\0\3\0\0\0TSC" \
	"\2\0\5\0\0\0APERF" \
	"\3\0\5\0\0\0MPERF"
/* Its report example: 113 bytes, as it prints itself. */
#define REPORT \
	"\x71\0\0\0" \
	"\x9a\x99\x41\x41" \
	"\x6f\x12\x83\x3a" \
	"\x52\xb8\x2e\x41" \
	"\x33\x33\xb3\x3f" \
	"\0\0\0\0" \
	"\2\0\0\0" \
	"\0\0\xc2\x5f\xc0\xd7\x16\0\0\0" \
	"\7\0\x72\x2c\x45\x0b\0\0\0\0" \
	"\2\0\0\0" \
	"\4\0\0\0test" \
	"\2\0\0\0" \
	"\3\0\x39\xcd\x10\1\0\0\0\0" \
	"\x09\0\x8e\xf4\x4f\x0b\0\0\0\0" \
	"\5\0\0\0test2" \
	"\2\0\0\0" \
	"\3\0\xf2\x89\xa0\7\2\0\0\0" \
	"\x09\0\xb1\xf9\xfa\x6f\0\0\0\0"

static const uint8_t document[] = HEADER REPORT;
#define DOCUMENT_BYTES (sizeof(document) - 1)

static const char document_json[] =
	"{\"format\":\"vjoule\",\"kind\":\"header\",\"record\":1,\"offset\":0,\"dialect\":\"document\",\"length\":56,\"metrics\":["
	"{\"id\":0,\"name\":\"RAPL_ENERGY_PKG\"},{\"id\":1,\"name\":\"TSC\"},{\"id\":2,\"name\":\"APERF\"},{\"id\":3,\"name\":\"MPERF\"}]}\n"
	"{\"format\":\"vjoule\",\"kind\":\"report\",\"record\":2,\"offset\":60,\"dialect\":\"document\",\"length\":113,"
	"\"energy_joules\":{\"pp0\":12.1,\"pp1\":0.001,\"pkg\":10.92,\"dram\":1.4,\"psys\":0},"
	"\"system\":[{\"id\":0,\"name\":\"RAPL_ENERGY_PKG\",\"value\":98108989378},{\"id\":7,\"value\":189082738}],"
	"\"cgroups\":[{\"name\":\"test\",\"metrics\":[{\"id\":3,\"name\":\"MPERF\",\"value\":17878329},{\"id\":9,\"value\":189789326}]},"
	"{\"name\":\"test2\",\"metrics\":[{\"id\":3,\"name\":\"MPERF\",\"value\":8717896178},{\"id\":9,\"value\":1878718897}]}]}\n";

static void test_documents_examples(void **state)
{
	assert_int_equal(DOCUMENT_BYTES, 4 + 56 + 4 + 113);
	decodes_to(document, DOCUMENT_BYTES, "", document_json);
	decodes_to(document, DOCUMENT_BYTES, "format=vjoule dialect=document", document_json);
	decodes_to(document, DOCUMENT_BYTES, "text",
		   "vjoule header 1 at byte 0: dialect=document length=56\n"
		   "  metrics:\n"
		   "    - id=0 name=RAPL_ENERGY_PKG\n"
		   "    - id=1 name=TSC\n"
		   "    - id=2 name=APERF\n"
		   "    - id=3 name=MPERF\n"
		   "vjoule report 2 at byte 60: dialect=document length=113\n"
		   "  energy_joules: pp0=12.1 pp1=0.001 pkg=10.92 dram=1.4 psys=0\n"
		   "  system: RAPL_ENERGY_PKG=98108989378 #7=189082738\n"
		   "  cgroups:\n"
		   "    - name=test\n"
		   "      metrics: MPERF=17878329 #9=189789326\n"
		   "    - name=test2\n"
		   "      metrics: MPERF=8717896178 #9=1878718897\n");
}

/* 25 + 2 x 6 + 24 + 10 = 71; 28 + 4 x 2 + 4 + 16 x 0 + 2 + (8 + 2 + 32) = 84. The floats of the header and
 * the padding of the metrics are whatever was in the writer's memory. */
static const uint8_t v02[] = "\x47\0\0\0"
			     "\2\0\0\0"
			     "\0"
			     "jnk1jnk2jnk3"
			     "\0\0\0\0"
			     "\2\0\0\0"
			     "\0\0\x18\0\0\0PERF_COUNT_HW_CPU_CYCLES"
			     "\1\0\x0a\0\0\0LLC_MISSES"
			     "\x54\0\0\0"
			     "\0\0\x80\x3f"
			     "\0\0\0\x40"
			     "\0\0\x40\x40"
			     "\0\0\x80\x40"
			     "\0\0\xb0\x40"
			     "\xc8\xaf\0\0"
			     "\2\0\0\0"
			     "\x40\x42\x0f\0"
			     "\x80\x84\x1e\0"
			     "\0\0\0\0"
			     "\1\0"
			     "\2\0\0\0/a"
			     "\2\0\0\0"
			     "\0\0junkju\xfb\xff\xff\xff\xff\xff\xff\xff"
			     "\1\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
#define V02_BYTES (sizeof(v02) - 1)

static void test_v02(void **state)
{
	static const char want[] =
		"{\"format\":\"vjoule\",\"kind\":\"header\",\"record\":1,\"offset\":0,\"dialect\":\"v0.2\",\"length\":71,\"cpus\":2,"
		"\"simulation\":false,\"metrics\":[{\"id\":0,\"name\":\"PERF_COUNT_HW_CPU_CYCLES\"},{\"id\":1,\"name\":\"LLC_MISSES\"}]}\n"
		"{\"format\":\"vjoule\",\"kind\":\"report\",\"record\":2,\"offset\":75,\"dialect\":\"v0.2\",\"length\":84,"
		"\"energy_joules\":{\"pp0\":1,\"pp1\":2,\"pkg\":3,\"dram\":4,\"psys\":5.5},\"temperature_millidegrees\":45000,"
		"\"frequencies_khz\":[1000000,2000000],\"system\":[],\"cgroups\":[{\"name\":\"/a\",\"metrics\":["
		"{\"id\":0,\"name\":\"PERF_COUNT_HW_CPU_CYCLES\",\"value\":-5},"
		"{\"id\":1,\"name\":\"LLC_MISSES\",\"value\":9223372036854775807}]}]}\n";

	assert_int_equal(V02_BYTES, 4 + 71 + 4 + 84);
	decodes_to(v02, V02_BYTES, "", want);
	decodes_to(v02, V02_BYTES, "dialect=v0.2", want);
}

static void test_every_cut_and_change(void **state)
{
	survives(document, DOCUMENT_BYTES, "format=vjoule");
	survives(document, DOCUMENT_BYTES, "text format=vjoule");
	survives(v02, V02_BYTES, "format=vjoule");
}

/* A copy of the document's bytes with some of them replaced. */
static void refused_with(size_t at, const char *bytes, size_t n, uint64_t byte, const char *words)
{
	uint8_t copy[DOCUMENT_BYTES];

	memcpy(copy, document, sizeof(copy));
	memcpy(copy + at, bytes, n);
	refused_at(copy, sizeof(copy), "format=vjoule dialect=document", byte, words);
}

static void test_refusals(void **state)
{
	/* lengths: 0, negative, more than is taken */
	refused_with(0, "\0\0\0\0", 4, 0, "a length of 0");
	refused_with(0, "\xff\xff\xff\xff", 4, 0, "a length of -1");
	refused_with(0, "\0\0\0\x7f", 4, 0, "1 byte to 16 MiB");
	/* counts that the record has no room for */
	refused_with(4, "\xff\xff\xff\x7f", 4, 4, "a number of metrics");
	refused_with(4, "\xff\xff\xff\xff", 4, 4, "found -1 ");
	refused_with(4, "\3\0\0\0", 4, 49, "11 more bytes");
	refused_with(10, "\x7f\0\0\0", 4, 10, "the name of a metric");
	refused_with(29, "\0\0", 2, 38, "id 0 again");
	refused_with(14, "\0", 1, 14, "without a NUL");
	refused_with(60, "\x70\0\0\0", 4, 153, "2 where 19 bytes follow");
	refused_with(84, "\xff\xff\xff\x0f", 4, 84, "a number of metrics");
	refused_with(108, "\xff\xff\0\0", 4, 108, "a number of cgroups");
	refused_with(112, "\0\1\0\0", 4, 112, "the name of a cgroup");
	/* the other dialect's bytes */
	refused_at(v02, V02_BYTES, "dialect=document", 4 + 4 + 2, "the name of a metric");
	refused_at(document, DOCUMENT_BYTES, "dialect=v0.2", 4 + 17, "no power values");
}

static void test_long_names(void **state)
{
	uint8_t record[4 + 4 + 6 + 1025] = { 0 };
	struct decoded d;

	memset(record + 14, 'x', 1025);
	memcpy(record, (uint32_t[]){ 4 + 6 + 1024, 1 }, 8);
	memcpy(record + 10, (uint32_t[]){ 1024 }, 4);
	decode_bytes(record, 4 + 4 + 6 + 1024, "", &d);
	assert_int_equal(d.code, 0);
	buf_free(&d.text);
	memcpy(record, (uint32_t[]){ 4 + 6 + 1025, 1 }, 8);
	memcpy(record + 10, (uint32_t[]){ 1025 }, 4);
	refused_at(record, sizeof(record), "dialect=document", 10, "1025 bytes, more than 1024");

	/* a cgroup's name, behind an empty header: 4 + 4 + 4 + 20 + 4 + 4 = byte 40 */
	uint8_t report[8 + 4 + 28 + 8 + 4097] = { 4 };
	uint32_t n = 28 + 8 + 4096;

	memset(report + 44, 'x', 4097);
	memcpy(report + 8, &n, 4);
	report[36] = 1;
	memcpy(report + 40, (uint32_t[]){ 4096 }, 4);
	memset(report + 44 + 4096, 0, 4);
	decode_bytes(report, 12 + n, "", &d);
	assert_int_equal(d.code, 0);
	assert_int_equal(d.records, 2);
	buf_free(&d.text);
	n++;
	memcpy(report + 8, &n, 4);
	memcpy(report + 40, (uint32_t[]){ 4097 }, 4);
	refused_at(report, sizeof(report), "", 40, "4097 bytes, more than 4096");
}

/* As v0.2: 1 CPU, no simulation, floats, no power values, no metrics. As document: one metric with id 0x1200
 * and a name of the 15 bytes that are left; the NULs in it make it none. Without NULs it would be both. */
static void test_neither_and_both(void **state)
{
	uint8_t header[4 + 25] = { 25, 0, 0, 0, 1, 0, 0, 0, 0, 0x12, 15, 0, 0, 0 };

	decodes_to(
		header, sizeof(header), "",
		"{\"format\":\"vjoule\",\"kind\":\"header\",\"record\":1,\"offset\":0,\"dialect\":\"v0.2\",\"length\":25,\"cpus\":1,"
		"\"simulation\":false,\"metrics\":[]}\n");
	/* no metric at all: 4 bytes of zeros cannot be v0.2, an empty header is a header */
	decodes_to(
		"\4\0\0\0\0\0\0\0", 8, "",
		"{\"format\":\"vjoule\",\"kind\":\"header\",\"record\":1,\"offset\":0,\"dialect\":\"document\",\"length\":4,\"metrics\":[]}\n");
	refused_at("\5\0\0\0\1\0\0\0\0", 9, "", 9, "document or v0.2");
}

/* document: (0x4100, 3, "abc"), (0x4242, 0, ""), (0, 0, ""): 4 + 3 x 6 + 3 bytes, 3 metrics.
 * v0.2: 3 CPUs, no simulation, three floats, no power values, no metrics: 25 bytes. */
static void test_both_is_refused(void **state)
{
	static const uint8_t both[4 + 25] = {
		25, 0, 0, 0, 3, 0, 0, 0, 0, 0x41, 3, 0, 0, 0, 'a', 'b', 'c', 0x42, 0x42, 0, 0, 0, 0,
	};
	struct decoded d;

	refused_at(both, sizeof(both), "", 0, "one of both");
	decode_bytes(both, sizeof(both), "dialect=v0.2", &d);
	assert_int_equal(d.code, 0);
	assert_non_null(strstr(decoded_text(&d), "\"cpus\":3"));
	buf_free(&d.text);
	decode_bytes(both, sizeof(both), "dialect=document", &d);
	assert_int_equal(d.code, 0);
	assert_non_null(strstr(decoded_text(&d), "\"name\":\"abc\""));
	buf_free(&d.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents_examples),   cmocka_unit_test(test_v02),
		cmocka_unit_test(test_every_cut_and_change), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_long_names),           cmocka_unit_test(test_neither_and_both),
		cmocka_unit_test(test_both_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
