// SPDX-License-Identifier: Apache-2.0
/* LD_PRELOAD: counts heap allocations of a program and writes "allocations N bytes N" to the file
 * $ALLOC_COUNT when it ends. The difference of two runs of different length is what an interval
 * costs, so that start-up does not matter. A program that knows of it may ask in between. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static atomic_ullong calls, bytes;
static int fd = -1;

static void count(size_t n)
{
	atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&bytes, n, memory_order_relaxed);
}

void *malloc(size_t n)
{
	count(n);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	count(n * size);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	count(n);
	return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	count(n);
	return __libc_memalign(align, n);
}

unsigned long long alloc_count_calls(void)
{
	return calls;
}

int posix_memalign(void **ret, size_t align, size_t n)
{
	count(n);
	*ret = __libc_memalign(align, n);
	return *ret ? 0 : ENOMEM;
}

/* Opened at the start: the program may have given up the right to open files when it ends. */
__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("ALLOC_COUNT");

	if (path)
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

__attribute__((destructor)) static void end(void)
{
	char text[96];
	int n;

	if (fd < 0)
		return;
	n = snprintf(text, sizeof(text), "allocations %llu bytes %llu\n", (unsigned long long)calls,
		     (unsigned long long)bytes);
	if (write(fd, text, (size_t)n) != n)
		_exit(1);
}
