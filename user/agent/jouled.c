/* SPDX-License-Identifier: Apache-2.0 */
/* jouled: reads command line and configuration, then runs a command. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/doctor/check.h"
#include "agent/doctor/doctor.h"
#include "base/heap.h"
#include "base/log.h"
#include "sink/kafka/kafka_load.h"
#include "app.h"

/* Returns the exit status of a check or an examination, and logs its error. */
static int status_of(int rc, const struct err *err)
{
	if (rc)
		log_error("%s", err->text);
	return !rc ? EXIT_OK : rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

/* Takes c over. */
static int run(int argc, char **argv, struct config *c)
{
	struct err err = { 0 };
	int status = c->program.replay ? replay_run(c) : status_of(check_config(c, &err), &err);

	if (!c->program.replay && status == EXIT_OK)
		return agent_run(argc, argv, c);
	config_free(c);
	return status;
}

/* Opens closed standard descriptors. Otherwise the first file opened would take such a number and be written to
 * as if it were stdout. They are not writable, so that output sent there is an error that is counted. */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Raises the limit of open files, for perf events and for listening outputs with up to 512 clients. The usual
 * soft limit of 1024 exists for programs that use select(). */
static void raise_file_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_cur >= lim.rlim_max)
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim); /* a later lack of descriptors is reported where it occurs */
}

static void print_version(void)
{
	const struct kafka_plugin *kafka;
	struct err err = { 0 };

	printf("jouled %s\n", JOULED_VERSION);
	if (kafka_load(&kafka, &err) == 0)
		printf("kafka: %s\n", kafka->library());
	else
		printf("kafka: absent; install the package jouled-kafka\n");
}

int main(int argc, char **argv)
{
	enum config_action action = ACTION_RUN;
	struct config *c = NULL;
	struct err err = { 0 };
	int status = EXIT_OK;

	/* One heap: three threads that rarely allocate need no arenas of 64 MiB address space each. */
	mallopt(M_ARENA_MAX, 1);
	heap_keeps_freed();
	umask(umask(0) | 027); /* energy at full resolution is a side channel: files are not readable by others */
	fill_standard_descriptors();
	raise_file_limit();
	log_init("jouled", LOG_LVL_NOTE);
	if (argc > 1 && strcmp(argv[1], "--completion") == 0) {
		config_complete(argc - 2, argv + 2);
		return fflush(stdout) == 0 ? EXIT_OK : EXIT_LOST;
	}
	if (config_load(argc, argv, &c, &action, &err) != 0) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	log_init("jouled", c->program.quiet ? LOG_LVL_ERROR : c->program.verbose ? LOG_LVL_DEBUG : LOG_LVL_NOTE);
	if (action == ACTION_RUN)
		return run(argc, argv, c);
	if (action == ACTION_CHECK && (status = status_of(check_config(c, &err), &err)) == EXIT_OK &&
	    !c->program.quiet) {
		printf("%s: valid\n", c->program.file ? c->program.file : "configuration");
		config_print_pushed(c);
	}
	if (action == ACTION_DOCTOR)
		status = status_of(doctor_run(c, &err), &err);
	else if (action == ACTION_HELP)
		config_print_help();
	else if (action == ACTION_VERSION)
		print_version();
	config_free(c);
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	err_write(&err, -errno, "stdout", "what was printed is not complete");
	log_error("%s", err.text);
	return EXIT_LOST;
}
