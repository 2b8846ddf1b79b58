/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that were sampled: equal ones are one entry. The table is bounded; what has no room is counted. */
#ifndef JD_PROFILE_STACKS_H
#define JD_PROFILE_STACKS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/hash.h"
#include "model/schema.h"
#include "room.h"

#define STACK_FRAMES_MAX 256
#define STACKS_MAX 65536
#define STACKS_FRAMES_MAX (2u << 20) /* of all stacks together */

/* What a sample stands for: time, or counts of an event of the schema by its index. */
enum { STACK_TIME, STACK_EVENT, STACK_COLUMNS = STACK_EVENT + SCHEMA_MAX_EVENTS };

struct stack {
	uint64_t cgroup; /* kernel id */
	uint32_t process; /* of struct code */
	uint32_t first; /* frames[first] is where it ran; callers follow */
	uint16_t n;
	bool kernel_thread; /* it has no user space */
	bool broken; /* the next caller is not known: the frames end before the program's start */
	bool whole; /* the last frame is where the program or the thread began */
	uint64_t samples; /* of all columns */
	uint32_t fresh_samples; /* of them, those of the interval that goes on */
	uint64_t time_ns; /* that the samples of time stand for */
	uint64_t fresh[STACK_COLUMNS]; /* nanoseconds and counts that these stand for */
};

struct stacks {
	struct stack *v;
	uint32_t n, cap;
	uint64_t *frames;
	uint32_t n_frames, frames_cap;
	struct hash by_stack;
	uint64_t samples; /* that have a stack here */
	uint64_t dropped; /* samples without room */
	uint32_t most, most_frames; /* 0 = the limits above */
	uint32_t most_places; /* different frames; 0 = no limit. A frame beyond is one of CODE_UNKNOWN */
	struct hash by_place; /* where there is a limit */
	uint64_t placeless; /* samples with such a frame */
	struct room *room; /* borrowed; NULL = no limit */
	size_t beside; /* bytes that others keep for each stack */
};

struct stack_sample {
	unsigned column;
	uint64_t period; /* nanoseconds or counts */
};

/* Counts a sample of a stack. s: cgroup, process, n, kernel_thread, broken and whole are given. */
void stacks_add(struct stacks *t, const struct stack *s, const uint64_t *frames, const struct stack_sample *what);
void stacks_clear(struct stacks *t); /* forgets them; room and limits stay */
void stacks_free(struct stacks *t); /* zeroed accepted */

#endif
