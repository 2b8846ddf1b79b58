/* SPDX-License-Identifier: Apache-2.0 */
/* Events from inside a recorded command: lines "EVENT [DATA [TIME_NS]]" in a FIFO, written by joulectl mark or by the
 * command itself. Marks that readers of the tree cannot handle are refused: unknown events, and epochs that are not
 * counted from 0, each once. */
#ifndef JD_CTL_RECORD_MARKS_H
#define JD_CTL_RECORD_MARKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

#define RECORD_MARK_VARIABLE "JOULED_MARK_FIFO"
#define RECORD_MARK_LINE 128

struct record_mark {
	const char *event; /* a literal */
	bool has_data;
	int64_t data;
	int64_t time_ns; /* CLOCK_REALTIME; 0 = the time when the line is read */
};

/* Parses a line. 0 or -EINVAL. */
int record_mark_parse(const char *line, struct record_mark *ret, struct err *err);

struct janitor;

struct record_marks {
	struct janitor *janitor; /* reads on when joulectl is killed, so that no writer is held up */
	int fd; /* -1 = not open */
	char path[4200];
	char line[RECORD_MARK_LINE];
	size_t n; /* bytes in `line`, which has not ended */
	bool too_long;
	int64_t begin_ns; /* begin of the experiment; no mark may be older */
	int64_t epochs; /* number of epochs that have begun */
	bool in_epoch;
	int64_t epoch_ns; /* time of the last event of an epoch */
	int64_t closed; /* number of the epoch that record_marks_end has ended; -1 = none */
	uint64_t taken, refused;
};

/* Makes the FIFO in dir. */
int record_marks_open(struct record_marks *m, const char *dir, struct err *err);
/* Begins a repetition at now_ns: epochs are counted from 0 again. */
void record_marks_begin(struct record_marks *m, int64_t now_ns);
/* Completes a mark with its time and the number of its epoch. 0, or -EINVAL with the reason of the refusal. */
int record_marks_judge(struct record_marks *m, struct record_mark *mark, int64_t now_ns, struct err *err);
/* Reads the lines that are there, up to a bound. `take` is called with each valid mark, `said` with the reason of each
 * refusal (of many only the first ones). */
void record_marks_read(struct record_marks *m, void (*take)(void *arg, const struct record_mark *mark),
		       void (*said)(void *arg, const char *why), void *arg);
/* Ends the experiment: takes the rest of the lines, also a last one without LF, and adds the missing end of an open
 * epoch. Without it the original reader stops: a second epoch without an end makes the whole tree unreadable. Returns
 * the time of the end. */
int64_t record_marks_end(struct record_marks *m, void (*take)(void *arg, const struct record_mark *mark),
			 void (*said)(void *arg, const char *why), void *arg);
void record_marks_close(struct record_marks *m);

#endif
