/* SPDX-License-Identifier: Apache-2.0 */
/* URLs, null, file and stdout: what is in the file is whole documents, in order, and what is not
 * there was counted. */
#include "sink_help.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/syscall.h>

static struct loop *loop;
static char dir[] = "/tmp/jouled-sink-XXXXXX";
static bool private_mounts;

static char *in_dir(const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, PATH_MAX, "%s/%s", dir, name);
	return p;
}

static char *url_of(const char *name)
{
	static char url[PATH_MAX];

	snprintf(url, sizeof(url), "file://%.4000s", in_dir(name));
	return url;
}

static int setup(void **state)
{
	/* Before any thread: a mount namespace belongs to the thread that asked. */
	private_mounts = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return mkdtemp(dir) ? loop_start(&loop) : -1;
}

static int teardown(void **state)
{
	char cmd[PATH_MAX];

	loop_stop(loop);
	snprintf(cmd, sizeof(cmd), "umount -l %s/small 2>/dev/null; rm -rf %s", dir, dir);
	return system(cmd);
}

/* Expected: RFC 8089 for file, RFC 3986 for brackets, ports and percent signs. */
static void test_wrong_urls(void **state)
{
	static const struct {
		const char *url, *word;
	} wrong[] = {
		{ "", "no scheme" },
		{ "nonsense", "no scheme" },
		{ ":x", "no scheme" },
		{ "http://x:1", "unknown scheme" },
		{ "averyveryverylongscheme://x", "no scheme" },
		{ "null://", "nothing may follow" },
		{ "stdout:x", "nothing may follow" },
		{ "file:", "not absolute" },
		{ "file:x", "not absolute" },
		{ "file://x", "not absolute" },
		{ "file://./x", "not absolute" },
		{ "file://host/x", "not absolute" },
		{ "file:///a%", "hex" },
		{ "file:///a%4", "hex" },
		{ "file:///a%zz", "hex" },
		{ "file:///a%00b", "hex" },
		{ "tcp:", "//" },
		{ "tcp://", "no port" },
		{ "tcp://host", "no port" },
		{ "tcp://:80", "no host" },
		{ "tcp://host:", "not a port" },
		{ "tcp://host:0", "not a port" },
		{ "tcp://host:65536", "not a port" },
		{ "tcp://host:0x50", "not a port" },
		{ "tcp://host:80/", "not a port" },
		{ "tcp://host:-1", "not a port" },
		{ "tcp://host:99999999999999999999", "not a port" },
		{ "tcp://ho st:80", "letters" },
		{ "tcp://a@b:80", "letters" },
		{ "tcp://::1:80", "brackets" },
		{ "tcp://[::1]", "brackets" },
		{ "tcp://[::1:80", "brackets" },
		{ "tcp-listen://:80", "no host" },
		{ "tcp-listen://no.such.host.invalid:0", "not an address" },
		{ "unix://x", "not absolute" },
		{ "unix:///0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
		  "0123456",
		  "at most 107" },
	};
	char longest[5000] = "file:///";

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		open_fails(wrong[i].url, NULL, loop, -EINVAL, wrong[i].word);
	memset(longest + 8, 'x', sizeof(longest) - 9);
	open_fails(longest, NULL, loop, -EINVAL, "longer than");
}

static void test_null_counts(void **state)
{
	struct sink *s = open_ok("null:", NULL, loop);

	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(doc_submit(s, i, 100), 0);
	assert_int_equal(sink_submit(s, "", 0), 0);
	assert_int_equal(stats_of(s).documents, 10);
	assert_int_equal(stats_of(s).bytes, 1000);
	assert_true(stats_of(s).up);
	sink_close(s, 0);
	sink_close(NULL, 0);
}

static struct stream stream_of(const char *path, const char *preamble)
{
	struct stream st = { .preamble = preamble };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	stream_read(&st, fd);
	close(fd);
	assert_int_equal(st.err, 0);
	return st;
}

static void test_file_appends_in_order(void **state)
{
	struct sink *s = open_ok(url_of("a%20b"), NULL, loop);

	sink_set_preamble(s, "wrong", 5);
	sink_set_preamble(s, "hello\n", 6);
	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(doc_submit(s, i, 20 + i % 700), 0);
	sink_close(s, 5000000000u);
	s = open_ok(url_of("a%20b"), NULL, loop);
	sink_set_preamble(s, "never\n", 6);
	assert_int_equal(doc_submit(s, 500, 99), 0);
	sink_close(s, 5000000000u);

	struct stream st = stream_of(in_dir("a b"), "hello\n");
	assert_int_equal(st.docs, 501);
	assert_int_equal(st.len, 0);
	stream_free(&st);

	s = open_ok(url_of("a%20b"), &(struct sink_options){ .truncate = true }, loop);
	assert_int_equal(doc_submit(s, 7, 50), 0);
	sink_close(s, 5000000000u);
	st = stream_of(in_dir("a b"), NULL);
	assert_int_equal(st.docs, 1);
	stream_free(&st);
}

static void test_file_moved_away(void **state)
{
	struct sink *s = open_ok(url_of("log"), NULL, loop);

	sink_set_preamble(s, "head\n", 5);
	assert_int_equal(doc_submit(s, 1, 64), 0);
	assert_true(WAIT_FOR(stats_of(s).documents == 1, 2000));
	assert_int_equal(rename(in_dir("log"), in_dir("log.1")), 0);
	assert_int_equal(doc_submit(s, 2, 64), 0);
	assert_int_equal(doc_submit(s, 3, 64), 0);
	sink_close(s, 5000000000u);
	struct stream a = stream_of(in_dir("log.1"), "head\n"), b = stream_of(in_dir("log"), "head\n");
	assert_int_equal(a.docs, 1);
	assert_int_equal(b.docs, 2);
	stream_free(&a);
	stream_free(&b);
}

/* A file that was moved away and cannot be made anew is written on, and that is said; one without a name is not. */
static void test_file_not_opened_again(void **state)
{
	struct sink *s = open_ok(url_of("gone"), NULL, loop);
	struct stream st;

	sink_set_preamble(s, "head\n", 5);
	assert_int_equal(rename(in_dir("gone"), in_dir("gone.1")), 0);
	assert_int_equal(mkdir(in_dir("gone"), 0700), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(doc_submit(s, i, 64), 0);
	assert_true(WAIT_FOR(stats_of(s).documents == 2, 2000));
	assert_true(WAIT_FOR(!stats_of(s).up, 2000));
	assert_non_null(strstr(stats_of(s).state, "gone was moved and is still written; "));
	assert_non_null(strstr(stats_of(s).state, "Is a directory; "));
	st = stream_of(in_dir("gone.1"), "head\n");
	assert_int_equal(st.docs, 2);
	stream_free(&st);

	assert_int_equal(unlink(in_dir("gone.1")), 0);
	assert_int_equal(doc_submit(s, 2, 64), 0);
	assert_true(WAIT_FOR(stats_of(s).dropped_documents == 1, 2000));
	assert_int_equal(stats_of(s).documents, 2);
	assert_int_equal(stats_of(s).error, -EISDIR);
	assert_non_null(strstr(stats_of(s).state, "gone: Is a directory; "));

	assert_int_equal(rmdir(in_dir("gone")), 0);
	assert_int_equal(doc_submit(s, 3, 64), 0);
	assert_true(WAIT_FOR(stats_of(s).documents == 3, 2000));
	assert_true(WAIT_FOR(stats_of(s).up, 2000));
	sink_close(s, 5000000000u);
	st = stream_of(in_dir("gone"), "head\n");
	assert_int_equal(st.docs, 1);
	stream_free(&st);
}

/* The reader of a FIFO leaves within a document. The next one gets the preamble and whole documents. */
static void test_fifo_next_reader(void **state)
{
	struct stream st = { .preamble = "head\n" };
	char some[1000];
	struct sink *s;
	int fd;

	assert_int_equal(mkfifo(in_dir("next"), 0600), 0);
	fd = open(in_dir("next"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	s = open_ok(url_of("next"), NULL, loop);
	sink_set_preamble(s, "head\n", 5);
	assert_int_equal(doc_submit(s, 0, 200000), 0);
	assert_true(WAIT_FOR(read(fd, some, sizeof(some)) == sizeof(some), 2000));
	close(fd);
	assert_true(WAIT_FOR(stats_of(s).left_documents == 1, 2000));
	assert_int_equal(doc_submit(s, 1, 100), 0);
	assert_true(WAIT_FOR(stats_of(s).left_documents == 2, 2000));
	assert_non_null(strstr(stats_of(s).state, "Broken pipe"));

	fd = open(in_dir("next"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	for (unsigned i = 2; i < 5; i++)
		assert_int_equal(doc_submit(s, i, 100), 0);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.docs == 3), 2000));
	assert_int_equal(st.last, 4);
	assert_true(WAIT_FOR(stats_of(s).documents == 3, 2000));
	assert_true(stats_of(s).up);
	close(fd);
	sink_close(s, 1000000000u);
	stream_free(&st);
}

/* A document that is larger than the queue is written when nothing waits. */
static void test_larger_than_the_queue(void **state)
{
	struct sink *s = open_ok(url_of("larger"), &(struct sink_options){ .queue_bytes = 100000 }, loop);
	struct stream st;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(doc_submit(s, i, 300000), 0);
		assert_true(WAIT_FOR(stats_of(s).documents == i + 1, 2000));
	}
	assert_int_equal(stats_of(s).dropped_documents, 0);
	sink_close(s, 5000000000u);
	st = stream_of(in_dir("larger"), NULL);
	assert_int_equal(st.docs, 3);
	stream_free(&st);
}

/* Opens stdout: while descriptor 1 is fd, which it takes. */
static struct sink *open_stdout(int fd, const struct sink_options *o)
{
	int saved = dup(STDOUT_FILENO);
	struct sink *s;

	fflush(stdout);
	assert_true(dup2(fd, STDOUT_FILENO) >= 0);
	close(fd);
	s = open_ok("stdout:", o, loop);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	return s;
}

/* A rotation that copies the file and empties it in place. */
static void test_file_emptied_in_place(void **state)
{
	struct sink *s = open_ok(url_of("copied"), NULL, loop);

	sink_set_preamble(s, "head\n", 5);
	assert_int_equal(doc_submit(s, 1, 64), 0);
	assert_true(WAIT_FOR(stats_of(s).documents == 1, 2000));
	assert_int_equal(truncate(in_dir("copied"), 0), 0);
	for (unsigned i = 2; i < 5; i++)
		assert_int_equal(doc_submit(s, i, 64), 0);
	sink_close(s, 5000000000u);
	struct stream st = stream_of(in_dir("copied"), "head\n");
	assert_int_equal(st.docs, 3);
	assert_int_equal(st.last, 4);
	stream_free(&st);
}

/* Looks at files by the name or the descriptor, of the whole program. */
static atomic_uint looks;

int stat(const char *path, struct stat *st)
{
	atomic_fetch_add(&looks, 1);
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

int fstat(int fd, struct stat *st)
{
	atomic_fetch_add(&looks, 1);
	return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

/* What a document costs beside its write: one look, with a name and without. */
static void test_one_look_a_document(void **state)
{
	for (unsigned named = 0; named < 2; named++) {
		const char *path = in_dir(named ? "looks" : "looks.out");
		struct sink *s = named ? open_ok(url_of("looks"), NULL, loop) :
					 open_stdout(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), NULL);

		sink_set_preamble(s, "head\n", 5);
		assert_int_equal(doc_submit(s, 0, 64), 0);
		assert_true(WAIT_FOR(stats_of(s).documents == 1, 2000));
		atomic_store(&looks, 0);
		for (unsigned i = 1; i < 20; i++)
			assert_int_equal(doc_submit(s, i, 64), 0);
		assert_true(WAIT_FOR(stats_of(s).documents == 20, 2000));
		assert_int_equal(atomic_load(&looks), 19);
		sink_close(s, 5000000000u);
		struct stream st = stream_of(path, "head\n");
		assert_int_equal(st.docs, 20);
		stream_free(&st);
	}
}

static void test_places_that_cannot_be_opened(void **state)
{
	assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
	open_fails(url_of("fifo"), NULL, loop, -ENXIO, "reader");
	open_fails(url_of("none/x"), NULL, loop, -ENOENT, "create the directory");
	open_fails("file:///tmp", NULL, loop, -EISDIR, "name a file");
}

/* Fills the small file system but for `left` bytes and returns the filler's path. */
static const char *fill(const char *name, size_t total, size_t left)
{
	const char *path = in_dir(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, (off_t)(total - left)), 0);
	close(fd);
	return path;
}

/* Documents of 3000 bytes on a disk of 64 KiB, pages of 4096: the last one fits in part only. */
static void disk_full(struct sink *s, const char *file)
{
	unsigned sent = 0;
	struct sink_stats st;

	for (; sent < 40; sent++) {
		assert_int_equal(doc_submit(s, sent, 3000), 0);
		WAIT_FOR(stats_of(s).queued == 0, 2000);
	}
	st = stats_of(s);
	assert_false(st.up);
	assert_non_null(strstr(st.state, "No space left"));
	assert_true(st.dropped_documents > 0);
	assert_int_equal(st.documents + st.dropped_documents, sent);
	assert_int_equal(st.bytes, st.documents * 3000);
	struct stream got = stream_of(file, NULL);
	assert_int_equal(got.docs, st.documents);
	assert_int_equal(got.len, 0);
	stream_free(&got);

	uint64_t before = st.documents;
	assert_int_equal(unlink(in_dir("small/filler")), 0);
	assert_int_equal(doc_submit(s, sent++, 3000), 0);
	assert_true(WAIT_FOR(stats_of(s).documents == before + 1, 2000));
	assert_true(stats_of(s).up);
	sink_close(s, 1000000000u);
	got = stream_of(file, NULL);
	assert_int_equal(got.docs, before + 1);
	assert_int_equal(got.last, sent - 1);
	assert_int_equal(got.len, 0);
	stream_free(&got);
}

static bool small_disk(const char *test)
{
	mkdir(in_dir("small"), 0700);
	umount2(in_dir("small"), MNT_DETACH);
	if (private_mounts && mount("tmpfs", in_dir("small"), "tmpfs", 0, "size=64k") == 0)
		return true;
	printf("SKIP %s: mounting a tmpfs is not permitted here\n", test);
	return false;
}

static void test_disk_full(void **state)
{
	if (!small_disk("test_disk_full"))
		return;
	fill("small/filler", 65536, 20480);
	disk_full(open_ok(url_of("small/x"), NULL, loop), in_dir("small/x"));
}

static atomic_bool keep_torn;

int ftruncate(int fd, off_t size)
{
	if (!atomic_load(&keep_torn))
		return (int)syscall(SYS_ftruncate, fd, size);
	errno = EIO;
	return -1;
}

/* A preamble that did not fit, and that could not be taken back at once: it is written anew before the next document. */
static void test_torn_preamble(void **state)
{
	char preamble[8001];
	struct stream st;
	struct sink *s;

	if (!small_disk("test_torn_preamble"))
		return;
	memset(preamble, 'h', sizeof(preamble) - 1);
	preamble[sizeof(preamble) - 1] = '\0';
	fill("small/filler", 65536, 4096);
	s = open_ok(url_of("small/torn"), NULL, loop);
	sink_set_preamble(s, preamble, strlen(preamble));
	atomic_store(&keep_torn, true);
	assert_int_equal(doc_submit(s, 1, 64), 0);
	assert_true(WAIT_FOR(stats_of(s).dropped_documents == 1, 2000));
	atomic_store(&keep_torn, false);
	assert_int_equal(unlink(in_dir("small/filler")), 0);
	assert_int_equal(doc_submit(s, 2, 64), 0);
	assert_int_equal(doc_submit(s, 3, 64), 0);
	sink_close(s, 5000000000u);
	st = stream_of(in_dir("small/torn"), preamble);
	assert_int_equal(st.docs, 2);
	assert_int_equal(st.last, 3);
	assert_int_equal(st.len, 0);
	stream_free(&st);
}

/* A redirected stdout has no O_APPEND: a cut must also set the position back. */
static void test_disk_full_stdout(void **state)
{
	if (!small_disk("test_disk_full_stdout"))
		return;
	fill("small/filler", 65536, 20480);
	int fd = open(in_dir("small/out"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	disk_full(open_stdout(fd, NULL), in_dir("small/out"));
}

static void test_device_full(void **state)
{
	struct sink *s = open_ok("file:///dev/full", NULL, loop);

	sink_set_preamble(s, "p", 1);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(doc_submit(s, i, 100), 0);
	assert_true(WAIT_FOR(stats_of(s).dropped_documents == 20, 2000));
	assert_int_equal(stats_of(s).documents, 0);
	assert_int_equal(stats_of(s).dropped_bytes, 2000);
	assert_int_equal(stats_of(s).error, -ENOSPC);
	assert_string_equal(stats_of(s).state,
			    "/dev/full: No space left on device; make room there, or write elsewhere");
	sink_close(s, 0);
}

/* A pipe that nobody reads holds up neither the caller nor a file beside it, nor the end. */
static void test_stdout_nobody_reads(void **state)
{
	struct sink_options small = { .queue_bytes = 300000 };
	unsigned refused = 0;
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	struct sink *s = open_stdout(p[1], &small), *f = open_ok(url_of("beside"), NULL, loop);
	sink_set_preamble(s, "pre", 3);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t t = now_ns();

		refused += doc_submit(s, i, 10000) == -ENOBUFS;
		assert_true(now_ns() - t < 10000000000u); /* it would wait for ever */
		assert_int_equal(doc_submit(f, i, 10000), 0);
	}
	assert_true(WAIT_FOR(stats_of(f).documents == 100, 5000));
	/* A pipe holds 64 KiB (pipe(7)), the queue 300000 bytes: the rest was refused. */
	assert_in_range(refused, 60, 75);
	assert_int_equal(stats_of(s).dropped_documents, refused);
	struct stream st = { .preamble = "pre" };
	WAIT_FOR((stream_read(&st, p[0]), st.docs == 100 - refused), 5000);
	assert_int_equal(st.docs, 100 - refused);
	assert_int_equal(st.len, 0);
	assert_true(WAIT_FOR(stats_of(s).documents == 100 - refused, 1000));
	for (unsigned i = 100; i < 120; i++)
		doc_submit(s, i, 10000);
	uint64_t t = now_ns();
	sink_close(s, 200000000u);
	assert_true(now_ns() - t < 30000000000u); /* it would wait for ever */
	close(p[0]);
	sink_close(f, 1000000000u);
	stream_free(&st);
}

static void test_stdout_reader_leaves(void **state)
{
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	signal(SIGPIPE, SIG_DFL);
	struct sink *s = open_stdout(p[1], NULL);
	close(p[0]);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(doc_submit(s, i, 100), 0);
	assert_true(WAIT_FOR(stats_of(s).dropped_documents == 5, 2000));
	assert_non_null(strstr(stats_of(s).state, "Broken pipe"));
	sink_close(s, 0);
}

/* sanitizer/allocator_interface.h, which gcc's packages leave out. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *p, size_t n),
					      void (*on_free)(const volatile void *p));

static atomic_uint allocations;

static void on_malloc(const volatile void *p, size_t size)
{
	atomic_fetch_add(&allocations, 1);
}

static void on_free(const volatile void *p)
{
}

static void test_no_allocation_in_steady_state(void **state)
{
	const char *urls[] = { "null:", "file:///dev/null", NULL };
	static bool installed;

	urls[2] = url_of("steady");
	if (!installed)
		installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0;
	assert_true(installed);
	for (unsigned u = 0; u < 3; u++) {
		struct sink *s = open_ok(urls[u], NULL, loop);

		for (unsigned i = 0; i < 400; i++) {
			if (i == 40)
				atomic_store(&allocations, 0);
			assert_int_equal(doc_submit(s, i, 2000 + i % 40 * 100), 0);
			while (stats_of(s).documents <= i)
				sched_yield();
		}
		/* not per document: one that is counted may still be on its way back to the pool, which
		 * then gets another, once */
		assert_in_range(atomic_load(&allocations), 0, 4);
		sink_close(s, 1000000000u);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_urls),
		cmocka_unit_test(test_null_counts),
		cmocka_unit_test(test_file_appends_in_order),
		cmocka_unit_test(test_file_moved_away),
		cmocka_unit_test(test_file_emptied_in_place),
		cmocka_unit_test(test_file_not_opened_again),
		cmocka_unit_test(test_fifo_next_reader),
		cmocka_unit_test(test_larger_than_the_queue),
		cmocka_unit_test(test_one_look_a_document),
		cmocka_unit_test(test_places_that_cannot_be_opened),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_torn_preamble),
		cmocka_unit_test(test_disk_full_stdout),
		cmocka_unit_test(test_device_full),
		cmocka_unit_test(test_stdout_nobody_reads),
		cmocka_unit_test(test_stdout_reader_leaves),
		cmocka_unit_test(test_no_allocation_in_steady_state),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
