// SPDX-License-Identifier: Apache-2.0
#include "bpf_log.h"
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char last[512];

static int keep(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	/* the verifier's log, and lines that follow a cause without naming it */
	static const char *const frame[] = { "BEGIN PROG LOAD LOG", "RLIMIT_MEMLOCK", "failed to load object",
					     "failed to load BPF skeleton", "Error loading vmlinux BTF" };
	char line[512];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < sizeof(frame) / sizeof(frame[0]) && line[0]; i++)
		if (strstr(line, frame[i]))
			return 0;
	if (line[0])
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

/* "none [integrity] confidentiality": the level in force is bracketed (security/lockdown/lockdown.c). */
bool bpf_locked_down(const struct fsroot *root)
{
	char text[128];

	return fsroot_read(root, "/sys/kernel/security/lockdown", text, sizeof(text)) > 0 &&
	       strstr(text, "[confidentiality]");
}
