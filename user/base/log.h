/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to stderr, one line each, "jouled: level: text"; under systemd (JOURNAL_STREAM) with
 * a "<N>" priority prefix instead. Thread-safe. Only app/ and ctl/ call anything above debug. */
#ifndef JD_LOG_H
#define JD_LOG_H

enum log_level { LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG };

void log_init(const char *program, enum log_level max);
void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_msg(LOG_LVL_ERROR, __VA_ARGS__)
#define log_warn(...) log_msg(LOG_LVL_WARN, __VA_ARGS__)
#define log_info(...) log_msg(LOG_LVL_INFO, __VA_ARGS__)
#define log_debug(...) log_msg(LOG_LVL_DEBUG, __VA_ARGS__)

#endif
