/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and requests of block devices per cgroup, from a program that runs when a request completes
 * (bpf/block.bpf.c; docs/block.md says what is charged to whom). */
#ifndef JD_BLOCK_SOURCE_H
#define JD_BLOCK_SOURCE_H
#include "base/err.h"
#include "base/fsroot.h"
#include "model/reading.h"
#include "source/cgroup/hierarchy.h"

struct block;

/* 0, or negative errno with err. root: of this machine, not a captured one. */
int block_open(const struct fsroot *root, const struct hierarchy *h, const char *btf, unsigned max_cgroups,
	       struct block **ret, struct err *err);
/* Updates the block values of `traffic` of every row whose cgroup had any. No allocation. 0 or -errno. */
int block_read(struct block *b, struct reading *r);
void block_forget(struct block *b, uint64_t cgroup_id); /* the cgroup's row was dropped */
void block_close(struct block *b); /* NULL too */
/* Completions that came while the program ran on that CPU, which the kernel does not report: not counted. */
uint64_t block_lost(const struct block *b);
/* "ok", or "estimated" where the cgroup is not known by the kernel's own books. */
const char *block_state(const struct block *b);
/* Writes how work is charged here, and which devices have no requests, in one line. Cuts at size. */
void block_describe(const struct block *b, char *dst, size_t size);

#endif
