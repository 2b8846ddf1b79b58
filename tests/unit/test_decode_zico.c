/* SPDX-License-Identifier: Apache-2.0 */
/* ZICO: bytes as its own writers make them, the same in the document's reading and in those of later
 * releases, and what is refused where. */
#include "decode_fixture.h"

/* Hexadecimal digits with spaces, text in apostrophes as it is. */
struct bytes {
	size_t n;
	uint8_t v[4096];
};

static struct bytes hex(const char *text)
{
	struct bytes b = { 0 };
	const char *s = text;

	while (*s) {
		if (*s == ' ') {
			s++;
		} else if (*s == '\'') {
			for (s++; *s != '\''; s++)
				b.v[b.n++] = (uint8_t)*s;
			s++;
		} else {
			unsigned v;

			assert_int_equal(sscanf(s, "%2x", &v), 1);
			b.v[b.n++] = (uint8_t)v;
			s += 2;
		}
	}
	return b;
}

static void of_hex(const char *text, const char *options, const char *want)
{
	struct bytes b = hex(text);

	decodes_to(b.v, b.n, options, want);
}

static void refused(const char *text, uint64_t byte, const char *words)
{
	struct bytes b = hex(text);

	refused_at(b.v, b.n, "format=zico", byte, words);
}

#define AGENT \
	"c183 01 6e 'com.acme.Gauge' 05  c183 02 66 'sample' 06  c183 03 63 '()V' 08  c284 01 01 02 03  c183 04 64 'WATT' 00"

/* Classic writer, big endian: begin, two attributes, a child with an exception. 94 bytes. */
#define BIG_TRACE \
	"c89f ca48 000001 0000000000 d82182 1b000001 74876e807b 04 c9a2 c605 65 'nginx' c606 1a0001e240 " \
	"c89f ca48 000001 0000000000 d82285 01 c607 64 'boom' 00 81 84 08 09 0a 0d cc48 000001 0000003b9a ff " \
	"cc48 000003 0000012a05 ff"

static void test_agent_data_and_trace(void **state)
{
	assert_int_equal(hex(BIG_TRACE).n, 94);
	of_hex(AGENT " " BIG_TRACE, "text",
	       "zico string 1 at byte 0: dialect=zico-1.90 id=1 text=com.acme.Gauge type=class\n"
	       "zico string 2 at byte 19: dialect=zico-1.90 id=2 text=sample type=method\n"
	       "zico string 3 at byte 30: dialect=zico-1.90 id=3 text=()V type=signature\n"
	       "zico method 4 at byte 38: dialect=zico-1.90 id=1 class=com.acme.Gauge name=sample signature=()V\n"
	       "zico string 5 at byte 44: dialect=zico-1.90 id=4 text=WATT type=text\n"
	       "zico trace 6 at byte 53: dialect=zico-1.90\n"
	       "  events:\n"
	       "    - event=enter depth=0 tick=0 order=big method=1 class=com.acme.Gauge name=sample signature=()V\n"
	       "    - event=begin depth=0 clock_ms=1600000000123 type=WATT\n"
	       "    - event=attributes depth=0\n"
	       "      attributes:\n"
	       "        - key=#5 value=nginx\n"
	       "        - key=#6 value=123456\n"
	       "    - event=enter depth=1 tick=0 order=big method=1 class=com.acme.Gauge name=sample signature=()V\n"
	       "    - event=exception depth=1 id=1 class=#7 message=boom cause=0\n"
	       "      stack:\n"
	       "        - class=#8 method=#9 file=#10 line=13\n"
	       "    - event=leave depth=1 tick=15258 duration_ns=999948288 calls=1\n"
	       "    - event=leave depth=0 tick=76293 duration_ns=4999938048 calls=3\n");
}

#define MINIMAL_REST "e803000000 010000 d82182 1b0000018bcfe56800 04 c9a1 c605 67 'libcbor' cd48 ef2d010000 010000 ff"
#define MINIMAL_JSON(dialect) \
	"{\"format\":\"zico\",\"kind\":\"trace\",\"record\":1,\"offset\":0,\"dialect\":\"" dialect "\",\"events\":[" \
	"{\"event\":\"enter\",\"depth\":0,\"tick\":1000,\"order\":\"little\",\"method\":1}," \
	"{\"event\":\"begin\",\"depth\":0,\"clock_ms\":1700000000000,\"type\":{\"ref\":4}}," \
	"{\"event\":\"attributes\",\"depth\":0,\"attributes\":[{\"key\":{\"ref\":5},\"value\":\"libcbor\"}]}," \
	"{\"event\":\"leave\",\"depth\":0,\"tick\":77295,\"duration_ns\":5000069120,\"calls\":1}]}\n"

/* One trace in every reading: the tag on the prolog, on the array, on the array as 6 and 7, with a longer
 * head; big endian; a definite array. */
static void test_readings_of_one_trace(void **state)
{
	static const char big[] =
		"{\"format\":\"zico\",\"kind\":\"trace\",\"record\":1,\"offset\":0,\"dialect\":\"document\",\"events\":["
		"{\"event\":\"enter\",\"depth\":0,\"tick\":0,\"order\":\"big\",\"method\":1},"
		"{\"event\":\"leave\",\"depth\":0,\"tick\":76293,\"duration_ns\":4999938048,\"calls\":3}]}\n";

	of_hex("c89f cb48" MINIMAL_REST, "", MINIMAL_JSON("zico-1.90"));
	of_hex("cb9f 48" MINIMAL_REST, "", MINIMAL_JSON("document"));
	of_hex("d80b9f 48" MINIMAL_REST, "", MINIMAL_JSON("document"));
	of_hex("c79f 48" MINIMAL_REST, "", MINIMAL_JSON("document"));
	of_hex("cb84 48 e803000000 010000 d82182 1b0000018bcfe56800 04 c9a1 c605 67 'libcbor' cd48 ef2d010000 010000",
	       "", MINIMAL_JSON("document"));
	of_hex("ca9f 48 000001 0000000000 cd48 000003 0000012a05 ff", "", big);
	of_hex("ca9f 48 000001 0000000000 cc48 000003 0000012a05 ff", "", big);
	of_hex("c69f 48 000001 0000000000 cc48 000003 0000012a05 ff", "", big);
}

/* Calls beyond 24 bits stand in a second word. */
static void test_many_calls(void **state)
{
	of_hex("c89f cb48 0000000000 010000 cd50 0100000000 000000 0000000100000000 ff", "text",
	       "zico trace 1 at byte 0: dialect=zico-1.90\n  events:\n"
	       "    - event=enter depth=0 tick=0 order=little method=1\n"
	       "    - event=leave depth=0 tick=1 duration_ns=65536 calls=16777216\n");
	of_hex("c89f ca48 000001 0000000000 cc50 000000 0000000001 0000000001000000 ff", "text",
	       "zico trace 1 at byte 0: dialect=zico-1.90\n  events:\n"
	       "    - event=enter depth=0 tick=0 order=big method=1\n"
	       "    - event=leave depth=0 tick=1 duration_ns=65536 calls=16777216\n");
}

static void test_document_agent_data(void **state)
{
	of_hex("cd83 01 61 'a' 05 cd83 02 61 'b' 02 ce84 07 01 02 18ff cf82 61 'k' 62 'v\"'", "",
	       "{\"format\":\"zico\",\"kind\":\"string\",\"record\":1,\"offset\":0,\"dialect\":\"document\",\"id\":1,\"text\":\"a\","
	       "\"type\":\"class\"}\n"
	       "{\"format\":\"zico\",\"kind\":\"string\",\"record\":2,\"offset\":6,\"dialect\":\"document\",\"id\":2,\"text\":\"b\","
	       "\"type\":2}\n"
	       "{\"format\":\"zico\",\"kind\":\"method\",\"record\":3,\"offset\":12,\"dialect\":\"document\",\"id\":7,"
	       "\"class\":{\"ref\":1,\"text\":\"a\"},\"name\":{\"ref\":2,\"text\":\"b\"},\"signature\":{\"ref\":255}}\n"
	       "{\"format\":\"zico\",\"kind\":\"attribute\",\"record\":4,\"offset\":19,\"dialect\":\"document\",\"key\":\"k\","
	       "\"value\":\"v\\\"\"}\n");
}

static void test_flags_upward_and_seen(void **state)
{
	of_hex("c89f cb48 0000000000 010000 cf 09 d825 01 d82682 04 a1 c605 61 'x' d823 07 cd48 0100000000 010000 ff",
	       "text",
	       "zico trace 1 at byte 0: dialect=zico-1.90\n  events:\n"
	       "    - event=enter depth=0 tick=0 order=little method=1\n"
	       "    - event=flags depth=0 mask=9\n"
	       "    - event=flag depth=0 token=1\n"
	       "    - event=upward depth=0 type=#4\n      attributes:\n        - key=#5 value=x\n"
	       "    - event=exception-seen depth=0 id=7\n"
	       "    - event=leave depth=0 tick=1 duration_ns=65536 calls=1\n");
}

/* Later releases: nanoseconds, numbers instead of words, symbols without types. */
static void test_zico_2(void **state)
{
	of_hex("c182 05 64 'PROC' c182 06 61 'C' c284 01 06 05 05 "
	       "c39f 1a3b9aca00 01 c584 1b0000018bcfe56800 05 0a 00 c682 05 64 'proc' "
	       "c39f 1a3b9aca01 01 c683 05 06 f5 c786 03 06 f6 00 80 a1 06 01 c8 03 c482 1a3b9aca05 02 ff "
	       "c483 1a3b9aca06 03 08 ff",
	       "text",
	       "zico string 1 at byte 0: dialect=zico-2 id=5 text=PROC\n"
	       "zico string 2 at byte 8: dialect=zico-2 id=6 text=C\n"
	       "zico method 3 at byte 13: dialect=zico-2 id=1 class=C name=PROC signature=PROC\n"
	       "zico trace 4 at byte 19: dialect=zico-2\n  events:\n"
	       "    - event=enter depth=0 ns=1000000000 method=1 class=C name=PROC signature=PROC\n"
	       "    - event=begin depth=0 clock_ms=1700000000000 type=PROC span=10 parent=0\n"
	       "    - event=attribute depth=0 key=PROC value=proc\n"
	       "    - event=enter depth=1 ns=1000000001 method=1 class=C name=PROC signature=PROC\n"
	       "    - event=attribute depth=1 type=PROC key=C value=true\n"
	       "    - event=exception depth=1 id=3 class=C message=null cause=0\n      stack:\n      attributes:\n"
	       "        map:\n          - key=6 value=1\n"
	       "    - event=exception-seen depth=1 id=3\n"
	       "    - event=leave depth=1 ns=1000000005 duration_ns=4 calls=2\n"
	       "    - event=leave depth=0 ns=1000000006 duration_ns=6 calls=3 flags=8\n");
}

#define IN_ATTRIBUTES(pairs) "c89f cb48 0000000000 010000 c9" pairs " cd48 0100000000 010000 ff"

/* Keys and values of any type, within each other. */
static void test_values(void **state)
{
	of_hex(IN_ATTRIBUTES("a7 61 'a' 83 01 20 a1 61 'k' f6  02 42 00ff  c605 f4  61 'f' fb3ff8000000000000"
			     "61 't' d824 01  61 'n' 1bffffffffffffffff  61 'o' 9f f7 bf ff ff"),
	       "text",
	       "zico trace 1 at byte 0: dialect=zico-1.90\n  events:\n"
	       "    - event=enter depth=0 tick=0 order=little method=1\n"
	       "    - event=attributes depth=0\n      attributes:\n"
	       "        - key=a\n          value: 1 -1\n            -\n              map:\n                - key=k value=null\n"
	       "        - key=2 value=00ff\n"
	       "        - key=#5 value=false\n"
	       "        - key=f value=1.5\n"
	       "        - key=t\n          value: tag=36 value=1\n"
	       "        - key=n value=18446744073709551615\n"
	       "        - key=o\n          value: null\n            -\n              map:\n"
	       "    - event=leave depth=0 tick=1 duration_ns=65536 calls=1\n");
	/* eight levels and no more */
	of_hex(IN_ATTRIBUTES("a1 01 81 81 81 81 81 81 81 81 01"), "",
	       "{\"format\":\"zico\",\"kind\":\"trace\",\"record\":1,\"offset\":0,\"dialect\":\"zico-1.90\",\"events\":["
	       "{\"event\":\"enter\",\"depth\":0,\"tick\":0,\"order\":\"little\",\"method\":1},"
	       "{\"event\":\"attributes\",\"depth\":0,\"attributes\":[{\"key\":1,\"value\":[[[[[[[[1]]]]]]]]}]},"
	       "{\"event\":\"leave\",\"depth\":0,\"tick\":1,\"duration_ns\":65536,\"calls\":1}]}\n");
	refused(IN_ATTRIBUTES("a1 01 81 81 81 81 81 81 81 81 81 01"), 23, "8 levels");
	refused(IN_ATTRIBUTES("a1 01 a1 01 a1 01 a1 01 a1 01 a1 01 a1 01 a1 01 a1 01 a1 01 01"), 31, "8 levels");
}

/* A deep map in JSON: the writer's own depth must hold for the deepest that is let through. */
static void test_deepest_map(void **state)
{
	struct bytes b = hex(IN_ATTRIBUTES("a1 01 a1 01 a1 01 a1 01 a1 01 a1 01 a1 01 a1 01 a1 01 02"));
	struct decoded d;

	decode_bytes(b.v, b.n, "", &d);
	assert_int_equal(d.code, 0);
	assert_non_null(strstr(decoded_text(&d), "\"value\":2}]}}]}}]}}]}}]}}]}}]}}]}}]}"));
	buf_free(&d.text);
}

static void test_refusals(void **state)
{
	refused("00", 0, "begins with a tag");
	refused("d0 80", 0, "found tag 16");
	refused("c183 01 61 'a'", 5, "the end of");
	refused("c184 01 61 'a' 05 00", 5, "more");
	refused("cd82 01 61 'a'", 3, "no type");
	refused("c183 1b0000000100000000 61 'a' 05", 2, "4294967296");
	refused("c183 01 7a 00500000", 3, "4 MiB");
	refused("c183 01 62 'a' 00 05", 3, "NUL");
	refused("c183 01 41 'a' 05", 3, "byte string");
	refused("c284 01 02 03", 5, "an id");
	refused("c285 01 02 03 04 05", 5, "more");
	refused("c382 61 'a'", 4, "the end of");
	refused("c89f 48 0000000000000000 ff", 2, "tag 10 or 11");
	refused("c89f cc48 0000000000000000 ff", 2, "tag 12");
	refused("c89f cb47 00000000000000 ff", 3, "7");
	refused("c89f cb49 000000000000000000 ff", 3, "9 bytes");
	refused("c89f cb48 0000000000000000 ff", 12, "the end of a record");
	refused("c89f cb48 0000000000000000 cd48 0000000000000000 c9a0 ff", 22, "nothing behind");
	refused("c89f cb48 0000000000000000 cd4c 000000000000000000000000 ff", 13, "12");
	refused("c89f cb48 0000000000000000 c39f ff", 12, "tag 3");
	refused("c89f cb48 0000000000000000 01 ff", 12, "a part of a record");
	refused("c89f cb48 0000000000000000 c980 ff", 13, "a map");
	refused("c89f cb48 0000000000000000 d82181 00 ff", 15, "1 elements instead of 2");
	refused("c89f cb48 0000000000000000 d82183 00 00 00 ff", 16, "more than 2");
	refused("c89f cb48 0000000000000000 d82182 00 c705 ff", 16, "tag 7");
	refused("c89f cb48 0000000000000000 d82285 00 01 f6 00 81 83 00 00 00 ff", 23, "3 elements instead of 4");
	refused("cb9f cb48 0000000000000000 ff", 2, "tag 11");
	refused("cb9f 48 0000000000000000 c89f ff", 11, "tag 8");
	refused("c39f 00 ff", 3, "a method's id");
	refused("c39f 00 01 c481 05 ff", 6, "1 elements instead of 2");
	refused("c39f 00 01 c484 05 00 00 00 ff", 8, "more than 3");
}

/* As many levels of calls as are let through, and one more. */
static void test_deep_calls(void **state)
{
	struct bytes b = hex("c89f cb48 0000000000000000"), end = hex("cd48 0000000000000000 ff");
	const size_t levels = 1024;
	uint8_t *p = malloc((levels + 1) * (b.n + end.n)), *at = p;
	struct decoded d;

	for (size_t i = 0; i < levels; i++, at += b.n)
		memcpy(at, b.v, b.n);
	for (size_t i = 0; i < levels; i++, at += end.n)
		memcpy(at, end.v, end.n);
	decode_bytes(p, (size_t)(at - p), "text", &d);
	assert_int_equal(d.code, 0);
	assert_non_null(strstr(decoded_text(&d), "event=leave depth=1023 "));
	buf_free(&d.text);
	for (size_t i = 0; i <= levels; i++)
		memcpy(p + i * b.n, b.v, b.n);
	refused_at(p, (levels + 1) * b.n, "", levels * b.n, "1024 levels");
	free(p);
}

/* A value longer than a page of text, one that no record can hold, and strings that no list can. */
static void test_large(void **state)
{
	struct bytes head = hex("c89f cb48 0000000000000000 c9a1 01 7a 00400000");
	struct bytes tail = hex("cd48 0000000000000000 ff");
	size_t n = 4u << 20, total = head.n + n + tail.n;
	uint8_t *p = malloc(32u << 20), *at = p;
	struct decoded d;

	memcpy(p, head.v, head.n);
	memset(p + head.n, 'x', n);
	memcpy(p + head.n + n, tail.v, tail.n);
	decode_bytes(p, total, "", &d);
	assert_int_equal(d.code, 0);
	assert_true(d.text.len > n);
	buf_free(&d.text);
	/* seven controls of 4 MiB become more than 24 MiB of text */
	memcpy(p, hex("c89f cb48 0000000000000000").v, 12);
	at += 12;
	for (int i = 0; i < 7; i++, at += n + 8) {
		memcpy(at, "\xc9\xa1\x01\x7a\x00\x40\x00\x00", 8);
		memset(at + 8, 1, n);
	}
	decode_bytes(p, (size_t)(at - p), "", &d);
	assert_int_equal(d.code, -EBADMSG);
	assert_non_null(strstr(d.error, "24 MiB"));
	assert_int_equal(d.text.len, 1);
	buf_free(&d.text);
	/* names are kept up to 8 MiB */
	for (int i = 0; i < 3; i++) {
		at = p + (size_t)i * (n + 9);
		memcpy(at, "\xc1\x83", 2);
		at[2] = (uint8_t)i;
		memcpy(at + 3, "\x7a\x00\x40\x00\x00", 5);
		memset(at + 8, 'x', n);
		at[8 + n] = 5;
	}
	decode_bytes(p, 3 * (n + 9), "text", &d);
	assert_int_equal(d.code, -EBADMSG);
	assert_non_null(strstr(d.error, "8 MiB of names"));
	buf_free(&d.text);
	free(p);
}

/* Ids far away are shown, not looked up: no memory is taken for what lies between. */
static void test_far_ids(void **state)
{
	of_hex("c183 1affffffff 61 'a' 05  c284 1affffffff 1affffffff 01 01  c183 1a000fffff 61 'b' 05  c284 01 1a000fffff 01 01",
	       "text",
	       "zico string 1 at byte 0: dialect=zico-1.90 id=4294967295 text=a type=class\n"
	       "zico method 2 at byte 10: dialect=zico-1.90 id=4294967295 class=#4294967295 name=#1 signature=#1\n"
	       "zico string 3 at byte 24: dialect=zico-1.90 id=1048575 text=b type=class\n"
	       "zico method 4 at byte 34: dialect=zico-1.90 id=1 class=b name=#1 signature=#1\n");
}

/* Bodies as the collector gets them: one behind the other, with and without line ends. */
static void test_base64(void **state)
{
	/* printf '\xc1\x83\x01\x61\x61\x05\xc1\x83\x02\x62bb\x00' | base64 */
	static const char body[] = "wYMBYWEFwYMCYmJiAA==\n"
				   "wYMBYWEF\r\nwYMCYmJiAA==";
	static const char want[] = "zico string 1 at byte 0: dialect=zico-1.90 id=1 text=a type=class\n"
				   "zico string 2 at byte 6: dialect=zico-1.90 id=2 text=bb type=text\n"
				   "zico string 3 at byte 13: dialect=zico-1.90 id=1 text=a type=class\n"
				   "zico string 4 at byte 19: dialect=zico-1.90 id=2 text=bb type=text\n";

	decodes_to(body, sizeof(body) - 1, "text", want);
	decodes_to(body, sizeof(body) - 1, "text format=zico", want);
	refused_at("wYMBYWEFwYM", 11, "", 11, "four digits of base64");
	refused_at("wYMBYWEFw*MC", 12, "", 11, "four digits of base64, found \"w*MC\"");
	refused_at("wYMBYWEFw=MC", 12, "", 11, "four digits of base64");
	survives((const uint8_t *)body, sizeof(body) - 1, "format=zico");
}

static void test_every_cut_and_change(void **state)
{
	static const char *const inputs[] = {
		AGENT " " BIG_TRACE,
		"c89f cb48" MINIMAL_REST,
		"cb9f 48" MINIMAL_REST,
		"c182 05 64 'PROC' c39f 1a3b9aca00 01 c584 1b0000018bcfe56800 05 0a 00 c682 05 64 'proc' c483 1a3b9aca06 03 08 ff",
	};

	for (unsigned i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		struct bytes b = hex(inputs[i]);

		survives(b.v, b.n, "format=zico");
		survives(b.v, b.n, "format=zico text");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agent_data_and_trace),
		cmocka_unit_test(test_readings_of_one_trace),
		cmocka_unit_test(test_many_calls),
		cmocka_unit_test(test_document_agent_data),
		cmocka_unit_test(test_flags_upward_and_seen),
		cmocka_unit_test(test_zico_2),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_deepest_map),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_deep_calls),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_far_ids),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_every_cut_and_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
