/* SPDX-License-Identifier: Apache-2.0 */
/* PowerAPI reports: the documentation's examples, both forms of CSV, and what is refused where. */
#include "decode_fixture.h"

static void of_text(const char *text, const char *options, const char *want)
{
	decodes_to(text, strlen(text), options, want);
}

static void refused(const char *text, uint64_t byte, const char *words)
{
	refused_at(text, strlen(text), "", byte, words);
}

/* As the documentation has it, spread over lines. */
static void test_documents_examples(void **state)
{
	of_text("{\n\"timestamp\" : \"2023-01-13T09:51:22.630\",\n\"sensor\" : \"sensor_test\",\n\"target\" : \"all\",\n"
		"\"groups\" : {\n\"rapl\" : {\n\"0\" : {\n\"1\" : {\n\"RAPL_ENERGY_PKG\" : 5709496320,\n"
		"\"time_enabled\" : 1006717449,\n\"time_running\" : 1006717449\n}\n}\n}\n}\n}\n"
		"{\n\"timestamp\": \"2023-01-14T12:37:37.168817\",\n\"sensor\": \"formula_group\",\n\"target\": \"all\",\n\"power\": 42\n}\n",
		"",
		"{\"format\":\"hwpc\",\"kind\":\"report\",\"record\":1,\"offset\":0,\"timestamp\":\"2023-01-13T09:51:22.630\","
		"\"sensor\":\"sensor_test\",\"target\":\"all\",\"groups\":{\"rapl\":{\"0\":{\"1\":{\"RAPL_ENERGY_PKG\":5709496320,"
		"\"time_enabled\":1006717449,\"time_running\":1006717449}}}}}\n"
		"{\"format\":\"power\",\"kind\":\"report\",\"record\":2,\"offset\":226,\"timestamp\":\"2023-01-14T12:37:37.168817\","
		"\"sensor\":\"formula_group\",\"target\":\"all\",\"power\":42}\n");
}

static void test_lines(void **state)
{
	static const char lines[] =
		"{\"timestamp\":1673603482630,\"sensor\":\"s\",\"target\":\"/a b\",\"groups\":{\"core\":{\"0\":{\"3\":{\"E:u\":7,\"x\":0.5}}}}}\n"
		"{\"timestamp\":\"1673603482630\",\"sensor\":\"s\",\"target\":\"\\u001b[2J\\u009b\\u007f\",\"power\":1.25,"
		"\"metadata\":{\"a\":[1,null,true]}}\n";

	of_text(lines, "text",
		"hwpc report 1 at byte 0: timestamp=1673603482630 sensor=s target=\"/a b\"\n"
		"  groups:\n    core:\n      0:\n        3: E:u=7 x=0.5\n"
		"power report 2 at byte 105: timestamp=1673603482630 sensor=s target=\\x1b[2J\\xc2\\x9b\\x7f power=1.25\n"
		"  metadata:\n    a: 1 null true\n");
	of_text(lines + 105, "format=power",
		"{\"format\":\"power\",\"kind\":\"report\",\"record\":1,\"offset\":0,\"timestamp\":\"1673603482630\",\"sensor\":\"s\","
		"\"target\":\"\\u001b[2J\\u009b\\u007f\",\"power\":1.25,\"metadata\":{\"a\":[1,null,true]}}\n");
	refused_at(lines, sizeof(lines) - 1, "format=power", 0, "hwpc");
	of_text("", "format=hwpc", "");
	of_text(" \n\n", "format=hwpc", "");
	survives((const uint8_t *)lines, sizeof(lines) - 1, "");
}

#define COMMON "{\"timestamp\":1,\"sensor\":\"s\",\"target\":\"t\","

static void test_refused_json(void **state)
{
	refused("{\"timestamp\":1,}\n", 15, "a key, found '}'");
	refused("{\"a\":1 \"b\":2}", 7, "a comma or a closing brace");
	refused("{\"a\":[1 2]}", 8, "a comma or a closing bracket");
	refused("{\"a\" 1}", 5, "a colon");
	refused("{\"a\":\"\xff\"}", 6, "UTF-8");
	refused("{\"a\":\"\xed\xa0\x80\"}", 7, "UTF-8");
	refused("{\"a\":\"\xe0\x9f\x80\"}", 7, "UTF-8");
	refused("{\"a\":\"\xf4\x90\x80\x80\"}", 7, "UTF-8");
	refused("{\"a\":\"\xc3\"}", 7, "UTF-8");
	refused("{\"a\":\"\n\"}", 6, "control characters");
	refused("{\"a\":\"\\x\"}", 7, "an escape sequence");
	refused("{\"a\":\"\\u12g4\"}", 10, "four hexadecimal digits");
	refused("{\"a\":nope}", 6, "true, false or null");
	refused("{\"a\":01}", 6, "a comma");
	refused("{\"a\":-}", 6, "a digit");
	refused("{\"a\":1.}", 7, "a digit");
	refused("{\"a\":1e+}", 8, "a digit");
	refused("{\"a\":.5}", 5, "a value");
	refused("{\"a\":1]", 6, "a comma or a closing brace");
	refused("{\"a\":[1}", 7, "a comma or a closing bracket");
	refused("{\"a\":\"b}\n", 8, "control characters");
	refused("{\"a\":\"b}", 8, "the end of the input");
	refused("{\"a\":1,\"a\":2}", 9, "duplicate");
	refused("{\"a\":18446744073709551616}", 24, "too big");
	refused("{\"a\":\"\\ud800\"}", 12, "invalid Unicode");
	refused("{ }\n", 0, "neither");
	refused("{\"groups\":{},\"power\":1}", 0, "both");
	refused("{\"power\":1}", 0, "timestamp");
	refused("{\"power\":1,\"timestamp\":1.5}", 0, "timestamp");
	refused("{\"power\":1,\"timestamp\":\"2023-01-13T24:00:00\"}", 0, "timestamp");
	refused("{\"power\":1,\"timestamp\":\"2023-13-13T23:00:00\"}", 0, "timestamp");
	refused("{\"power\":1,\"timestamp\":\"yesterday\"}", 0, "timestamp");
	refused("{\"timestamp\":1,\"sensor\":\"s\",\"power\":1}", 0, "sensor and target");
	refused("{\"timestamp\":1,\"sensor\":3,\"target\":\"t\",\"power\":1}", 0, "sensor and target");
	refused(COMMON "\"power\":\"1\"}", 0, "watts");
	refused(COMMON "\"metadata\":\"x\",\"power\":1}", 0, "metadata");
	refused(COMMON "\"groups\":[]}", 0, "in an object");
	refused(COMMON "\"groups\":{\"core\":{\"0\":{\"0\":{\"E\":\"1\"}}}}}", 0, "no number");
	refused(COMMON "\"groups\":{\"core\":{\"0\":{\"0\":3}}}}", 0, "in an object");
	refused(COMMON "\"power\":1,\"record\":3}", 0, "record");
	refused(COMMON "\"power\":1,\"metadata\":{\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}}", 0, "16 levels");
	refused(COMMON "\"power\":1}\n" COMMON "\"power\":2}x{", 103, "'x'");
}

static void test_times(void **state)
{
	static const char *const good[] = {
		"2023-01-13T09:51:22",  "2023-01-13T09:51:22.630",     "2023-01-13T09:51:22.168817",
		"2023-01-13T09:51:22Z", "2023-01-13T09:51:22.1+02:00", "2023-12-31T23:59:60-0830",
	};
	static const char *const bad[] = {
		"",
		"2023-01-13",
		"2023-01-13T09:51",
		"2023-01-13 09:51:22",
		"2023-01-13T09:51:22.",
		"2023-01-13T09:51:22+2",
		"2023-01-13T09:51:22Zx",
		"2023-00-13T09:51:22",
		"2023-01-32T09:51:22",
		"x023-01-13T09:51:22",
		"2023-01-13T09:61:22",
	};

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(decode_is_iso_time(good[i]));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(decode_is_iso_time(bad[i]));
}

static const char hwpc_csv[] = "timestamp,sensor,target,socket,cpu,LLC_MISSES,time_enabled,time_running\n"
			       "1673603482630,sensor_test,/influxdb,0,1,750,99324,99324\n";

static const char power_csv[] =
	"timestamp,sensor,target,power,socket,energy_uj,k8s\r\n"
	"2023-01-13T09:51:22.630+00:00,s,\"a,\"\"b\"\"\",1.25,0,1250000,\"{'x': 1, 'y': 2}\"\r\n";

static void test_csv(void **state)
{
	of_text(hwpc_csv, "",
		"{\"format\":\"hwpc\",\"kind\":\"columns\",\"record\":1,\"offset\":0,\"columns\":[\"timestamp\",\"sensor\",\"target\","
		"\"socket\",\"cpu\",\"LLC_MISSES\",\"time_enabled\",\"time_running\"]}\n"
		"{\"format\":\"hwpc\",\"kind\":\"row\",\"record\":2,\"offset\":72,\"timestamp\":1673603482630,\"sensor\":\"sensor_test\","
		"\"target\":\"/influxdb\",\"socket\":\"0\",\"cpu\":\"1\","
		"\"values\":{\"LLC_MISSES\":750,\"time_enabled\":99324,\"time_running\":99324}}\n");
	of_text(power_csv, "text",
		"power columns 1 at byte 0:\n  columns: timestamp sensor target power socket energy_uj k8s\n"
		"power row 2 at byte 52: timestamp=2023-01-13T09:51:22.630+00:00 sensor=s target=\"a,\"b\"\" power=1.25\n"
		"  metadata: socket=0 energy_uj=1250000 k8s=\"{'x': 1, 'y': 2}\"\n");
	survives((const uint8_t *)hwpc_csv, sizeof(hwpc_csv) - 1, "format=hwpc");
	survives((const uint8_t *)power_csv, sizeof(power_csv) - 1, "format=power");
}

#define COLUMNS "timestamp,sensor,target,power\n"

static void test_refused_csv(void **state)
{
	char *wide = calloc(1, 70000);

	refused("timestamp,sensor,power\n", 0, "timestamp,sensor,target");
	refused("timestamp,sensor,target,power,power\n", 30, "\"power\" again");
	refused(COLUMNS "1,s,t\n", 30, "3 for 4");
	refused(COLUMNS "1,s,t,1,2\n", 30, "5 for 4");
	refused(COLUMNS "x,s,t,1\n", 30, "timestamp");
	refused(COLUMNS "1,s,t,1W\n", 36, "watts");
	refused(COLUMNS "1,s,t,nan\n", 36, "watts");
	refused(COLUMNS "1,s,\"t,1\n", 34, "quoted cell");
	refused(COLUMNS "1,s,\"t\"x,1\n", 34, "quoted cell");
	refused(COLUMNS "1,s,t,1", 37, "the end of the input");
	refused_at(COLUMNS "1,s,\0t,1\n", 39, "", 34, "byte 0x00");
	refused_at(COLUMNS, 30, "format=hwpc", 0, "the other format");
	refused("timestamp,sensor,target,socket,cpu,E\n1,s,t,0,0,-1\n", 47, "unsigned");
	refused("timestamp,sensor,target,socket,cpu,E\n1,s,t,0,0,0x1\n", 47, "unsigned");
	refused("timestamp,sensor,target,socket,cpu,E\n1,s,t,0,0,18446744073709551616\n", 47, "unsigned");
	refused("timestamp,sensor,target,socket,cpu,E\n1,s,t,0,0,\n", 47, "unsigned");
	memcpy(wide, COLUMNS, 30);
	memset(wide + 30, ',', 69000);
	refused(wide, 30, "at most 65536 bytes");
	wide[400] = '\n';
	wide[401] = 0;
	refused(wide, 30 + 256, "at most 256 cells");
	free(wide);
}

/* A document that never ends is not kept whole, nor one that would take much memory. */
static void test_large(void **state)
{
	size_t n = 5u << 20;
	char *text = malloc(n);
	int head = snprintf(text, n, COMMON "\"power\":1,\"metadata\":{\"a\":\"");

	memset(text + head, 'x', n - (size_t)head);
	refused_at(text, n, "", 0, "at most 4 MiB");
	head = snprintf(text, n, COMMON "\"power\":1,\"metadata\":{\"a\":[");
	for (int i = 0; i < 1000000; i++, head += 3)
		memcpy(text + head, "{},", 3);
	memcpy(text + head, "{}]}}", 5);
	refused_at(text, (size_t)head + 5, "", 0, "at most 32 MiB");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents_examples),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_refused_json),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_refused_csv),
		cmocka_unit_test(test_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
