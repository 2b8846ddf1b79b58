/* SPDX-License-Identifier: Apache-2.0 */
/* Hands finished items from the measuring thread to the loop's thread, through a few boxes. The writer fills a
 * box that the reader does not hold. The reader takes the newest box, or each in turn. Neither waits for the
 * other, except for the moment in which a box changes hands. */
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
	bool keep; /* the reader wants every box: a filled one is not taken back */
	uint64_t lost; /* number of times that no box was free */
};

void board_init(struct board *b); /* boxes: all NULL; the owner sets and frees them */
void board_fini(struct board *b);
void board_keep(struct board *b, bool keep);
int board_take(struct board *b); /* writer: returns a box to fill, -1 = none */
uint64_t board_lost(struct board *b); /* any thread: how often no box was free */
void board_put(struct board *b, int box, bool filled);
/* Reader: it holds the box until the next call. NULL = nothing new (board_next) or nothing yet (board_latest). */
void *board_next(struct board *b); /* each in turn */
void *board_latest(struct board *b); /* the newest; the one it holds if none is newer */

#endif
