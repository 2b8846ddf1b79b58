/* SPDX-License-Identifier: Apache-2.0 */
/* Events from inside a recorded command: lines "EVENT [DATA [TIME_NS]]" in a FIFO, written by joulectl mark or by
 * the command itself. What readers of the tree would stumble over is refused: unknown events, and epochs that are
 * not counted from 0, each once. */
#ifndef JD_CTL_RECORD_MARKS_H
#define JD_CTL_RECORD_MARKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/err.h"

#define RECORD_MARK_VARIABLE "JOULED_MARK_FIFO"
#define RECORD_MARK_LINE 128

struct record_mark {
	const char *event; /* a literal */
	bool has_data;
	int64_t data;
	int64_t time_ns; /* CLOCK_REALTIME; 0 = when it was read */
};

/* Words of a line. 0 or -EINVAL. */
int record_mark_parse(const char *line, struct record_mark *ret, struct err *err);

struct record_marks {
	int fd; /* -1 = not open */
	char path[4200];
	char line[RECORD_MARK_LINE];
	size_t n; /* bytes of a line that has not ended */
	bool too_long;
	int64_t begin_ns; /* no mark is older than the experiment */
	int64_t epochs; /* that have begun */
	bool in_epoch;
	int64_t epoch_ns; /* of its last event */
	int64_t closed; /* number of the epoch that record_marks_end has ended; -1 = none */
	uint64_t taken, refused;
};

/* Makes the FIFO in dir. */
int record_marks_open(struct record_marks *m, const char *dir, struct err *err);
/* A new repetition: epochs are counted from 0 again. */
void record_marks_begin(struct record_marks *m, int64_t now_ns);
/* Completes a mark: number of the epoch, time. 0, or -EINVAL with why it is refused. */
int record_marks_judge(struct record_marks *m, struct record_mark *mark, int64_t now_ns, struct err *err);
/* What is there, as far as that comes to an end; take gets what is good, said what is refused (the first of many). */
void record_marks_read(struct record_marks *m, void (*take)(void *arg, const struct record_mark *mark),
		       void (*said)(void *arg, const char *why), void *arg);
/* At the end of the experiment: what is still there, a last line without its end too, and the end of an epoch that has
 * none, at which readers stop (a second epoch that never ends takes the whole tree from them). The time of the end. */
int64_t record_marks_end(struct record_marks *m, void (*take)(void *arg, const struct record_mark *mark),
			 void (*said)(void *arg, const char *why), void *arg);
void record_marks_close(struct record_marks *m);

#endif
