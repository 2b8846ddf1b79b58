/* SPDX-License-Identifier: Apache-2.0 */
/* A heap in large pages. A reading touches a little of many pages after many other programs ran, so that half of its
 * time and more goes into finding them: with a page of 2 MiB in place of 512 small ones it takes 0.4 of the time
 * (make bench, read-out of 1000 cgroups). */
#ifndef JD_HEAP_H
#define JD_HEAP_H
#include <stddef.h>

/* Asks for large pages for the heap of this process, once, before other threads. Where the kernel gives none, nothing
 * changes. What is never touched takes address space alone. */
void heap_in_large_pages(void);

/* Makes room for `to` bytes in place of `had`, which are copied, in cache lines of their own and in large pages where
 * they fill some. What is new is zeroed. NULL = no memory, and then the old block stays. */
void *heap_grow_lines(void *block, size_t had, size_t to);

/* Gives back what only the start needed: free memory, and pages of code and constants, which are read again where they
 * are used. Other threads may run. */
void heap_after_start(void);

#endif
