/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's list of pods, whole and in pieces, and what somebody in its place may answer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "source/names/pod_list.h"

#define UID1 "0d5f1c1e-8f2b-4b7a-9f61-2f1f0a5c7d11"
#define UID2 "1111aaaa-8f2b-4b7a-9f61-2f1f0a5c7d11"
#define HASH "9d1f0e3c5b7a48629d1f0e3c5b7a4862"
#define ID1 "d0f631ca1ddba8db3bcfcb9e057cdc98d0379f1bee00e75a545147a27dadd982"
#define ID2 "6ab9f1eb8f7d3388f4f9d586f66e99fd54080df2c446f0e58668b09c08a16dd0"
#define ID3 "015f7e6bc5aeaf483724089e9252cc13b50951a6b69412522765cff4d780306e"
#define ID4 "82f3e9c695dc6b8d1b11818d5701919e286de8d47f7c3eb3100c485f79e57828"

#define LIST(items) "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[" items "]}\n"
#define POD(space, name, uid, status) \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"" space "\",\"uid\":\"" uid \
	"\",\"labels\":{\"a\":\"}]\\\"{\"}},\"spec\":{\"containers\":[{\"name\":\"x\",\"args\":[\"{\",\"\\\\\"]}]},\"status\":{" status \
	"}}"

static const char good[] = LIST(POD(
	"prod", "shop", UID1,
	"\"initContainerStatuses\":[{\"name\":\"init\",\"containerID\":\"containerd://" ID3 "\"}],"
	"\"containerStatuses\":[{\"name\":\"web\",\"containerID\":\"cri-o://" ID1
	"\",\"lastState\":{\"terminated\":{\"containerID\":"
	"\"cri-o://" ID2
	"\"}}},{\"name\":\"waits\",\"state\":{\"waiting\":{}}}]") ","
								  "{\"metadata\":{\"name\":\"etcd-node-7\",\"namespace\":\"kube-system\",\"uid\":\"" UID2
								  "\",\"annotations\":{"
								  "\"kubernetes.io/config.hash\":\"" HASH
								  "\"}},\"status\":{\"ephemeralContainerStatuses\":[{\"name\":\"debug\","
								  "\"containerID\":\"docker://" ID4 "\"}]}}");

/* Fed in pieces of that size. */
static int read_all(struct kubelet_table *t, const char *text, size_t n, size_t piece, unsigned *ret_left_out)
{
	struct kubelet_reader r = { .table = t };
	int rc = 0, end;

	for (size_t at = 0; at < n && !rc; at += piece)
		rc = kubelet_read(&r, text + at, n - at < piece ? n - at : piece);
	end = kubelet_read_end(&r);
	if (ret_left_out)
		*ret_left_out = r.left_out;
	return rc ? rc : end;
}

static const char *name_of(const struct kubelet_table *t, const char *uid, const char *id)
{
	const struct kubelet_pod *p = kubelet_table_pod(t, uid);
	const struct kubelet_container *c = p ? kubelet_table_container(t, p, id) : NULL;
	static char text[3 * NAMING_TEXT_MAX];

	snprintf(text, sizeof(text), "%s/%s/%s", p ? (const char *)t->text.data + p->space : "",
		 p ? (const char *)t->text.data + p->name : "", c ? (const char *)t->text.data + c->name : "");
	return text;
}

static void test_list(void **state)
{
	for (size_t piece = 1; piece < sizeof(good); piece += 1 + piece / 3) {
		struct kubelet_table t = { 0 };
		unsigned left_out;

		assert_int_equal(read_all(&t, good, sizeof(good) - 1, piece, &left_out), 0);
		assert_int_equal(left_out, 0);
		assert_int_equal(t.n_pods, 2);
		assert_string_equal(name_of(&t, UID1, ID1), "prod/shop/web");
		assert_string_equal(name_of(&t, UID1, ID2), "prod/shop/web");
		assert_string_equal(name_of(&t, UID1, ID3), "prod/shop/init");
		assert_string_equal(name_of(&t, HASH, ID4), "kube-system/etcd-node-7/debug");
		assert_string_equal(name_of(&t, UID2, ID4), "kube-system/etcd-node-7/debug");
		/* another pod's container is not this one's */
		assert_string_equal(name_of(&t, UID1, ID4), "prod/shop/");
		assert_string_equal(name_of(&t, "", ID4), "//");
		kubelet_table_free(&t);
	}
}

/* Cut off anywhere it is no list, and what was read of it is not used. */
static void test_cut_off(void **state)
{
	for (size_t n = 0; n < sizeof(good) - 2; n++) {
		struct kubelet_table t = { 0 };

		assert_int_equal(read_all(&t, good, n, n + 1, NULL), -EBADMSG);
		kubelet_table_free(&t);
	}
}

static void test_not_a_list(void **state)
{
	static const struct {
		const char *text;
		int rc;
		unsigned pods, left_out;
	} answers[] = {
		{ "{}", 0, 0, 0 },
		{ LIST(""), 0, 0, 0 },
		{ LIST("1,[{}],null,\"{\""), 0, 0, 0 },
		{ "[]", -EBADMSG, 0, 0 },
		{ "<html>", -EBADMSG, 0, 0 },
		{ "", -EBADMSG, 0, 0 },
		{ "{}{}", -EBADMSG, 0, 0 },
		{ "}{", -EBADMSG, 0, 0 },
		{ "{\"items\":{\"a\":{\"metadata\":{}}}}", 0, 0, 0 },
		{ LIST("{},{\"metadata\":7,\"status\":[]}"), 0, 0, 2 },
		{ LIST("{\"metadata\":{x}}," POD("n", "p", UID1, "")), 0, 1, 1 },
		/* texts that are no names */
		{ LIST(POD("n", "a\\u001b[31m", UID1, "")), 0, 0, 1 },
		{ LIST(POD("n", "", UID1, "")), 0, 0, 1 },
		{ LIST(POD("n", "p\xff", UID1, "")), 0, 0, 1 },
		{ LIST(POD("n", "a\\u0000b", UID1, "")), 0, 0, 1 },
		{ LIST(POD("$(reboot)", "<b>", UID1, "")), 0, 1, 0 },
	};

	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct kubelet_table t = { 0 };
		unsigned left_out;

		assert_int_equal(read_all(&t, answers[i].text, strlen(answers[i].text), 7, &left_out), answers[i].rc);
		if (t.n_pods != answers[i].pods || left_out != answers[i].left_out)
			fail_msg("%s: %u pods, %u left out", answers[i].text, t.n_pods, left_out);
		kubelet_table_free(&t);
	}
}

/* A pod that is listed first and says by its annotation that it is another one, or another's hash. */
static void test_claims(void **state)
{
#define CLAIM(name, uid, hash) \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\",\"uid\":\"" uid \
	"\",\"annotations\":{\"kubernetes.io/config.hash\":\"" hash "\"}}}"
	static const char text[] = LIST(CLAIM("evil", "e1", UID1) "," CLAIM("thief", "e2", HASH) "," POD(
		"n", "shop", UID1, "") "," POD("n", "etcd", HASH, ""));
	struct kubelet_table t = { 0 };

	assert_int_equal(read_all(&t, text, sizeof(text) - 1, 100, NULL), 0);
	assert_int_equal(t.n_pods, 4);
	assert_string_equal(name_of(&t, UID1, ""), "n/shop/");
	assert_string_equal(name_of(&t, HASH, ""), "n/etcd/");
	t.n_pods = 2; /* the others are gone: a uid is nobody's hash */
	assert_string_equal(name_of(&t, UID1, ""), "//");
	kubelet_table_free(&t);
#undef CLAIM
}

static void test_ids(void **state)
{
	static const char text[] = LIST(POD("n", "p", UID1 "0", "") "," POD(
		"n", "q", UID2,
		"\"containerStatuses\":[{\"name\":\"a\",\"containerID\":\"" ID1
		"\"},{\"name\":\"b\",\"containerID\":\"x://" ID1 "0\"},"
		"{\"name\":\"c\",\"containerID\":7},{\"name\":\"d\",\"containerID\":\"x://\"},{\"containerID\":\"x://" ID2
		"\"},"
		"{\"name\":\"e\",\"containerID\":\"x://" ID3 "\"}]"));
	struct kubelet_table t = { 0 };

	assert_int_equal(read_all(&t, text, sizeof(text) - 1, 100, NULL), 0);
	assert_int_equal(t.n_pods, 2);
	assert_int_equal(t.n_containers, 1);
	assert_string_equal(name_of(&t, UID1 "0", ""), "//");
	assert_string_equal(name_of(&t, UID2, ID3), "n/q/e");
	kubelet_table_free(&t);
}

/* One pod beyond its bound is left out, and those behind it are not. */
static void test_huge_pod(void **state)
{
	static const char begin[] = "{\"items\":[{\"a\":\"", end[] = "\"}," POD("n", "p", UID1, "") "]}";
	size_t size = 2 * KUBELET_ITEM_MAX;
	char *text = malloc(sizeof(begin) + size + sizeof(end));
	struct kubelet_table t = { 0 };
	unsigned left_out;

	assert_non_null(text);
	memcpy(text, begin, sizeof(begin));
	memset(text + sizeof(begin) - 1, 'a', size);
	memcpy(text + sizeof(begin) - 1 + size, end, sizeof(end));
	assert_int_equal(read_all(&t, text, strlen(text), 4096, &left_out), 0);
	assert_int_equal(left_out, 1);
	assert_string_equal(name_of(&t, UID1, ""), "n/p/");
	kubelet_table_free(&t);
	free(text);
}

/* Without an end: refused at a bound, with no more memory than one pod has. */
static void test_endless(void **state)
{
	struct kubelet_table t = { 0 };
	struct kubelet_reader r = { .table = &t };
	char piece[65536];
	uint64_t fed = 0;
	int rc = kubelet_read(&r, "{\"items\":[{", 11);

	memset(piece, '[', sizeof(piece));
	for (; !rc && fed < 2 * KUBELET_ANSWER_MAX; fed += sizeof(piece))
		rc = kubelet_read(&r, piece, sizeof(piece));
	assert_int_equal(rc, -EMSGSIZE);
	assert_in_range(fed, KUBELET_ANSWER_MAX - sizeof(piece), KUBELET_ANSWER_MAX + sizeof(piece));
	assert_in_range(r.item.cap, 1, 2 * KUBELET_ITEM_MAX);
	assert_int_equal(kubelet_read_end(&r), -EBADMSG);
	kubelet_table_free(&t);
}

static void test_bounds(void **state)
{
	struct kubelet_table t = { 0 };
	struct kubelet_reader r = { .table = &t };
	char pod[512];

	assert_int_equal(kubelet_read(&r, "{\"items\":[", 10), 0);
	for (unsigned i = 0; i < KUBELET_PODS_MAX + 10; i++) {
		int n = snprintf(pod, sizeof(pod),
				 "%s{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"n\",\"uid\":\"%032x\"}}",
				 i ? "," : "", i, i);

		assert_int_equal(kubelet_read(&r, pod, (size_t)n), 0);
	}
	assert_int_equal(kubelet_read(&r, "]}", 2), 0);
	assert_int_equal(r.left_out, 10);
	assert_int_equal(t.n_pods, KUBELET_PODS_MAX);
	assert_int_equal(kubelet_read_end(&r), 0);
	kubelet_table_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),    cmocka_unit_test(test_cut_off), cmocka_unit_test(test_not_a_list),
		cmocka_unit_test(test_claims),  cmocka_unit_test(test_ids),     cmocka_unit_test(test_huge_pod),
		cmocka_unit_test(test_endless), cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
