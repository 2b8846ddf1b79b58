/* SPDX-License-Identifier: Apache-2.0 */
/* What this process itself costs. */
#ifndef JD_OWN_H
#define JD_OWN_H
#include <stdint.h>

struct fsroot;

uint64_t own_cpu_ns(void); /* user and system time of all threads since its start */
uint64_t own_resident_bytes(const struct fsroot *root); /* 0 = not known */

#endif
