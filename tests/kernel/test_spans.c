/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of processes on the running kernel, against what their waiting parent was told (wait4, rusage) and what
 * the test itself did. */
#include <linux/sched.h>
#include <pthread.h>
#include <sys/prctl.h>
#include "kernel/spans_rig.h"

static void check_fork_and_exit(const void *unused)
{
	struct spans_rig g = { 0 };
	const struct span *s;
	struct rusage u;
	uint64_t begin, end;
	int status;
	pid_t pid;

	rig_open(&g, NULL, 0, 0);
	begin = clock_mono_ns();
	pid = fork();
	if (!pid) {
		spin_ms(300);
		_exit(7);
	}
	assert_int_equal(wait4(pid, &status, 0, &u), pid);
	end = clock_mono_ns();
	s = rig_wait(&g, pid, 0);
	assert_int_equal(s->end, SPAN_EXITED);
	assert_int_equal(s->exit_code, 7);
	assert_int_equal(s->signal, 0);
	assert_int_equal(s->parent_pid, getpid());
	assert_int_equal(s->ns_pid, pid);
	assert_int_equal(s->quality & ~QUALITY_ESTIMATED, QUALITY_MEASURED); /* estimated: no record of its free */
	assert_false(s->seen_running);
	assert_int_equal(s->calls, 1);
	assert_in_range(s->start_ns, begin, end);
	assert_in_range(s->end_ns, s->start_ns, end);
	expect_near("CPU time", s->cpu_ns, rusage_ns(&u), 100000);
	assert_true(s->end_ns - s->start_ns >= 300 * NS_PER_MS);
	assert_int_equal(s->minor_faults, u.ru_minflt);
	assert_int_equal(s->major_faults, u.ru_majflt);
	assert_int_equal(s->peak_rss_bytes / 1024, u.ru_maxrss);
	assert_string_equal(s->comm, "test_spans");
	assert_non_null(strstr(s->exe, "test_spans"));
	rig_close(&g);
}

static void test_fork_and_exit(void **state)
{
	five_times(check_fork_and_exit, NULL);
}

/* Memory that is given back after the exit began counts too: since 6.16 that is after sched_process_exit. */
static void check_large_memory(const void *unused)
{
	struct spans_rig g = { 0 };
	struct rusage u;
	pid_t pid;

	rig_open(&g, NULL, 0, 0);
	pid = fork();
	if (!pid) {
		size_t n = 200u << 20;
		char *m = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		madvise(m, n, MADV_NOHUGEPAGE);
		for (size_t i = 0; i < n; i += 4096)
			m[i] = 1;
		_exit(0);
	}
	assert_int_equal(wait4(pid, NULL, 0, &u), pid);
	const struct span *s = rig_wait(&g, pid, 0);

	expect_near("CPU time", s->cpu_ns, rusage_ns(&u), 100000);
	assert_int_equal(s->peak_rss_bytes / 1024, u.ru_maxrss);
	assert_int_equal(s->minor_faults, u.ru_minflt);
	rig_close(&g);
}

static void test_large_memory(void **state)
{
	five_times(check_large_memory, NULL);
}

static void test_exec_chain(void **state)
{
	struct spans_rig g = { 0 };
	const struct span *s;
	int status;
	pid_t pid;

	rig_open(&g, NULL, 0, 0);
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exec /usr/bin/env A=1 /bin/sleep 0.05", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	s = rig_wait(&g, pid, 0);
	assert_string_equal(s->exe, "/bin/sleep");
	assert_string_equal(s->cmdline, "/bin/sleep 0.05");
	assert_string_equal(s->comm, "sleep");
	assert_int_equal(s->exit_code, 0);
	assert_null(rig_find(&g, pid, 1)); /* one process, however often it executes */
	rig_close(&g);
}

static void test_long_command_line(void **state)
{
	static char long_arg[9000];
	struct spans_rig g = { 0 };
	const struct span *s;
	pid_t pid;

	rig_open(&g, NULL, 0, 0);
	memset(long_arg, 'x', sizeof(long_arg) - 1);
	pid = fork();
	if (!pid) {
		chdir("/bin");
		execl("./true", "a", "b c", "", long_arg, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	s = rig_wait(&g, pid, 0);
	assert_int_equal(strlen(s->cmdline), SPAN_CMDLINE_MAX - 1);
	assert_int_equal(strncmp(s->cmdline, "a b c  xxx", 10), 0);
	assert_non_null(strstr(s->exe, "true"));
	rig_close(&g);
}

/* The grandchild outlives its parent and is a child of its own parent's number all the same. */
static void test_double_fork(void **state)
{
	struct spans_rig g = { 0 };
	const struct span *child, *grandchild;
	pid_t pid, inner;
	int pipes[2], go[2];

	rig_open(&g, NULL, 0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (!pid) {
		close(go[1]);
		inner = fork();
		if (!inner) {
			char c;

			read(go[0], &c, 1); /* the end of its parent */
			_exit(3);
		}
		write(pipes[1], &inner, sizeof(inner));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	close(go[1]);
	assert_int_equal(read(pipes[0], &inner, sizeof(inner)), sizeof(inner));
	assert_int_equal(waitpid(inner, NULL, 0), inner);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	child = rig_wait(&g, pid, 0);
	grandchild = rig_wait(&g, inner, 0);
	child = rig_find(&g, pid, 0);
	assert_true(grandchild->parent == child->id);
	assert_int_equal(grandchild->parent_pid, pid);
	assert_int_equal(grandchild->exit_code, 3);
	assert_true(grandchild->end_ns > child->end_ns);
	close(pipes[0]);
	close(pipes[1]);
	close(go[0]);
	rig_close(&g);
}

static void *thread_spins(void *ms)
{
	spin_ms((unsigned)(uintptr_t)ms);
	return NULL;
}

static void *thread_outlives(void *unused)
{
	usleep(100000);
	spin_ms(100);
	_exit(9);
}

static void *thread_executes(void *unused)
{
	execl("/bin/sleep", "sleep", "0.05", (char *)NULL);
	return NULL;
}

static pid_t run_threads(int how)
{
	pthread_t t[4];
	pid_t pid = fork();

	if (pid)
		return pid;
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL,
			       how == 1 && i == 3 ? thread_outlives :
			       how == 2 && i == 3 ? thread_executes :
						    thread_spins,
			       (void *)(uintptr_t)20);
	if (how == 0)
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
	if (how == 0)
		_exit(1);
	syscall(SYS_exit, 0); /* the leader first; pthread_exit would load libgcc_s */
	return -1;
}

static void check_threads(const void *unused)
{
	static const int code[] = { 1, 9, 0 };
	struct spans_rig g = { 0 };
	struct rusage u;
	pid_t pid;

	rig_open(&g, NULL, 0, 0);
	for (int how = 0; how < 3; how++) {
		uint64_t begin = clock_mono_ns();

		pid = run_threads(how);
		assert_int_equal(wait4(pid, NULL, 0, &u), pid);
		uint64_t end = clock_mono_ns();
		const struct span *s = rig_wait(&g, pid, 0);

		assert_int_equal(s->exit_code, code[how]);
		expect_near("CPU time of threads", s->cpu_ns, rusage_ns(&u),
			    2 * NS_PER_MS); /* threads end while the parent asks */
		assert_true(s->end_ns <= end && s->start_ns >= begin);
		if (how == 1)
			assert_true(s->end_ns - s->start_ns >= 150 * NS_PER_MS);
		assert_null(rig_find(&g, pid, 1));
	}
	rig_close(&g);
}

static void test_threads(void **state)
{
	five_times(check_threads, NULL);
}

static void test_pid_namespace(void **state)
{
	struct clone_args args = { .flags = CLONE_NEWPID, .exit_signal = SIGCHLD };
	struct spans_rig g = { 0 };
	const struct span *s;
	pid_t pid;

	rig_open(&g, NULL, 0, 0);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!pid)
		_exit(getpid() == 1 ? 11 : 12);
	assert_true(pid > 0);
	waitpid(pid, NULL, 0);
	s = rig_wait(&g, pid, 0);
	assert_int_equal(s->exit_code, 11);
	assert_int_equal(s->ns_pid, 1);
	assert_int_equal(s->pid, pid);
	rig_close(&g);
}

#define MISSED 99

/* Exits with the code, or as MISSED where the number is another. */
static pid_t fork_as(pid_t want, int code)
{
	char text[16];
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC),
	    n = snprintf(text, sizeof(text), "%d", want - 1);
	pid_t pid;

	if (fd < 0 || write(fd, text, (size_t)n) != n)
		return -1;
	close(fd);
	pid = fork();
	if (!pid)
		_exit(getpid() == want ? code : MISSED);
	waitpid(pid, NULL, 0);
	return pid;
}

/* Five processes of one number, within milliseconds; somebody else's may come in between. One that lives for long keeps its
 * number, so there are several rounds, each with a number of its own. */
static void test_pid_reuse(void **state)
{
	struct spans_rig g = { 0 };
	unsigned same = 0, others = 0;
	pid_t pid = 0;

	rig_open(&g, NULL, 0, 0);
	for (unsigned i = 0; i < 200 && same < 4; i++) {
		if (i % 10 == 0) { /* a round begins */
			same = 0;
			pid = fork();
			if (!pid)
				_exit(20);
			waitpid(pid, NULL, 0);
		}
		pid_t again = fork_as(pid, 20 + (int)same + 1);

		if (again < 0) {
			print_message("SKIP spans/pid-reuse: no ns_last_pid\n");
			rig_close(&g);
			return;
		}
		same += again == pid;
	}
	assert_int_equal(same, 4);
	for (unsigned i = 0; i <= same; i++) {
		const struct span *s = rig_wait(&g, pid, i + others);

		while (s->parent_pid != (uint32_t)getpid() || s->exit_code == MISSED)
			s = rig_wait(&g, pid, i + ++others);
		assert_int_equal(s->exit_code, 20 + (int)i);
		for (unsigned k = 0; k < i + others; k++)
			assert_true(rig_find(&g, pid, k)->id != s->id);
	}
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork_and_exit), cmocka_unit_test(test_large_memory),
		cmocka_unit_test(test_exec_chain),    cmocka_unit_test(test_long_command_line),
		cmocka_unit_test(test_double_fork),   cmocka_unit_test(test_threads),
		cmocka_unit_test(test_pid_namespace), cmocka_unit_test(test_pid_reuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
