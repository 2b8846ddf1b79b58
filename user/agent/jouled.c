/* SPDX-License-Identifier: Apache-2.0 */
/* jouled: reads what it is told, and leaves the rest to the verbs. */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/log.h"
#include "app.h"

/* Takes c. */
static int run(int argc, char **argv, struct config *c)
{
	int status = c->replay ? replay_run(c) : check_run(c);

	if (!c->replay && status == EXIT_OK)
		return agent_run(argc, argv, c);
	config_free(c);
	return status;
}

/* Where a standard descriptor is closed, the first file opened would take its place, and be written
 * to as if it were stdout. Not writable: what is sent there is an error that is counted. */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Perf events, and a listening output has up to 512 clients: the usual soft limit of 1024 is the
 * shell's, kept for programs that use select(). */
static void raise_file_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_cur >= lim.rlim_max)
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim); /* what fails for want of a descriptor is said where it does */
}

int main(int argc, char **argv)
{
	enum config_action action = ACTION_RUN;
	struct config *c = NULL;
	struct err err = { 0 };
	int status = EXIT_OK;

	/* One heap: three threads that allocate rarely need no arenas of 64 MiB address space each. */
	mallopt(M_ARENA_MAX, 1);
	umask(umask(0) | 027); /* energy at full resolution is a side channel: files are not for everybody */
	fill_standard_descriptors();
	raise_file_limit();
	log_init("jouled", LOG_LVL_WARN);
	if (config_load(argc, argv, &c, &action, &err) != 0) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	log_init("jouled", c->quiet ? LOG_LVL_ERROR : c->verbose ? LOG_LVL_DEBUG : LOG_LVL_WARN);
	if (action == ACTION_RUN)
		return run(argc, argv, c);
	if (action == ACTION_CHECK && (status = check_run(c)) == EXIT_OK && !c->quiet)
		printf("%s: valid\n", c->config_path ? c->config_path : "configuration");
	if (action == ACTION_DOCTOR)
		status = doctor_run(c);
	else if (action == ACTION_HELP)
		config_print_help();
	else if (action == ACTION_VERSION)
		printf("jouled %s\n", JOULED_VERSION);
	config_free(c);
	return status;
}
