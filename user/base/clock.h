/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_CLOCK_H
#define JD_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull

uint64_t clock_mono_ns(void); /* CLOCK_MONOTONIC */
uint64_t clock_boot_ns(void); /* CLOCK_BOOTTIME: goes on during suspend */
int64_t clock_real_ns(void); /* CLOCK_REALTIME, Unix epoch */
uint64_t clock_thread_cpu_ns(void);

/* Opens a descriptor that becomes readable when CLOCK_REALTIME jumps: it was set, or the machine slept (the kernel then
 * moves it against CLOCK_MONOTONIC: timekeeping_resume, kernel/time/timekeeping.c). Returns it or -errno. */
int clock_jump_open(void);
bool clock_jumped(int fd); /* true when it has jumped since the last call; false for fd < 0 */

/* "YYYY-MM-DDThh:mm:ss.sss" UTC, 23 bytes and a NUL (documents/powerapi-reports.md). */
void clock_iso_ms(int64_t real_ns, char ret_text[24]);

/* "YYYY-MM-DD hh:mm:ss ZONE" in the zone of the user, for people: the zone is that of this instant (CET or CEST). */
#define CLOCK_LOCAL_BYTES 48
void clock_local(int64_t real_ns, char ret_text[CLOCK_LOCAL_BYTES]);

#endif
