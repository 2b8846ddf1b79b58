/* SPDX-License-Identifier: Apache-2.0 */
/* How processes end, and those that have not: signals, the OOM killer, zombies, lives from before the source. */
#include "kernel/spans_rig.h"
#include "kernel/controller.h"

static void test_signals(void **state)
{
	static const int signals[] = { SIGKILL, SIGTERM, SIGSEGV };
	struct rlimit none = { 0, 0 }, some = { 1 << 20, 1 << 20 };
	struct spans_rig g = { 0 };
	int status;

	rig_open(&g, NULL, 0, 0);
	for (unsigned i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (!pid) {
			chdir("/tmp");
			setrlimit(RLIMIT_CORE, signals[i] == SIGSEGV ? &some : &none);
			signal(signals[i], SIG_DFL);
			raise(signals[i]);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		const struct span *s = rig_wait(&g, pid, 0);

		assert_int_equal(s->end, SPAN_SIGNALED);
		assert_int_equal(s->signal, signals[i]);
		assert_int_equal(s->core_dumped, WCOREDUMP(status) != 0);
	}
	rig_close(&g);
}

static bool write_to(const char *dir, const char *file, const char *text)
{
	char path[256];
	int fd;
	bool done;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return done;
}

/* A memory-limited cgroup of either version, with the controller enabled where it is of version 2; false where there
 * is no memory controller. */
static bool limited_cgroup(char *ret_dir, size_t size)
{
	snprintf(ret_dir, size, "/sys/fs/cgroup/memory/jouled-test-%d-oom", getpid());
	if (mkdir(ret_dir, 0755) == 0 && write_to(ret_dir, "memory.limit_in_bytes", "16777216")) {
		write_to(ret_dir, "memory.memsw.limit_in_bytes", "16777216");
		return true;
	}
	rmdir(ret_dir);
	snprintf(ret_dir, size, "/sys/fs/cgroup/jouled-test-%d-oom", getpid());
	if (mkdir(ret_dir, 0755) == 0 && write_to(ret_dir, "memory.max", "16777216")) {
		write_to(ret_dir, "memory.swap.max", "0");
		return true;
	}
	rmdir(ret_dir);
	return false;
}

static void test_oom(void **state)
{
	struct spans_rig g = { 0 };
	const struct span *s;
	char dir[128];
	int status;
	pid_t pid;

	if (!limited_cgroup(dir, sizeof(dir))) {
		print_message("SKIP spans/oom: no memory controller\n");
		return;
	}
	rig_open(&g, NULL, 0, 0);
	pid = fork();
	if (!pid) {
		if (!write_to(dir, "cgroup.procs", "0"))
			_exit(1);
		for (char *m;;) {
			m = malloc(1 << 20);
			memset(m, 1, 1 << 20);
		}
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	s = rig_wait(&g, pid, 0);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(s->end, SPAN_OOM);
	assert_int_equal(s->signal, SIGKILL);
	rmdir(dir);
	rig_close(&g);
}

/* A process that is dead and not waited for is told about all the same, late. */
static void test_zombie(void **state)
{
	struct spans_rig g = { 0 };
	struct rusage u;
	const struct span *s;
	uint64_t begin;
	pid_t pid;

	rig_open(&g, NULL, 0, 0);
	begin = clock_mono_ns();
	pid = fork();
	if (!pid) {
		spin_ms(20);
		_exit(4);
	}
	s = rig_wait(&g, pid, 0);
	assert_true(clock_mono_ns() - begin >= SPANS_LINGER_NS / 2);
	assert_int_equal(s->exit_code, 4);
	assert_int_equal(s->quality, QUALITY_MEASURED);
	wait4(pid, NULL, 0, &u);
	assert_near("CPU time", s->cpu_ns, rusage_ns(&u), 10000);
	for (int i = 0; i < 20; i++, usleep(10000))
		spans_poll(g.s);
	assert_null(rig_find(&g, pid, 1));
	rig_close(&g);
}

/* A child from before the source is known from /proc, and its own start is kept. */
static void check_seen_running(const void *unused)
{
	struct spans_rig g = { 0 };
	const struct span *s;
	struct rusage u;
	uint64_t begin, forked, tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK); /* of /proc/PID/stat */
	pid_t pid;
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	begin = clock_mono_ns();
	pid = fork();
	forked = clock_mono_ns();
	if (!pid) {
		char c;

		spin_ms(50);
		close(pipes[1]);
		read(pipes[0], &c, 1);
		_exit(5);
	}
	usleep(100000);
	rig_open(&g, NULL, 0, 0);
	close(pipes[1]);
	assert_int_equal(wait4(pid, NULL, 0, &u), pid);
	s = rig_wait(&g, pid, 0);
	assert_true(s->seen_running);
	assert_int_equal(s->exit_code, 5);
	assert_int_equal(s->parent_pid, getpid());
	assert_in_range(s->start_ns, begin - tick_ns, forked + tick_ns);
	expect_near("CPU time", s->cpu_ns, rusage_ns(&u), 100000);
	assert_non_null(strstr(s->cmdline, "test_spans_ends"));
	close(pipes[0]);
	rig_close(&g);
}

static void test_seen_running(void **state)
{
	five_times(check_seen_running, NULL);
}

static pid_t wanted;
static struct span found;

static void keep_wanted(void *ctx, const struct span *s)
{
	if (s->pid == (uint32_t)wanted)
		found = *s;
}

/* The kernel's own count for a process that sleeps. */
static uint64_t process_cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t id;

	assert_int_equal(clock_getcpuclockid(pid, &id), 0);
	assert_int_equal(clock_gettime(id, &t), 0);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void test_living(void **state)
{
	struct spans_rig g = { 0 };
	uint64_t now;
	int done[2];
	char c;

	assert_int_equal(pipe(done), 0);
	rig_open(&g, NULL, 0, 0);
	wanted = fork();
	if (!wanted) {
		spin_ms(100);
		if (write(done[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(done[0], &c, 1), 1);
	rig_asleep(wanted);
	close(done[0]);
	close(done[1]);
	spans_poll(g.s);
	now = clock_mono_ns();
	spans_live(g.s, now, keep_wanted, NULL);
	assert_int_equal(found.pid, wanted);
	assert_int_equal(found.end, SPAN_CUT);
	assert_true(found.end_ns == now);
	assert_near("CPU time so far", found.cpu_ns, process_cpu_ns(wanted), 100000);
	kill(wanted, SIGKILL);
	waitpid(wanted, NULL, 0);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals),
		cmocka_unit_test_setup_teardown(test_oom, memory_controller, controller_restore),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_seen_running),
		cmocka_unit_test(test_living),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
