/* SPDX-License-Identifier: Apache-2.0 */
/* The I/O thread: one libevent base run by a thread of its own. Work is handed over with
 * loop_post; everything else of libevent is used directly by those who run on that thread. */
#ifndef JD_LOOP_H
#define JD_LOOP_H

struct event_base;
struct loop;

int loop_start(struct loop **ret); /* creates the base and its thread */
void loop_stop(struct loop *l); /* ends and joins the thread; NULL accepted */
struct event_base *loop_base(struct loop *l);
/* Runs fn(arg) on the loop's thread soon. Any thread. 0 or -ENOMEM. */
int loop_post(struct loop *l, void (*fn)(void *arg), void *arg);
/* The same and waits until it has run. Not on the loop's thread. */
int loop_call(struct loop *l, void (*fn)(void *arg), void *arg);

#endif
