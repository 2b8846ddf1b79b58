/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to stderr, one line each, "jouled: level: text"; under systemd (JOURNAL_STREAM) with
 * a "<N>" priority prefix instead. Thread-safe. Only agent/ and ctl/ call anything above debug. */
#ifndef JD_LOG_H
#define JD_LOG_H
#include <stdbool.h>
#include <stdint.h>

/* A note is what everybody should read once although nothing is wrong. It shows unless -q is given, an info with -v. */
enum log_level { LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_NOTE, LOG_LVL_INFO, LOG_LVL_DEBUG };

void log_init(const char *program, enum log_level max);
void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True at the first loss and each time the losses have doubled since, so that a lasting loss does not fill the log.
 * now: the losses so far; *said: those at the last true, 0 at first. */
bool log_worth(uint64_t now, uint64_t *said);

#define log_error(...) log_msg(LOG_LVL_ERROR, __VA_ARGS__)
#define log_warn(...) log_msg(LOG_LVL_WARN, __VA_ARGS__)
#define log_note(...) log_msg(LOG_LVL_NOTE, __VA_ARGS__)
#define log_info(...) log_msg(LOG_LVL_INFO, __VA_ARGS__)
#define log_debug(...) log_msg(LOG_LVL_DEBUG, __VA_ARGS__)

#endif
