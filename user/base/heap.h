/* SPDX-License-Identifier: Apache-2.0 */
/* What the heap keeps and gives back, and blocks of whole cache lines. */
#ifndef JD_HEAP_H
#define JD_HEAP_H
#include <stddef.h>

/* Keeps up to 8 MiB that are freed, and blocks below 8 MiB in the heap. By its defaults glibc maps a large block anew each time
 * it is allocated, and its pages come one by one. To be called once, before there are other threads. */
void heap_keeps_freed(void);

/* Makes room for `to` bytes in place of `had`, which are copied, in cache lines of their own. What is new is zeroed.
 * NULL = no memory, and then the old block stays. */
void *heap_grow_lines(void *block, size_t had, size_t to);

/* Gives back what only the start needed: free memory, and pages of code and constants, which are read again where they
 * are used. Other threads may run. */
void heap_after_start(void);

#endif
