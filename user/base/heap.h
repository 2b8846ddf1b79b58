/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of whole cache lines, and memory that only the start needed. */
#ifndef JD_HEAP_H
#define JD_HEAP_H
#include <stddef.h>

/* Makes room for `to` bytes in place of `had`, which are copied, in cache lines of their own. What is new is zeroed.
 * NULL = no memory, and then the old block stays. */
void *heap_grow_lines(void *block, size_t had, size_t to);

/* Gives back what only the start needed: free memory, and pages of code and constants, which are read again where they
 * are used. Other threads may run. */
void heap_after_start(void);

#endif
