/* SPDX-License-Identifier: Apache-2.0 */
/* The command of joulectl run and record: what is counted as its own begins with its exec. The cgroup is a directory
 * here, with a file that takes the pid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ctl/run/child.h"
#include "temp_root.h"

#define PATH_DIRECTORIES 40000 /* a string of the environment has at most 128 KiB */

struct world {
	struct temp_root root;
	struct run_place place;
	struct run_cgroup cgroup;
	struct run_signals signals;
	char procs[100], made[100];
	int refuse; /* what ready returns */
	unsigned asked;
	char pid[32]; /* in cgroup.procs when ready was called */
	bool early; /* the command had begun then */
};

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->root = temp_root_new();
	temp_root_put(&w->root, "/cgroup.procs", "");
	snprintf(w->procs, sizeof(w->procs), "%s/cgroup.procs", w->root.dir);
	snprintf(w->made, sizeof(w->made), "%s/made", w->root.dir);
	w->cgroup = (struct run_cgroup){ .place = &w->place,
					 .fd = open(w->root.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	assert_int_equal(run_signals_take(&w->signals, NULL), 0);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	run_signals_give_back(&w->signals);
	close(w->cgroup.fd);
	temp_root_free(&w->root);
	free(w);
	return 0;
}

static int ready(void *arg, struct err *err)
{
	struct world *w = arg;
	FILE *f = fopen(w->procs, "re");

	assert_non_null(f);
	if (!fgets(w->pid, sizeof(w->pid), f))
		w->pid[0] = '\0';
	fclose(f);
	w->early |= access(w->made, F_OK) == 0;
	w->asked++;
	return w->refuse ? err_set(err, w->refuse, "not now") : 0;
}

static int tick(void *arg)
{
	return 1000;
}

static int run(struct world *w, char **argv, struct run_end *end, struct err *err)
{
	const struct run_watch watch = { .ready = ready, .tick = tick, .arg = w, .first_ms = 1000, .fd = -1 };

	*end = (struct run_end){ 0 };
	return run_child(&(struct run_command){ .argv = argv, .cgroup = &w->cgroup, .signals = &w->signals }, &watch,
			 end, err);
}

/* When the measurement begins the command's process is in the cgroup and has not begun. */
static void test_counting_begins_before_the_exec(void **state)
{
	struct world *w = *state;
	char text[300], *argv[] = { "sh", "-c", text, NULL };
	struct run_end end;
	struct err err = { 0 };

	snprintf(text, sizeof(text), "echo $$ >%s; exit 5", w->made);
	assert_int_equal(run(w, argv, &end, &err), 0);
	assert_int_equal(run_exit_status(&end), 5);
	assert_int_equal(w->asked, 1);
	assert_false(w->early);
	FILE *f = fopen(w->made, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_int_equal(atoi(w->pid), atoi(text));
	assert_true(end.wall_ns > 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing of ours is left */
	assert_int_equal(errno, ECHILD);
}

static void test_what_cannot_be_measured_is_not_started(void **state)
{
	struct world *w = *state;
	char *argv[] = { "touch", w->made, NULL };
	struct run_end end;
	struct err err = { 0 };

	w->refuse = -ECONNREFUSED;
	assert_int_equal(run(w, argv, &end, &err), -ECONNREFUSED);
	assert_string_equal(err.text, "not now");
	assert_int_equal(access(w->made, F_OK), -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_where_nobody_can_be_put(void **state)
{
	struct world *w = *state;
	char *argv[] = { "true", NULL };
	struct run_end end;
	struct err err = { 0 };

	assert_int_equal(unlink(w->procs), 0);
	assert_int_equal(run(w, argv, &end, &err), -ENOENT);
	assert_int_equal(w->asked, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* As execvp(3) has it: a file of text without #! is the shell's, and what cannot be executed says why. */
static void test_files(void **state)
{
	struct world *w = *state;
	char script[100], *of_text[] = { script, "a", "b", NULL }, *missing[] = { "./no/such", NULL },
			  *unknown[] = { "no-such-command-at-all", NULL };
	char *denied[] = { "/etc/passwd", NULL }, dir[] = "/", *directory[] = { dir, NULL };
	struct run_end end;

	temp_root_put(&w->root, "/script", "exit $#\n");
	snprintf(script, sizeof(script), "%s/script", w->root.dir);
	assert_int_equal(chmod(script, 0755), 0);
	assert_int_equal(run(w, of_text, &end, NULL), 0);
	assert_int_equal(end.not_started, 0);
	assert_int_equal(run_exit_status(&end), 2);
	assert_int_equal(run(w, missing, &end, NULL), 0);
	assert_int_equal(end.not_started, ENOENT);
	assert_int_equal(run(w, unknown, &end, NULL), 0);
	assert_int_equal(end.not_started, ENOENT);
	assert_int_equal(run(w, denied, &end, NULL), 0);
	assert_int_equal(end.not_started, EACCES);
	assert_int_equal(run(w, directory, &end, NULL), 0);
	assert_int_equal(end.not_started, EACCES);
}

/* Many arguments: the stack that exec runs on is large enough for them. */
static void test_many_arguments(void **state)
{
	struct world *w = *state;
	enum { N = 60000 };
	char script[100], **argv = calloc(N + 2, sizeof(*argv));
	struct run_end end;

	temp_root_put(&w->root, "/script", "[ $# -eq 60000 ] && exit 7\n");
	snprintf(script, sizeof(script), "%s/script", w->root.dir);
	assert_int_equal(chmod(script, 0755), 0);
	argv[0] = script;
	for (unsigned i = 1; i <= N; i++)
		argv[i] = "x";
	assert_int_equal(run(w, argv, &end, NULL), 0);
	assert_int_equal(run_exit_status(&end), 7);
	free(argv);
}

static long least_us(struct world *w, char *name)
{
	char *argv[] = { name, NULL };
	struct run_end end;
	long least = 0;

	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(run(w, argv, &end, NULL), 0);
		assert_int_equal(run_exit_status(&end), 0);

		long us = (end.usage.ru_utime.tv_sec + end.usage.ru_stime.tv_sec) * 1000000 +
			  end.usage.ru_utime.tv_usec + end.usage.ru_stime.tv_usec;

		least = !i || us < least ? us : least;
	}
	return least;
}

/* The search for the command is not the command's: 40000 directories that are not there cost a hundred times `true`. */
static void test_the_search_is_not_counted(void **state)
{
	struct world *w = *state;
	char *was = strdup(getenv("PATH")), *path = malloc(PATH_DIRECTORIES * 3 + 100), *at = path;
	long by_path, by_name;

	for (unsigned i = 0; i < PATH_DIRECTORIES; i++)
		at = stpcpy(at, "/~:");
	strcpy(at, "/usr/bin:/bin");
	assert_int_equal(setenv("PATH", path, 1), 0);
	by_path = least_us(w, "/bin/true");
	by_name = least_us(w, "true");
	assert_int_equal(setenv("PATH", was, 1), 0);
	if (by_name > 10 * by_path + 1000)
		fail_msg("by name %ld us, by path %ld us", by_name, by_path);
	free(path);
	free(was);
}

/* A caller that ignores SIGCHLD has its children reaped by the kernel, which keeps no status. */
static void test_ignored_children(void **state)
{
	struct world *w = *state;
	char *argv[] = { "sh", "-c", "exit 5", NULL };
	struct run_end end;
	struct err err = { 0 };

	run_signals_give_back(&w->signals);
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(run_signals_take(&w->signals, &err), 0);
	assert_int_equal(run(w, argv, &end, &err), 0);
	assert_int_equal(run_exit_status(&end), 5);
	assert_int_equal(run_shell("--setup", "exit 0", NULL, &w->signals, &err), 0);
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(run(w, argv, &end, &err), -ECHILD);
	assert_non_null(strstr(err.text, "sh: its exit status cannot be read: No child processes; "));
	err = (struct err){ 0 };
	assert_int_equal(run_shell("--setup", "exit 0", NULL, &w->signals, &err), -ECHILD);
	assert_non_null(strstr(err.text, "--setup: exit 0: its exit status cannot be read"));
	signal(SIGCHLD, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counting_begins_before_the_exec, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_measured_is_not_started, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_where_nobody_can_be_put, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_arguments, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_search_is_not_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ignored_children, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
