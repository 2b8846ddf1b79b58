/* SPDX-License-Identifier: Apache-2.0 */
/* What this process itself costs. */
#ifndef JD_OWN_H
#define JD_OWN_H
#include <stdint.h>

struct fsroot;

uint64_t own_cpu_ns(void); /* user and system time of all threads since its start */
uint64_t own_resident_bytes(const struct fsroot *root); /* 0 = not known */
/* The same for who asks in each interval: a descriptor, which the caller closes, or -errno; and what is read from it. */
int own_open(const struct fsroot *root);
uint64_t own_resident_kept(int statm_fd); /* 0 = not known; negative accepted */

#endif
