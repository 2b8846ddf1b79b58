/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of one kind: named, with a stack as large as their work needs, deaf to signals. */
#ifndef JD_THREAD_H
#define JD_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts RUN(ARG) in a thread that names itself NAME (copied; its first 15 bytes) and has a stack of STACK_BYTES (at
 * least what the system wants), or of its default size when 0. All signals but those of a fault of its own are blocked
 * in it: they belong to the thread that waits for them, and a blocked SIGPIPE or SIGXFSZ is an EPIPE or EFBIG and nothing
 * else. The caller joins or detaches *RET. 0, or a negative errno with *RET untouched. */
int thread_start(pthread_t *ret, const char *name, size_t stack_bytes, void *(*run)(void *), void *arg);

/* Asks for real-time priority for the calling thread. Among busy processes a reading would otherwise begin tens of
 * milliseconds late. Readings are short, waiting uses no CPU, and the kernel always keeps 5 % for others (sched(7)).
 * Without the right to do this nothing changes but a line of the debug log, which begins with `what`. */
void thread_hurry(const char *what);

/* A condition whose waits end by CLOCK_MONOTONIC: by the wall clock they would last as long as that is set back. */
void thread_cond_init(pthread_cond_t *cond);
/* Waits for the condition with the lock held, at most until clock_mono_ns() is until_ns. false: that time has come. */
bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

#endif
