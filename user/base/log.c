/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "log.h"
#include "text.h"

static const char *log_program = "jouled";
static enum log_level log_max = LOG_LVL_NOTE;
static bool log_journal;

/* systemd.exec(5), JOURNAL_STREAM: "device:inode" of the stream it set up; another stderr
 * (redirected in the unit) must not get the prefixes. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) != 0)
		return false;
	snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	return strcmp(stream, own) == 0;
}

void log_init(const char *program, enum log_level max)
{
	log_program = program;
	log_max = max;
	log_journal = stderr_is_journal();
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	static const char *const words[] = { "error", "warning", "note", "info", "debug" };
	static const int priority[] = { 3, 4, 5, 6, 7 }; /* syslog(3) */
	char text[1024], clean[1024], line[1200];
	va_list ap;
	int n;

	if (level > log_max)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_clean(clean, sizeof(clean), text);
	if (log_journal)
		n = snprintf(line, sizeof(line), "<%d>%s\n", priority[level], clean);
	else
		n = snprintf(line, sizeof(line), "%s: %s: %s\n", log_program, words[level], clean);
	/* One write, so that lines of several threads do not mix. A full or closed stderr is ignored. */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

bool log_worth(uint64_t now, uint64_t *said)
{
	if (now == *said || now < 2 * *said)
		return false;
	*said = now;
	return true;
}
