/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that listens: tcp-listen and unix-listen. Every client gets every document from its
 * arrival on, from a queue of its own; one that does not read is dropped when that is full.
 * Figures are sums over clients: what each was offered is delivered, dropped or queued. */
#ifndef JD_SINK_SERVER_H
#define JD_SINK_SERVER_H
#include "impl.h"

#define SERVER_CLIENTS_MAX 512 /* default */

/* Serves the listening socket fd, which is taken over on success only. gone(arg) runs when it
 * is closed, to remove the names it had; arg is freed by free(). */
struct server_place {
	int fd;
	char where[128];
	/* Which channel is this peer's? NULL = everybody gets everything. 0, or negative: it is turned away. */
	int (*admit)(void *arg, int fd, uint32_t *ret_channel);
	void (*gone)(void *arg);
	void *arg;
};

int server_start(const struct sink_ops *ops, const struct server_place *p, const struct sink_options *o,
		 struct loop *loop, struct sink **ret);
void server_wake(struct sink *s);
void server_close(struct sink *s, uint64_t deadline_ns);

#endif
