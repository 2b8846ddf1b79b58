/* SPDX-License-Identifier: Apache-2.0 */
/* How the measuring thread hands finished things to the loop's: a few boxes that go round. The writer
 * fills one that nobody looks at, the reader takes the newest, or each in turn; neither waits for the
 * other but for the moment a box changes hands. */
#ifndef JD_BOARD_H
#define JD_BOARD_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define BOARD_BOXES 4

struct board {
	pthread_mutex_t lock;
	void *boxes[BOARD_BOXES];
	enum { BOX_FREE, BOX_FILLING, BOX_READY, BOX_HELD } state[BOARD_BOXES];
	uint64_t order[BOARD_BOXES], next;
	bool keep; /* the reader wants every one: a filled box is not taken back */
	uint64_t lost; /* no box was free */
};

void board_init(struct board *b); /* boxes: all NULL, the owner's to set and free */
void board_fini(struct board *b);
void board_keep(struct board *b, bool keep);
int board_take(struct board *b); /* writer: a box to fill, -1 = none */
void board_put(struct board *b, int box, bool filled);
/* Reader: the box stays its own until the next call; NULL = nothing new, or nothing ever. */
void *board_next(struct board *b); /* in turn */
void *board_latest(struct board *b); /* the newest, the one it has where there is none newer */

#endif
