/* SPDX-License-Identifier: Apache-2.0 */
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "heap.h"

#define LARGE_PAGE ((uintptr_t)2 << 20)
#define MOST ((size_t)64 << 20) /* of the heap; what is above has small pages */
#define OWN_MAPPING (8 << 20) /* a block of so many bytes is mapped by itself, and resident as far as it is used */
#define SMALL_PAGE ((uintptr_t)4096)
#define LINE 64

static void block_in_large_pages(void *block, size_t n)
{
	uintptr_t from = ((uintptr_t)block + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
	uintptr_t to = ((uintptr_t)block + n) & ~(LARGE_PAGE - 1);

	if (to > from)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
}

void *heap_grow_lines(void *block, size_t had, size_t to)
{
	char *p = to <= PTRDIFF_MAX - LINE ? aligned_alloc(LINE, (to + LINE - 1) & ~(size_t)(LINE - 1)) : NULL;

	if (!p)
		return NULL;
	block_in_large_pages(p, to);
	if (had)
		memcpy(p, block, had);
	memset(p + had, 0, to - had);
	free(block);
	return p;
}

void heap_in_large_pages(void)
{
	static void *before; /* fills the heap up to the first large page: never used, so never resident */
	uintptr_t top, first;
	void *block;

	mallopt(M_MMAP_THRESHOLD, OWN_MAPPING);
	mallopt(M_TRIM_THRESHOLD, 2 * MOST);
	mallopt(M_MMAP_MAX, 0); /* these are to be of the heap */
	block = malloc(SMALL_PAGE);
	top = (uintptr_t)block; /* where the free end of the heap begins */
	free(block);
	first = (top + 2 * SMALL_PAGE + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
	before = malloc(first - SMALL_PAGE - top);
	block = malloc(MOST); /* begins in the page before the first large one, so that it leaves that one whole */
	mallopt(M_MMAP_MAX, 65536); /* glibc's default */
	if (before && block)
		block_in_large_pages((void *)first, MOST - SMALL_PAGE);
	free(block); /* the heap stays as large as it is */
}

/* Whole pages of a segment that the program never writes: what is asked for again comes out of the page cache. Relocated
 * pages lie in segments that it may write (PF_W), and stay. */
static int give_back_segments(struct dl_phdr_info *object, size_t size, void *arg)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t from = object->dlpi_addr + segment->p_vaddr, to = from + segment->p_filesz;

		from = (from + SMALL_PAGE - 1) & ~(SMALL_PAGE - 1);
		to &= ~(SMALL_PAGE - 1);
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
