/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of one cgroup, for top's screen. */
#ifndef JD_CTL_TOP_PROCS_H
#define JD_CTL_TOP_PROCS_H
#include "top.h"

struct top_process {
	unsigned pid, threads; /* threads 0 = has ended */
	uint64_t start_ticks; /* since boot, in hundredths of a second: with pid its identity */
	uint64_t cpu_ns; /* so far */
	double cpu; /* CPUs, between two takings, or over a span */
	double watts;
	unsigned quality; /* of watts */
	uint64_t uj; /* of its spans in the last minute */
	char state; /* R S D Z T ... of proc(5) */
	bool has_power, has_span, ended;
	char command[256]; /* from outside, to be made safe */
};

/* The cgroup's own figures in the interval. */
struct top_procs_row {
	double watts, cpu;
	unsigned quality;
	bool has_power;
};

struct top_procs_page {
	unsigned first, lines; /* of the list */
	unsigned pid; /* drawn as chosen; 0 = none */
};

struct top_procs;
/* Asks the agent where cgroups are. socket must outlive it. 0, or negative errno with err. */
int top_procs_open(const char *socket, const char *cgroup, struct top_procs **ret, struct err *err);
/* Reads the list anew. CPU time and watts are those since the taking before. 0, or negative errno with err. */
int top_procs_take(struct top_procs *t, const struct top_procs_row *row, struct err *err);
unsigned top_procs_count(const struct top_procs *t);
void top_procs_draw(const struct top_procs *t, struct top_view *v, const struct top_procs_page *page,
		    struct top_paint *p);
void top_procs_close(struct top_procs *t); /* NULL accepted */
/* The cgroup of a process, as rows are named. 0, or negative errno with err. */
int top_pid_cgroup(const char *socket, long pid, char *ret_path, size_t size, struct err *err);
/* Reads state, threads, start and, in brackets, the command from the text of /proc/PID/stat. */
bool top_read_stat(const char *text, struct top_process *ret);

#endif
