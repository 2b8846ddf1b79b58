/* SPDX-License-Identifier: Apache-2.0 */
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "heap.h"

#define PAGE ((uintptr_t)4096)
#define LINE 64
#define KEPT (8 << 20)

void heap_keeps_freed(void)
{
	mallopt(M_MMAP_THRESHOLD, KEPT);
	mallopt(M_TRIM_THRESHOLD, KEPT);
}

void *heap_grow_lines(void *block, size_t had, size_t to)
{
	char *p = to <= PTRDIFF_MAX - LINE ? aligned_alloc(LINE, (to + LINE - 1) & ~(size_t)(LINE - 1)) : NULL;

	if (!p)
		return NULL;
	if (had)
		memcpy(p, block, had);
	memset(p + had, 0, to - had);
	free(block);
	return p;
}

/* Whole pages of a segment that the program never writes: what is asked for again comes out of the page cache. Relocated
 * pages lie in segments that it may write (PF_W), and stay. */
static int give_back_segments(struct dl_phdr_info *object, size_t size, void *arg)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t from = object->dlpi_addr + segment->p_vaddr, to = from + segment->p_filesz;

		from = (from + PAGE - 1) & ~(PAGE - 1);
		to &= ~(PAGE - 1);
		if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W) && to > from)
			madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 0;
}

void heap_after_start(void)
{
	malloc_trim(0);
	dl_iterate_phdr(give_back_segments, NULL);
}
