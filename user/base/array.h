/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays: a pointer `v` to elements of one type and their capacity `cap`, both of the caller. NULL and 0
 * are the empty array; free() gives it back. Room grows by half, so that adding one by one does not copy each time,
 * and it stays when the elements go: a steady state allocates nothing. */
#ifndef JD_ARRAY_H
#define JD_ARRAY_H
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for at least n elements: 0, or -ENOMEM and then v and cap are as before. New elements are not
 * initialised by ARRAY_ROOM and zeroed by ARRAY_ZEROED. cap is a uint32_t; more than it can count is -ENOMEM. v may
 * stay NULL when n is 0. */
#define ARRAY_ROOM(v, cap, n) array_room(&(v), &(cap), n, sizeof(*(v)))
#define ARRAY_ZEROED(v, cap, n) array_zeroed(&(v), &(cap), n, sizeof(*(v)))

/* For arrays that share a capacity. Changes the capacity of v to exactly n elements: 0, or -ENOMEM and then v is as
 * before. */
#define ARRAY_RESIZE(v, n) array_resize(&(v), n, sizeof(*(v)))

/* The next capacity for n elements: half as many again. 0 = more than a capacity can count. */
static inline uint32_t array_step(size_t n)
{
	if (n > UINT32_MAX / 3 * 2)
		return 0;
	return n + n / 2 > 16 ? (uint32_t)(n + n / 2) : 16;
}

/* The functions behind the macros. v: address of the pointer; size: bytes of an element. */
static inline int array_resize(void *v, size_t n, size_t size)
{
	void *p = n <= PTRDIFF_MAX / size ? realloc(*(void **)v, n ? n * size : 1) : NULL;

	if (!p)
		return -ENOMEM;
	*(void **)v = p;
	return 0;
}

static inline int array_room(void *v, uint32_t *cap, size_t n, size_t size)
{
	uint32_t to;

	if (n <= *cap)
		return 0;
	to = array_step(n);
	if (!to || array_resize(v, to, size) != 0)
		return -ENOMEM;
	*cap = to;
	return 0;
}

static inline int array_zeroed(void *v, uint32_t *cap, size_t n, size_t size)
{
	const size_t had = *cap;
	int rc = array_room(v, cap, n, size);

	if (*cap > had)
		memset(*(char **)v + had * size, 0, (*cap - had) * size);
	return rc;
}

#endif
