/* SPDX-License-Identifier: Apache-2.0 */
/* Golden items of each profile: the bytes follow from documents/zico-wire.md and docs/formats/zico.md by
 * hand; libcbor takes them apart, and every field is compared in the diagnostic notation of RFC 8949. */
#include "zico_items.h"

/* Numbers in the order of use: 1 class, 2 method, 3 signature, 4 the trace's type, then keys. */
#define STRINGS_190 \
	"1([1, \"cgroup.a.slice.b\", 5])\n" \
	"1([2, \"sh\", 6])\n" \
	"1([3, \"()V\", 8])\n" \
	"1([4, \"PROCESS\", 0])\n" \
	"1([5, \"PID\", 0])\n" \
	"1([6, \"PROC\", 0])\n" \
	"1([7, \"USER\", 0])\n" \
	"1([8, \"EXIT\", 0])\n" \
	"1([9, \"CGROUP\", 0])\n" \
	"1([10, \"CPU_TIME_NS\", 0])\n" \
	"1([11, \"QUALITY\", 0])\n" \
	"2([1, 1, 2, 3])\n"
#define ATTRIBUTES \
	"9({6(5): \"100\", 6(6): \"sh\", 6(7): \"7\", 6(8): \"0\", 6(9): \"/a.slice/b\", 6(10): \"250\", 6(11): \"measured\"})"

static void test_minimal_190(void **state)
{
	const struct zico_options le = { .profile = "zico-1.90" }, be = { .profile = "zico-1.90", .big_endian = true };
	struct world w;

	minimal(&w);
	is(&le, &w.t, STRINGS_190,
	   "8([_ 11(h'0000000000010000'), 33([1700000000000, 4]), " ATTRIBUTES ", 13(h'9a3b000000010000')])\n");
	is(&be, &w.t, STRINGS_190,
	   "8([_ 10(h'0000010000000000'), 33([1700000000000, 4]), " ATTRIBUTES ", 12(h'0000010000003b9a')])\n");
	/* the heads that readers insist on */
	has_bytes(&le, &w.t, 0,
		  "c8 9f cb 48 00 00 00 00 00 01 00 00 d8 21 82 1b 00 00 01 8b cf e5 68 00 04 c9 a7 c6 05 63 31 30 30");
	has_bytes(&le, &w.t, -11, "cd 48 9a 3b 00 00 00 01 00 00 ff");
	has_bytes(&be, &w.t, 0, "c8 9f ca 48 00 00 01 00 00 00 00 00 d8 21");
	has_bytes(&be, &w.t, -11, "cc 48 00 00 01 00 00 00 3b 9a ff");
}

static void test_minimal_document(void **state)
{
	const struct zico_options le = { .profile = "document" }, be = { .profile = "document", .big_endian = true };
	static const char strings[] = "13([1, \"cgroup.a.slice.b\", 5])\n"
				      "13([2, \"sh\", 6])\n"
				      "13([3, \"()V\", 8])\n"
				      "13([4, \"PROCESS\", 0])\n"
				      "13([5, \"PID\", 0])\n"
				      "13([6, \"PROC\", 0])\n"
				      "13([7, \"USER\", 0])\n"
				      "13([8, \"EXIT\", 0])\n"
				      "13([9, \"CGROUP\", 0])\n"
				      "13([10, \"CPU_TIME_NS\", 0])\n"
				      "13([11, \"QUALITY\", 0])\n"
				      "14([1, 1, 2, 3])\n";
	struct world w;

	minimal(&w);
	is(&le, &w.t, strings,
	   "11([_ h'0000000000010000', 33([1700000000000, 4]), " ATTRIBUTES ", 13(h'9a3b000000010000')])\n");
	is(&be, &w.t, strings,
	   "10([_ h'0000010000000000', 33([1700000000000, 4]), " ATTRIBUTES ", 13(h'0000010000003b9a')])\n");
	has_bytes(&le, &w.t, 0, "cb 9f 48 00 00 00 00 00 01 00 00 d8 21 82 1b 00 00 01 8b cf e5 68 00 04 c9 a7");
	has_bytes(&be, &w.t, 0, "ca 9f 48 00 00 01 00 00 00 00 00 d8 21 82");
	has_bytes(&be, &w.t, -11, "cd 48 00 00 01 00 00 00 3b 9a ff");
}

static void test_minimal_2(void **state)
{
	const struct zico_options o = { .profile = "zico-2" };
	struct world w;

	minimal(&w);
	is(&o, &w.t,
	   "1([1, \"cgroup.a.slice.b\"])\n"
	   "1([2, \"sh\"])\n"
	   "1([3, \"()V\"])\n"
	   "1([4, \"PROCESS\"])\n"
	   "1([5, \"PID\"])\n"
	   "1([6, \"PROC\"])\n"
	   "1([7, \"USER\"])\n"
	   "1([8, \"EXIT\"])\n"
	   "1([9, \"CGROUP\"])\n"
	   "1([10, \"CPU_TIME_NS\"])\n"
	   "1([11, \"QUALITY\"])\n"
	   "2([1, 1, 2, 3])\n",
	   "3([_ 1000000000, 1, 5([1700000000000, 4, 67305985, 0]), 6([5, \"100\"]), 6([6, \"sh\"]), 6([7, \"7\"]), 6([8, \"0\"]), "
	   "6([9, \"/a.slice/b\"]), 6([10, \"250\"]), 6([11, \"measured\"]), 4([2000000000, 1])])\n");
	has_bytes(&o, &w.t, 0, "c3 9f 1a 3b 9a ca 00 01 c5 84 1b 00 00 01 8b cf e5 68 00 04");
	has_bytes(&o, &w.t, -9, "c4 82 1a 77 35 94 00 01 ff");
}

static void test_exceptions(void **state)
{
	const struct zico_options o = { .profile = "zico-1.90" };
	struct world w;

	failing(&w);
	/* child first: its number is the cause of its parent's */
	encodes_in_order(&o, &w.t, false,
			 (const char *const[]){ "8([_ 11(h'0000000000010000'), 33(", "8([_ 11(", "8([_ 11(",
						"\"signal 9 SIGKILL\"", "34([1, 6(",
						"), \"killed by signal 9 SIGKILL\", 0, [[", ", 0], [", ", 0], [",
						", 0]]]), 13(", "\"cc[102]: signal 9 SIGKILL\"", "34([2, 6(",
						"), \"exit status 2\", 1, [[", ", 0], [", ", 0]]]), 13(", "34([3, 6(",
						"), \"exit status 2\", 2, [[", ", 0]]]), 13(h'", "0000030000'", NULL });
	encodes_in_order(&o, &w.t, true,
			 (const char *const[]){ "\"process.Signal\", 5])", "\"process.ExitStatus\", 5])",
						"\"KILLED_ENERGY_UJ\", 0])", NULL });
}

/* zico-2, by hand: a top that failed for its child did. Its collectors gather the attributes of all records under the top's,
 * the last one of a key wins: the top's own come last. A flag in the third place of what ends a record that failed. */
static void test_nested_2(void **state)
{
	const struct zico_options o = { .profile = "zico-2" };
	struct world w;

	minimal(&w);
	w.spans[0].exit_code = 2;
	fixture_add(&w, 0, "cc", 2000000000, 2500000000)->exit_code = 1;
	w.spans[1].start_ns = w.spans[0].start_ns + 16;
	w.spans[1].end_ns = w.spans[0].start_ns + 48;
	is(&o, &w.t,
	   "1([1, \"cgroup.a.slice.b\"])\n"
	   "1([2, \"sh\"])\n"
	   "1([3, \"()V\"])\n"
	   "1([4, \"PROCESS\"])\n"
	   "1([5, \"cc\"])\n"
	   "1([6, \"PID\"])\n"
	   "1([7, \"PROC\"])\n"
	   "1([8, \"USER\"])\n"
	   "1([9, \"EXIT\"])\n"
	   "1([10, \"CGROUP\"])\n"
	   "1([11, \"CPU_TIME_NS\"])\n"
	   "1([12, \"QUALITY\"])\n"
	   "1([13, \"process.ExitStatus\"])\n"
	   "1([14, \"?\"])\n"
	   "2([1, 1, 2, 3])\n"
	   "2([2, 1, 5, 3])\n",
	   "3([_ 1000000000, 1, 5([1700000000000, 4, 67305985, 0]), "
	   "3([_ 1000000016, 2, 6([6, \"101\"]), 6([7, \"cc\"]), 6([8, \"7\"]), 6([9, \"1\"]), 6([10, \"/a.slice/b\"]), 6([11, \"0\"]), "
	   "6([12, \"measured\"]), 7([1, 13, \"exit status 1\", 0, [[1, 5, 14, 0], [1, 2, 14, 0]]]), 4([1000000048, 1, 4104])]), "
	   "6([6, \"100\"]), 6([7, \"sh\"]), 6([8, \"7\"]), 6([9, \"2\"]), 6([10, \"/a.slice/b\"]), 6([11, \"250\"]), "
	   "6([12, \"measured\"]), 7([2, 13, \"exit status 2\", 1, [[1, 2, 14, 0]]]), 4([2000000000, 2, 4104])])\n");
	has_bytes(&o, &w.t, -12, "c4 83 1a 77 35 94 00 02 19 10 08 ff");
}

static void test_upward(void **state)
{
	struct world w;

	failing(&w);
	/* the trace's type, then the nearest record */
	encodes_in_order(&(struct zico_options){ .profile = "document" }, &w.t, false,
			 (const char *const[]){ "38([4, {6(", "): \"1500000\"}])", "38([0, {6(",
						"): \"cc[102]: signal 9 SIGKILL\"}])", "34([1, ", NULL });
	encodes_in_order(&(struct zico_options){ .profile = "zico-2" }, &w.t, false,
			 (const char *const[]){ "6([4, ", ", \"1500000\"])", "7([1, ", "\"cc[102]: signal 9 SIGKILL\"",
						"7([2, ", NULL });
	/* refused there: on the top record, behind its children */
	encodes_in_order(&(struct zico_options){ .profile = "zico-1.90.6" }, &w.t, false,
			 (const char *const[]){ "34([2, ", "): \"cc[102]: signal 9 SIGKILL\", 6(",
						"): \"1500000\"}), 34([3, ", NULL });
}

static void test_flags(void **state)
{
	struct zico *z = NULL;
	struct err err = { 0 };
	struct world w;

	failing(&w);
	encodes_in_order(&(struct zico_options){ .profile = "zico-1.90", .flags = ZICO_FLAGS_TOKEN }, &w.t, false,
			 (const char *const[]){ "34([1, ", "]]]), 37(1), 13(", "34([2,", "37(1), 13(", NULL });
	encodes_in_order(&(struct zico_options){ .profile = "zico-1.90.6", .flags = ZICO_FLAGS_MASK }, &w.t, false,
			 (const char *const[]){ "34([1, ", "]]]), 15(8), 13(", NULL });
	assert_int_equal(zico_new(&(struct zico_options){ .profile = "zico-2", .flags = ZICO_FLAGS_MASK }, &z, &err),
			 -EINVAL);
	assert_int_equal(
		zico_new(&(struct zico_options){ .profile = "zico-1.90.6", .flags = ZICO_FLAGS_TOKEN }, &z, &err),
		-EINVAL);
}

static void test_energy(void **state)
{
	struct world w;

	failing(&w);
	/* 1.5 J in 4 s */
	encodes_in_order(&(struct zico_options){ .profile = "zico-1.90" }, &w.t, false,
			 (const char *const[]){ "\"1500000\", 6(", "): \"1000000\", 6(", "): \"500000\", 6(",
						"): \"375\", 6(",
						"): {\"package-0\": \"powercap\", \"dram-0\": \"powercap\"}})", NULL });
	encodes_in_order(&(struct zico_options){ .profile = "zico-2" }, &w.t, false,
			 (const char *const[]){ "\"package-0=powercap dram-0=powercap\"", NULL });
	encodes_in_order(&(struct zico_options){ .profile = "zico-1.90" }, &w.t, true,
			 (const char *const[]){ "ENERGY_UJ", "ENERGY_PACKAGE_0_UJ", "ENERGY_DRAM_0_UJ", "AVG_POWER_MW",
						"CPU_TIME_NS", "QUALITY", NULL });
}

static void test_long_calls(void **state)
{
	const struct zico_options le = { .profile = "document" }, be = { .profile = "zico-1.90", .big_endian = true };
	struct world w;

	minimal(&w);
	w.spans[0].calls = (1 << 24) - 1;
	has_bytes(&le, &w.t, -11, "cd 48 9a 3b 00 00 00 ff ff ff ff");
	w.spans[0].calls = 1 << 24;
	has_bytes(&le, &w.t, -19, "cd 50 9a 3b 00 00 00 00 00 00 00 00 00 01 00 00 00 00 ff");
	has_bytes(&be, &w.t, -19, "cc 50 00 00 00 00 00 00 3b 9a 00 00 00 00 01 00 00 00 ff");
}

static void test_hostile_text(void **state)
{
	struct world w;

	minimal(&w);
	w.spans[0].cmdline = "a\x01\x05"
			     "b\n\xff\xc3\xa4";
	w.spans[0].cgroup = "/a b(c)/\x02";
	snprintf(w.names[0], sizeof(w.names[0]), "(x.y z)");
	encodes_in_order(&(struct zico_options){ .profile = "zico-1.90" }, &w.t, false,
			 (const char *const[]){ "\"(x.y z)\"", "\"a  b \xef\xbf\xbd\xc3\xa4\"", NULL });
	encodes_in_order(&(struct zico_options){ .profile = "zico-1.90" }, &w.t, true,
			 (const char *const[]){ "\"cgroup.a_b_c_._\"", "\"_x_y_z_\", 6", NULL });
	w.spans[0].cgroup = "/a\xe2\x80\xa8"
			    "b\xc2\x85\xc3\xa4\xe2\x80\xa9"; /* ends of lines hide a name */
	encodes_in_order(&(struct zico_options){ .profile = "zico-1.90.6" }, &w.t, true,
			 (const char *const[]){ "\"cgroup.a_b_\xc3\xa4_\"", NULL });
	w.spans[0].cgroup = "/";
	encodes_in_order(&(struct zico_options){ .profile = "zico-1.90" }, &w.t, true,
			 (const char *const[]){ "\"cgroup.root\"", NULL });
}

/* Values that would break a collector for all its hosts. */
static void test_poison(void **state)
{
	const struct zico_options o = { .profile = "zico-1.90" };
	struct encoded e = { 0 };
	struct err err = { 0 };
	struct world w;

	minimal(&w);
	w.spans[0].start_real_ns = FIXTURE_CLOCK_MS; /* ms where ns belong */
	assert_int_equal(encode(&o, &w.t, &e, &err), -ERANGE);
	w.spans[0].start_real_ns = INT64_MAX;
	assert_int_equal(encode(&o, &w.t, &e, &err), -ERANGE);
	assert_int_equal(e.trace.len, 0);
	assert_int_equal(e.agent.len, 0);
	assert_true(zico_signature_ok("()V"));
	assert_true(zico_signature_ok("(I[[Ljava/lang/String;J)[D"));
	assert_false(zico_signature_ok(""));
	assert_false(zico_signature_ok("()"));
	assert_false(zico_signature_ok("()VV"));
	assert_false(zico_signature_ok("(V)V"));
	assert_false(zico_signature_ok("(Ljava/lang/String)V"));
	assert_false(zico_signature_ok("(L;)V"));
	assert_false(zico_signature_ok("([)V"));
	assert_false(zico_signature_ok("void f()"));
	buf_free(&e.agent);
	buf_free(&e.trace);
}

static void test_dictionary(void **state)
{
	const struct zico_attr agent[] = { { "HOSTNAME", "node-7" }, { "EMPTY", "" } };
	struct zico *z = NULL;
	struct buf first = { 0 }, again = { 0 }, body = { 0 };
	struct text text;
	struct err err = { 0 };
	struct world w;

	minimal(&w);
	assert_int_equal(
		zico_new(&(struct zico_options){ .profile = "zico-1.90", .agent = agent, .n_agent = 2 }, &z, &err), 0);
	assert_int_equal(zico_encode(z, &w.t, &first, &body, &err), 0);
	items(&text, &first);
	assert_string_equal(text.s, "3([\"HOSTNAME\", \"node-7\"])\n" STRINGS_190);
	/* not yet told: the same again; told: nothing; something new: that alone */
	assert_int_equal(zico_encode(z, &w.t, &again, &body, &err), 0);
	assert_int_equal(again.len, first.len);
	assert_memory_equal(again.data, first.data, first.len);
	zico_told(z);
	buf_reset(&again);
	assert_int_equal(zico_encode(z, &w.t, &again, &body, &err), 0);
	assert_int_equal(again.len, 0);
	snprintf(w.names[0], sizeof(w.names[0]), "zsh");
	assert_int_equal(zico_encode(z, &w.t, &again, &body, &err), 0);
	items(&text, &again);
	assert_string_equal(text.s, "1([12, \"zsh\", 6])\n"
				    "2([2, 1, 12, 3])\n");
	zico_forget(z);
	snprintf(w.names[0], sizeof(w.names[0]), "sh");
	buf_reset(&again);
	assert_int_equal(zico_encode(z, &w.t, &again, &body, &err), 0);
	assert_int_equal(again.len, first.len);
	assert_memory_equal(again.data, first.data, first.len);
	zico_free(z);
	buf_free(&first);
	buf_free(&again);
	buf_free(&body);
}

static void test_too_large(void **state)
{
	struct world w;

	failing(&w);
	for (int i = 3; i < 60; i++)
		fixture_add(&w, i < 30 ? 1 : 2, "deep", 1500000000, 1600000000);
	encodes_in_order(&(struct zico_options){ .profile = "zico-1.90", .body_max = 4096 }, &w.t, true,
			 (const char *const[]){ "SPANS_LEFT_OUT", "ENERGY_LEFT_OUT_UJ", NULL });
}

static void test_envelope(void **state)
{
	const uint8_t host[16] = { 0xaa, 0xbb };
	struct zico *z = NULL;
	struct buf out = { 0 };
	struct text text;
	struct err err = { 0 };
	struct world w;

	minimal(&w);
	assert_int_equal(zico_new(&(struct zico_options){ .profile = "document" }, &z, &err), 0);
	assert_int_equal(zico_enclose(z, &w.t, host, &out, &err), 0);
	items(&text, &out);
	in_order(
		text.s,
		(const char *const[]){
			"2053727087([1, \"document\", h'aabb0000000000000000000000000000', h'0102030405060708090a0b0c0d0e0f10', ",
			"13([1, ", "14([1, 1, 2, 3])", "11([_ h'", NULL });
	assert_memory_equal(out.data,
			    "\xda"
			    "zico\x86",
			    6);
	zico_free(z);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_minimal_190), cmocka_unit_test(test_minimal_document),
		cmocka_unit_test(test_minimal_2),   cmocka_unit_test(test_nested_2),
		cmocka_unit_test(test_exceptions),  cmocka_unit_test(test_upward),
		cmocka_unit_test(test_flags),       cmocka_unit_test(test_energy),
		cmocka_unit_test(test_long_calls),  cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_poison),      cmocka_unit_test(test_dictionary),
		cmocka_unit_test(test_too_large),   cmocka_unit_test(test_envelope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
