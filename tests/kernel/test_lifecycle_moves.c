/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks moved between cgroups while they run, capabilities that are missing, and what is left behind. */
#include "kernel/tree.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

static void pin(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void *sleeper(void *arg)
{
	pause();
	return arg;
}

/* A child with so many sleeping threads beside one that spins (or sleeps too) on a CPU. */
static pid_t start_child(const struct tree *x, unsigned cpu, unsigned sleepers, bool spins)
{
	pid_t pid;
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		tree_join(x, "from", 0);
		pin(cpu);
		for (unsigned i = 0; i < sleepers; i++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, sleeper, NULL))
				_exit(1);
		}
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		while (spins)
			;
		pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	usleep(20000);
	return pid;
}

/* Moves a child to and fro until a move closed an open interval (or so many times); a spinner that
 * has just lost its CPU to somebody else is not running, and rightly not told. Moves made. */
static int move(struct tree *x, unsigned sleepers, bool spins, int times)
{
	pid_t pid = start_child(x, 1, sleepers, spins);
	int made = 0;

	tree_poll(x);
	memset(x->moved, 0, sizeof(x->moved));
	while (made < times && !x->moved[1]) {
		tree_join(x, made++ & 1 ? "from" : "to", pid);
		tree_poll(x);
		if (!x->moved[1])
			usleep(3000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return made;
}

static void test_moved_while_running(void **state)
{
	cpu_set_t before;
	struct tree x;

	sched_getaffinity(0, sizeof(before), &before);
	if (!CPU_ISSET(0, &before) || !CPU_ISSET(1, &before)) {
		print_message("SKIP lifecycle_moved_while_running: needs CPUs 0 and 1\n");
		return;
	}
	pin(0);
	tree_open(&x, true);
	tree_mkdir(&x, "from");
	tree_mkdir(&x, "to");
	printf("  told after %d moves", move(&x, 0, true, 500));
	assert_int_equal(x.moved[0], 0);
	assert_int_equal(x.moved[1], 1);
	printf(", after %d as one of six threads\n", move(&x, 5, true, 500));
	assert_int_equal(x.moved[0], 0);
	assert_int_equal(x.moved[1], 1);
	move(&x, 0, false, 50); /* asleep: nothing is open */
	assert_int_equal(x.moved[0] + x.moved[1], 0);
	move(&x, 100, false, 1); /* more threads than are looked at: every CPU */
	assert_int_equal(x.moved[0], 1);
	assert_int_equal(x.moved[1], 1);
	sched_setaffinity(0, sizeof(before), &before);
	tree_close(&x);
}

/* Without rights: a refusal with its remedy; without CAP_DAC_READ_SEARCH a walk in place of handles. */
static void test_without_rights(void **state)
{
	struct lifecycle *refused = NULL;
	struct lifecycle_options o;
	struct err err = { 0 };
	struct tree x;
	uint64_t id;

	tree_open(&x, false);
	o = (struct lifecycle_options){ .hierarchy = &x.h, .table = x.table, .bpf = true };
	id = tree_mkdir(&x, "unknown");
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(lifecycle_open(&o, &refused, &err), -EPERM);
	assert_null(refused);
	assert_non_null(strstr(err.text, "CAP_BPF"));
	assert_false(lifecycle_resolve(x.l, id)->resolved);
	assert_false(cgroup_find(x.table, id)->ended);
	tree_poll(&x);
	tree_expect(&x, id, "unknown");
	assert_int_equal(seteuid(0), 0);
	tree_rmdir(&x, "unknown");
	assert_int_equal(seteuid(65534), 0);
	tree_poll(&x);
	assert_true(cgroup_find(x.table, id)->ended);
	assert_int_equal(seteuid(0), 0);
	tree_close(&x);
}

static void test_nothing_left(void **state)
{
	__u32 progs[32], links[32];
	unsigned n_progs, n_links, child[2];
	int pipes[2], status;
	struct tree x;
	pid_t pid;

	tree_open(&x, true);
	n_progs = own_bpf_ids("prog_id:\t", progs, 32);
	n_links = own_bpf_ids("link_id:\t", links, 32);
	assert_true(n_progs >= 4 && n_links == 4);
	assert_false(all_gone(progs, n_progs, links, n_links));
	tree_close(&x);
	assert_int_equal(own_bpf_ids("prog_id:\t", progs + n_progs, 32 - n_progs), 0);
	assert_all_gone(progs, n_progs, links, n_links);

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		tree_open(&x, true);
		child[0] = own_bpf_ids("prog_id:\t", progs, 32);
		child[1] = own_bpf_ids("link_id:\t", links, 32);
		if (write(pipes[1], child, sizeof(child)) < 0 || write(pipes[1], progs, sizeof(progs)) < 0 ||
		    write(pipes[1], links, sizeof(links)) < 0)
			_exit(1);
		pause();
	}
	assert_int_equal(read(pipes[0], child, sizeof(child)), sizeof(child));
	assert_int_equal(read(pipes[0], progs, sizeof(progs)), sizeof(progs));
	assert_int_equal(read(pipes[0], links, sizeof(links)), sizeof(links));
	assert_false(all_gone(progs, child[0], links, child[1]));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_all_gone(progs, child[0], links, child[1]);
	tree_open(&x, false); /* which removes what the killed child left */
	tree_close(&x);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved_while_running),
		cmocka_unit_test(test_without_rights),
		cmocka_unit_test(test_nothing_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
