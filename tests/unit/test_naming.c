/* SPDX-License-Identifier: Apache-2.0 */
/* Names from path and files, over the layouts and cgroup trees of tests/sysroot/names-*, and over files that somebody
 * wrote to be taken for another, to stop us or to be printed. */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/naming.h"
#include "source/names/names.h"
#include "temp_root.h"

#define CONTAINERD "/run/containerd/io.containerd.runtime.v2.task/k8s.io/"
#define POD "0d5f1c1e-8f2b-4b7a-9f61-2f1f0a5c7d11"
#define POD_ "0d5f1c1e_8f2b_4b7a_9f61_2f1f0a5c7d11"
#define KUBE "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice"
#define USER "/user.slice/user-1000.slice/user@1000.service"
#define ID "d0f631ca1ddba8db3bcfcb9e057cdc98d0379f1bee00e75a545147a27dadd982"
#define PAUSE "6210c0bf05396716df932f0729df69de0533933e5ad9871fd07b61811c4c28df"
#define SYSTEMD "e0031c189e34e10d9c202fa8d75f72d3296a239164fe6b07e7dc206c7b723d98"
#define NERD "5cabaa953bd37c3e357e779bb82aa195eda3b2afa2bdd19594a7162c4f7497be"
#define CRIO "c64064614423cb790e88b3e5492ff5ccf673b25ae823089f7a60c65cda24d809"
#define CRIO_PAUSE "61f18e8a1d0b627c2c875851c047c9191526c4d89a8b2dd646be63334764bd19"
#define CRIO_FS "4bb4257ed80461ad16aa080d908b5dc3a1c19f77c6db8e36f615e453b87cce1f"
#define DOCKER1 "8b53639f152c8fc6ef30802fde462ba0be9cf085f7580dc69efd72e002abbb35"
#define DOCKER2 "e788103ee15318fcd2af9b73b4ebbb33a903b020de7b307d71f5fed0f433e548"
#define CRI_DOCKER "6ab9f1eb8f7d3388f4f9d586f66e99fd54080df2c446f0e58668b09c08a16dd0"
#define CRI_PAUSE "015f7e6bc5aeaf483724089e9252cc13b50951a6b69412522765cff4d780306e"
#define ROOTLESS "82f3e9c695dc6b8d1b11818d5701919e286de8d47f7c3eb3100c485f79e57828"
#define PODMAN "a4593944905e52ab2eb8f4d973d834212f8723254323cef8f8cc924f02d0aa16"
#define PODMAN_USER "0510eddd781102030eb8860671503a28e6a37f5346de429bdd47c0a37c77cc7d"
#define LOGGED "836ff184e7b41b1e13cb5fd89fa1de98dbbab99e9d2918913ff43b86a5c7c213"

struct expected {
	const char *root, *path, *names; /* runtime|namespace|pod|container|machine|unit|user */
	bool complete;
};

static const struct expected layouts[] = {
	{ "containerd", "/kubepods/burstable/pod" POD "/" ID, "kubernetes|prod|shop-7d9f|worker|||", true },
	{ "containerd", "/kubepods/burstable/pod" POD "/" ID "/init/deep", "kubernetes|prod|shop-7d9f|worker|||",
	  true },
	{ "containerd", KUBE "/cri-containerd-" PAUSE ".scope", "kubernetes|prod|shop-7d9f|POD|||", true },
	{ "containerd", KUBE "/cri-containerd-" SYSTEMD ".scope", "kubernetes|prod|shop-7d9f|web|||", true },
	{ "containerd", "/system.slice/nerdctl-" NERD ".scope", "containerd|||cache|||", true },
	/* the id of another's container at a place of one's own: neither its name nor its pod */
	{ "containerd", "/kubepods/besteffort/pod" POD "/" ID, "kubernetes||||||", false },
	{ "containerd",
	  "/kubepods/burstable/pod"
	  "1"
	  "d5f1c1e-8f2b-4b7a-9f61-2f1f0a5c7d11/" ID,
	  "kubernetes||||||", false },
	{ "containerd", KUBE "/crio-" PAUSE ".scope", "kubernetes||||||", false },
	{ "containerd", USER "/nerdctl-" NERD ".scope", "containerd|||||user@1000.service|1000", true },
	{ "crio", KUBE "/crio-" CRIO ".scope/container", "kubernetes|prod|shop-7d9f|api|||", true },
	{ "crio", KUBE "/crio-" CRIO_PAUSE ".scope", "kubernetes|prod|shop-7d9f|POD|||", true },
	{ "crio", "/kubepods/besteffort/pod" POD "/crio-" CRIO_FS, "kubernetes|prod|shop-7d9f|side|||", true },
	{ "docker", "/system.slice/docker-" DOCKER1 ".scope", "docker|||nginx_proxy|||", true },
	{ "docker", "/docker/" DOCKER1, "docker||||||", false }, /* its bundle says elsewhere */
	{ "docker", "/docker/" DOCKER2, "docker|||batch|||", true },
	{ "docker", "/night/" DOCKER2, "docker|||batch|||", true },
	{ "docker", "/night/" ID, "", false },
	{ "docker", KUBE "/docker-" CRI_DOCKER ".scope", "kubernetes|prod|shop-7d9f|api|||", true },
	{ "docker", "/kubepods/besteffort/pod" POD "/" CRI_PAUSE, "kubernetes|prod|shop-7d9f|POD|||", true },
	{ "docker", USER "/user.slice/docker-" ROOTLESS ".scope", "docker|||rootless-db||user@1000.service|1000",
	  true },
	{ "docker", "/user.slice/user-1001.slice/user@1001.service/docker-" ROOTLESS ".scope",
	  "docker|||||user@1001.service|1001", false },
	/* a user's word about root's container */
	{ "docker", USER "/user.slice/docker-" DOCKER2 ".scope", "docker|||||user@1000.service|1000", false },
	{ "podman", "/libpod_parent/libpod-" PODMAN, "podman|||web|||", true },
	{ "podman", "/machine.slice/libpod-" PODMAN ".scope", "podman||||||", false },
	{ "podman", USER "/user.slice/libpod-" PODMAN_USER ".scope/container", "podman|||notes||user@1000.service|1000",
	  true },
	{ "podman", USER "/user.slice/libpod-" PODMAN ".scope", "podman|||||user@1000.service|1000", false },
	{ "logs", "/kubepods/pod" POD "/" LOGGED, "kubernetes|prod|shop-7d9f|worker|||", true },
	{ "logs", KUBE, "kubernetes|prod|shop-7d9f||||", true },
	{ "logs", "/kubepods/besteffort/pod9d1f0e3c5b7a48629d1f0e3c5b7a4862", "kubernetes|kube-system|etcd-node-7||||",
	  true },
	{ "logs", "/kubepods/pod" POD "/" ID, "kubernetes|prod|shop-7d9f||||", false },
	{ "logs", "/system.slice/sshd.service", "systemd|||||sshd.service|", true },
	{ "logs", USER "/app.slice/app-x.service", "systemd|||||user@1000.service/app-x.service|1000", true },
	{ "logs", "/machine.slice/machine-qemu\\x2d1\\x2ddb.scope", "machine||||db||", true },
	{ "logs", "/lxc/box", "lxc|||box|||", true },
	{ "logs", "/machine.slice/machine-db.scope/payload/init.scope", "nspawn|||db|db||", true },
	{ "logs", "/nomad.slice/share.slice/" POD ".web.scope", "nomad|||web|||", true },
	/* has ended, or has not begun: no user */
	{ "logs", "/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0",
	  "slurm|||||slurmstepd.scope||4711|batch", false },
	{ "logs", "/slurm/uid_1000/job_42/step_0", "slurm||||||1000|42|0", true },
	{ "logs", "/slurm/uid_1000/job_42", "slurm||||||1000|42|", true },
	{ "logs", "/", "", true },
	{ "logs", "/x/y", "", true },
};

static const char *sysroot(const char *name)
{
	const char *dir = getenv("SYSROOT");
	static char path[256];

	snprintf(path, sizeof(path), "%s/names-%s", dir ? dir : "tests/sysroot", name);
	return path;
}

static const char *join(const struct names *n)
{
	static const enum name_field fields[] = {
		NAME_RUNTIME, NAME_NAMESPACE, NAME_POD, NAME_CONTAINER, NAME_MACHINE, NAME_UNIT, NAME_USER,
	};
	static char text[2048];
	size_t at = 0;

	for (unsigned i = 0; i < 7; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? "|" : "", names_text(n, fields[i]));
	if (*names_text(n, NAME_JOB))
		snprintf(text + at, sizeof(text) - at, "|%s|%s", names_text(n, NAME_JOB), names_text(n, NAME_STEP));
	return n ? text : "";
}

static void test_layouts(void **state)
{
	for (unsigned i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		const struct expected *e = &layouts[i];
		struct fsroot *root;
		struct names *n;
		bool complete;

		assert_int_equal(fsroot_open(sysroot(e->root), &root), 0);
		n = naming_look(root, "/sys/fs/cgroup", e->path, &complete);
		if (strcmp(join(n), e->names) || complete != e->complete)
			fail_msg("%s %s: %s %s, expected %s", e->root, e->path, join(n),
				 complete ? "complete" : "incomplete", e->names);
		names_put(n);
		fsroot_close(root);
	}
}

static const char *expected_of; /* lines PATH NAMES, or PATH NAMES ? for incomplete ones; the names as join() has them */
static const struct fsroot *tree;
static size_t tree_len;
static unsigned n_found;

/* The tree's cgroup has its line, and that is what the look says. */
static int check_cgroup(const char *file, const struct stat *st, int type, struct FTW *ftw)
{
	const char *path = file + tree_len, *line = expected_of, *end;
	char got[2304];
	struct names *n;
	bool complete;

	(void)st, (void)ftw;
	if (type != FTW_D || !*path)
		return 0;
	n = naming_look(tree, "/sys/fs/cgroup", path, &complete);
	snprintf(got, sizeof(got), "\n%s %s%s\n", path, n ? join(n) : "-", complete ? "" : " ?");
	names_put(n);
	end = strstr(line, got);
	if (!end)
		fail_msg("not expected:%s", got);
	n_found++;
	return 0;
}

/* Every cgroup of a captured or described tree, against the tree's own file expect-names. */
static void test_trees(void **state)
{
	static const char *const roots[] = { "slurm", "incus" };

	for (unsigned i = 0; i < 2; i++) {
		static char text[16384];
		struct fsroot *root;
		char dir[512];
		unsigned lines = 0;

		assert_int_equal(fsroot_open(sysroot(roots[i]), &root), 0);
		text[0] = '\n';
		assert_true(fsroot_read(root, "/expect-names", text + 1, sizeof(text) - 2) > 0);
		strcat(text, "\n");
		for (const char *s = text; (s = strchr(s + 1, '\n'));)
			lines++;
		tree_len = (size_t)snprintf(dir, sizeof(dir), "%s/sys/fs/cgroup", sysroot(roots[i]));
		tree = root;
		expected_of = text;
		n_found = 0;
		assert_int_equal(nftw(dir, check_cgroup, 16, FTW_PHYS), 0);
		assert_int_equal(n_found, lines);
		fsroot_close(root);
	}
}

static const char *look(const struct temp_root *t, const char *path, bool *ret_complete)
{
	static char text[2048];
	struct names *n = naming_look(t->root, "/sys/fs/cgroup", path, ret_complete);

	snprintf(text, sizeof(text), "%s", join(n));
	names_put(n);
	return text;
}

static void put_spec(const struct temp_root *t, const char *container)
{
	char text[8192];

	snprintf(text, sizeof(text),
		 "{\"linux\":{\"cgroupsPath\":\"/kubepods/pod" POD "/" ID "\"},\"annotations\":{"
		 "\"io.kubernetes.cri.container-type\":\"container\",\"io.kubernetes.cri.sandbox-name\":\"p\","
		 "\"io.kubernetes.cri.sandbox-namespace\":\"n\",\"io.kubernetes.cri.container-name\":\"%s\"}}",
		 container);
	temp_root_put(t, CONTAINERD ID "/config.json", text);
}

#define PLACE "/kubepods/pod" POD "/" ID

/* A name is taken as data or not at all. */
static void test_texts(void **state)
{
	static const struct {
		const char *json, *name;
	} texts[] = {
		{ "plain", "plain" },
		{ "$(reboot);`x`|&", "$(reboot);`x`|&" },
		{ "<script>alert(1)</script>", "<script>alert(1)</script>" },
		{ "\\\"},{\\\"a\\\":\\\"", "\"},{\"a\":\"" },
		{ "\xc3\xbc\xe2\x82\xac", "\xc3\xbc\xe2\x82\xac" },
		{ "a\\u001b[31mred", NULL },
		{ "a\\nb", NULL },
		{ "a\\u007f", NULL },
		{ "a\\u009bx", NULL },
		{ "a\\u0000b", NULL },
		{ "bad\xff", NULL },
		{ "", NULL },
	};
	struct temp_root t = temp_root_new();
	char expected[256];
	bool complete;

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put_spec(&t, texts[i].json);
		snprintf(expected, sizeof(expected), "%s|%s|||", texts[i].name ? "kubernetes|n|p" : "",
			 texts[i].name ? texts[i].name : "");
		look(&t, PLACE, &complete);
		assert_int_equal(complete, texts[i].name != NULL);
		if (texts[i].name)
			assert_string_equal(look(&t, PLACE, &complete), expected);
		else
			assert_int_equal(strncmp(look(&t, PLACE, &complete), "kubernetes|", 11), 0);
	}
	temp_root_free(&t);
}

static void test_long_text(void **state)
{
	struct temp_root t = temp_root_new();
	char name[300];
	bool complete;

	memset(name, 'a', sizeof(name));
	name[NAMING_TEXT_MAX] = '\0';
	put_spec(&t, name);
	look(&t, PLACE, &complete);
	assert_true(complete);
	name[NAMING_TEXT_MAX] = 'a';
	name[NAMING_TEXT_MAX + 1] = '\0';
	put_spec(&t, name);
	look(&t, PLACE, &complete);
	assert_false(complete);
	temp_root_free(&t);
}

/* 100 MB, sparse: refused by its size, not read. */
static void put_huge(const char *path)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), 100 << 20), 0);
	fclose(f);
}

static void put_deep(const struct temp_root *t)
{
	char *text = malloc((1 << 19) + 1);

	assert_non_null(text);
	memset(text, '[', 1 << 19);
	text[1 << 19] = '\0';
	temp_root_put(t, CONTAINERD ID "/config.json", text);
	free(text);
}

/* Whatever lies where the bundle should be: an answer from the path alone, at once. */
static void test_not_a_bundle(void **state)
{
	struct temp_root t = temp_root_new();
	char path[512];
	bool complete;

	put_spec(&t, "x");
	snprintf(path, sizeof(path), "%s" CONTAINERD ID "/config.json", t.dir);
	for (unsigned i = 0; i < 7; i++) {
		unlink(path);
		rmdir(path);
		if (i == 0)
			put_huge(path);
		else if (i == 1)
			put_deep(&t);
		else if (i == 2)
			assert_int_equal(symlink("/etc/shadow", path), 0);
		else if (i == 3)
			assert_int_equal(symlink("config.json", path), 0);
		else if (i == 4)
			assert_int_equal(mkfifo(path, 0644), 0);
		else if (i == 5)
			assert_int_equal(mkdir(path, 0755), 0);
		else
			temp_root_put(&t, CONTAINERD ID "/config.json", "[1,2]");
		assert_string_equal(look(&t, PLACE, &complete), "kubernetes||||||");
		assert_false(complete);
	}
	temp_root_free(&t);
}

/* A link of the container's folder to another's: the names are not borrowed. */
static void test_linked_folder(void **state)
{
	struct temp_root t = temp_root_new();
	char path[512];
	bool complete;

	put_spec(&t, "victim");
	snprintf(path, sizeof(path), "%s" CONTAINERD SYSTEMD, t.dir);
	assert_int_equal(symlink(ID, path), 0);
	assert_string_equal(look(&t, "/kubepods/pod" POD "/" SYSTEMD, &complete), "kubernetes||||||");
	temp_root_free(&t);
}

/* Files that anybody may write, and those of another owner, are nobody's word. */
static void test_owners(void **state)
{
	struct temp_root t = temp_root_new();
	char path[512];
	bool complete;

	put_spec(&t, "x");
	snprintf(path, sizeof(path), "%s" CONTAINERD ID "/config.json", t.dir);
	assert_int_equal(chmod(path, 0666), 0);
	look(&t, PLACE, &complete);
	assert_false(complete);
	assert_int_equal(chmod(path, 0644), 0);
	look(&t, PLACE, &complete);
	assert_true(complete);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 4242, 4242), 0);
		look(&t, PLACE, &complete);
		assert_false(complete);
	}
	temp_root_free(&t);
}

/* Below a cgroup that was given to a user, all is that user's: no pod, no container of root's. */
static void test_delegated(void **state)
{
	struct temp_root t = temp_root_new();
	char dir[512];
	bool complete;

	if (geteuid() != 0) {
		printf("SKIP naming/delegated: needs root\n");
		temp_root_free(&t);
		return;
	}
	put_spec(&t, "x");
	temp_root_put(&t, "/sys/fs/cgroup/kubepods/pod" POD "/cgroup.procs", "");
	assert_string_equal(look(&t, PLACE, &complete), "kubernetes|n|p|x|||");
	snprintf(dir, sizeof(dir), "%s/sys/fs/cgroup/kubepods", t.dir);
	assert_int_equal(chown(dir, 4242, 4242), 0);
	assert_string_equal(look(&t, PLACE, &complete), "||||||4242");
	temp_root_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),       cmocka_unit_test(test_texts),
		cmocka_unit_test(test_long_text),     cmocka_unit_test(test_not_a_bundle),
		cmocka_unit_test(test_linked_folder), cmocka_unit_test(test_owners),
		cmocka_unit_test(test_delegated),     cmocka_unit_test(test_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
