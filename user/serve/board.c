/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"
#include <string.h>

void board_init(struct board *b)
{
	memset(b, 0, sizeof(*b));
	pthread_mutex_init(&b->lock, NULL);
}

void board_fini(struct board *b)
{
	pthread_mutex_destroy(&b->lock);
}

void board_keep(struct board *b, bool keep)
{
	pthread_mutex_lock(&b->lock);
	b->keep = keep;
	pthread_mutex_unlock(&b->lock);
}

/* The oldest box in a state; -1 = none. */
static int oldest(const struct board *b, int state)
{
	int found = -1;

	for (int i = 0; i < BOARD_BOXES; i++)
		if ((int)b->state[i] == state && (found < 0 || b->order[i] < b->order[found]))
			found = i;
	return found;
}

int board_take(struct board *b)
{
	int box;

	pthread_mutex_lock(&b->lock);
	box = oldest(b, BOX_FREE);
	if (box < 0 && !b->keep)
		box = oldest(b, BOX_READY);
	if (box >= 0)
		b->state[box] = BOX_FILLING;
	else
		b->lost++;
	pthread_mutex_unlock(&b->lock);
	return box;
}

uint64_t board_lost(struct board *b)
{
	uint64_t lost;

	pthread_mutex_lock(&b->lock);
	lost = b->lost;
	pthread_mutex_unlock(&b->lock);
	return lost;
}

void board_put(struct board *b, int box, bool filled)
{
	pthread_mutex_lock(&b->lock);
	b->state[box] = filled ? BOX_READY : BOX_FREE;
	b->order[box] = ++b->next;
	pthread_mutex_unlock(&b->lock);
}

static int advance(struct board *b)
{
	int box = oldest(b, BOX_READY), held = oldest(b, BOX_HELD);

	if (box < 0)
		return -1;
	if (held >= 0)
		b->state[held] = BOX_FREE;
	b->state[box] = BOX_HELD;
	return box;
}

void *board_next(struct board *b)
{
	int box;

	pthread_mutex_lock(&b->lock);
	box = advance(b);
	pthread_mutex_unlock(&b->lock);
	return box < 0 ? NULL : b->boxes[box];
}

void *board_latest(struct board *b)
{
	int box;

	pthread_mutex_lock(&b->lock);
	while (advance(b) >= 0)
		;
	box = oldest(b, BOX_HELD);
	pthread_mutex_unlock(&b->lock);
	return box < 0 ? NULL : b->boxes[box];
}
