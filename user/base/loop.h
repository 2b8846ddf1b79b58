/* SPDX-License-Identifier: Apache-2.0 */
/* The I/O thread: one libevent base with a thread of its own. Other threads hand work over with loop_post. Code on that
 * thread uses libevent directly. */
#ifndef JD_LOOP_H
#define JD_LOOP_H

struct event_base;
struct loop;

int loop_start(struct loop **ret); /* creates the base and its thread */
void loop_stop(struct loop *l); /* ends and joins the thread; NULL accepted */
struct event_base *loop_base(struct loop *l);
/* Runs fn(arg) on the loop's thread soon. Any thread. 0 or -ENOMEM. */
int loop_post(struct loop *l, void (*fn)(void *arg), void *arg);
/* Runs fn(arg) on the loop's thread and waits until it has returned. Not to be called on that thread. 0 or -ENOMEM. */
int loop_call(struct loop *l, void (*fn)(void *arg), void *arg);

#endif
