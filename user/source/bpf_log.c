// SPDX-License-Identifier: Apache-2.0
#include "bpf_log.h"
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char last[512];

static int keep(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[512];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	/* The verifier's log and its frame say less than the line before them. */
	if (line[0] && !strstr(line, "BEGIN PROG LOAD LOG") && !strstr(line, "RLIMIT_MEMLOCK"))
		memcpy(last, line, sizeof(last));
	return 0;
}

void bpf_log_capture(void)
{
	libbpf_set_print(keep);
}

const char *bpf_log_last(void)
{
	return last;
}

void bpf_log_reset(void)
{
	last[0] = '\0';
}
